//! `check`: what is wrong, or will be.

use clap::Args;
use serde_json::json;
use townsquare::check::CheckDepth;

use crate::{
    context::{Context, IfMissing},
    exit_code,
    failure::Failure,
    output::note,
    progress::Progress,
};

/// Look for faults: database, migrations, policies, files, feed, disks, clock, modes. Changes nothing.
///
/// Exit code 0 if all is well, 3 if there are findings. Many findings about files go away by `townsquare repair`. JSON:
/// `findings` with `code`, `severity`, `message` and `advice`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Read every byte of the database and of the files.
    #[arg(long)]
    full: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let depth = if arguments.full { CheckDepth::Full } else { CheckDepth::Quick };
    context.with_client(IfMissing::Fail, |client| {
        let waiting = Progress::waiting(&context.output, "checking");
        let findings = client.check(depth)?;
        drop(waiting);
        if context.output.is_json {
            context.output.json(&json!({ "findings": findings }))?;
        } else {
            for finding in &findings {
                context.output.line(&finding.to_string())?;
                context.output.text("    ")?;
                context.output.line(finding.advice())?;
            }
            if findings.is_empty() {
                note("Nothing is wrong.");
            }
        }
        Ok(if findings.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
    })
}

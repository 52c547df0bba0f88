//! `check`: what is wrong, or will be.

use clap::Args;
use serde_json::json;
use townsquare::check::{CheckDepth, Finding};

use super::repair;
use crate::{
    context::Context, exit_code, failure::Failure, interrupt, output::note, progress::Progress, settings::IfMissing,
};

/// Look for faults: database, migrations, policies, files, feed, disks, clock, modes. Changes nothing without --fix.
///
/// Exit code 0 if all is well, 3 if there are findings. JSON: `findings` with `code`, `severity`, `message` and `advice`. With --fix they
/// are the findings after the repair.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Read every byte of the database and of the files.
    #[arg(long)]
    full: bool,
    /// If there are findings, do what `repair` does, and check again. Asks first.
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let depth = if arguments.full { CheckDepth::Full } else { CheckDepth::Quick };
    context.with_client(IfMissing::Fail, |client| {
        let waiting = Progress::waiting(&context.output, "checking");
        let mut findings = client.check(depth)?;
        drop(waiting);
        if arguments.fix && !findings.is_empty() {
            if !context.output.is_json {
                write(&findings, context)?;
                context.output.flush()?;
            }
            context.confirm(repair::QUESTION)?;
            interrupt::finish_first("The repair");
            let waiting = Progress::waiting(&context.output, "repairing and checking");
            client.storage().repair()?;
            findings = client.check(depth)?;
            drop(waiting);
            let count = findings.len();
            note(&format!("{count} {} left after the repair.", if count == 1 { "finding is" } else { "findings are" }));
        }
        if context.output.is_json {
            context.output.json(&json!({ "findings": findings }))?;
        } else {
            write(&findings, context)?;
        }
        Ok(if findings.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
    })
}

/// Writes the findings for people.
fn write(findings: &[Finding], context: &Context) -> Result<(), Failure> {
    for finding in findings {
        context.output.line(&finding.to_string())?;
        context.output.line(&format!("    {}", finding.advice()))?;
    }
    if findings.is_empty() {
        note("Nothing is wrong.");
    }
    Ok(())
}

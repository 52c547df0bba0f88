//! `check`: what is wrong, or will be.

mod bundle;

use std::path::PathBuf;

use clap::Args;
use townsquare::{
    blocking::Client,
    check::{CheckDepth, Finding},
};

use super::repair;
use crate::{
    context::Context, failure::Failure, findings, interrupt, new_file::NewFile, output::note, progress::Progress,
    settings::IfMissing,
};

/// Look for faults: database, migrations, policies, files, feed, disks, clock, modes. Changes nothing without --fix.
///
/// Exit code 0 if all is well, 3 if there are findings. JSON: `findings` with `code`, `severity`, `message` and `advice`. With --fix they
/// are the findings after the repair. With --bundle also `bundle`, the file.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Read every byte of the database and of the files.
    #[arg(long)]
    full: bool,
    /// If there are findings, do what `repair` does, and check again. Asks first.
    #[arg(long)]
    fix: bool,
    /// Write an archive for support (tar.gz), also if the check fails: findings, options, versions, migrations, metrics, the system.
    /// It has no secret, no address, no name of a user, of a file or of a host. FILE must not exist.
    #[arg(long, value_name = "FILE")]
    bundle: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    // An invalid option fails here, without a bundle: the bundle lists the options.
    context.settings()?.config()?;
    let if_missing = if arguments.fix { IfMissing::Fail } else { IfMissing::FailReadOnly };
    let Some(path) = &arguments.bundle else {
        return context.with_client(if_missing, |client| {
            let found = look(client, arguments, context)?;
            findings::show(&found, None, context)
        });
    };
    let mut new = Some(NewFile::at(path)?);
    let checked = context.with_client(if_missing, |client| {
        let found = look(client, arguments, context)?;
        if let Some(new) = new.take() {
            bundle::write(&new, Ok((client, &found)), context)?;
        }
        findings::show(&found, Some(&path.to_string_lossy()), context)
    });
    if let (Some(new), Err(failure)) = (new, &checked) {
        bundle::write(&new, Err(failure), context)?;
        note(&format!("The check failed. The bundle {} has what is known.", path.display()));
    }
    checked
}

/// Checks, and repairs if that is asked for.
fn look(client: &Client, arguments: &Arguments, context: &Context) -> Result<Vec<Finding>, Failure> {
    let depth = if arguments.full { CheckDepth::Full } else { CheckDepth::Quick };
    let waiting = Progress::waiting(&context.output, "checking");
    let mut found = client.check(depth)?;
    drop(waiting);
    if arguments.fix && !found.is_empty() {
        if !context.output.is_json {
            findings::write(&found, context)?;
            context.output.flush()?;
        }
        context.confirm(repair::QUESTION)?;
        interrupt::finish_first("The repair");
        let waiting = Progress::waiting(&context.output, "repairing and checking");
        client.storage().repair()?;
        found = client.check(depth)?;
        drop(waiting);
        let count = found.len();
        note(&format!("{count} {} left after the repair.", if count == 1 { "finding is" } else { "findings are" }));
    }
    Ok(found)
}

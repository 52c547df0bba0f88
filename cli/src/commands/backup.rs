//! `backup`: a copy of the SQLite database and its files.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::{context::Context, failure::Failure, output::note, progress::Progress, settings::IfMissing};

/// Copy the SQLite database to a file, and its large files to FILE.files. Others may write meanwhile.
///
/// The copy is there when it is whole. PostgreSQL has tools of its own, such as pg_dump. JSON: `backup`, the file.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new file. It must not exist.
    #[arg(value_name = "FILE")]
    target: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    context.with_client(IfMissing::Fail, |client| {
        let waiting = Progress::waiting(&context.output, "copying");
        client.backup(&arguments.target)?;
        drop(waiting);
        if context.output.is_json {
            return context.output.json(&json!({ "backup": arguments.target.to_string_lossy() }));
        }
        note(&format!("The copy is {}. `townsquare restore` installs it.", arguments.target.display()));
        Ok(())
    })
}

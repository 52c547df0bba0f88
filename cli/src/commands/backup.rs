//! `backup`: a copy of the SQLite database and its files.

use std::{path::PathBuf, pin::pin};

use clap::Args;
use futures_util::future::{Either, select};
use serde_json::json;

use crate::{
    context::Context, failure::Failure, interrupt, output::note, progress::Progress, runtime::block_on,
    settings::IfMissing,
};

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
    interrupt::defer();
    let client = context.open(IfMissing::Fail)?;
    let waiting = Progress::waiting(&context.output, "copying");
    let copied = block_on(async {
        let service = client.as_service();
        // Dropping the backup removes what it has written.
        match select(pin!(service.backup(&arguments.target)), pin!(interrupt::requested())).await {
            Either::Left((copied, _)) => copied.map_err(Failure::from),
            Either::Right(_) => Err(Failure::interrupted("There is no copy. Run the same command again.")),
        }
    });
    // Waits for the threads that remove it.
    block_on(client.close())?;
    drop(waiting);
    copied??;
    if context.output.is_json {
        return context.output.json(&json!({ "backup": arguments.target.to_string_lossy() }));
    }
    note(&format!("The copy is {}. `townsquare restore` installs it.", arguments.target.display()));
    Ok(())
}

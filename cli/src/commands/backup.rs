//! `backup`: a copy of the SQLite database and its files, once or by a schedule.

mod interval;
mod retention;
mod schedule;

use std::{
    path::{Path, PathBuf},
    pin::pin,
};

use clap::Args;
use futures_util::future::{Either, select};
use serde_json::json;
use townsquare::Client;

use self::{interval::Interval, retention::Keep};
use crate::{
    context::Context, failure::Failure, interrupt, output::note, progress::Progress, runtime::block_on,
    settings::IfMissing,
};

/// Copy the SQLite database to a file, and its large files to FILE.files. Others may write meanwhile.
///
/// The copy is there when it is whole. PostgreSQL has tools of its own, such as pg_dump. JSON: `backup`, the file.
///
/// With --every, TARGET is a folder, and the command runs until a signal ends it. Each copy is named by its time in UTC, such as
/// townsquare-20260131T235900Z.db. A backup that fails is reported, and the next turn tries again. Only one process works on a
/// folder. Use a folder for one database only: the names do not say which database a copy is from. With --keep, the command removes
/// old copies after each successful backup. It removes only files with names of this form. JSON: a line for each copy, with
/// `backup` and `removed`.
///
/// The folder is on this machine: to have the copies in S3, let another program send them there.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new file, which must not exist; with --every, the folder of the copies.
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Make a copy again and again, such as 15m, 1h or 1d.
    #[arg(long, value_name = "TIME", value_parser = interval::parse)]
    every: Option<Interval>,
    /// Keep the newest copy of each of the last hours (h), days (d) and weeks (w) that have one, such as 24h,7d,4w, and remove the
    /// others. Also minutes (m) and seconds (s). Hours, days and weeks begin by UTC. Default: keep all.
    #[arg(long, value_name = "LIST", value_parser = retention::parse, requires = "every")]
    keep: Option<Keep>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    interrupt::defer();
    if let Some(every) = arguments.every {
        return schedule::run(&arguments.target, every, arguments.keep.as_ref(), context);
    }
    if arguments.target == Path::new("-") {
        let sentence = "A backup is not written to the standard output: it has a folder of files beside it";
        return Err(Failure::usage(sentence, "Name a file; ./- names one that is called so."));
    }
    let client = context.open(IfMissing::FailReadOnly)?;
    match copy(&client, &arguments.target, context)? {
        Copied::Whole => {}
        Copied::Interrupted => return Err(Failure::interrupted("There is no copy. Run the same command again.")),
    }
    if context.output.is_json {
        return context.output.json(&json!({ "backup": arguments.target.to_string_lossy() }));
    }
    note(&format!("The copy is {}. `townsquare restore` installs it.", arguments.target.display()));
    Ok(())
}

/// The folder with the files of a copy.
pub(super) fn files_of(copy: &Path) -> PathBuf {
    with_end(copy, ".files")
}

fn with_end(copy: &Path, end: &str) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push(end);
    name.into()
}

/// How a backup ended that did not fail.
enum Copied {
    Whole,
    /// A signal ended it. There is no copy.
    Interrupted,
}

/// Copies the database of the client to `target`, and closes the client.
fn copy(client: &Client, target: &Path, context: &Context) -> Result<Copied, Failure> {
    let waiting = Progress::waiting(&context.output, "copying");
    let copied = block_on(async {
        let service = client.as_service();
        // Dropping the backup removes what it has written.
        match select(pin!(service.backup(target)), pin!(interrupt::requested())).await {
            Either::Left((copied, _)) => copied.map(|()| Copied::Whole).map_err(Failure::from),
            Either::Right(_) => Ok(Copied::Interrupted),
        }
    });
    // Waits for the threads that remove it.
    block_on(client.close())?;
    drop(waiting);
    copied?
}

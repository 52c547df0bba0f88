//! `backup`: a copy of the SQLite database and its files, once or by a schedule.

mod archive;
mod folder;
mod interval;
mod retention;
mod schedule;
mod store;
mod store_url;
mod work_folder;

use std::{
    fs, io,
    path::{Path, PathBuf},
    pin::pin,
};

use clap::Args;
use futures_util::future::{Either, select};
use jiff::Timestamp;
use serde_json::json;
use townsquare::Client;

use self::{interval::Interval, retention::Keep};
pub(super) use self::{store::fetch, store_url::StoreUrl};
use crate::{
    context::Context, failure::Failure, interrupt, output::note, progress::Progress, runtime::block_on,
    settings::IfMissing,
};

/// Copy the SQLite database to a file, and its large files to FILE.files, or both to an object in S3. Others may write meanwhile.
///
/// The copy is there when it is whole. PostgreSQL has tools of its own, such as pg_dump. JSON: `backup`, the file or the object.
///
/// TARGET is a path, or a URL such as s3://BUCKET/FOLDER/NAME.tar, also gs:// and az://, with the options of `storage_url`: the copy
/// is one object then, a tar archive. A URL with a secret is no argument: write env:VARIABLE and set the variable to the URL, or set
/// AWS_SECRET_ACCESS_KEY and the like. The copy is first made on this machine, so the disk needs room for it. If the process is
/// killed, the store may keep parts of an upload, which are no object: let a rule of the bucket remove them.
///
/// With --every, TARGET is a folder, and the command runs until a signal ends it. Each copy is named by its time in UTC, such as
/// townsquare-20260131T235900Z.db, or .tar in a store. A backup that fails is reported, and the next turn tries again. Only one
/// process works on a folder; in a store, see to it yourself. Use a folder for one database only: the names do not say which
/// database a copy is from. With --keep, the command removes old copies after each successful backup. It removes only files and
/// objects with names of this form. JSON: a line for each copy, with `backup` and `removed`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The new file or object, which must not exist; with --every, the folder of the copies.
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Make a copy again and again, such as 15m, 1h or 1d.
    #[arg(long, value_name = "TIME", value_parser = interval::parse)]
    every: Option<Interval>,
    /// Keep the newest copy of each of the last hours (h), days (d) and weeks (w) that have one, such as 24h,7d,4w, and remove the
    /// others. Also minutes (m) and seconds (s). Hours, days and weeks begin by UTC. Default: keep all.
    #[arg(long, value_name = "LIST", value_parser = retention::parse, requires = "every")]
    keep: Option<Keep>,
    /// The folder of this machine where a copy for a store is made before it is sent. Default: the data folder.
    #[arg(long, value_name = "FOLDER")]
    temp_dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    interrupt::defer();
    let url = StoreUrl::read(arguments.target.as_os_str())?;
    if let Some(url) = &url {
        url.require_outside(context)?;
    }
    if store_url::objects_url(context)?.is_some() {
        note("The large files are in an object store and stay there: the copy has only their rows.");
    }
    if let Some(url) = url {
        return to_store(&url, arguments, context);
    }
    if arguments.temp_dir.is_some() {
        return Err(Failure::usage("--temp-dir is for a copy in an object store", "Leave it out."));
    }
    if let Some(every) = arguments.every {
        return schedule::run_in_folder(&arguments.target, every, arguments.keep.as_ref(), context);
    }
    if arguments.target == Path::new("-") {
        let sentence = "A backup is not written to the standard output: it has a folder of files beside it";
        return Err(Failure::usage(sentence, "Name a file; ./- names one that is called so."));
    }
    let client = context.open(IfMissing::FailReadOnly)?;
    show(&copy(&client, &arguments.target, context)?, &arguments.target.to_string_lossy(), context)
}

fn to_store(url: &StoreUrl, arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let temp_dir = arguments.temp_dir.as_deref();
    let names_archive = url.shown.ends_with(store::SUFFIX);
    if let Some(every) = arguments.every {
        if names_archive {
            let sentence = format!("{} has the name of a copy, and --every makes its copies in a folder", url.shown);
            return Err(Failure::usage(sentence, "Name the folder, such as s3://BUCKET/FOLDER."));
        }
        let place = store::Place::of_folder(url, temp_dir, context)?;
        let ended = schedule::run_in_store(&place, every, arguments.keep.as_ref(), context);
        place.close();
        return ended;
    }
    if !names_archive {
        let sentence =
            format!("{} does not end with {}, and a copy in a store is such an archive", url.shown, store::SUFFIX);
        return Err(Failure::usage(sentence, "Name the object, such as s3://BUCKET/FOLDER/town.tar, or give --every."));
    }
    let (place, name) = store::Place::of_object(url, temp_dir, context)?;
    let checked = place.check_new(&name).and_then(|()| place.check_writing(&name));
    let made = checked.and_then(|()| place.make(&name, Timestamp::now(), context));
    place.close();
    show(&made?, &url.shown, context)
}

/// Says that a copy is there, or that a signal ended the command.
fn show(copied: &Copied, target: &str, context: &Context) -> Result<(), Failure> {
    match copied {
        Copied::Whole => {}
        Copied::Interrupted => return Err(Failure::interrupted("There is no copy. Run the same command again.")),
    }
    if context.output.is_json {
        return context.output.json(&json!({ "backup": target }));
    }
    note(&format!("The copy is {target}. `townsquare restore` installs it."));
    Ok(())
}

/// Makes a folder that only its owner may read, and the folders above it.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
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

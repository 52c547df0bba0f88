//! `restore`: installs a backup in an empty folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use townsquare::{
    blocking::Client,
    check::{CheckDepth, Finding},
};

use crate::{context::Context, exit_code, failure::Failure, findings, interrupt, output::note, progress::Progress};

/// Install a copy that `backup` made, with its files, in a folder without a database.
///
/// Everything is restored, or nothing: each page of the database and each byte of the files is checked on the way. The files go to
/// FOLDER/files. Exit code 3 if --verify has findings, and with --dry-run if FOLDER has a database. JSON: `restored`, the folder, or
/// `null` with --dry-run; with --verify also `findings`, as of `check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file that `backup` made.
    #[arg(value_name = "FILE")]
    source: PathBuf,
    /// The folder to restore to. Default: --data-dir.
    #[arg(value_name = "FOLDER")]
    target: Option<PathBuf>,
    /// Afterwards, do what `check --full` does with the restored database.
    #[arg(long)]
    verify: bool,
    /// Restore to a temporary folder beside FOLDER, and remove that: to see that the backup is whole and that there is room for it.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let settings = context.settings()?;
    if let Some(setting) = settings.get("database_url") {
        return Err(Failure::usage(
            format!("The option database_url has a value ({}), and a backup is restored to a folder", setting.source),
            "Leave the option out, and name the folder as the second argument or with --data-dir.",
        ));
    }
    let names_folder = |url: &std::ffi::OsStr| url.as_encoded_bytes().starts_with(b"file:");
    if let Some(setting) = settings.get("storage_url").filter(|setting| names_folder(&setting.value)) {
        return Err(Failure::usage(
            format!("The option storage_url names a folder ({}), and a backup brings its files", setting.source),
            "Leave the option out: the files go to the folder files beside the database, which is the default.",
        ));
    }
    let target = arguments.target.clone().unwrap_or_else(|| settings.data_dir());
    fs::metadata(&arguments.source).map_err(|error| Failure::of_file(&arguments.source, &error))?;
    interrupt::finish_first("The restore");
    let temporary = arguments.dry_run.then(|| folder_beside(&target)).transpose()?;
    // The restore makes the folder, and only this user may read it.
    let folder = temporary.as_ref().map_or_else(|| target.clone(), |temporary| temporary.path().join("town"));
    let waiting = Progress::waiting(&context.output, "restoring");
    Client::restore(&arguments.source, &folder)?;
    drop(waiting);
    let found = arguments.verify.then(|| verify(&folder, arguments.dry_run, context)).transpose()?;
    let is_free = !arguments.dry_run || !target.join("townsquare.db").exists();
    report(found.as_deref(), (!arguments.dry_run).then_some(&*target), context)?;
    if !is_free {
        note(&format!("{} has a database: a restore to this folder is refused.", target.display()));
    }
    let is_sound = found.is_none_or(|found| found.is_empty());
    Ok(if is_free && is_sound { exit_code::SUCCESS } else { exit_code::FINDINGS })
}

/// A folder on the disk of `target`, which may be missing with folders above it. It is removed when it is dropped.
fn folder_beside(target: &Path) -> Result<tempfile::TempDir, Failure> {
    let target = std::path::absolute(target).map_err(|error| Failure::of_file(target, &error))?;
    let parent = target.ancestors().skip(1).find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
    let made = tempfile::Builder::new().prefix(".townsquare-restore-").tempdir_in(parent);
    made.map_err(|error| Failure::of_file(parent, &error))
}

/// Checks the restored database. A temporary one may be of an older version: its schema is brought up to date.
fn verify(folder: &Path, is_temporary: bool, context: &Context) -> Result<Vec<Finding>, Failure> {
    let config = context.settings()?.config()?.data_dir(folder).claim_store(false).migrate(is_temporary);
    let client = Client::open(config)?;
    let waiting = Progress::waiting(&context.output, "checking");
    let found = client.as_service().check(CheckDepth::Full);
    drop(waiting);
    client.close();
    Ok(found?)
}

fn report(found: Option<&[Finding]>, target: Option<&Path>, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        let mut value = json!({ "restored": target.map(|target| target.to_string_lossy()) });
        if let Some(found) = found {
            value["findings"] = json!(found);
        }
        return context.output.json(&value);
    }
    findings::write(found.unwrap_or_default(), context)?;
    note(&match target {
        Some(target) => format!("The database is in {}.", target.display()),
        None => "The backup is whole, and there is room for it. Nothing is restored.".to_owned(),
    });
    if found.is_some_and(<[_]>::is_empty) {
        note("Nothing is wrong.");
    }
    Ok(())
}

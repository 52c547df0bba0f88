//! `restore`: installs a backup in an empty folder.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::Args;
use serde_json::json;
use townsquare::{
    blocking::Client,
    check::{CheckDepth, Finding, FindingCode},
};

use super::backup::{StoreUrl, fetch, files_of};
use crate::{
    context::Context, exit_code, failure::Failure, findings, interrupt, missing, output::note, progress::Progress,
    settings::Settings,
};

/// Install a copy that `backup` made, with its files, in a folder without a database.
///
/// Everything is restored, or nothing. The structure of the database and each byte of the large files are checked on the way, but not
/// the bytes of rows, nor of small files, which are rows. The files go to FOLDER/files. The options are those of FOLDER.
///
/// A copy in a store is named by its URL, such as s3://BUCKET/FOLDER/NAME.tar, as for `backup`. It is first read whole, and each of
/// its bytes is checked. The disk needs room for it twice.
///
/// Exit code 3 if --verify has findings. JSON: `restored`, the folder, or `null` with --dry-run; with --verify also `findings`, as of
/// `check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file or the object that `backup` made.
    #[arg(value_name = "SOURCE")]
    source: PathBuf,
    /// The folder to restore to. Default: --data-dir.
    #[arg(value_name = "FOLDER")]
    target: Option<PathBuf>,
    /// Afterwards, do what `check --full` does with the restored database. That only the original may change its files in S3 is so
    /// for every copy, and no finding.
    #[arg(long, conflicts_with = "dry_run")]
    verify: bool,
    /// Do everything but the last step, and remove what was written: FOLDER stays as it is. Fails if the restore would fail.
    #[arg(long)]
    dry_run: bool,
    /// The folder of this machine for what is read from a store, until it is installed. Default: a folder in FOLDER.
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let settings = settings_of_target(arguments, context)?;
    if let Some(setting) = settings.get("database_url") {
        return Err(Failure::usage(
            format!("The option database_url has a value ({}), and a backup is restored to a folder", setting.source),
            "Leave the option out, and name the folder as the second argument or with --data-dir.",
        ));
    }
    let target = settings.data_dir();
    let url = StoreUrl::read(arguments.source.as_os_str())?;
    let fetched = match &url {
        Some(url) => {
            refuse_storage_url(&settings, None)?;
            interrupt::defer();
            let fetched = fetch(url, &target, arguments.temp_dir.as_deref(), arguments.dry_run, context)?;
            if interrupt::is_requested() {
                return Err(Failure::interrupted("Nothing is restored. Run the same command again."));
            }
            Some(fetched)
        }
        None if arguments.temp_dir.is_some() => {
            return Err(Failure::usage("--temp-dir is for a copy in an object store", "Leave it out."));
        }
        None => None,
    };
    let source = fetched.as_ref().map_or(&arguments.source, |fetched| &fetched.database);
    refuse_storage_url(&settings, Some(source))?;
    fs::metadata(source).map_err(|error| Failure::of_file(source, &error))?;
    interrupt::finish_first("The restore");
    let waiting = Progress::waiting(&context.output, "restoring");
    if arguments.dry_run {
        townsquare::Client::try_restore(source, &target)?;
    } else {
        Client::restore(source, &target)?;
    }
    drop(waiting);
    drop(fetched);
    if !context.output.is_json {
        note(&match arguments.dry_run {
            true => format!("The backup is whole, and {} has room for it. Nothing is restored.", target.display()),
            false => format!("The database is in {}.", target.display()),
        });
    }
    let found = if arguments.verify { Some(verify(&settings, &target, context)?) } else { None };
    if context.output.is_json {
        let mut value = json!({ "restored": (!arguments.dry_run).then(|| target.to_string_lossy()) });
        if let Some(found) = &found {
            value["findings"] = json!(found);
        }
        context.output.json(&value)?;
    }
    let Some(found) = found else { return Ok(exit_code::SUCCESS) };
    if !context.output.is_json {
        findings::write(&found, context)?;
    }
    Ok(if found.is_empty() { exit_code::SUCCESS } else { exit_code::FINDINGS })
}

/// Fails if the option `storage_url` names a folder, or if the copy `source` has files: they go beside the database.
fn refuse_storage_url(settings: &Settings, source: Option<&Path>) -> Result<(), Failure> {
    let Some(setting) = settings.get("storage_url") else { return Ok(()) };
    let names_folder = setting.value.as_encoded_bytes().starts_with(b"file:");
    if names_folder || source.is_some_and(|source| files_of(source).exists()) {
        return Err(Failure::usage(
            format!("The option storage_url has a value ({}), and the backup brings its files", setting.source),
            "Leave the option out: the files go to the folder files beside the database, which is the default.",
        ));
    }
    Ok(())
}

/// The options of a program that opens the folder of the restore.
fn settings_of_target(arguments: &Arguments, context: &Context) -> Result<Settings, Failure> {
    let Some(target) = &arguments.target else { return Settings::read(&context.given) };
    let others = context.given.iter().filter(|(name, _)| name != "data_dir").cloned();
    let given: Vec<_> = others.chain([("data_dir".to_owned(), target.clone().into_os_string())]).collect();
    Settings::read(&given)
}

/// What a check of the restored database finds.
fn verify(settings: &Settings, target: &Path, context: &Context) -> Result<Vec<Finding>, Failure> {
    let not_checked =
        |failure: Failure| failure.at(format!("The database is in {}, and was not checked", target.display()));
    let config = settings.config()?.data_dir(target).claim_store(false).migrate(false);
    let client = Client::open(config).map_err(|error| not_checked(missing::failure(error)))?;
    let waiting = Progress::waiting(&context.output, "checking");
    let found = client.as_service().check(CheckDepth::Full);
    drop(waiting);
    client.close();
    let mut found = found.map_err(|error| not_checked(error.into()))?;
    found.retain(|finding| finding.code != FindingCode::StoreOfOriginal);
    Ok(found)
}

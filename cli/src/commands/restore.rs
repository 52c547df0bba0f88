//! `restore`: installs a backup in an empty folder.

use std::{fs, path::PathBuf};

use clap::Args;
use serde_json::json;
use townsquare::blocking::Client;

use crate::{context::Context, failure::Failure, interrupt, output::note, progress::Progress};

/// Install a copy that `backup` made, with its files, in a folder without a database.
///
/// Everything is restored, or nothing. JSON: `restored`, the folder.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file that `backup` made.
    #[arg(value_name = "FILE")]
    source: PathBuf,
    /// The folder to restore to. Default: --data-dir.
    #[arg(value_name = "FOLDER")]
    target: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let settings = context.settings()?;
    if let Some(setting) = settings.get("database_url") {
        return Err(Failure::usage(
            format!("The option database_url has a value ({}), and a backup is restored to a folder", setting.source),
            "Leave the option out, and name the folder as the second argument or with --data-dir.",
        ));
    }
    let target = arguments.target.clone().unwrap_or_else(|| settings.data_dir());
    fs::metadata(&arguments.source).map_err(|error| Failure::of_file(&arguments.source, &error))?;
    interrupt::finish_first("The restore");
    let waiting = Progress::waiting(&context.output, "restoring");
    Client::restore(&arguments.source, &target)?;
    drop(waiting);
    if context.output.is_json {
        return context.output.json(&json!({ "restored": target.to_string_lossy() }));
    }
    note(&format!("The database is in {}.", target.display()));
    Ok(())
}

//! The arguments of the command line that every subcommand has.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Parser};

use crate::{commands::Command, exit_code, progress_form::ProgressForm};

/// The community backend and mini app directory, from the command line.
///
/// Options of the library come from --data-dir, --database-url and --set, then from the environment (TOWNSQUARE_<NAME>), then from
/// the file townsquare.toml in the data folder. `townsquare config` shows each value and where it comes from.
///
/// Commands act for the service: no policy hides a row from them. Data goes to the standard output, everything else to the standard
/// error.
#[derive(Debug, Parser)]
#[command(name = "townsquare", bin_name = "townsquare", version, after_help = exit_code::TABLE, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) shared: Shared,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The options of every subcommand.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Shared {
    /// Folder of the database and the files; :memory: keeps nothing. Default: townsquare-data.
    #[arg(long, global = true, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Database: sqlite:PATH or postgres://HOST/NAME. A URL with a password belongs in TOWNSQUARE_DATABASE_URL.
    #[arg(long, global = true, value_name = "URL")]
    database_url: Option<String>,
    /// Another option of the library, such as catalog_url=sample: (repeatable).
    #[arg(long = "set", global = true, value_name = "NAME=VALUE", value_parser = name_and_value)]
    options: Vec<(String, String)>,
    /// Write one JSON object, or JSON lines where the output is a stream.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// How to show progress on the standard error. json: lines with `progress` (what is done), `done`, `all`, `unit` (bytes or items),
    /// `seconds` and `ended`; a number that is not known is null.
    #[arg(long, global = true, value_enum, default_value_t = ProgressForm::Auto, value_name = "FORM")]
    pub(crate) progress: ProgressForm,
    /// Do what destroys data without asking.
    #[arg(long, short, global = true)]
    pub(crate) yes: bool,
    /// Log more to the standard error: -v what happens, -vv details.
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Shared {
    /// The options of the library that are given.
    pub(crate) fn given(&self) -> Vec<(String, OsString)> {
        let data_dir = self.data_dir.iter().map(|folder| ("data_dir".to_owned(), folder.into()));
        let database = self.database_url.iter().map(|url| ("database_url".to_owned(), url.into()));
        let options = self.options.iter().map(|(name, value)| (name.clone(), value.into()));
        data_dir.chain(database).chain(options).collect()
    }
}

fn name_and_value(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("it is NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

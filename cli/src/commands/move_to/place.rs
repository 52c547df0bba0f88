//! A place of a move: a folder or a URL, on the command line, in a variable or on the standard input.
//!
//! Invariant: no error prints a text that may be a URL with a typo, because it may contain a password.

use std::{env, path::Path};

use townsquare::Config;
use url::form_urlencoded;

use crate::{
    failure::Failure,
    redact::{has_secret, known_scheme, may_be_url, redacted},
    secret_input::first_line,
    settings::Settings,
};

/// A place, and what is shown of it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) config: Config,
    /// Where the rows are.
    pub(super) rows: String,
    /// Where large files are.
    pub(super) files: String,
}

impl Place {
    /// Reads a place: a folder, a URL, `env:VARIABLE`, or `-` for the first line of the standard input.
    pub(super) fn read(text: &str) -> Result<Place, Failure> {
        Place::parse(&read_text(text)?).map_err(|failure| match text.starts_with("env:") {
            true => failure.at(text),
            false => failure,
        })
    }

    fn parse(text: &str) -> Result<Place, Failure> {
        match known_scheme(text) {
            Some(_) => Place::of_url(text),
            None if may_be_url(text) => Err(Failure::usage(
                "The place is neither a URL of a database nor the path of a folder",
                "A URL begins with townsquare:, sqlite: or postgres://; a path has neither @ nor //.",
            )),
            None => Place::of_folder(text),
        }
    }

    fn of_url(url: &str) -> Result<Place, Failure> {
        let config = Config::from_url(url)?;
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let option = |name: &str| {
            let mut pairs = form_urlencoded::parse(query.as_bytes());
            pairs.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
        };
        let folder = base.strip_prefix("townsquare:").map(|path| path.strip_prefix("//").unwrap_or(path).to_owned());
        let folder = folder.or_else(|| option("data_dir"));
        let default = folder.clone().unwrap_or_else(|| "townsquare-data".to_owned());
        let files = option("storage_url").map_or_else(|| files_of(&default), |url| redacted(&url));
        Ok(Place { config, rows: redacted(&folder.unwrap_or_else(|| base.to_owned())), files })
    }

    fn of_folder(folder: &str) -> Result<Place, Failure> {
        let settings = Settings::of_folder(folder)?;
        let value = |name: &str| settings.get(name).map(|setting| redacted(&setting.value.to_string_lossy()));
        let rows = value("database_url").unwrap_or_else(|| folder.to_owned());
        let files = value("storage_url").unwrap_or_else(|| files_of(folder));
        Ok(Place { config: settings.config()?, rows, files })
    }
}

/// Reads the text of a place, which may be in a variable or on the standard input.
///
/// # Errors
/// A variable without a text, and an argument with a secret.
pub(super) fn read_text(text: &str) -> Result<String, Failure> {
    if let Some(variable) = text.strip_prefix("env:") {
        return env::var(variable).ok().filter(|value| !value.is_empty()).ok_or_else(|| {
            Failure::usage(format!("The variable {variable} has no text"), "Set it to the URL of the place.")
        });
    }
    if text == "-" {
        return first_line();
    }
    if has_secret(text) && !may_be_url(text) {
        return Err(Failure::usage(
            "A URL with a secret is no argument: other users can read a command line",
            "Write env:VARIABLE and set the variable, or write - and send the URL as a line of the standard input.",
        ));
    }
    Ok(text.to_owned())
}

fn files_of(folder: &str) -> String {
    Path::new(folder).join("files").display().to_string()
}

//! `config`: the value of every option, and where it comes from.

use clap::Args;
use serde_json::{Map, json};
use townsquare::config::OPTIONS;

use crate::{
    context::Context,
    failure::Failure,
    redact::{NO_URL, SECRET_OPTIONS, URL_OPTIONS, known_scheme, redacted},
    settings::Setting,
};

/// Show the value of every option and where it comes from. Secrets are not shown. Opens no database.
///
/// JSON: by name `value`, `source` and `about`; `value` is null if the option has its default.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only options that have a value.
    #[arg(long)]
    given: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    // Refuses a value that is not valid.
    let settings = context.settings()?;
    settings.config()?;
    let options = OPTIONS.iter().map(|(name, about)| (*name, *about, settings.get(name)));
    let options = options.filter(|(.., setting)| !arguments.given || setting.is_some());
    if context.output.is_json {
        let object: Map<_, _> = options
            .map(|(name, about, setting)| {
                let source = setting.map_or_else(|| "default".to_owned(), |setting| setting.source.to_string());
                let value = setting.map(|setting| shown(name, setting));
                (name.to_owned(), json!({ "value": value, "source": source, "about": about }))
            })
            .collect();
        return context.output.json(&object.into());
    }
    let row = |(name, about, setting): (&str, &str, Option<&Setting>)| match setting {
        Some(setting) => vec![name.to_owned(), shown(name, setting), setting.source.to_string()],
        None => vec![name.to_owned(), default_of(about).to_owned(), "default".to_owned()],
    };
    let rows: Vec<_> = options.map(row).collect();
    context.output.table(&["option", "value", "from"], &rows)
}

/// The value without secrets.
fn shown(name: &str, setting: &Setting) -> String {
    let text = setting.value.to_string_lossy();
    match name {
        _ if SECRET_OPTIONS.contains(&name) => "***".to_owned(),
        // A catalog may be the path of a file.
        "database_url" | "database_replica_url" | "storage_url" if known_scheme(&text).is_none() => NO_URL.to_owned(),
        _ if URL_OPTIONS.contains(&name) => redacted(&text),
        _ => text.into_owned(),
    }
}

/// The default, from the description of an option.
fn default_of(about: &str) -> &str {
    about.rsplit_once("Default: ").map_or("", |(_, default)| default.trim_end_matches('.'))
}

//! `move`: copies everything into an empty database and file store.

use std::env;

use clap::Args;
use serde_json::json;
use townsquare::{
    Config, ErrorKind, MoveOptions, MoveReport,
    blocking::Client,
    check::{CheckDepth, Severity},
};

use crate::{
    context::Context,
    exit_code,
    failure::Failure,
    interrupt,
    output::note,
    progress::{Progress, Unit},
    redact::has_secret,
    secret_input::first_line,
    settings::{SECRET_OPTIONS, Settings, Source},
};

/// Copy everything from one place to an empty one: rows, users, files and the catalog. The source is only read.
///
/// A place is a data folder, or a URL: townsquare:FOLDER, sqlite:PATH or postgres://HOST/NAME, with options in its query such as
/// ?storage_url=s3://BUCKET. A URL with a secret is not an argument: write env:VARIABLE for the URL in a variable, or - for the first
/// line of the standard input. Stop the writers of the source first. The same command continues a move that was interrupted. Every
/// table and every file is compared at the end.
///
/// The file townsquare.toml of a folder counts for the folder. JSON: `rows` by table, `files`, `bytes`, `seconds`, `resumed`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The place to copy from.
    source: String,
    /// The empty place to copy to.
    target: String,
    /// Leave the sessions of users behind: they sign in again.
    #[arg(long)]
    without_sessions: bool,
    /// Look at both places and copy nothing: whether the source has faults, and whether the target has rows already. A target that is
    /// not ready has no tables yet, which the move makes, or an unfinished move. JSON: `source_faults`, `target` (empty, used or
    /// not_ready) and `reason`.
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    refuse_shared_place(&context.settings)?;
    let (source, target) = (place(&arguments.source)?, place(&arguments.target)?);
    // A source that does not exist would be created, and be empty.
    let source = source.migrate(false);
    interrupt::defer();
    let client = Client::open(source).map_err(|error| Failure::from(error).at("source"))?;
    let moved = match arguments.dry_run {
        true => look(&client, target, context),
        false => move_all(&client, target, arguments, context),
    };
    client.close();
    moved
}

/// Refuses options that would count for the source and for the target.
fn refuse_shared_place(settings: &Settings) -> Result<(), Failure> {
    for (name, source) in settings.sources() {
        let sentence = format!("The option {name} has a value ({source}), and a move has two places");
        let names_place = matches!(name, "data_dir" | "database_url" | "storage_url");
        match source {
            Source::CommandLine => {
                return Err(Failure::usage(sentence, "Write the option into the URL of SOURCE or TARGET."));
            }
            Source::Environment(variable) if names_place => {
                return Err(Failure::usage(sentence, format!("Unset it: env -u {variable} townsquare move …")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The configuration of a place.
fn place(text: &str) -> Result<Config, Failure> {
    if let Some(variable) = text.strip_prefix("env:") {
        let value = env::var(variable).map_err(|_| {
            Failure::usage(format!("The variable {variable} has no text"), "Set it to the URL of the place.")
        })?;
        return parse(&value);
    }
    if text == "-" {
        return parse(&first_line()?);
    }
    if has_secret_of_place(text) {
        return Err(Failure::usage(
            "A URL with a secret is no argument: other users can read a command line",
            "Write env:VARIABLE and set the variable, or write - and send the URL as a line of the standard input.",
        ));
    }
    parse(text)
}

/// Options of the library in the query are open, unless they are URLs with a secret or keys.
fn has_secret_of_place(text: &str) -> bool {
    let (base, query) = text.split_once('?').unwrap_or((text, ""));
    let is_secret = |pair: &str| match pair.split_once('=') {
        Some(("storage_url" | "database_url" | "catalog_url", url)) => has_secret(url),
        Some((name, _)) if townsquare::config::OPTIONS.iter().any(|(option, _)| *option == name) => {
            SECRET_OPTIONS.contains(&name)
        }
        _ => has_secret(&format!("x?{pair}")),
    };
    has_secret(base) || query.split('&').any(is_secret)
}

fn parse(text: &str) -> Result<Config, Failure> {
    let is_url = text.split_once(':').is_some_and(|(scheme, _)| scheme.len() > 1 && !scheme.contains(['/', '\\', '.']));
    if is_url { Ok(Config::from_url(text)?) } else { Settings::of_folder(text)?.config() }
}

fn move_all(client: &Client, target: Config, arguments: &Arguments, context: &Context) -> Result<u8, Failure> {
    let progress = Progress::new(&context.output, "rows and files", Unit::Items);
    let options = MoveOptions::new().sessions(!arguments.without_sessions);
    let moved = client.move_to(target, options, |done, all| progress.show(done, all));
    drop(progress);
    let report = moved.map_err(|error| match error.kind() {
        ErrorKind::Cancelled => Failure::interrupted("Run the same command again: it continues the move."),
        _ => error.into(),
    })?;
    write(&report, context)?;
    Ok(exit_code::SUCCESS)
}

fn write(report: &MoveReport, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        return context.output.json(&json!(report));
    }
    let files = [("files".to_owned(), report.files), ("bytes of files".to_owned(), report.bytes)];
    let rows = report.rows.clone().into_iter().chain(files);
    let rows: Vec<_> = rows.map(|(name, count)| vec![name, count.to_string()]).collect();
    context.output.table(&["table", "rows"], &rows)?;
    note(&format!("Moved and compared in {:.1} s. The source is unchanged.", report.seconds));
    Ok(())
}

/// Looks at both places.
fn look(client: &Client, target: Config, context: &Context) -> Result<u8, Failure> {
    let findings = client.check(CheckDepth::Quick)?;
    let faults: Vec<_> = findings.iter().filter(|finding| finding.severity() == Severity::Error).collect();
    // Refused unchanged if its tables would have to be made, and during a move.
    let (state, reason) = match Client::open(target.migrate(false)) {
        Ok(opened) => {
            let is_used = has_rows(&opened.as_service());
            opened.close();
            (if is_used? { "used" } else { "empty" }, None)
        }
        Err(error) if error.kind() == ErrorKind::Config => ("not_ready", Some(error.message().to_owned())),
        Err(error) => return Err(Failure::from(error).at("target")),
    };
    if context.output.is_json {
        context.output.json(&json!({ "source_faults": faults, "target": state, "reason": reason }))?;
    } else {
        context.output.line(&format!("source: {} faults", faults.len()))?;
        for fault in &faults {
            context.output.line(&format!("    {fault}"))?;
        }
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        context.output.line(&format!("target: {}{reason}", state.replace('_', " ")))?;
    }
    Ok(if faults.is_empty() && state != "used" { exit_code::SUCCESS } else { exit_code::FINDINGS })
}

/// Whether a database has users, spaces, communities or files.
fn has_rows(client: &Client) -> Result<bool, Failure> {
    Ok(!client.auth().list_users(1, None)?.is_empty()
        || !client.spaces().list_spaces(1, None)?.is_empty()
        || !client.communities().list_community_configs(1, None)?.is_empty()
        || client.storage().iter("assets", "", 1).next().transpose()?.is_some())
}

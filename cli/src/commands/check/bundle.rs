//! The bundle of `check`: an archive for support.
//!
//! Invariant: no text of a user, a host or a path reaches the archive. Each part has only names and sentences of the library,
//! numbers, and values of options that take no free text.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    io::{self, Write as _},
    thread,
};

use flate2::{Compression, write::GzEncoder};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use townsquare::{
    Config,
    blocking::Client,
    check::{Finding, FindingCode},
    config::OPTIONS,
};

use crate::{
    context::Context,
    failure::Failure,
    interrupt,
    new_file::NewFile,
    recent_events::recent_events,
    redact::{SECRET_OPTIONS, URL_OPTIONS, known_scheme},
    settings::{Setting, Source},
};

/// Shown in place of a value that may have a text of a user.
const SET: &str = "<set>";

/// The longest value that is shown.
const MOST_CHARACTERS: usize = 32;

const README: &str = "\
A bundle of `townsquare check --bundle`, for support.

findings.json    what is wrong: code, severity, what it means, how often it was found
migrations.json  the migrations of this version, and which of them the database has
config.json      the options that have a value; <set> stands for a text, a path or a secret
stats.json       the catalog and the change feed
metrics.json     what the client counted during the check
log.json         the last events of the log: time, level and place in the sources
platform.json    the system
versions.json    the versions
error.json       only if the check failed: its exit code

No file has an address, a name of a user, of a file or of a host, a token or a secret. The messages of findings are
left out, because they name files and hosts: `townsquare check` prints them.
";

/// Writes the archive, for its owner only. `checked` has the client and its findings, or why there are none.
///
/// # Errors
/// As for [`NewFile::write`]. There is no file then.
pub(super) fn write(
    new: &NewFile<'_>,
    checked: Result<(&Client, &[Finding]), &Failure>,
    context: &Context,
) -> Result<(), Failure> {
    let parts = parts(checked, context)?;
    // A signal would leave the temporary file.
    interrupt::finish_first("The bundle");
    new.write(|file| write_archive(file, &parts).map_err(|error| new.failed(&error)))
}

fn write_archive(file: &mut File, parts: &[(&str, Vec<u8>)]) -> io::Result<()> {
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::default()));
    for (name, bytes) in parts {
        // No owner and no group of the host.
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mode(0o600);
        header.set_mtime(Timestamp::now().as_second().unsigned_abs());
        archive.append_data(&mut header, format!("townsquare-bundle/{name}"), bytes.as_slice())?;
    }
    archive.into_inner()?.finish()?.flush()
}

/// The files of the archive.
fn parts(
    checked: Result<(&Client, &[Finding]), &Failure>,
    context: &Context,
) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let mut parts = vec![
        ("README.txt", README.as_bytes().to_vec()),
        ("versions.json", json_text(&versions(context)?)),
        ("platform.json", json_text(&platform())),
        ("config.json", json_text(&config(context)?)),
        ("migrations.json", json_text(&migrations(context)?)),
    ];
    match checked {
        Ok((client, found)) => {
            parts.push(("findings.json", json_text(&findings(found))));
            parts.push(("stats.json", json_text(&stats(client)?)));
            parts.push(("metrics.json", json_text(&client.metrics()?.to_json())));
        }
        Err(failure) => parts.push(("error.json", json_text(&json!({ "exit_code": failure.code })))),
    }
    // The last one: the others may have added events.
    parts.push(("log.json", json_text(&recent_events().into())));
    Ok(parts)
}

fn json_text(value: &Value) -> Vec<u8> {
    format!("{value:#}\n").into_bytes()
}

/// The findings by code. Their messages name files and hosts.
fn findings(found: &[Finding]) -> Value {
    let mut counts: BTreeMap<FindingCode, u64> = BTreeMap::new();
    for finding in found {
        *counts.entry(finding.code).or_default() += 1;
    }
    let rows = counts.into_iter().map(|(code, count)| {
        json!({
            "code": code.as_str(),
            "severity": code.severity().as_str(),
            "meaning": code.meaning(),
            "advice": code.advice(),
            "count": count,
        })
    });
    rows.collect()
}

fn migrations(context: &Context) -> Result<Value, Failure> {
    Ok(match Client::plan_migrations(context.settings()?.config()?) {
        Ok(plan) => json!(plan),
        Err(error) => json!({ "error": { "kind": error.kind().as_str(), "code": error.code() } }),
    })
}

fn stats(client: &Client) -> Result<Value, Failure> {
    let catalog = client.discovery().stats()?;
    Ok(json!({
        "catalog": {
            "total": catalog.total,
            "received": catalog.received,
            "skipped": catalog.skipped,
            "duplicates": catalog.duplicates,
            "has_api_key": catalog.has_api_key,
            "source": catalog.source.as_str(),
            "fetched_at": catalog.fetched_at.map(|time| time.to_string()),
            "is_stale": catalog.is_stale,
            // The error names hosts.
            "has_failed": catalog.last_error.is_some(),
        },
        "feed": client.realtime().stats()?,
    }))
}

/// The options with a value.
fn config(context: &Context) -> Result<Value, Failure> {
    let settings = context.settings()?;
    let options = OPTIONS.iter().filter_map(|(name, _)| settings.get(name).map(|setting| (*name, setting)));
    Ok(options.map(|(name, setting)| (name.to_owned(), option(name, setting))).collect::<Map<_, _>>().into())
}

fn option(name: &str, setting: &Setting) -> Value {
    let source = match setting.source {
        Source::CommandLine => "command line",
        Source::Environment(_) => "environment",
        Source::File(_) => "file",
    };
    json!({ "value": shown(name, &setting.value.to_string_lossy()), "source": source })
}

/// The value of an option, if it cannot have a text of a user; the scheme of a URL.
fn shown(name: &str, value: &str) -> String {
    if SECRET_OPTIONS.contains(&name) {
        return SET.to_owned();
    }
    if URL_OPTIONS.contains(&name) {
        return known_scheme(value).map_or_else(|| SET.to_owned(), |scheme| format!("{scheme}:{SET}"));
    }
    // An option that takes any text takes this one.
    let takes_text = Config::new().set(name, "planted-text").is_ok();
    let is_word = value.chars().all(|character| character.is_ascii_alphanumeric() || ".-_".contains(character));
    let is_valid = Config::new().set(name, value).is_ok();
    match !takes_text && is_word && is_valid && value.len() <= MOST_CHARACTERS {
        true => value.to_owned(),
        false => SET.to_owned(),
    }
}

fn versions(context: &Context) -> Result<Value, Failure> {
    let url = context.settings()?.get("database_url").map(|setting| setting.value.to_string_lossy().into_owned());
    let is_postgres = url.as_deref().and_then(known_scheme).is_some_and(|scheme| scheme.starts_with("postgres"));
    let database = if is_postgres { "postgres" } else { "sqlite" };
    Ok(
        json!({ "townsquare": env!("CARGO_PKG_VERSION"), "database": database, "made_at": Timestamp::now().to_string() }),
    )
}

/// What is known of the system. The name of the host is not.
fn platform() -> Value {
    json!({
        "os": env::consts::OS,
        "arch": env::consts::ARCH,
        "processors": thread::available_parallelism().ok().map(std::num::NonZero::get),
        "kernel": kernel(),
        "memory_kb": number_after("/proc/meminfo", "MemTotal:"),
        "memory_available_kb": number_after("/proc/meminfo", "MemAvailable:"),
        "open_files_limit": number_after("/proc/self/limits", "Max open files"),
    })
}

/// The numbers of the version of the kernel. What follows them may be a text of whoever built it.
fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(release.chars().take_while(|character| character.is_ascii_digit() || *character == '.').collect())
}

/// The first number of the line that begins with `name`.
fn number_after(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_shows_a_text() {
        for (name, _) in OPTIONS {
            for text in [
                "planted",
                "planted@mail.example",
                "postgres://planted:planted@planted/planted",
                "10.1.2.3",
                "Planted1",
            ] {
                let value = shown(name, text);
                assert!(!value.to_lowercase().contains("planted") && !value.contains("10.1.2.3"), "{name}: {value}");
            }
        }
        assert_eq!(shown("buckets", "planted=public"), SET);
        assert_eq!(shown("database_url", "postgres://ann@db.example/town"), "postgres:<set>");
        assert_eq!(shown("catalog_tries", "5"), "5");
        assert_eq!(shown("durability", "normal"), "normal");
        assert_eq!(shown("expose_owner_email", "verified"), "verified");
    }
}

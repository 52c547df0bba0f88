//! The table of options: each entry declares a value, its builder method, its name in `OPTIONS`, its parser and its
//! check.
//!
//! Invariant: an option is declared here and nowhere else. To add one, add an entry to `options!` below and read
//! `OptionValues::<name>` where the option takes effect.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
    time::Duration,
};

use super::{Config, DatabasePooler, Durability, OptionSource, OwnerEmail, Secret, declared_buckets};
use crate::error::{Error, Result};

const MAX_SECONDS: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Declares the options. An entry is `name: kind = default;` with the documentation of the option above it. The
/// documentation is also the description in `OPTIONS`, so it has no Markdown.
///
/// | kind | value | text accepted by `Config::set` |
/// |---|---|---|
/// | `path` | `Option<PathBuf>` | any |
/// | `text` | `String` | any |
/// | `optional_text` | `Option<String>` | any |
/// | `url` | `Secret` | any |
/// | `secret` | `Option<Secret>` | any |
/// | `seconds` | `Duration` | a number of seconds, also a fraction |
/// | `optional_seconds` | `Option<Duration>` | a number of seconds, also a fraction |
/// | `u32(least..=most)`, `u64(least..=most)` | `u32`, `u64` | a whole number |
/// | `optional_u64(least..=most)` | `Option<u64>` | a whole number |
/// | `flag` | `bool` | `true`, `1`, `false`, `0` |
/// | `durability` | `Durability` | `full`, `normal` |
/// | `pooler` | `DatabasePooler` | `auto`, `session`, `transaction` |
/// | `bucket_list` | `String` | `NAME=public` or `NAME=private`, separated by commas |
/// | `owner_email` | `OwnerEmail` | `always`, `verified`, `never`, `true`, `1`, `false`, `0` |
///
/// The default of `path`, `secret` and the kinds `optional_…` is `None`. In their entries the default is a description for
/// the documentation. `Config::resolve` computes the actual value. `OptionValues::check` refuses a number outside its range.
macro_rules! options {
    ($($(#[doc = $doc:literal])+ $name:ident: $kind:ident $(($least:literal..=$most:literal))? = $default:tt;)*) => {
        /// The value of every option.
        #[derive(Debug, Clone, PartialEq)]
        pub(crate) struct OptionValues {
            $($(#[doc = $doc])+ pub(crate) $name: option!(type $kind),)*
        }

        impl Default for OptionValues {
            fn default() -> OptionValues {
                OptionValues { $($name: option!(default $kind $default),)* }
            }
        }

        /// Name and description of every option: what [`Config::set`], the query of [`Config::from_url`], the variables
        /// `TOWNSQUARE_<NAME>` of [`Config::from_env`] and Python's keyword arguments accept.
        ///
        /// ```
        /// for (name, description) in townsquare::config::OPTIONS {
        ///     println!("{name:<24} {description}");
        /// }
        /// ```
        pub const OPTIONS: &[(&str, &str)] = &[$((
            stringify!($name),
            concat!($($doc,)+ " Default: ", option!(words $default), option!(values $kind $($least $most)?), ".").trim_ascii(),
        ),)*];

        impl OptionValues {
            /// Checks every number and time against its range.
            pub(super) fn check(&self) -> Result<()> {
                $(option!(check $kind self.$name, stringify!($name) $(, $least, $most)?);)*
                Ok(())
            }
        }

        impl Config {
            /// Sets the option `name` from text that `source` gives.
            pub(super) fn set_from(&mut self, source: OptionSource, name: &str, text: &str) -> Result<()> {
                match name {
                    $(stringify!($name) => {
                        let value = option!(parse $kind name text);
                        self.note(stringify!($name), source, self.options.$name == value);
                        self.options.$name = value;
                    })*
                    _ => return Err(unknown_option(name)),
                }
                Ok(())
            }

            $(option! { builder $kind $name
                $(#[doc = $doc])+
                #[doc = ""]
                #[doc = concat!("Default: ", option!(shown $kind $default), option!(values $kind $($least $most)?), ".")]
                #[doc = ""]
                #[doc = "```"]
                #[doc = concat!("# let ", stringify!($name), " = \"value\";")]
                #[doc = concat!("let config = townsquare::Config::new().", stringify!($name), "(",
                    option!(example $kind $name $default), ");")]
                #[doc = "```"]
            })*
        }
    };
}

/// The parts of `options!` that depend on the kind. The last arm of a part is the general case: add an arm for a new kind
/// where the general case does not fit.
macro_rules! option {
    (type path) => { Option<PathBuf> };
    (type text) => { String };
    (type bucket_list) => { String };
    (type optional_text) => { Option<String> };
    (type url) => { Secret };
    (type secret) => { Option<Secret> };
    (type seconds) => { Duration };
    (type optional_seconds) => { Option<Duration> };
    (type u32) => { u32 };
    (type u64) => { u64 };
    (type optional_u64) => { Option<u64> };
    (type flag) => { bool };
    (type durability) => { Durability };
    (type pooler) => { DatabasePooler };
    (type owner_email) => { OwnerEmail };

    (default path $sentence:literal) => { None };
    (default secret $sentence:literal) => { None };
    (default optional_text $sentence:literal) => { None };
    (default optional_u64 $sentence:literal) => { None };
    (default optional_seconds $sentence:literal) => { None };
    (default text $default:literal) => { $default.to_owned() };
    (default bucket_list $default:literal) => { $default.to_owned() };
    (default url $default:literal) => { Secret::new($default) };
    (default seconds $default:literal) => { Duration::from_secs($default) };
    (default durability $name:literal) => { Durability::default() };
    (default pooler $name:literal) => { DatabasePooler::default() };
    (default owner_email $name:literal) => { OwnerEmail::default() };
    (default $kind:ident $default:literal) => { $default };

    (words "") => { "empty" };
    (words $default:literal) => { $default };
    (shown $kind:ident "") => { "empty" };
    (shown text $default:literal) => { concat!("`", $default, "`") };
    (shown bucket_list $default:literal) => { concat!("`", $default, "`") };
    (shown url $default:literal) => { concat!("`", $default, "`") };
    (shown $kind:ident $default:literal) => { $default };

    (example path $name:ident $default:literal) => { stringify!($name) };
    (example optional_text $name:ident $default:literal) => { stringify!($name) };
    (example secret $name:ident $default:literal) => { stringify!($name) };
    (example seconds $name:ident $default:literal) => { concat!("std::time::Duration::from_secs(", $default, ")") };
    (example optional_seconds $name:ident $default:literal) => { "std::time::Duration::from_secs(60)" };
    (example durability $name:ident $default:literal) => { "townsquare::config::Durability::Full" };
    (example pooler $name:ident $default:literal) => { "townsquare::config::DatabasePooler::Session" };
    (example owner_email $name:ident $default:literal) => { "townsquare::config::OwnerEmail::Verified" };
    (example optional_u64 $name:ident $default:literal) => { "4096" };
    (example $kind:ident $name:ident $default:literal) => { stringify!($default) };

    (values seconds) => { " s" };
    (values optional_seconds) => { "" };
    (values flag) => { " (true or false)" };
    (values durability) => { " (full or normal)" };
    (values pooler) => { " (auto, session or transaction)" };
    (values owner_email) => { " (always, verified or never; also true or false)" };
    (values $kind:ident $least:literal $most:literal) => { concat!(" (", $least, " to ", $most, ")") };
    (values $kind:ident) => { "" };

    (parse path $name:ident $text:ident) => { Some(PathBuf::from($text)) };
    (parse text $name:ident $text:ident) => { $text.to_owned() };
    (parse bucket_list $name:ident $text:ident) => { declared_buckets($text).map(|_| $text.to_owned())? };
    (parse optional_text $name:ident $text:ident) => { Some($text.to_owned()) };
    (parse url $name:ident $text:ident) => { Secret::new($text) };
    (parse secret $name:ident $text:ident) => { Some(Secret::new($text)) };
    (parse seconds $name:ident $text:ident) => { parse_seconds($name, $text)? };
    (parse optional_seconds $name:ident $text:ident) => { Some(parse_seconds($name, $text)?) };
    (parse flag $name:ident $text:ident) => { parse_flag($name, $text)? };
    (parse durability $name:ident $text:ident) => { parse_durability($name, $text)? };
    (parse pooler $name:ident $text:ident) => { parse_pooler($name, $text)? };
    (parse owner_email $name:ident $text:ident) => { parse_owner_email($name, $text)? };
    (parse optional_u64 $name:ident $text:ident) => { Some(parse_number($name, $text)?) };
    (parse $number:ident $name:ident $text:ident) => { parse_number($name, $text)? };

    (check seconds $value:expr, $name:expr) => { check_seconds($name, $value)? };
    (check optional_seconds $value:expr, $name:expr) => {
        if let Some(value) = $value {
            check_seconds($name, value)?;
        }
    };
    (check optional_u64 $value:expr, $name:expr, $least:literal, $most:literal) => {
        if let Some(value) = $value {
            check_range($name, value, $least, $most)?;
        }
    };
    (check $kind:ident $value:expr, $name:expr, $least:literal, $most:literal) => {
        check_range($name, $value, $least, $most)?
    };
    (check $kind:ident $value:expr, $name:expr) => {};

    (argument path) => { impl AsRef<Path> };
    (argument text) => { impl Into<String> };
    (argument bucket_list) => { impl Into<String> };
    (argument optional_text) => { impl Into<String> };
    (argument url) => { impl Into<String> };
    (argument secret) => { impl Into<String> };
    (argument owner_email) => { impl Into<OwnerEmail> };
    (argument optional_u64) => { u64 };
    (argument optional_seconds) => { Duration };
    (argument $kind:ident) => { option!(type $kind) };

    (store path $value:ident) => { Some($value.as_ref().to_owned()) };
    (store text $value:ident) => { $value.into() };
    (store bucket_list $value:ident) => { $value.into() };
    (store optional_text $value:ident) => { Some($value.into()) };
    (store url $value:ident) => { Secret::new($value) };
    (store secret $value:ident) => { Some(Secret::new($value)) };
    (store owner_email $value:ident) => { $value.into() };
    (store optional_u64 $value:ident) => { Some($value) };
    (store optional_seconds $value:ident) => { Some($value) };
    (store $kind:ident $value:ident) => { $value };

    (builder $kind:ident $name:ident $(#[$doc:meta])+) => {
        $(#[$doc])+
        #[must_use]
        pub fn $name(mut self, $name: option!(argument $kind)) -> Config {
            let value = option!(store $kind $name);
            self.note(stringify!($name), OptionSource::Caller, self.options.$name == value);
            self.options.$name = value;
            self
        }
    };
}

options! {
    /// Folder of the database, the files and the session file; it is created when it is missing. With :memory: nothing is on the disk.
    data_dir: path = "$TOWNSQUARE_DATA_DIR, else ./townsquare-data";
    /// Database: sqlite:PATH, sqlite::memory: or postgres://HOST/NAME.
    database_url: secret = "the file townsquare.db in data_dir";
    /// PostgreSQL: a streaming standby of database_url. Some reads of anonymous callers and of the service go to it.
    database_replica_url: secret = "none, all reads go to database_url";
    /// Time that a read waits until the replica has replayed what the client has written; then database_url answers.
    database_replica_wait: seconds = 1;
    /// How old at most the answer of the replica may be; a replica that is further behind is not used.
    database_replica_max_lag: seconds = 10;
    /// Failures that a commit to SQLite survives: a power loss (full), or only a crash of the process (normal).
    durability: durability = "full";
    /// Time a write to SQLite waits for another process's write lock.
    busy_timeout: seconds = 10;
    /// How the PostgreSQL server, or a pooler before it, shares connections; auto finds out at open.
    database_pooler: pooler = "auto";
    /// Maximum number of connections to PostgreSQL.
    max_connections: u32(1..=10000) = 16;
    /// Time limit of one step on PostgreSQL, the wait for a connection included; an upload has several steps.
    operation_timeout: seconds = 30;
    /// Time that one host of a PostgreSQL URL has to accept a connection before the next host is tried.
    connect_timeout: seconds = 2;
    /// Time after which an idle connection to PostgreSQL is closed.
    idle_timeout: seconds = 600;
    /// Time after which a connection to PostgreSQL is replaced.
    max_lifetime: seconds = 1800;
    /// Adds what is missing to a PostgreSQL database that has the tables but was not made by this library.
    adopt: flag = false;
    /// Whether open may create or migrate the database; without it, a database that needs that is refused unchanged.
    migrate: flag = true;
    /// Catalog: the base URL of an upstream API, file:PATH or a path for a catalog file, or sample: for invented mini apps.
    catalog_url: url = "https://api.neynar.com";
    /// Key of the upstream API; with an empty key, discovery returns no mini apps.
    catalog_api_key: secret = "$CATALOG_API_KEY";
    /// Name of the HTTP header that carries the key.
    catalog_key_header: text = "x-api-key";
    /// Time for which a fetched catalog counts as fresh.
    refresh_interval: seconds = 900;
    /// Time limit of one upstream request, body included.
    catalog_timeout: seconds = 10;
    /// Time limit for fetching one whole list, retries and waits included.
    catalog_refresh_timeout: seconds = 30;
    /// Number of rows requested in one page.
    catalog_page_size: u32(1..=100) = 100;
    /// Maximum number of pages fetched for one list.
    catalog_max_pages: u32(1..=1000000) = 100;
    /// Maximum size in bytes of a page or of a catalog file.
    catalog_max_page_bytes: u64(1..=1099511627776) = 33554432;
    /// Number of attempts to fetch one page before the refresh fails.
    catalog_tries: u32(1..=10) = 3;
    /// Maximum number of further lists in the catalog: the orders of other timeframes, and the apps of networks.
    catalog_max_lists: u32(0..=100) = 20;
    /// Format of an upstream API: neynar, or farcaster (camelCase rows with their chains, without a key).
    catalog_format: text = "neynar";
    /// Age of the catalog from which a read waits for a refresh; without it, reads are answered from a catalog of any age.
    max_staleness: optional_seconds = "no limit";
    /// Whether callers of the discovery endpoint may refresh the catalog.
    endpoint_refresh: flag = true;
    /// Age of the catalog below which a refresh by the discovery endpoint fetches nothing.
    endpoint_refresh_age: seconds = 60;
    /// Whether callers of the discovery endpoint may have further lists fetched, which the program itself has not read: the
    /// orders of other timeframes, and the apps of networks.
    endpoint_lists: flag = false;
    /// Origins whose pages may call the HTTP endpoints (CORS), separated by commas; * allows every origin.
    endpoint_origins: text = "";
    /// Keeps the session of the signed-in user in a file in data_dir, so that the user is still signed in when the
    /// program starts again; for a program with one user. Processes with the same data_dir share the session.
    persist_session: flag = false;
    /// Maximum size in bytes of a text in a table.
    max_text_size: u64(1..=1000000000) = 1048576;
    /// Maximum size in bytes of a name in a table: of a space, of a registration, and of the type of a fidget.
    max_name_size: u64(1..=1000000000) = 1024;
    /// Maximum size in bytes of a JSON value in a table, written without white space, and its numbers without an exponent.
    max_json_size: u64(1..=1000000000) = 262144;
    /// Maximum number of rows that one call creates or changes.
    max_bulk_rows: u64(1..=1000000) = 10000;
    /// Number of accounts that can be created per hour, by all processes on the database together; 0 is no limit.
    sign_up_limit: u32(0..=1000000) = 0;
    /// Name of the deployment that identity claims must be for.
    identity_audience: optional_text = "the incarnation id of the database";
    /// Object store of large files: memory:, file:PATH, s3://BUCKET/PREFIX, gs://… or az://….
    storage_url: secret = "the folder files in data_dir, or memory: if the database is in memory";
    /// Takes over the object store for this database, if the store has its files but belongs to another database: the original
    /// of this copy, which is no longer in use. Set it for one open.
    claim_store: flag = false;
    /// Key of signed URLs: at least 32 bytes of random text, the same for every client of the database.
    url_signing_key: secret = "a key in the database, which no backup contains";
    /// Maximum size in bytes of a file that is kept in the database instead of the object store.
    inline_file_limit: optional_u64(0..=1000000000) = "65536, or 0 when storage_url is given";
    /// Maximum size in bytes of a file.
    max_file_size: u64(1..=1099511627776) = 52428800;
    /// Maximum size in bytes of an upload with verify, which needs up to 100 times as much memory.
    max_verified_size: u64(1..=1099511627776) = 1048576;
    /// Maximum size in bytes of all files of one owner; beyond it, the owner's writes fail with QuotaExceeded.
    max_owner_bytes: optional_u64(0..=1000000000000000000) = "no limit";
    /// Maximum number of files of one owner; beyond it, the owner's writes fail with QuotaExceeded.
    max_owner_files: optional_u64(0..=1000000000000000000) = "no limit";
    /// Maximum number of spaces of one owner; beyond it, the owner's new spaces fail with QuotaExceeded.
    max_owner_spaces: optional_u64(0..=1000000000000000000) = "no limit";
    /// Maximum number of fidgets of one space; beyond it, new fidgets fail with QuotaExceeded, except those of the service.
    max_space_fidgets: u64(0..=1000000000) = 1000;
    /// Further buckets as NAME=public or NAME=private, separated by commas.
    buckets: bucket_list = "";
    /// Time for which the change feed keeps a change, for subscriptions that continue from a cursor.
    change_retention: seconds = 604800;
    /// Number of changes that the change feed keeps; four times as many while a subscription of the process has not read them.
    change_retention_rows: u64(100..=1000000000) = 1000000;
    /// Size in bytes of the changes that the change feed keeps; four times that while a subscription has not read them.
    change_retention_bytes: u64(65536..=1099511627776) = 1073741824;
    /// Time between two heartbeats of server-sent events.
    event_heartbeat: seconds = 15;
    /// Owners of public spaces who show their e-mail addresses: every one, those with a verified address, or none.
    expose_owner_email: owner_email = "always";
}

fn unknown_option(name: &str) -> Error {
    let shortened: String = name.chars().take(60).collect();
    let names: Vec<_> = OPTIONS.iter().map(|(name, _)| *name).collect();
    let (similarity, nearest) = names
        .iter()
        .map(|option| (strsim::jaro_winkler(&shortened, option), *option))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or_default();
    let advice = if similarity > 0.85 { format!(" Did you mean {nearest}?") } else { String::new() };
    Error::config(format!("Unknown option {shortened:?}.{advice} The options are {}", names.join(", ")))
}

fn parse_seconds(name: &str, text: &str) -> Result<Duration> {
    let seconds = text.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Error::config(format!("Option {name} is a number of seconds, not {text:?}")))
}

fn parse_flag(name: &str, text: &str) -> Result<bool> {
    parse_word(name, text, "true or false", &[("true", true), ("1", true), ("false", false), ("0", false)])
}

fn parse_durability(name: &str, text: &str) -> Result<Durability> {
    parse_word(name, text, "full or normal", &[("full", Durability::Full), ("normal", Durability::Normal)])
}

fn parse_pooler(name: &str, text: &str) -> Result<DatabasePooler> {
    use DatabasePooler::{Auto, Session, Transaction};
    let words = [("auto", Auto), ("session", Session), ("transaction", Transaction)];
    parse_word(name, text, "auto, session or transaction", &words)
}

fn parse_owner_email(name: &str, text: &str) -> Result<OwnerEmail> {
    use OwnerEmail::{Always, Never, Verified};
    let words = [("always", Always), ("verified", Verified), ("never", Never)];
    parse_flag(name, text)
        .map(OwnerEmail::from)
        .or_else(|_| parse_word(name, text, "always, verified or never", &words))
}

/// Finds the value of a word. `expected` lists the words for the error.
fn parse_word<T: Copy>(name: &str, text: &str, expected: &str, words: &[(&str, T)]) -> Result<T> {
    let known = words.iter().find(|(word, _)| *word == text);
    known.map(|(_, value)| *value).ok_or_else(|| Error::config(format!("Option {name} is {expected}, not {text:?}")))
}

fn parse_number<T: FromStr>(name: &str, text: &str) -> Result<T> {
    text.trim().parse().map_err(|_| Error::config(format!("Option {name} is a whole number, not {text:?}")))
}

fn check_seconds(name: &str, value: Duration) -> Result<()> {
    if value.is_zero() || value > MAX_SECONDS {
        return Err(Error::config(format!("Option {name} is more than 0 seconds and at most ten years")));
    }
    Ok(())
}

fn check_range<T: Copy + PartialOrd + std::fmt::Display>(name: &str, value: T, least: T, most: T) -> Result<()> {
    if value < least || value > most {
        return Err(Error::config(format!("Option {name} is {least} to {most}, not {value}")));
    }
    Ok(())
}

//! How a client is opened: by builder, by option names, by URL, by environment.
//!
//! Invariant: this module alone reads the environment, and a [`Config`] that `resolve` accepted has no
//! value left that could not work; every refusal names the option. Secrets never show in `Debug`.

mod resolved;
mod secret;

use std::{
    env,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::error::{Error, Result};

pub use crate::clock::{Clock, ManualClock};
pub(crate) use resolved::{CatalogLocation, CatalogOptions, DatabaseLocation, Resolved};
pub(crate) use secret::Secret;

/// What a SQLite commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Power loss: an acknowledged write is on disk (`synchronous=FULL`).
    #[default]
    Full,
    /// A crash of the process; a power loss may take the last commits, never the database (`synchronous=NORMAL`).
    Normal,
}

/// The configuration of a [`Client`](crate::Client).
///
/// ```
/// use std::time::Duration;
/// use townsquare::Config;
///
/// let config = Config::new()
///     .data_dir("/var/lib/town")
///     .catalog_api_key("key")
///     .refresh_interval(Duration::from_secs(900));
/// let same_by_names = Config::new().set("data_dir", "/var/lib/town")?.set("refresh_interval", "900")?;
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Config {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) database_url: Option<Secret>,
    pub(crate) durability: Durability,
    pub(crate) busy_timeout: Option<Duration>,
    pub(crate) catalog_url: Option<Secret>,
    pub(crate) catalog_api_key: Option<Secret>,
    pub(crate) catalog_key_header: Option<String>,
    pub(crate) refresh_interval: Option<Duration>,
    pub(crate) catalog_timeout: Option<Duration>,
    pub(crate) catalog_refresh_timeout: Option<Duration>,
    pub(crate) catalog_page_size: Option<u32>,
    pub(crate) catalog_max_pages: Option<u32>,
    pub(crate) catalog_max_page_bytes: Option<u64>,
    pub(crate) catalog_tries: Option<u32>,
    pub(crate) hides_owner_email: bool,
    pub(crate) persists_session: bool,
    pub(crate) clock: Clock,
}

/// The options by name: what [`Config::set`], a URL's query, Python's keywords and the variables
/// `TOWNSQUARE_<NAME>` take, with their meaning and default.
pub const OPTIONS: &[(&str, &str)] = &[
    ("data_dir", "folder of the database; default $TOWNSQUARE_DATA_DIR, else ./townsquare-data"),
    ("database_url", "sqlite:PATH or postgres://…; default the file townsquare.db in data_dir"),
    ("durability", "full (default) or normal: whether a SQLite commit survives power loss"),
    ("busy_timeout", "seconds to wait for another process's write lock; default 10"),
    ("catalog_url", "upstream base URL, or file:///… for a catalog kept by hand; default https://api.neynar.com"),
    ("catalog_api_key", "key of the upstream; default $CATALOG_API_KEY; empty: no discovery"),
    ("catalog_key_header", "header that carries the key; default x-api-key"),
    ("refresh_interval", "seconds a fetched catalog counts as fresh; default 900"),
    ("catalog_timeout", "seconds for one upstream request; default 10"),
    ("catalog_refresh_timeout", "seconds for fetching one whole list; default 30"),
    ("catalog_page_size", "rows asked for in one page, 1 to 100; default 100"),
    ("catalog_max_pages", "pages fetched for one list at the most; default 100"),
    ("catalog_max_page_bytes", "largest page or catalog file read, in bytes; default 33554432 (32 MiB)"),
    ("catalog_tries", "tries for one page, 1 to 10; default 3"),
    ("persist_session", "true or false (default): whether the signed-in user's session is kept in data_dir"),
    ("expose_owner_email", "true (default) or false: whether public spaces show their owners' e-mail addresses"),
];

impl Config {
    /// The defaults.
    ///
    /// Two values fall back to the environment when they are not set by the time the client opens:
    /// `data_dir` to `TOWNSQUARE_DATA_DIR`, `catalog_api_key` to `CATALOG_API_KEY` (SPEC 1.5).
    pub fn new() -> Config {
        Config::default()
    }

    /// Every option that has a variable `TOWNSQUARE_<NAME>`, from there.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) naming the first variable whose value does not fit.
    pub fn from_env() -> Result<Config> {
        let mut config = Config::new();
        for (name, _) in OPTIONS {
            let variable = format!("TOWNSQUARE_{}", name.to_ascii_uppercase());
            if let Some(value) = variable_value(&variable)? {
                config = config
                    .set(name, &value)
                    .map_err(|error| Error::config(format!("Environment variable {variable}: {}", error.message())))?;
            }
        }
        Ok(config)
    }

    /// The configuration that a URL spells: `townsquare:DATA_DIR`, `sqlite:PATH` or `postgres://…`, with options by
    /// name in the query: `townsquare:/var/lib/town?durability=normal&refresh_interval=60`.
    ///
    /// In a `postgres:` URL, keys that are no option of ours stay in the URL for PostgreSQL (`sslmode`, …).
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for another scheme, an unknown option or a value that does not fit.
    pub fn from_url(url: &str) -> Result<Config> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = base.split_once(':').ok_or_else(|| bad_url("no scheme"))?;
        let postgres = matches!(scheme, "postgres" | "postgresql");
        let mut config = Config::new();
        let mut kept = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if postgres && !OPTIONS.iter().any(|(known, _)| *known == name) {
                kept.push((name, value));
            } else {
                config = config.set(&name, &value)?;
            }
        }
        match scheme {
            "townsquare" => Ok(config.data_dir(resolved::url_path(rest))),
            "sqlite" => Ok(config.database_url(base)),
            _ if postgres => {
                let kept = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
                let mark = if kept.is_empty() { "" } else { "?" };
                Ok(config.database_url(format!("{base}{mark}{kept}")))
            }
            _ => Err(bad_url("its scheme is none of townsquare:, sqlite:, postgres:")),
        }
    }

    /// Sets an option by its name (see [`OPTIONS`]) from text, as Python, C, URLs and the environment do.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) naming the option when it is unknown or the value does not fit.
    pub fn set(self, name: &str, value: &str) -> Result<Config> {
        Ok(match name {
            "data_dir" => self.data_dir(value),
            "database_url" => self.database_url(value),
            "durability" => match value {
                "full" => self.durability(Durability::Full),
                "normal" => self.durability(Durability::Normal),
                _ => return Err(Error::config(format!("Option durability is full or normal, not {value:?}"))),
            },
            "busy_timeout" => self.busy_timeout(seconds(name, value)?),
            "catalog_url" => self.catalog_url(value),
            "catalog_api_key" => self.catalog_api_key(value),
            "catalog_key_header" => self.catalog_key_header(value),
            "refresh_interval" => self.refresh_interval(seconds(name, value)?),
            "catalog_timeout" => self.catalog_timeout(seconds(name, value)?),
            "catalog_refresh_timeout" => self.catalog_refresh_timeout(seconds(name, value)?),
            "catalog_page_size" => self.catalog_page_size(number(name, value)?),
            "catalog_max_pages" => self.catalog_max_pages(number(name, value)?),
            "catalog_max_page_bytes" => self.catalog_max_page_bytes(number(name, value)?),
            "catalog_tries" => self.catalog_tries(number(name, value)?),
            "persist_session" => match truth(name, value)? {
                true => self.persist_session(),
                false => Config { persists_session: false, ..self },
            },
            "expose_owner_email" => match truth(name, value)? {
                true => self.expose_owner_email(),
                false => self.hide_owner_email(),
            },
            _ => return Err(unknown_option(name)),
        })
    }

    /// The folder the library keeps its files in; it is created when missing.
    pub fn data_dir(mut self, folder: impl AsRef<Path>) -> Config {
        self.data_dir = Some(folder.as_ref().to_owned());
        self
    }

    /// Where the tables live: `sqlite:PATH` or `postgres://…`.
    pub fn database_url(mut self, url: impl Into<String>) -> Config {
        self.database_url = Some(Secret::new(url));
        self
    }

    /// What a SQLite commit survives.
    pub fn durability(mut self, durability: Durability) -> Config {
        self.durability = durability;
        self
    }

    /// How long a write waits for the lock of another process before it fails as retryable.
    pub fn busy_timeout(mut self, wait: Duration) -> Config {
        self.busy_timeout = Some(wait);
        self
    }

    /// The catalog: an `http(s)` base URL, or `file:///…` for one kept by hand.
    pub fn catalog_url(mut self, url: impl Into<String>) -> Config {
        self.catalog_url = Some(Secret::new(url));
        self
    }

    /// The key of the upstream catalog; an empty one switches discovery off.
    pub fn catalog_api_key(mut self, key: impl Into<String>) -> Config {
        self.catalog_api_key = Some(Secret::new(key));
        self
    }

    /// The header that carries the key.
    pub fn catalog_key_header(mut self, name: impl Into<String>) -> Config {
        self.catalog_key_header = Some(name.into());
        self
    }

    /// How long a fetched catalog counts as fresh (SPEC 8: 15 minutes).
    pub fn refresh_interval(mut self, interval: Duration) -> Config {
        self.refresh_interval = Some(interval);
        self
    }

    /// The time one upstream request may take, its body included.
    pub fn catalog_timeout(mut self, timeout: Duration) -> Config {
        self.catalog_timeout = Some(timeout);
        self
    }

    /// The time that fetching one whole list may take, tries and waits included.
    pub fn catalog_refresh_timeout(mut self, timeout: Duration) -> Config {
        self.catalog_refresh_timeout = Some(timeout);
        self
    }

    /// Rows asked for in one page, 1 to 100.
    pub fn catalog_page_size(mut self, rows: u32) -> Config {
        self.catalog_page_size = Some(rows);
        self
    }

    /// Pages fetched for one list at the most.
    pub fn catalog_max_pages(mut self, pages: u32) -> Config {
        self.catalog_max_pages = Some(pages);
        self
    }

    /// The largest page, or catalog file, that is read.
    pub fn catalog_max_page_bytes(mut self, bytes: u64) -> Config {
        self.catalog_max_page_bytes = Some(bytes);
        self
    }

    /// How often one page is tried before the refresh fails.
    pub fn catalog_tries(mut self, tries: u32) -> Config {
        self.catalog_tries = Some(tries);
        self
    }

    /// Lets public spaces show their owners' e-mail addresses to every reader, as SPEC 4.5 has it: the default.
    pub fn expose_owner_email(mut self) -> Config {
        self.hides_owner_email = false;
        self
    }

    /// Keeps the owners' e-mail addresses out of public spaces.
    pub fn hide_owner_email(mut self) -> Config {
        self.hides_owner_email = true;
        self
    }

    /// Keeps the signed-in user's session in `data_dir`, in a file that only its owner may read, from one start of the
    /// program to the next: for an app with one user, and one process at a time.
    pub fn persist_session(mut self) -> Config {
        self.persists_session = true;
        self
    }

    /// Where the client reads the time; tests give it a [`ManualClock`](crate::ManualClock).
    pub fn clock(mut self, clock: Clock) -> Config {
        self.clock = clock;
        self
    }
}

fn bad_url(why: &str) -> Error {
    // The URL itself stays out of the message: it may carry a password.
    Error::config(format!("Bad configuration URL: {why}"))
}

fn unknown_option(name: &str) -> Error {
    let shown: String = name.chars().take(60).collect();
    let known: Vec<_> = OPTIONS.iter().map(|(name, _)| *name).collect();
    Error::config(format!("Unknown option {shown:?}; the options are {}", known.join(", ")))
}

fn seconds(name: &str, value: &str) -> Result<Duration> {
    let seconds = value.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| Error::config(format!("Option {name} is a number of seconds, not {value:?}")))
}

fn truth(name: &str, value: &str) -> Result<bool> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(Error::config(format!("Option {name} is true or false, not {value:?}"))),
    }
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.trim().parse().map_err(|_| Error::config(format!("Option {name} is a whole number, not {value:?}")))
}

fn variable_value(variable: &str) -> Result<Option<String>> {
    match env::var(variable) {
        Ok(value) => Ok(Some(value)),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(_)) => {
            Err(Error::config(format!("Environment variable {variable} is not UTF-8")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_option_can_be_set_by_name() {
        for (name, _) in OPTIONS {
            let value = match *name {
                "durability" => "normal",
                "expose_owner_email" => "false",
                _ => "1",
            };
            let config = Config::new().set(name, value);
            assert!(config.is_ok_and(|config| config != Config::new()), "{name}");
        }
    }

    #[test]
    fn an_unknown_option_and_a_bad_value_are_named() {
        for (name, value) in [("colour", "red"), ("refresh_interval", "soon"), ("catalog_tries", "-1")] {
            let error = Config::new().set(name, value).expect_err(name);
            assert_eq!(error.kind(), crate::ErrorKind::Config);
            assert!(error.message().contains(name), "{error}");
        }
    }

    #[test]
    fn a_url_carries_options_and_leaves_postgres_its_own() {
        let config = Config::from_url("townsquare:/srv/town?durability=normal").expect("valid");
        assert_eq!(config, Config::new().data_dir("/srv/town").durability(Durability::Normal));
        let config = Config::from_url("postgres://h/db?sslmode=disable&refresh_interval=60").expect("valid");
        let expected = Config::new().database_url("postgres://h/db?sslmode=disable");
        assert_eq!(config, expected.refresh_interval(Duration::from_secs(60)));
        for bad in ["nonsense", "ftp://x", "sqlite:x?colour=red"] {
            assert!(Config::from_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let config = Config::new().catalog_api_key("MARKED").database_url("postgres://u:MARKED@h/d");
        assert!(!format!("{config:?}").contains("MARKED"));
    }
}

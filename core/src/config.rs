//! The configuration of a client: set by builder methods, by option names, from a URL, or from environment variables.
//!
//! A value of the caller replaces the value of the environment. It is an error to give an option of a URL again with another
//! value.
//!
//! Invariant: only this module reads the environment. `Config::resolve` returns values that are all in range, or an
//! error that names the option. `Debug` never prints a key or a URL.

mod buckets;
mod options;
mod proxy;
mod resolved;
mod secret;
#[cfg(feature = "postgres")]
mod supabase;

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
};

pub use self::options::OPTIONS;
pub(crate) use self::resolved::MEMORY_DIR;
#[cfg(feature = "sqlite")]
pub(crate) use self::resolved::check_data_dir;
#[cfg(feature = "s3")]
pub(crate) use self::resolved::remote_store;
#[cfg(feature = "postgres")]
pub use self::supabase::SupabaseProject;
pub(crate) use self::{
    buckets::{DeclaredAccess, declared_buckets},
    options::OptionValues,
    proxy::ProxySettings,
    resolved::{CatalogFormat, CatalogLocation, DatabaseLocation, FilesLocation, Resolved, SAMPLE_URL},
    secret::Secret,
};
pub use crate::clock::{Clock, ManualClock};
use crate::error::{Error, Result};

/// Whether a commit to SQLite survives a power loss. Set by [`Config::durability`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// What a call has written survives a power loss (`synchronous=FULL`).
    #[default]
    Full,
    /// A commit survives a crash of the process. A power loss may undo the last commits; it does not damage the
    /// database (`synchronous=NORMAL`). Large files and their rows agree after it as with `Full`.
    Normal,
}

/// How the server that `database_url` names shares its connections. Set by [`Config::database_pooler`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum DatabasePooler {
    /// The client finds out when it opens.
    #[default]
    Auto,
    /// A client keeps its connection until it closes it: PostgreSQL itself, or a pooler in session mode.
    Session,
    /// A client keeps its connection for one transaction. Each operation is then one transaction and leaves neither settings
    /// nor prepared statements behind.
    Transaction,
}

/// Which owners of public spaces show their e-mail addresses. Set by [`Config::expose_owner_email`]. `true` and
/// `false` are the first and the last value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OwnerEmail {
    /// Every owner.
    #[default]
    Always,
    /// Owners who have proved that they receive mail at their address. For servers: otherwise a stranger who signs up with an
    /// address publishes it.
    Verified,
    /// No owner.
    Never,
}

impl From<bool> for OwnerEmail {
    fn from(is_exposed: bool) -> OwnerEmail {
        if is_exposed { OwnerEmail::Always } else { OwnerEmail::Never }
    }
}

/// The configuration of a [`Client`](crate::Client).
///
/// Every option has a builder method, and a name for [`Config::set`] and [`OPTIONS`]. An option that is not given is read
/// from the environment variable `TOWNSQUARE_<NAME>` when the client opens, so an operator can set what the program leaves
/// open.
///
/// A method stores a value without checking it: a number out of its range and a URL that cannot work are refused by
/// [`Client::open`](crate::Client::open), with an error that names the option.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use townsquare::Config;
///
/// let config = Config::new().data_dir("/var/lib/town").refresh_interval(Duration::from_secs(60));
/// let by_name = Config::new().set("data_dir", "/var/lib/town")?.set("refresh_interval", "60")?;
/// assert_eq!(config, by_name);
/// # Ok::<(), townsquare::Error>(())
/// ```
///
/// One URL can hold a whole configuration, for example from a command line:
///
/// ```
/// use townsquare::{Config, config::Durability};
///
/// let config = Config::from_url("townsquare:/var/lib/town?durability=normal&max_owner_spaces=100")?;
/// let expected = Config::new().data_dir("/var/lib/town").durability(Durability::Normal).max_owner_spaces(100);
/// assert_eq!(config, expected);
/// # Ok::<(), townsquare::Error>(())
/// ```
///
/// A value out of range is refused when the client opens:
///
/// ```
/// use townsquare::{Config, blocking::Client};
///
/// let error = Client::open(Config::new().catalog_page_size(1_000)).unwrap_err();
/// assert!(error.message().contains("catalog_page_size is 1 to 100"), "{error}");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Config {
    options: OptionValues,
    /// The source of each option that has a value. The others are read from the environment when the client opens.
    given: BTreeMap<&'static str, OptionSource>,
    /// An option of a URL that got another value again.
    given_twice: Option<&'static str>,
    clock: Clock,
}

/// What gives the value of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OptionSource {
    /// A variable `TOWNSQUARE_<NAME>`.
    Environment,
    /// The URL of [`Config::from_url`].
    Url,
    /// A builder method or [`Config::set`].
    Caller,
}

impl PartialEq for Config {
    /// Whether the options have equal values. It does not matter whether the program, a URL or the environment gave them.
    fn eq(&self, other: &Config) -> bool {
        self.options == other.options && self.given_twice == other.given_twice && self.clock == other.clock
    }
}

impl Config {
    /// A configuration with every option at its default.
    ///
    /// An option that is not given when the client opens is read from the environment variable `TOWNSQUARE_<NAME>`, for
    /// example `TOWNSQUARE_DATABASE_URL`. `catalog_api_key` is also read from `CATALOG_API_KEY`.
    ///
    /// ```
    /// use townsquare::Config;
    ///
    /// assert_eq!(Config::new(), Config::default());
    /// ```
    pub fn new() -> Config {
        Config::default()
    }

    /// Whether the program has named the place of the data; the environment does not count.
    pub(crate) fn names_place(&self) -> bool {
        self.given.contains_key("data_dir") || self.given.contains_key("database_url")
    }

    /// The folder of the data, if the program or the environment has named one on the disk.
    pub(crate) fn named_folder(&self) -> Option<&Path> {
        self.options.data_dir.as_deref().filter(|folder| *folder != Path::new(MEMORY_DIR))
    }

    /// The same configuration with another folder of the data.
    pub(crate) fn with_folder(mut self, folder: PathBuf) -> Config {
        self.options.data_dir = Some(folder);
        self
    }

    /// Reads every option from its environment variable `TOWNSQUARE_<NAME>`, when it is called.
    /// [`Client::open`](crate::Client::open) does that by itself for the options that are not given.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config), naming the first variable with a value that is not valid.
    ///
    /// ```
    /// let config = townsquare::Config::from_env()?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn from_env() -> Result<Config> {
        Config::new().with_environment()
    }

    /// Reads the options that are not given from the environment.
    pub(crate) fn with_environment(mut self) -> Result<Config> {
        for (name, _) in OPTIONS {
            if self.given.contains_key(name) {
                continue;
            }
            let variable = format!("TOWNSQUARE_{}", name.to_ascii_uppercase());
            if *name == "data_dir" {
                // A path need not be UTF-8.
                if let Some(folder) = env::var_os(variable) {
                    self.note("data_dir", OptionSource::Environment, false);
                    self.options.data_dir = Some(folder.into());
                }
            } else if let Some(value) = variable_value(&variable)? {
                self.set_from(OptionSource::Environment, name, &value)
                    .map_err(|error| Error::config(format!("Environment variable {variable}: {}", error.message())))?;
            }
        }
        Ok(self)
    }

    /// Reads a configuration from a URL: `townsquare:DATA_DIR`, `sqlite:PATH` or `postgres://…`. The query of the URL
    /// sets options by name.
    ///
    /// In a `postgres:` URL, query keys that are not in [`OPTIONS`] stay in the URL for PostgreSQL (`sslmode`, …).
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config) for another scheme, an unknown option, a value that is not valid, and an option
    /// that is given twice with different values. Opening a client fails with the same error if a later call gives an option of
    /// the URL another value.
    ///
    /// ```
    /// use townsquare::{Config, config::Durability};
    ///
    /// let config = Config::from_url("townsquare:/var/lib/town?durability=normal")?;
    /// assert_eq!(config, Config::new().data_dir("/var/lib/town").durability(Durability::Normal));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn from_url(url: &str) -> Result<Config> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (scheme, rest) = base.split_once(':').ok_or_else(|| bad_url("no scheme"))?;
        let is_postgres = matches!(scheme, "postgres" | "postgresql");
        let mut config = Config::new();
        let mut postgres_pairs = Vec::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if is_postgres && !OPTIONS.iter().any(|(option, _)| *option == name) {
                postgres_pairs.push((name, value));
            } else {
                config.set_from(OptionSource::Url, &name, &value)?;
            }
        }
        match scheme {
            "townsquare" => config.set_from(OptionSource::Url, "data_dir", resolved::url_path(rest))?,
            "sqlite" => config.set_from(OptionSource::Url, "database_url", base)?,
            _ if is_postgres && postgres_pairs.is_empty() => {
                config.set_from(OptionSource::Url, "database_url", base)?;
            }
            _ if is_postgres => {
                let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(postgres_pairs).finish();
                config.set_from(OptionSource::Url, "database_url", &format!("{base}?{query}"))?;
            }
            _ => return Err(bad_url("its scheme is none of townsquare:, sqlite:, postgres:")),
        }
        config.refuse_given_twice()?;
        Ok(config)
    }

    /// Sets the option `name` (see [`OPTIONS`]) from text.
    ///
    /// # Errors
    /// [`Config`](crate::ErrorKind::Config), naming the option, if the option is unknown, if the value is not valid, and if
    /// the URL of [`Config::from_url`] gives the option another value. A number outside the option's range is refused when the
    /// client opens.
    ///
    /// ```
    /// use townsquare::{Config, ErrorKind};
    ///
    /// let config = Config::new().set("catalog_tries", "5")?;
    /// let error = config.set("catalog_tries", "many").unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Config);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn set(mut self, name: &str, value: &str) -> Result<Config> {
        self.set_from(OptionSource::Caller, name, value)?;
        self.refuse_given_twice()?;
        Ok(self)
    }

    /// Records that `source` gives an option a value. `is_same` says whether the option has this value already.
    fn note(&mut self, name: &'static str, source: OptionSource, is_same: bool) {
        match self.given.get(name) {
            Some(OptionSource::Url) if is_same => {}
            Some(OptionSource::Url) => self.given_twice = Some(name),
            _ => drop(self.given.insert(name, source)),
        }
    }

    /// # Errors
    /// `Config`, naming the option.
    fn refuse_given_twice(&self) -> Result<()> {
        match self.given_twice {
            Some(name) => Err(Error::config(format!("Option {name} is given twice, with different values"))),
            None => Ok(()),
        }
    }

    /// Hides the e-mail addresses of owners in public spaces: short for
    /// [`expose_owner_email(OwnerEmail::Never)`](Config::expose_owner_email).
    ///
    /// ```
    /// let config = townsquare::Config::new().hide_owner_email();
    /// ```
    #[must_use]
    pub fn hide_owner_email(self) -> Config {
        self.expose_owner_email(OwnerEmail::Never)
    }

    /// The clock from which the client reads the time. Tests pass the clock of a [`ManualClock`]. On PostgreSQL, sessions and
    /// rows have the times of the server.
    ///
    /// ```
    /// use townsquare::{Config, Timestamp, config::ManualClock};
    ///
    /// let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
    /// let config = Config::new().clock(manual.clock());
    /// ```
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Config {
        self.clock = clock;
        self
    }
}

/// The URL is not part of the message, because it may contain a password.
fn bad_url(why: &str) -> Error {
    Error::config(format!("Bad configuration URL: {why}"))
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_option_can_be_set_by_name() {
        for (name, _) in OPTIONS {
            let value = match *name {
                "durability" => "normal",
                "expose_owner_email" => "verified",
                "endpoint_refresh" | "migrate" => "false",
                "database_pooler" => "session",
                "buckets" => "media=public",
                "database_replica_wait" => "2",
                _ => "1",
            };
            let config = Config::new().set(name, value);
            assert!(config.is_ok_and(|config| config != Config::new()), "{name}");
        }
    }

    #[test]
    fn every_described_default_is_the_default() {
        for (name, description) in OPTIONS {
            let (_, default) = description.rsplit_once("Default: ").expect("a default");
            let value = default.trim_end_matches('.').split([' ', ',']).next().expect("a word");
            let value = if value == "empty" { "" } else { value };
            if !matches!(
                *name,
                "data_dir"
                    | "database_url"
                    | "database_replica_url"
                    | "catalog_api_key"
                    | "identity_audience"
                    | "storage_url"
                    | "url_signing_key"
                    | "max_owner_bytes"
                    | "max_owner_files"
                    | "max_owner_spaces"
                    | "inline_file_limit"
                    | "max_staleness"
            ) {
                assert_eq!(Config::new().set(name, value).expect(name), Config::new(), "{name}: {description}");
            }
        }
    }

    #[test]
    fn errors_name_the_unknown_option_and_the_option_with_a_bad_value() {
        for (name, value) in
            [("colour", "red"), ("refresh_interval", "soon"), ("catalog_tries", "-1"), ("buckets", "a/b=public")]
        {
            let error = Config::new().set(name, value).expect_err(name);
            assert_eq!(error.kind(), crate::ErrorKind::Config);
            assert!(error.message().contains(name), "{error}");
        }
    }

    #[test]
    fn a_url_sets_options_and_keeps_the_keys_of_postgres() {
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
    fn an_option_of_a_url_is_not_given_again_with_another_value() {
        for url in [
            "townsquare:/srv/town?durability=full&durability=normal",
            "townsquare:/srv/town?data_dir=/srv/other",
            "sqlite:a.db?database_url=sqlite:b.db",
        ] {
            let error = Config::from_url(url).expect_err(url);
            assert!(error.message().contains("is given twice"), "{error}");
        }
        let config =
            || Config::from_url("townsquare:/srv/town?durability=normal&data_dir=/srv/town").expect("the same");
        let error = config().set("durability", "full").expect_err("another value");
        assert_eq!(error.message(), "Option durability is given twice, with different values");
        let error = config().data_dir("/srv/other").resolve().err().expect("another folder");
        assert!(error.message().contains("data_dir"), "{error}");
        assert!(config().set("durability", "normal").is_ok() && config().data_dir("/srv/town").resolve().is_ok());
        // A later call replaces what an earlier one set.
        assert!(Config::new().max_connections(2).max_connections(3).resolve().is_ok());
    }

    #[test]
    fn debug_prints_no_secret() {
        let config = Config::new().catalog_api_key("MARKED").database_url("postgres://u:MARKED@h/d");
        assert!(!format!("{config:?}").contains("MARKED"));
    }
}

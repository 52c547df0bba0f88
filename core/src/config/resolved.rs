//! A configuration with every default filled in and every value checked.
//!
//! Invariant: whoever holds a [`Resolved`] need not look at an `Option` or a range again.

use std::{env, path::PathBuf, time::Duration};

use url::Url;

use super::{Config, Durability, Secret, variable_value};
use crate::{
    clock::Clock,
    error::{Error, Result},
};

/// The values a client runs on.
pub(crate) struct Resolved {
    pub(crate) database: DatabaseLocation,
    pub(crate) durability: Durability,
    pub(crate) busy_timeout: Duration,
    pub(crate) catalog: CatalogOptions,
    pub(crate) exposes_owner_email: bool,
    /// Where the session of an app with one user is kept.
    pub(crate) session_file: Option<PathBuf>,
    pub(crate) clock: Clock,
}

/// Where the tables live.
pub(crate) enum DatabaseLocation {
    /// A SQLite file. The folder is made first when it is the library's own.
    Sqlite { file: PathBuf, folder: Option<PathBuf> },
    /// A PostgreSQL URL.
    Postgres(Secret),
}

/// Where the catalog comes from.
pub(crate) enum CatalogLocation {
    /// An upstream API at this base URL, with the key that it wants; without a key it is never called.
    Upstream { base: Url, key: Option<Secret>, header: String },
    /// A file in the upstream's body format.
    File(PathBuf),
}

/// Everything about the catalog that can be configured.
pub(crate) struct CatalogOptions {
    pub(crate) location: CatalogLocation,
    pub(crate) refresh_interval: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) list_timeout: Duration,
    pub(crate) page_size: u32,
    pub(crate) max_pages: u32,
    pub(crate) max_page_bytes: u64,
    pub(crate) tries: u32,
}

const DEFAULT_CATALOG_URL: &str = "https://api.neynar.com";
const DEFAULT_KEY_HEADER: &str = "x-api-key";
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

impl Config {
    /// Fills in defaults and environment, and refuses what cannot work.
    pub(crate) fn resolve(self) -> Result<Resolved> {
        Ok(Resolved {
            database: self.database_location()?,
            durability: self.durability,
            busy_timeout: duration("busy_timeout", self.busy_timeout, 10)?,
            catalog: self.catalog_options()?,
            exposes_owner_email: !self.hides_owner_email,
            session_file: self
                .persists_session
                .then(|| self.folder())
                .transpose()?
                .map(|folder| folder.join("session.json")),
            clock: self.clock,
        })
    }

    fn database_location(&self) -> Result<DatabaseLocation> {
        let Some(url) = &self.database_url else {
            let folder = self.folder()?;
            return Ok(DatabaseLocation::Sqlite { file: folder.join("townsquare.db"), folder: Some(folder) });
        };
        match url.reveal().split_once(':') {
            Some(("sqlite", path)) => {
                let path = url_path(path);
                if path.is_empty() || path.starts_with(':') {
                    return Err(Error::config("Option database_url: sqlite: needs the path of a file"));
                }
                Ok(DatabaseLocation::Sqlite { file: path.into(), folder: None })
            }
            Some(("postgres" | "postgresql", _)) => Ok(DatabaseLocation::Postgres(url.clone())),
            _ => Err(Error::config("Option database_url is sqlite:PATH or postgres://…")),
        }
    }

    /// The library's own folder.
    fn folder(&self) -> Result<PathBuf> {
        let folder = match &self.data_dir {
            Some(folder) => folder.clone(),
            None => env::var_os("TOWNSQUARE_DATA_DIR").map_or_else(|| "townsquare-data".into(), PathBuf::from),
        };
        if folder.as_os_str().is_empty() {
            return Err(Error::config("Option data_dir is empty"));
        }
        Ok(folder)
    }

    fn catalog_options(&self) -> Result<CatalogOptions> {
        Ok(CatalogOptions {
            location: self.catalog_location()?,
            refresh_interval: duration("refresh_interval", self.refresh_interval, 900)?,
            request_timeout: duration("catalog_timeout", self.catalog_timeout, 10)?,
            list_timeout: duration("catalog_refresh_timeout", self.catalog_refresh_timeout, 30)?,
            page_size: within("catalog_page_size", self.catalog_page_size, 100, 1, 100)?,
            max_pages: within("catalog_max_pages", self.catalog_max_pages, 100, 1, 1_000_000)?,
            max_page_bytes: within("catalog_max_page_bytes", self.catalog_max_page_bytes, 32 << 20, 1, 1 << 40)?,
            tries: within("catalog_tries", self.catalog_tries, 3, 1, 10)?,
        })
    }

    fn catalog_location(&self) -> Result<CatalogLocation> {
        let text = self.catalog_url.as_ref().map_or(DEFAULT_CATALOG_URL, Secret::reveal);
        let bad = |why: &str| Error::config(format!("Option catalog_url {why}"));
        if let Some(path) = text.strip_prefix("file:") {
            let path = url_path(path);
            if path.is_empty() {
                return Err(bad("names no file"));
            }
            // A URL escapes what a path need not: try it as a URL first, then as it stands.
            let parsed =
                Url::parse(text).ok().filter(|_| path.starts_with('/')).and_then(|url| url.to_file_path().ok());
            return Ok(CatalogLocation::File(parsed.unwrap_or_else(|| path.into())));
        }
        let base = Url::parse(text).map_err(|error| bad(&format!("is no URL: {error}")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(bad("is an http:, https: or file: URL"));
        }
        let key = match &self.catalog_api_key {
            Some(key) => Some(key.clone()),
            None => variable_value("CATALOG_API_KEY")?.map(Secret::new),
        };
        let key = key.filter(|key| !key.reveal().trim().is_empty());
        if key.as_ref().is_some_and(|key| !key.reveal().bytes().all(|byte| (b' '..=b'~').contains(&byte))) {
            return Err(Error::config("Option catalog_api_key has characters that no header can carry"));
        }
        let header = self.catalog_key_header.as_deref().unwrap_or(DEFAULT_KEY_HEADER);
        if header.is_empty() || !header.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
            return Err(Error::config(format!("Option catalog_key_header is no header name: {header:?}")));
        }
        Ok(CatalogLocation::Upstream { base, key, header: header.to_ascii_lowercase() })
    }
}

/// The path of `scheme:PATH`, `scheme://PATH` and `scheme:///PATH`.
pub(super) fn url_path(rest: &str) -> &str {
    rest.strip_prefix("//").unwrap_or(rest)
}

fn duration(name: &str, value: Option<Duration>, default_seconds: u64) -> Result<Duration> {
    let value = value.unwrap_or(Duration::from_secs(default_seconds));
    if value.is_zero() || value > LONGEST {
        return Err(Error::config(format!("Option {name} is more than 0 seconds and at most ten years")));
    }
    Ok(value)
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: Option<T>,
    default: T,
    least: T,
    most: T,
) -> Result<T> {
    let value = value.unwrap_or(default);
    if value < least || value > most {
        return Err(Error::config(format!("Option {name} is {least} to {most}, not {value}")));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(config: Config) -> String {
        config.resolve().err().expect("must be refused").to_string()
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        let config = Config::new;
        assert!(refusal(config().database_url("mysql://x")).contains("database_url"));
        assert!(refusal(config().database_url("sqlite::memory:")).contains("database_url"));
        assert!(refusal(config().catalog_url("gopher://x")).contains("catalog_url"));
        assert!(refusal(config().catalog_url("http://")).contains("catalog_url"));
        assert!(refusal(config().catalog_api_key("a\nb")).contains("catalog_api_key"));
        assert!(refusal(config().catalog_key_header("a b")).contains("catalog_key_header"));
        assert!(refusal(config().refresh_interval(Duration::ZERO)).contains("refresh_interval"));
        assert!(refusal(config().catalog_page_size(101)).contains("catalog_page_size"));
        assert!(refusal(config().data_dir("")).contains("data_dir"));
    }

    #[test]
    fn a_file_catalog_may_be_named_by_url_or_by_path() {
        for (url, path) in [("file:///a/b%20c.json", "/a/b c.json"), ("file:rel.json", "rel.json")] {
            match Config::new().catalog_url(url).resolve().map(|resolved| resolved.catalog.location) {
                Ok(CatalogLocation::File(file)) => assert_eq!(file, PathBuf::from(path)),
                _ => panic!("{url} is a file catalog"),
            }
        }
    }

    #[test]
    fn an_empty_key_is_no_key() {
        let resolved = Config::new().catalog_api_key(" ").resolve().expect("valid");
        assert!(matches!(resolved.catalog.location, CatalogLocation::Upstream { key: None, .. }));
    }
}

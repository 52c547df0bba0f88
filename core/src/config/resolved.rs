//! A configuration that has been checked: locations parsed, environment variables read, every value in range.
//!
//! Invariant: a reader of [`Resolved`] checks no option again. Every path is absolute: a program that changes its current
//! folder keeps its files.

use std::{
    env,
    path::{self, Path, PathBuf},
};

use url::Url;

use super::{Config, OptionValues, ProxySettings, Secret, variable_value};
use crate::{
    clock::Clock,
    error::{Error, Result},
};

/// The checked configuration of `Client::open`.
pub(crate) struct Resolved {
    pub(crate) database: DatabaseLocation,
    pub(crate) catalog: CatalogLocation,
    pub(crate) files: FilesLocation,
    /// The largest size of a file in the database.
    pub(crate) inline_file_limit: u64,
    /// The origins of option `endpoint_origins`.
    pub(crate) allowed_origins: Vec<String>,
    /// The file of option `persist_session`; `None` when the option is off.
    pub(crate) session_file: Option<PathBuf>,
    pub(crate) options: OptionValues,
    pub(crate) clock: Clock,
}

/// The database of a client. Both variants exist in every build, so that an error can name the missing feature.
pub(crate) enum DatabaseLocation {
    /// A SQLite file. `folder` is the folder to create first: `Some` for `data_dir`, `None` for a `sqlite:` URL.
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "only the SQLite engine reads the fields"))]
    Sqlite { file: PathBuf, folder: Option<PathBuf> },
    /// A SQLite database in the memory of this client.
    SqliteMemory,
    /// A PostgreSQL URL.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "only the PostgreSQL engine reads the field"))]
    Postgres(Secret),
}

/// The source of the catalog.
pub(crate) enum CatalogLocation {
    /// An upstream API at `base`, called with `key` in the HTTP header `header`. Without a key it is never called, unless
    /// its format needs none.
    Upstream { base: Url, format: CatalogFormat, key: Option<Secret>, header: String, proxy: Option<ProxySettings> },
    /// A file in the format of the upstream's response body.
    File(PathBuf),
    /// The invented apps that are part of the library.
    Sample,
}

/// The API of an upstream (UPSTREAM 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogFormat {
    /// Neynar's catalog: needs a key, has an order for each timeframe and a filter for networks.
    Neynar,
    /// Farcaster's `top-frameapps`: needs no key, has one order, and its rows name their chains.
    Farcaster,
}

/// The object store of large files.
pub(crate) enum FilesLocation {
    /// A local folder, created when it is first needed.
    Folder(PathBuf),
    /// The memory of this client.
    Memory,
    /// `s3://bucket/prefix?endpoint=…`, `gs://bucket/prefix`, `az://container/prefix`. `environment` contains the variables
    /// whose names start with `AWS_`, `GOOGLE_` or `AZURE_`; the URL's query takes precedence.
    #[cfg_attr(not(feature = "s3"), allow(dead_code, reason = "only object stores read the fields"))]
    Remote { url: Url, environment: Vec<(String, String)> },
}

/// The value of `catalog_url` for the invented apps.
pub(crate) const SAMPLE_URL: &str = "sample:";
/// The default of `catalog_url` for the format `farcaster`.
const FARCASTER_API: &str = "https://client.farcaster.xyz";
/// The default of `inline_file_limit` without `storage_url`.
const INLINE_FILE_LIMIT: u64 = 65_536;

impl Config {
    /// Reads the environment variables of unset options and checks every value.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(crate) fn resolve(self) -> Result<Resolved> {
        let config = self.with_environment()?;
        config.refuse_given_twice()?;
        let Config { mut options, clock, .. } = config;
        options.database_replica_url = options.database_replica_url.filter(|url| !url.reveal().is_empty());
        options.check()?;
        if options.identity_audience.as_ref().is_some_and(|audience| audience.trim().is_empty()) {
            return Err(Error::config("Option identity_audience is empty"));
        }
        let session_file = match options.persist_session {
            true if is_in_memory(&options) => {
                return Err(Error::config("Option persist_session keeps a file in data_dir, which is in memory"));
            }
            true => Some(data_dir(&options)?.join("session.json")),
            false => None,
        };
        let database = database_location(&options)?;
        if let Some(url) = &options.database_replica_url {
            check_replica(url, &database)?;
        }
        let files = files_location(&options, &database)?;
        Ok(Resolved {
            database,
            catalog: catalog_location(&options)?,
            files,
            inline_file_limit: options.inline_file_limit.unwrap_or(match options.storage_url {
                Some(_) => 0,
                None => INLINE_FILE_LIMIT,
            }),
            allowed_origins: allowed_origins(&options.endpoint_origins)?,
            session_file,
            options,
            clock,
        })
    }
}

/// The value of `data_dir` for a client with nothing on the disk.
pub(crate) const MEMORY_DIR: &str = ":memory:";

/// Whether the data of the client is in memory, if no other option gives it a place.
fn is_in_memory(options: &OptionValues) -> bool {
    options.data_dir.as_deref() == Some(Path::new(MEMORY_DIR))
}

fn data_dir(options: &OptionValues) -> Result<PathBuf> {
    let folder = options.data_dir.as_deref().unwrap_or(Path::new("townsquare-data"));
    check_data_dir(folder)?;
    absolute("data_dir", folder)
}

/// Refuses the path of a data folder that is meant as something else.
///
/// # Errors
/// `Config`, naming the option.
pub(crate) fn check_data_dir(folder: &Path) -> Result<()> {
    if folder.as_os_str().is_empty() {
        return Err(Error::config("Option data_dir is empty"));
    }
    let text = folder.to_string_lossy();
    if text.starts_with("sqlite:") || text.starts_with("townsquare:") || has_scheme(&text) {
        return Err(Error::config(
            "Option data_dir is a folder, and this is a URL: the URL of a database is database_url, that of a file store storage_url",
        ));
    }
    if text == "~" || text.starts_with("~/") {
        return Err(Error::config("Option data_dir begins with ~, which only a shell replaces: give the whole path"));
    }
    if text.starts_with(':') && text != MEMORY_DIR {
        let message =
            format!("Option data_dir begins with a colon: {MEMORY_DIR} keeps nothing, and a folder is ./{text}");
        return Err(Error::config(message));
    }
    Ok(())
}

/// Whether the text begins with the scheme of a URL and `://`. A single letter is a drive of Windows.
fn has_scheme(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// The path of an option, from the root of the file system. Symbolic links stay.
fn absolute(option: &str, path: &Path) -> Result<PathBuf> {
    path::absolute(path).map_err(|error| Error::config(format!("Option {option}: {error}")).caused_by(error))
}

fn database_location(options: &OptionValues) -> Result<DatabaseLocation> {
    let Some(url) = &options.database_url else {
        if is_in_memory(options) {
            return Ok(DatabaseLocation::SqliteMemory);
        }
        let folder = data_dir(options)?;
        return Ok(DatabaseLocation::Sqlite { file: folder.join("townsquare.db"), folder: Some(folder) });
    };
    match url.reveal().split_once(':') {
        Some(("sqlite", path)) => {
            let path = url_path(path);
            if path == MEMORY_DIR {
                return Ok(DatabaseLocation::SqliteMemory);
            }
            if path.is_empty() || path.starts_with(':') {
                return Err(Error::config("Option database_url: sqlite: needs the path of a file, or :memory:"));
            }
            Ok(DatabaseLocation::Sqlite { file: absolute("database_url", Path::new(path))?, folder: None })
        }
        Some(("postgres" | "postgresql", _)) => Ok(DatabaseLocation::Postgres(url.clone())),
        _ => Err(Error::config("Option database_url is sqlite:PATH or postgres://…")),
    }
}

/// Checks the scheme of the replica, and that of its primary.
fn check_replica(url: &Secret, primary: &DatabaseLocation) -> Result<()> {
    if !matches!(url.reveal().split_once(':'), Some(("postgres" | "postgresql", _))) {
        return Err(Error::config("Option database_replica_url is postgres://…"));
    }
    match primary {
        DatabaseLocation::Postgres(_) => Ok(()),
        DatabaseLocation::Sqlite { .. } | DatabaseLocation::SqliteMemory => {
            Err(Error::config("Option database_replica_url: only a PostgreSQL server in database_url has replicas"))
        }
    }
}

fn catalog_location(options: &OptionValues) -> Result<CatalogLocation> {
    let text = options.catalog_url.reveal();
    let bad = |why: &str| Error::config(format!("Option catalog_url {why}"));
    if text == SAMPLE_URL {
        let missing = || Error::config("Option catalog_url: this build leaves out the feature sample");
        return if cfg!(feature = "sample") { Ok(CatalogLocation::Sample) } else { Err(missing()) };
    }
    if is_path(text) {
        return Ok(CatalogLocation::File(absolute("catalog_url", Path::new(text))?));
    }
    if let Some(path) = text.strip_prefix("file:") {
        let path = url_path(path);
        if path.is_empty() {
            return Err(bad("names no file"));
        }
        return Ok(CatalogLocation::File(absolute("catalog_url", &file_path(text, path))?));
    }
    let format = catalog_format(&options.catalog_format)?;
    let text = match format {
        CatalogFormat::Farcaster if text == OptionValues::default().catalog_url.reveal() => FARCASTER_API,
        _ => text,
    };
    let is_web = |base: &Url| matches!(base.scheme(), "http" | "https") && base.host_str().is_some();
    let base = Url::parse(text).ok().filter(is_web).ok_or_else(|| {
        bad("is an http:, https: or file: URL, the path of a JSON file (with a / or the ending .json), or sample:")
    })?;
    let key = match &options.catalog_api_key {
        Some(key) => Some(key.clone()),
        None => variable_value("CATALOG_API_KEY")?.map(Secret::new),
    };
    let key = key.filter(|key| !key.reveal().trim().is_empty());
    if key.as_ref().is_some_and(|key| !key.reveal().bytes().all(|byte| (b' '..=b'~').contains(&byte))) {
        return Err(Error::config("Option catalog_api_key has characters that no header can carry"));
    }
    let header = &options.catalog_key_header;
    if header.is_empty() || !header.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)) {
        return Err(Error::config(format!("Option catalog_key_header is no header name: {header:?}")));
    }
    let proxy = ProxySettings::from_env(&base)?;
    Ok(CatalogLocation::Upstream { base, format, key, header: header.to_ascii_lowercase(), proxy })
}

/// Whether a text is the path of a catalog file and no URL. The letter of a drive of Windows is no scheme.
fn is_path(text: &str) -> bool {
    let has_scheme = text.split_once(':').is_some_and(|(scheme, _)| scheme.len() > 1 && !scheme.contains(['/', '\\']));
    !has_scheme && (text.contains(['/', '\\']) || text.ends_with(".json"))
}

fn catalog_format(name: &str) -> Result<CatalogFormat> {
    match name {
        "neynar" => Ok(CatalogFormat::Neynar),
        "farcaster" => Ok(CatalogFormat::Farcaster),
        _ => Err(Error::config(format!("Option catalog_format is neynar or farcaster, not {name:?}"))),
    }
}

/// The origins in a comma-separated text: `*`, or a scheme and a host with an optional port.
fn allowed_origins(text: &str) -> Result<Vec<String>> {
    let mut origins = Vec::new();
    for origin in text.split(',').map(str::trim).filter(|origin| !origin.is_empty()) {
        let is_origin = |url: &Url| {
            matches!(url.scheme(), "http" | "https")
                && url.origin().ascii_serialization() == origin.to_ascii_lowercase()
        };
        if origin != "*" && !Url::parse(origin).is_ok_and(|url| is_origin(&url)) {
            return Err(Error::config(format!(
                "Option endpoint_origins: {origin:?} is no origin like https://a.example"
            )));
        }
        origins.push(origin.to_ascii_lowercase());
    }
    Ok(origins)
}

fn files_location(options: &OptionValues, database: &DatabaseLocation) -> Result<FilesLocation> {
    let Some(text) = &options.storage_url else {
        // Files are kept as long as the database that knows them.
        return match database {
            DatabaseLocation::SqliteMemory => Ok(FilesLocation::Memory),
            _ if is_in_memory(options) => Err(Error::config(
                "Option data_dir: files in memory are lost with the client, but the database of database_url is not. Set \
                 storage_url as well",
            )),
            _ => Ok(FilesLocation::Folder(data_dir(options)?.join("files"))),
        };
    };
    let text = text.reveal();
    match text.split_once(':') {
        Some(("memory", "" | "//" | "///")) => Ok(FilesLocation::Memory),
        _ => store_location("Option storage_url", text),
    }
}

/// Reads the place of the files of a Supabase project. True: each bucket of the project is a bucket of the store.
///
/// # Errors
/// `Config`. The text is not part of a message, because it may contain a secret.
#[cfg(feature = "postgres")]
pub(super) fn project_files(text: &str) -> Result<(FilesLocation, bool)> {
    const NAME: &str = "The place of the project's files";
    if text.is_empty() {
        return Err(Error::config(format!("{NAME} is empty")));
    }
    let is_scheme = |scheme: &str| scheme.len() > 1 && !scheme.contains(['/', '\\', '.']);
    let Some((scheme, rest)) = text.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return Ok((FilesLocation::Folder(absolute("files", Path::new(text))?), false));
    };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let names_bucket = !path.trim_matches('/').is_empty();
    match scheme {
        // A URL of the library names a bucket. The bucket of each object takes its place later.
        "s3" | "s3a" if !names_bucket => Ok((store_location(NAME, &format!("s3://bucket?{query}"))?, true)),
        "file" | "s3" | "s3a" => Ok((store_location(NAME, text)?, false)),
        "gs" | "az" | "azure" | "abfs" | "abfss" if names_bucket => Ok((store_location(NAME, text)?, false)),
        _ => Err(Error::config(format!(
            "{NAME} is a folder, file:PATH, s3://?endpoint=…, or s3://…, gs://… or az://… with a bucket"
        ))),
    }
}

/// The folder or the store of a URL. `name` is what messages call the text.
///
/// # Errors
/// `Config`. The text is not part of a message, because it may contain a secret.
fn store_location(name: &str, text: &str) -> Result<FilesLocation> {
    let bad = |why: &str| Error::config(format!("{name} {why}"));
    match text.split_once(':') {
        Some(("file", rest)) => {
            let path = url_path(rest);
            if path.is_empty() {
                return Err(bad("names no folder"));
            }
            Ok(FilesLocation::Folder(absolute("storage_url", &file_path(text, path))?))
        }
        Some((scheme, _)) if REMOTE_SCHEMES.contains(&scheme) => {
            let (url, environment) = remote_store(text).map_err(|error| bad(&error))?;
            Ok(FilesLocation::Remote { url, environment })
        }
        _ => Err(bad("is memory:, file:PATH, s3://…, gs://… or az://…")),
    }
}

/// The schemes of the URLs of remote stores.
const REMOTE_SCHEMES: [&str; 7] = ["s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// Reads the URL of a remote store. Returns it with the variables of the environment that may have options of the store. The
/// error says what is wrong with the URL, without its text, which may contain a secret.
pub(crate) fn remote_store(text: &str) -> std::result::Result<(Url, Vec<(String, String)>), String> {
    if !text.split_once(':').is_some_and(|(scheme, _)| REMOTE_SCHEMES.contains(&scheme)) {
        return Err("is not s3://…, gs://… or az://…".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    let is_of_store = |name: &str| ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|start| name.starts_with(start));
    let variables = env::vars_os().filter_map(|(name, value)| name.into_string().ok().zip(value.into_string().ok()));
    Ok((url, variables.filter(|(name, _)| is_of_store(name)).collect()))
}

/// The path of a `file:` URL: `path` is the part of `url` after the scheme. An absolute path is decoded as a URL (`%20`); any
/// other text is taken as a path without decoding.
fn file_path(url: &str, path: &str) -> PathBuf {
    let decoded = Url::parse(url).ok().filter(|_| path.starts_with('/')).and_then(|url| url.to_file_path().ok());
    decoded.unwrap_or_else(|| path.into())
}

/// The path in the rest of a URL after `scheme:`. The forms `PATH`, `//PATH` and `///PATH` are accepted.
pub(super) fn url_path(rest: &str) -> &str {
    rest.strip_prefix("//").unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refusal(config: Config) -> String {
        config.resolve().err().expect("must be refused").to_string()
    }

    #[test]
    fn errors_name_the_option_with_the_bad_value() {
        let config = Config::new;
        assert!(refusal(config().database_url("mysql://x")).contains("database_url"));
        assert!(refusal(config().database_url("sqlite::other:")).contains("database_url"));
        assert!(refusal(config().data_dir(":memory:").persist_session(true)).contains("persist_session"));
        assert!(refusal(config().catalog_url("gopher://x")).contains("catalog_url"));
        for text in ["http://", "", "apps", "sample:x", "samples:", "sample", "file:"] {
            assert!(refusal(config().catalog_url(text)).contains("catalog_url"), "{text:?}");
        }
        assert!(refusal(config().catalog_api_key("a\nb")).contains("catalog_api_key"));
        assert!(refusal(config().catalog_key_header("a b")).contains("catalog_key_header"));
        assert!(refusal(config().refresh_interval(Duration::ZERO)).contains("refresh_interval"));
        assert!(refusal(config().catalog_page_size(101)).contains("catalog_page_size"));
        assert!(refusal(config().data_dir("")).contains("data_dir"));
        for url in ["postgres://ann:secret@db.example/town", "sqlite:town.db", "s3://town", "townsquare:/srv/town"] {
            let refused = refusal(config().data_dir(url));
            assert!(refused.contains("database_url") && !refused.contains("secret"), "{refused}");
        }
        for folder in ["~", "~/town", ":memory", ":Memory:"] {
            assert!(refusal(config().data_dir(folder)).starts_with("Option data_dir begins with"), "{folder}");
        }
        for folder in ["./:memory", "a:/b", "http:/x", "~town", "a/~/b"] {
            assert!(config().data_dir(folder).resolve().is_ok(), "{folder}");
        }
        assert!(refusal(config().storage_url("ftp://x")).contains("storage_url"));
        assert!(refusal(config().storage_url("file:")).contains("storage_url"));
        assert!(refusal(config().max_file_size(0)).contains("max_file_size"));
        assert!(refusal(config().identity_audience(" ")).contains("identity_audience"));
        assert!(refusal(config().sign_up_limit(1_000_001)).contains("sign_up_limit"));
        assert!(refusal(config().catalog_format("rss")).contains("catalog_format"));
        assert!(refusal(config().max_staleness(Duration::ZERO)).contains("max_staleness"));
        for origin in ["a.example", "https://a.example/", "https://a.example/x", "null", "ftp://a.example"] {
            assert!(refusal(config().endpoint_origins(origin)).contains("endpoint_origins"), "{origin}");
        }
    }

    #[test]
    fn a_catalog_file_is_given_by_url_or_by_path() {
        let current = env::current_dir().expect("tests run in a folder");
        for (url, path) in [
            ("file:///a/b%20c.json", "/a/b c.json".into()),
            ("file:rel.json", current.join("rel.json")),
            ("/a/b%20c:d.json", "/a/b%20c:d.json".into()),
            ("./apps", current.join("apps")),
            ("apps.json", current.join("apps.json")),
        ] {
            match Config::new().catalog_url(url).resolve().map(|resolved| resolved.catalog) {
                Ok(CatalogLocation::File(file)) => assert_eq!(file, path),
                _ => panic!("{url} is a catalog file"),
            }
        }
    }

    #[test]
    fn a_blank_key_counts_as_no_key() {
        let resolved = Config::new().catalog_api_key(" ").resolve().expect("valid");
        assert!(matches!(resolved.catalog, CatalogLocation::Upstream { key: None, .. }));
    }
}

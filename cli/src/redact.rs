//! URLs without their secrets.

use townsquare::config::OPTIONS;
use url::form_urlencoded;

/// Options that are secrets themselves. Other users of the machine can read a command line.
pub(crate) const SECRET_OPTIONS: [&str; 2] = ["catalog_api_key", "url_signing_key"];

/// Options that are URLs and may contain a secret.
pub(crate) const URL_OPTIONS: [&str; 4] = ["database_url", "database_replica_url", "storage_url", "catalog_url"];

/// The schemes of the URLs that options and places have.
const SCHEMES: [&str; 16] = [
    "townsquare",
    "sqlite",
    "postgres",
    "postgresql",
    "memory",
    "file",
    "sample",
    "http",
    "https",
    "s3",
    "s3a",
    "gs",
    "az",
    "azure",
    "abfs",
    "abfss",
];

/// Schemes of URLs that are paths: they have no login.
const SCHEMES_OF_PATHS: [&str; 5] = ["townsquare", "sqlite", "memory", "file", "sample"];

/// The keys of a query whose values are shown, besides options. Any other value may be a secret.
const OPEN_KEYS: [&str; 19] = [
    "allow_http",
    "application_name",
    "conditional_put",
    "connect_timeout",
    "dbname",
    "host",
    "options",
    "port",
    "region",
    "service_account_path",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslrootcert",
    "target_session_attrs",
    "user",
    "virtual_hosted_style_request",
    "keepalives",
];

/// Shown in place of a text that should be a URL and is none: a secret may be anywhere in it.
pub(crate) const NO_URL: &str = "<not a URL>";

const HIDDEN: &str = "***";

/// Whether a URL has a password or a value of its query that may be a secret.
pub(crate) fn has_secret(url: &str) -> bool {
    redacted(url) != url
}

/// The scheme of a URL, if it is one that options and places have.
pub(crate) fn known_scheme(url: &str) -> Option<&str> {
    let (scheme, _) = url.split_once(':')?;
    SCHEMES.contains(&scheme).then_some(scheme)
}

/// Whether a text without a scheme may be a URL with a typo, and so have a password.
pub(crate) fn may_be_url(text: &str) -> bool {
    known_scheme(text).is_none() && (text.contains('@') || text.contains("//"))
}

/// The URL with `***` in place of the password and of the values of its query that may be secrets.
pub(crate) fn redacted(url: &str) -> String {
    let Some(scheme) = known_scheme(url) else {
        return if may_be_url(url) { NO_URL.to_owned() } else { url.to_owned() };
    };
    let is_path = SCHEMES_OF_PATHS.contains(&scheme);
    let Some(rest) = url[scheme.len()..].strip_prefix("://").filter(|_| !is_path) else {
        // A login needs the two slashes.
        return if !is_path && url.contains('@') { NO_URL.to_owned() } else { with_redacted_query(url) };
    };
    match login_end(rest) {
        Some(end) => {
            let login = redacted_login(scheme, &rest[..end]);
            format!("{scheme}://{login}@{}", with_redacted_query(&rest[end + 1..]))
        }
        None => with_redacted_query(url),
    }
}

/// The place of the @ after the login of a URL. A password may have any character that is not escaped, also @, / and ?.
fn login_end(rest: &str) -> Option<usize> {
    let last = rest.rfind('@')?;
    match rest[..last].split_once('?') {
        // The last @ is in the query, unless a password before it has the ?.
        Some((base, _)) if !base.contains(':') => base.rfind('@'),
        _ => Some(last),
    }
}

fn redacted_login(scheme: &str, login: &str) -> String {
    match login.split_once(':') {
        // The user name of an API is often its key.
        _ if matches!(scheme, "http" | "https") => HIDDEN.to_owned(),
        Some((user, _)) => format!("{user}:{HIDDEN}"),
        None => login.to_owned(),
    }
}

fn with_redacted_query(url: &str) -> String {
    let Some((base, query)) = url.split_once('?') else { return url.to_owned() };
    let pairs: Vec<_> = query.split('&').map(redacted_pair).collect();
    format!("{base}?{}", pairs.join("&"))
}

fn redacted_pair(pair: &str) -> String {
    let Some((name, value)) = pair.split_once('=') else {
        return if pair.contains('@') { HIDDEN.to_owned() } else { pair.to_owned() };
    };
    // As the library reads the query.
    let Some((key, decoded)) = form_urlencoded::parse(pair.as_bytes()).next() else { return pair.to_owned() };
    let is_url = key == "endpoint" || URL_OPTIONS.contains(&&*key);
    let is_option = OPTIONS.iter().any(|(option, _)| *option == key) && !SECRET_OPTIONS.contains(&&*key);
    match redacted(&decoded) {
        shown if is_url && shown != decoded => format!("{name}={shown}"),
        _ if is_url || is_option || value.is_empty() || OPEN_KEYS.contains(&&*key) => pair.to_owned(),
        _ => format!("{name}={HIDDEN}"),
    }
}

#[cfg(test)]
mod tests {
    use townsquare::Config;

    use super::*;

    /// The configuration hides the value of a secret, and of a URL that may have one.
    #[test]
    fn every_option_that_the_library_hides_is_known() {
        let mut hidden = 0;
        for (name, _) in OPTIONS {
            // An option that takes no text has no secret.
            let Ok(config) = Config::new().set(name, "planted-text") else { continue };
            if !format!("{config:?}").contains("planted-text") {
                hidden += 1;
                assert!(SECRET_OPTIONS.contains(name) || URL_OPTIONS.contains(name), "{name}");
            }
        }
        assert_eq!(hidden, SECRET_OPTIONS.len() + URL_OPTIONS.len());
    }

    #[test]
    fn passwords_and_secret_values_are_replaced() {
        for (url, shown) in [
            (
                "postgres://ann:pa:ss@db.example/town?sslmode=require",
                "postgres://ann:***@db.example/town?sslmode=require",
            ),
            ("postgres://ann:p@ss@db.example,other/town", "postgres://ann:***@db.example,other/town"),
            ("postgres://ann:pa/ss@db/town", "postgres://ann:***@db/town"),
            ("postgres://ann:pa?ss@db/town", "postgres://ann:***@db/town"),
            ("postgres:///town?password=x&host=/run", "postgres:///town?password=***&host=/run"),
            ("https://SECRETTOKEN@api.example/", "https://***@api.example/"),
            ("https://k:secret@api.example/", "https://***@api.example/"),
            ("s3://bucket/a?region=eu&secret_access_key=x", "s3://bucket/a?region=eu&secret_access_key=***"),
            ("s3://b?endpoint=https://k:secret@host", "s3://b?endpoint=https://***@host"),
            ("s3://b?endpoint=https%3A%2F%2Fk%3Asecret%40host", "s3://b?endpoint=https://***@host"),
            (
                "townsquare:t2?storage_url=s3%3A%2F%2Fb%3Fsecret_access_key%3Dx",
                "townsquare:t2?storage_url=s3://b?secret_access_key=***",
            ),
            ("townsquare:t2?url%5Fsigning_key=x", "townsquare:t2?url%5Fsigning_key=***"),
            ("postgres//ann:x@db/town", "<not a URL>"),
            ("postgres:ann:x@db/town", "<not a URL>"),
        ] {
            assert_eq!((redacted(url).as_str(), has_secret(url)), (shown, true), "{url}");
        }
        for url in [
            "postgres://ann@db.example/town",
            "postgres://db/town?storage_url=s3://files&max_connections=4",
            "sqlite:/srv/town@home.db",
            "sample:",
            "/srv/a?b",
            "s3://b?endpoint=http://127.0.0.1:9000",
        ] {
            assert_eq!((redacted(url).as_str(), has_secret(url)), (url, false));
        }
    }
}

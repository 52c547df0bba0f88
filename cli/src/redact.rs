//! URLs without their secrets.

/// Keys of queries with values that are no secret. Any other value may be one.
const OPEN_KEYS: [&str; 19] = [
    "allow_http",
    "application_name",
    "connect_timeout",
    "dbname",
    "endpoint",
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

/// Whether a URL has a password or a value of its query that may be a secret.
pub(crate) fn has_secret(url: &str) -> bool {
    redacted(url) != url
}

/// The URL with `***` in place of the password and of the values of its query that may be secrets.
pub(crate) fn redacted(url: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let mut text = redacted_base(base);
    for (number, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        text.push(if number == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key, value)) if !value.is_empty() && !OPEN_KEYS.contains(&key) => {
                text.push_str(key);
                text.push_str("=***");
            }
            _ => text.push_str(pair),
        }
    }
    text
}

fn redacted_base(base: &str) -> String {
    let Some((scheme, rest)) = base.split_once("://") else { return base.to_owned() };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    // A password may have an @ that is not escaped.
    match authority.rsplit_once('@') {
        Some((login, hosts)) => {
            let login = login.split_once(':').map_or(login.to_owned(), |(user, _)| format!("{user}:***"));
            format!("{scheme}://{login}@{hosts}{path}")
        }
        None => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_secret_values_are_replaced() {
        for (url, shown) in [
            (
                "postgres://ann:pa:ss@db.example/town?sslmode=require",
                "postgres://ann:***@db.example/town?sslmode=require",
            ),
            ("postgres://ann:p@ss@db.example,other/town", "postgres://ann:***@db.example,other/town"),
            ("postgres:///town?password=x&host=/run", "postgres:///town?password=***&host=/run"),
            ("s3://bucket/a?region=eu&secret_access_key=x", "s3://bucket/a?region=eu&secret_access_key=***"),
        ] {
            assert_eq!((redacted(url).as_str(), has_secret(url)), (shown, true), "{url}");
        }
        for url in ["postgres://ann@db.example/town", "sqlite:/srv/town.db", "sample:", "/srv/a?b"] {
            assert_eq!((redacted(url).as_str(), has_secret(url)), (url, false));
        }
    }
}

//! The headers of a request.

use ::http::{
    HeaderMap, HeaderName,
    header::{ACCEPT_ENCODING, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN},
};

use crate::error::{Error, Result};

/// Returns the value of a header; several lines are joined by commas (RFC 9110, 5.3).
pub(super) fn joined(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let lines = headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned());
    lines.reduce(|all, line| all + ", " + &line)
}

/// Returns the value of a header that a request has once; `None` without it.
///
/// # Errors
/// `InvalidInput` (400) if the request has the header twice, or if its value is not ASCII text.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next().map(|line| line.to_str()), lines.next()) {
        (_, Some(_)) => Err(Error::file(400, format!("the request has two headers {name}"))),
        (Some(Err(_)), None) => Err(Error::file(400, format!("the header {name} is not ASCII text"))),
        (Some(Ok(value)), None) => Ok(Some(value.trim())),
        (None, None) => Ok(None),
    }
}

/// Whether a request is a preflight request: a browser asks if a page of another origin may send a request (Fetch, 3.3.5).
pub(super) fn is_preflight(method: &str, headers: &HeaderMap) -> bool {
    method == "OPTIONS" && headers.contains_key(ORIGIN) && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether the peer accepts gzip: `gzip` or `*` with a weight above 0.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = joined(headers, ACCEPT_ENCODING).unwrap_or_default();
    let weight_of = |wanted: &[&str]| {
        codings.split(',').find_map(|item| {
            let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
            let is_wanted = wanted.iter().any(|wanted| coding.trim().eq_ignore_ascii_case(wanted));
            let weight = parameters.trim().strip_prefix("q=").map_or(Some(1.0), |text| text.trim().parse().ok());
            is_wanted.then(|| weight.unwrap_or(0.0))
        })
    };
    weight_of(&["gzip", "x-gzip"]).or_else(|| weight_of(&["*"])).is_some_and(|weight: f32| weight > 0.0)
}

/// The headers of a request in a test.
#[cfg(test)]
pub(super) fn header_map(headers: &[(&str, &str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&str, &str)| (name.parse::<HeaderName>().expect("a name"), value.parse().expect("a value"));
    headers.iter().map(pair).fold(HeaderMap::new(), |mut headers, (name, value)| {
        headers.append(name, value);
        headers
    })
}

/// A file of this size with the etag `abc`.
#[cfg(test)]
pub(super) fn file_info(size: u64) -> crate::model::FileInfo {
    crate::model::FileInfo {
        bucket: "private".into(),
        path: "a/note.txt".into(),
        size,
        content_type: "text/plain".into(),
        cache_control: 60,
        etag: "abc".into(),
        metadata: [].into(),
        owner_id: None,
        updated_at: "2024-01-15T10:30:00.7Z".parse().expect("a time"),
    }
}

#[cfg(test)]
mod tests {
    use ::http::header::{AUTHORIZATION, IF_MATCH, RANGE};

    use super::*;

    #[test]
    fn a_header_is_found_in_any_case_and_lines_are_joined() {
        let headers = header_map(&[("If-Match", "\"a\""), ("IF-MATCH", "\"b\""), ("Range", " x ")]);
        assert_eq!(joined(&headers, IF_MATCH).as_deref(), Some("\"a\", \"b\""));
        assert_eq!(joined(&headers, AUTHORIZATION), None);
        assert_eq!(single(&headers, &RANGE).ok(), Some(Some("x")));
        assert_eq!(single(&headers, &AUTHORIZATION).ok(), Some(None));
        assert_eq!(single(&headers, &IF_MATCH).expect_err("two").status(), 400);
    }

    #[test]
    fn gzip_is_accepted_by_name_or_wildcard_unless_its_weight_is_zero() {
        let accepts = |value: &str| accepts_gzip(&header_map(&[("Accept-Encoding", value)]));
        for value in ["gzip", "br, gzip;q=0.5", "*", "GZIP", "x-gzip", "deflate;q=1, *;q=0.1"] {
            assert!(accepts(value), "{value}");
        }
        for value in ["", "br", "gzip;q=0", "gzip;q=0.0, *", "identity", "*;q=0", "gzip;q=x", "gzip;q=NaN"] {
            assert!(!accepts(value), "{value}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}

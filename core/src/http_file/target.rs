//! Request targets: `/BUCKET/PATH?QUERY`.
//!
//! Invariant: a target is decoded once. A slash that separates segments is a slash of the target: `%2F` is refused, so
//! that a proxy and this library see the same segments.

use std::fmt::Write as _;

use crate::error::{Error, Result};

/// The largest length of a query string, in bytes.
const MAX_QUERY: usize = 8 << 10;

/// A decoded request target. Bucket and path are text without NUL; whether they are valid is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestTarget {
    pub(crate) bucket: String,
    pub(crate) path: String,
    query: Vec<(String, String)>,
}

impl RequestTarget {
    /// Decodes a target in origin form or absolute form (RFC 9112, 3.2).
    ///
    /// # Errors
    /// `InvalidInput` with status 400 for a target that is not `/BUCKET/PATH`, a malformed escape, an escaped slash or NUL,
    /// text that is not UTF-8, a fragment, and a query string over 8 KiB.
    pub(crate) fn parse(target: &str) -> Result<RequestTarget> {
        if target.chars().any(|character| character.is_control() || matches!(character, ' ' | '#')) {
            return Err(Error::file(400, "the target contains a space, a control character or a fragment"));
        }
        let target = origin_form(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix('/').ok_or_else(|| Error::file(400, "the target does not start with a slash"))?;
        let (bucket, path) = path.split_once('/').unwrap_or((path, ""));
        let segments: Vec<_> = path.split('/').map(|segment| decode(segment, "/")).collect::<Result<_>>()?;
        Ok(RequestTarget { bucket: decode(bucket, "/")?, path: segments.join("/"), query: parse_query(query)? })
    }

    /// The value of a parameter of the query string: the first of several.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters(name).next()
    }

    /// The values of every parameter with this name.
    pub(crate) fn parameters(&self, name: &str) -> impl Iterator<Item = &str> {
        self.query.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Returns `/BUCKET/PATH`, escaped for a request target. [`RequestTarget::parse`] returns the same bucket and path.
pub(super) fn encode_target(bucket: &str, path: &str) -> String {
    let mut target = String::with_capacity(bucket.len() + path.len() + 2);
    for segment in std::iter::once(bucket).chain(path.split('/')) {
        target.push('/');
        percent_encode(&mut target, segment);
    }
    target
}

/// Appends `text`; every byte but RFC 3986's unreserved characters is escaped. The same set serves RFC 8187.
pub(super) fn percent_encode(into: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => into.push(char::from(byte)),
            // Writing to a String never fails.
            _ => drop(write!(into, "%{byte:02X}")),
        }
    }
}

fn origin_form(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    }
}

fn parse_query(query: &str) -> Result<Vec<(String, String)>> {
    if query.len() > MAX_QUERY {
        return Err(Error::file(400, "the query string is too long"));
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((decode(name, "")?, decode(value, "")?))
        })
        .collect()
}

/// Decodes percent escapes, once. A plus sign is a plus sign.
fn decode(text: &str, refused: &str) -> Result<String> {
    let malformed = |why: &'static str| Error::file(400, why);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(malformed("a percent sign of the target is not followed by two hex digits"));
        };
        let decoded = (high * 16 + low) as u8;
        if decoded == 0 || refused.bytes().any(|byte| byte == decoded) {
            return Err(malformed("the target contains an escaped slash or NUL"));
        }
        bytes.push(decoded);
    }
    String::from_utf8(bytes).map_err(|_| malformed("the target is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(target: &str) -> (String, String) {
        let target = RequestTarget::parse(target).expect(target);
        (target.bucket, target.path)
    }

    #[test]
    fn targets_are_decoded_once() {
        for (target, bucket, path) in [
            ("/assets/a/b.txt", "assets", "a/b.txt"),
            ("/assets/a%20b+c", "assets", "a b+c"),
            ("/assets/caf%C3%A9", "assets", "caf\u{e9}"),
            ("/assets/caf\u{e9}", "assets", "caf\u{e9}"),
            ("/assets/%252e%252e/%252f", "assets", "%2e%2e/%2f"),
            ("/assets/x%2312?v=1", "assets", "x#12"),
            ("/assets/a%3Fb", "assets", "a?b"),
            ("/assets/%2e%2e/b", "assets", "../b"),
            ("/assets/a%5Cb", "assets", "a\\b"),
            ("/assets/a//b/", "assets", "a//b/"),
            ("/assets", "assets", ""),
            ("/", "", ""),
            ("//assets/a", "", "assets/a"),
            ("http://host:80/assets/a?b", "assets", "a"),
            ("http://host", "", ""),
            ("/assets/http://x", "assets", "http://x"),
        ] {
            assert_eq!(parse(target), (bucket.to_owned(), path.to_owned()), "{target}");
        }
    }

    #[test]
    fn malformed_targets_are_refused() {
        for target in [
            "",
            "assets/a",
            "*",
            "/assets/a%2fb",
            "/assets/a%2Fb",
            "/assets%2fa",
            "/a/%00",
            "/a/%",
            "/a/%2",
            "/a/%zz",
            "/a/%+1",
            "/a/%ff",
            "/a/%c0%af",
            "/a/%ed%a0%80",
            "/a/b c",
            "/a/b\0",
            "/a/b\r\n",
            "/a/b#c",
            "/a/b?c=%zz",
            "/a/b?c=%00",
        ] {
            let error = RequestTarget::parse(target).expect_err(target);
            assert_eq!(error.status(), Some(400), "{target:?}");
        }
        assert!(RequestTarget::parse(&format!("/a/b?{}", "c".repeat(MAX_QUERY + 1))).is_err());
    }

    #[test]
    fn the_first_of_two_parameters_is_used() {
        let target = RequestTarget::parse("/a/b?x=1&x=2&y&&z=a%2Fb%26").expect("a target");
        assert_eq!(target.parameter("x"), Some("1"));
        assert_eq!((target.parameter("y"), target.parameter("z")), (Some(""), Some("a/b&")));
        assert_eq!(target.parameter("w"), None);
    }

    #[test]
    fn an_encoded_target_is_decoded_to_the_same_path() {
        for path in ["a", "a b/c#d?e&f=g%h+i", "caf\u{e9}/\u{1f3e0}", "%2e%2e", "a;b=c,d"] {
            let target = encode_target("assets", path);
            assert!(target.is_ascii(), "{target}");
            assert_eq!(parse(&target), ("assets".to_owned(), path.to_owned()));
        }
    }
}

//! Request targets: a path and a query string.
//!
//! Invariant: a target is decoded once, and a malformed one is refused.

use percent_encoding::percent_decode_str;

/// The largest length of a query string, in bytes.
const MAX_QUERY: usize = 8 << 10;

/// Why a target or a part of it is malformed.
pub(super) type Malformed = &'static str;

/// A request target, not decoded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a> {
    pub(super) path: &'a str,
    pub(super) query: &'a str,
}

/// The decoded parameters of a query string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query(pub(super) Vec<(String, String)>);

impl<'a> Target<'a> {
    /// Splits a target in origin form or absolute form (RFC 9112, 3.2).
    ///
    /// # Errors
    /// For a path with a space, a control character or a fragment.
    pub(super) fn parse(target: &'a str) -> Result<Target<'a>, Malformed> {
        let target = origin_form(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        check_characters(path)?;
        Ok(Target { path, query })
    }

    /// Decodes the query string. A plus sign is a space, as forms and `URLSearchParams` write it.
    ///
    /// # Errors
    /// For a space, a control character or a fragment, a malformed escape, an escaped NUL, text that is not UTF-8, and a query
    /// string over 8 KiB.
    pub(super) fn parameters(&self) -> Result<Query, Malformed> {
        if self.query.len() > MAX_QUERY {
            return Err("the query string is too long");
        }
        check_characters(self.query)?;
        let form_decode = |text: &str| decode(&text.replace('+', " "));
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((form_decode(name)?, form_decode(value)?))
        });
        pairs.collect::<Result<_, _>>().map(Query)
    }
}

impl Query {
    /// The value of a parameter that a request has once. `None` if it is absent or empty.
    ///
    /// # Errors
    /// If it has several values: to choose one would ignore what the caller asked for with the others.
    pub(super) fn single(&self, name: &str) -> Result<Option<&str>, String> {
        let mut values = self.all(name).filter(|value| !value.is_empty());
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(format!("the parameter {name} is given more than once")),
            (value, None) => Ok(value),
        }
    }

    /// The values of every parameter with this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A target without scheme and authority.
pub(super) fn origin_form(target: &str) -> &str {
    match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    }
}

fn check_characters(text: &str) -> Result<(), Malformed> {
    match text.chars().any(|character| character.is_control() || matches!(character, ' ' | '#')) {
        true => Err("the target contains a space, a control character or a fragment"),
        false => Ok(()),
    }
}

/// Decodes percent escapes, once. A plus sign is a plus sign.
///
/// # Errors
/// For a malformed escape, an escaped NUL, and text that is not UTF-8.
pub(super) fn decode(text: &str) -> Result<String, Malformed> {
    let starts_with_hex = |text: &str| text.len() >= 2 && text.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(starts_with_hex) {
        return Err("a percent sign of the target is not followed by two hex digits");
    }
    let text = percent_decode_str(text).decode_utf8().map_err(|_| "the target is not UTF-8")?;
    if text.contains('\0') { Err("the target contains an escaped NUL") } else { Ok(text.into_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_split_in_origin_form_and_in_absolute_form() {
        for (target, path, query) in [
            ("/assets/a?v=1?2", "/assets/a", "v=1?2"),
            ("http://host:80/assets/a?b", "/assets/a", "b"),
            ("http://host", "/", ""),
            ("/assets/http://x", "/assets/http://x", ""),
            ("?table=x", "", "table=x"),
            ("", "", ""),
        ] {
            assert_eq!(Target::parse(target), Ok(Target { path, query }), "{target}");
        }
        for target in ["/a/b c", "/a/b\0", "/a/b\r\n", "/a/b#c", "/a?b=\u{1}", "/a?b=c d", "/a?b#c"] {
            assert!(Target::parse(target).and_then(|target| target.parameters()).is_err(), "{target:?}");
        }
    }

    #[test]
    fn escapes_are_decoded_once_and_malformed_ones_refused() {
        for (text, decoded) in [
            ("a%20b+c", "a b+c"),
            ("caf%C3%A9", "caf\u{e9}"),
            ("caf\u{e9}", "caf\u{e9}"),
            ("%252e%252e", "%2e%2e"),
            ("x%2312", "x#12"),
            ("a%3Fb", "a?b"),
            ("a%5Cb", "a\\b"),
        ] {
            assert_eq!(decode(text).as_deref(), Ok(decoded), "{text}");
        }
        for text in ["%", "%2", "%zz", "%+1", "%\u{e9}1", "%ff", "%c0%af", "%ed%a0%80", "a%00"] {
            assert!(decode(text).is_err(), "{text}");
        }
        assert_eq!(decode("a%2Fb%2fc").as_deref(), Ok("a/b/c"));
    }

    #[test]
    fn a_query_is_decoded_as_forms_write_it() {
        let query = |text| Target::parse(text).expect("a target").parameters();
        let parsed = query("/?x=1&x=2&y&&z=a%2Fb%26&limit=&p=a+b%2Bc&limit=5").expect("well-formed");
        for (name, value) in [("y", None), ("limit", Some("5")), ("z", Some("a/b&")), ("p", Some("a b+c")), ("w", None)]
        {
            assert_eq!(parsed.single(name), Ok(value), "{name}");
        }
        assert_eq!(parsed.single("x"), Err("the parameter x is given more than once".to_owned()));
        assert_eq!(parsed.all("x").collect::<Vec<_>>(), ["1", "2"]);
        for bad in ["/?c=%zz", "/?%ff=c", "/?c=%00"] {
            assert!(query(bad).is_err(), "{bad}");
        }
        assert!(query(&format!("/?{}", "c".repeat(MAX_QUERY + 1))).is_err());
    }
}

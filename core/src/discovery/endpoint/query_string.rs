//! The query string of a GET request, decoded strictly.
//!
//! Invariant: a malformed query string (RFC 3986 escapes of UTF-8 text, at most 8 KiB) is refused as a whole. Of
//! repeated parameters `get` returns the first, as `URLSearchParams.get` of the Web does, and `all` returns every one.

use std::borrow::Cow;

/// In bytes.
const MAX_LENGTH: usize = 8 << 10;

pub(super) struct QueryString<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> QueryString<'a> {
    pub(super) fn parse(text: &'a str) -> Result<QueryString<'a>, &'static str> {
        if text.len() > MAX_LENGTH {
            return Err("Query string too long");
        }
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(QueryString(pairs))
    }

    /// The value of a parameter; `None` if it is absent or empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        value.filter(|value| !value.is_empty())
    }

    /// The values of a repeated parameter.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }
}

/// Decodes percent escapes, and `+` as a space.
fn decode(text: &str) -> Result<Cow<'_, str>, &'static str> {
    unescape(text, true)
}

/// Decodes the percent escapes of a path.
pub(super) fn decode_path(text: &str) -> Result<Cow<'_, str>, &'static str> {
    unescape(text, false)
}

fn unescape(text: &str, plus_is_space: bool) -> Result<Cow<'_, str>, &'static str> {
    const MALFORMED: &str = "Malformed query string";
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(MALFORMED);
    }
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' if plus_is_space => b' ',
            b'%' => {
                let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16));
                let (high, low) = (digit().ok_or(MALFORMED)?, digit().ok_or(MALFORMED)?);
                (high * 16 + low) as u8
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| MALFORMED)?;
    if text.contains('\0') { Err(MALFORMED) } else { Ok(Cow::Owned(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_malformed_ones_refused() {
        assert_eq!(decode("a%20b+c%C3%A9").as_deref(), Ok("a b cé"));
        for bad in ["%", "%2", "%zz", "%ff", "a%00", "a\u{1}"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn empty_parameters_are_absent_and_repeated_ones_are_all_kept() {
        let query = QueryString::parse("limit=&category=games,,social&category=art&&trending").expect("well-formed");
        assert_eq!((query.get("limit"), query.get("trending")), (None, None));
        assert_eq!(query.all("category").collect::<Vec<_>>(), ["games,,social", "art"]);
        assert_eq!(query.get("category"), Some("games,,social"));
    }
}

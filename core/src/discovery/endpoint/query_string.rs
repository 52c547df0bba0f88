//! The query string of a GET request, decoded strictly.
//!
//! Invariant: a malformed query string (RFC 3986 escapes of UTF-8 text, at most 8 KiB) is refused as a whole. Of
//! repeated parameters the first is used, as `URLSearchParams.get` of the Web does.

use std::{borrow::Cow, str::FromStr};

use super::{EndpointError, bad_request};
use crate::catalog::Timeframe;

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

    /// The items of a comma-separated parameter.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let items = self.get(name).into_iter().flat_map(|value| value.split(','));
        items.map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    pub(super) fn timeframe(&self) -> Result<Timeframe, EndpointError> {
        Ok(self.get("timeWindow").map(Timeframe::from_str).transpose()?.unwrap_or_default())
    }

    pub(super) fn limit(&self, default: u32) -> Result<u32, EndpointError> {
        let Some(text) = self.get("limit") else { return Ok(default) };
        // `parse` alone would accept a plus sign.
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| bad_request("limit is a whole number from 1 to 1000"))
    }
}

/// Decodes percent escapes, and `+` as a space.
fn decode(text: &str) -> Result<Cow<'_, str>, &'static str> {
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
            b'+' => b' ',
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
    fn empty_parameters_are_absent_and_the_first_of_two_is_used() {
        let query = QueryString::parse("limit=&category=games,,social&category=art&&trending").expect("well-formed");
        assert_eq!(query.limit(7).ok(), Some(7));
        assert_eq!(query.list("category"), ["games", "social"]);
        assert_eq!(query.get("trending"), None);
    }
}

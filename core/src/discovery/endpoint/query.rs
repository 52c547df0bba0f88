//! The query of a GET, decoded strictly.
//!
//! Invariant: what is not a well-formed query (RFC 3986 escapes of UTF-8 text, bounded) is refused as a whole; of
//! two parameters of one name the first counts, as with the Web's `URLSearchParams.get`.

use std::{borrow::Cow, str::FromStr};

use super::{Refusal, bad_request};
use crate::catalog::Timeframe;

/// More is no query that a person or a client of ours sends.
const LONGEST: usize = 8 << 10;

pub(super) struct Query<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Query<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Query<'a>, &'static str> {
        if text.len() > LONGEST {
            return Err("Query string too long");
        }
        let mut pairs = Vec::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Query(pairs))
    }

    /// A parameter; an empty one is one not given.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        value.filter(|value| !value.is_empty())
    }

    /// The items of a comma list.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let items = self.get(name).into_iter().flat_map(|value| value.split(','));
        items.map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
    }

    pub(super) fn timeframe(&self) -> Result<Timeframe, Refusal> {
        Ok(self.get("timeWindow").map(Timeframe::from_str).transpose()?.unwrap_or_default())
    }

    pub(super) fn limit(&self, default: u32) -> Result<u32, Refusal> {
        let Some(text) = self.get("limit") else { return Ok(default) };
        // Digits only: `parse` would also take a plus sign.
        let digits = Some(text).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits
            .and_then(|digits| digits.parse().ok())
            .ok_or_else(|| bad_request("limit is a whole number from 1 to 1000"))
    }
}

/// Undoes percent escapes and `+`.
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
    fn escapes_are_undone_and_bad_ones_refused() {
        assert_eq!(decode("a%20b+c%C3%A9").as_deref(), Ok("a b cé"));
        for bad in ["%", "%2", "%zz", "%ff", "a%00", "a\u{1}"] {
            assert!(decode(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn empty_parameters_are_not_given_and_the_first_of_two_counts() {
        let query = Query::parse("limit=&category=games,,social&category=art&&trending").expect("well-formed");
        assert_eq!(query.limit(7).ok(), Some(7));
        assert_eq!(query.list("category"), ["games", "social"]);
        assert_eq!(query.get("trending"), None);
    }
}

//! What arguments must look like before they reach a database: the same on every engine.
//!
//! Invariant: what passes here is taken by SQLite and PostgreSQL alike, and what is refused is refused with
//! `InvalidInput` that names the argument, before anything is written.

use serde_json::Value as Json;

use crate::error::{Error, ErrorKind, Result};

/// The most rows, or apps, that one call returns.
pub const MAX_LIMIT: u32 = 1_000;

/// How deep JSON may be nested; both engines read that back.
pub(crate) const MAX_DEPTH: usize = 100;

/// A community's id is `VARCHAR(50)` (SPEC 8): characters, not bytes.
const COMMUNITY_ID: usize = 50;

/// Refuses text with a NUL, which PostgreSQL cannot keep.
pub(crate) fn text(name: &str, value: Option<&impl AsRef<str>>) -> Result<()> {
    match value {
        Some(value) if value.as_ref().contains('\0') => {
            Err(Error::invalid_input(format!("{name} contains a NUL character")))
        }
        _ => Ok(()),
    }
}

/// Refuses JSON that is nested too deeply or has a NUL in a text or a key, which JSONB cannot keep.
pub(crate) fn json(name: &str, value: Option<&Json>) -> Result<()> {
    value.map_or(Ok(()), |value| nested(name, value, 0))
}

fn nested(name: &str, value: &Json, depth: usize) -> Result<()> {
    if depth >= MAX_DEPTH && (value.is_array() || value.is_object()) {
        return Err(Error::invalid_input(format!("{name} is JSON nested deeper than {MAX_DEPTH}")));
    }
    match value {
        Json::String(string) => text(name, Some(string)),
        Json::Array(items) => items.iter().try_for_each(|item| nested(name, item, depth + 1)),
        Json::Object(members) => members.iter().try_for_each(|(key, member)| {
            text(name, Some(key))?;
            nested(name, member, depth + 1)
        }),
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
    }
}

/// A limit of 1 to 1,000.
pub(crate) fn limit(limit: u32) -> Result<u32> {
    match limit {
        1..=MAX_LIMIT => Ok(limit),
        _ => Err(Error::invalid_input(format!("limit is 1 to {MAX_LIMIT}, not {limit}"))),
    }
}

/// An offset that a database can count to.
pub(crate) fn offset(offset: u64) -> Result<i64> {
    i64::try_from(offset).map_err(|_| Error::invalid_input(format!("offset is at most {}, not {offset}", i64::MAX)))
}

/// Refuses an id that `VARCHAR(50)` would, in PostgreSQL's words.
pub(crate) fn community_id(id: &str) -> Result<()> {
    text("community_id", Some(&id))?;
    if id.chars().count() > COMMUNITY_ID {
        return Err(Error::database(
            Some("22001"),
            ErrorKind::InvalidInput,
            format!("value too long for type character varying({COMMUNITY_ID})"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fifty_characters_are_counted_not_bytes() {
        assert!(community_id(&"é".repeat(50)).is_ok());
        let error = community_id(&"a".repeat(51)).expect_err("too long");
        assert_eq!((error.code(), error.kind()), (Some("22001"), ErrorKind::InvalidInput));
        assert_eq!(error.to_string(), "Database error: value too long for type character varying(50)");
    }

    #[test]
    fn json_is_a_hundred_deep_and_no_deeper() {
        let deep = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(json("config", Some(&deep(100))).is_ok());
        assert!(json("config", Some(&deep(101))).is_err());
    }

    #[test]
    fn a_nul_is_refused_wherever_it_hides() {
        for value in [json!("a\0"), json!({"a\0": 1}), json!([{"a": ["\0"]}])] {
            assert!(json("config", Some(&value)).is_err(), "{value}");
        }
    }
}

//! Checks of arguments before they reach a database: the same for every engine.
//!
//! Invariant: SQLite and PostgreSQL can both store every value that passes. A refusal is `InvalidInput`, names the
//! argument, and comes before anything is written.

use serde_json::Value as Json;
use uuid::Uuid;

use crate::{
    error::{Error, ErrorKind, Result},
    model::{Change, SpaceType, Validate},
};

/// The largest number of rows, or apps, that one call returns.
pub const MAX_LIMIT: u32 = 1_000;

/// The largest depth of nested JSON that both engines read back.
pub(crate) const MAX_DEPTH: usize = 100;

/// The length of `VARCHAR(50)` for a community's id (SPEC 8), in characters.
const COMMUNITY_ID_LENGTH: usize = 50;

/// Refuses text with a NUL, which PostgreSQL cannot store.
pub(crate) fn text(name: &str, value: Option<&impl AsRef<str>>) -> Result<()> {
    match value {
        Some(value) if value.as_ref().contains('\0') => {
            Err(Error::invalid_input(format!("{} contains a NUL character", snake_case(name))))
        }
        _ => Ok(()),
    }
}

/// Refuses JSON that is nested deeper than [`MAX_DEPTH`], or has a NUL in a string or key, which JSONB cannot store.
pub(crate) fn json(name: &str, value: Option<&Json>) -> Result<()> {
    value.map_or(Ok(()), |value| json_at_depth(name, value, 0))
}

fn json_at_depth(name: &str, value: &Json, depth: usize) -> Result<()> {
    if depth >= MAX_DEPTH && (value.is_array() || value.is_object()) {
        let name = snake_case(name);
        return Err(Error::invalid_input(format!("{name} is JSON nested deeper than {MAX_DEPTH}")));
    }
    match value {
        Json::String(string) => text(name, Some(string)),
        Json::Array(items) => items.iter().try_for_each(|item| json_at_depth(name, item, depth + 1)),
        Json::Object(members) => members.iter().try_for_each(|(key, member)| {
            text(name, Some(key))?;
            json_at_depth(name, member, depth + 1)
        }),
        Json::Null | Json::Bool(_) | Json::Number(_) => Ok(()),
    }
}

/// The argument that fills a column: `space_name` for `spaceName`.
fn snake_case(column: &str) -> String {
    let mut name = String::with_capacity(column.len());
    for character in column.chars() {
        if character.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

/// Refuses a limit outside 1 to [`MAX_LIMIT`].
pub(crate) fn limit(limit: u32) -> Result<u32> {
    match limit {
        1..=MAX_LIMIT => Ok(limit),
        _ => Err(Error::invalid_input(format!("limit is 1 to {MAX_LIMIT}, not {limit}"))),
    }
}

/// Refuses an offset that does not fit into a `BIGINT`.
pub(crate) fn offset(offset: u64) -> Result<i64> {
    i64::try_from(offset).map_err(|_| Error::invalid_input(format!("offset is at most {}, not {offset}", i64::MAX)))
}

/// Refuses an id that does not fit into `VARCHAR(50)`, in PostgreSQL's words.
pub(crate) fn community_id(id: &str) -> Result<()> {
    text("community_id", Some(&id))?;
    if id.chars().count() > COMMUNITY_ID_LENGTH {
        return Err(Error::database(
            Some("22001"),
            ErrorKind::InvalidInput,
            format!("value too long for type character varying({COMMUNITY_ID_LENGTH})"),
        ));
    }
    Ok(())
}

impl Validate for String {
    fn validate(&self, column: &str) -> Result<()> {
        text(column, Some(self))
    }
}

impl Validate for Vec<String> {
    fn validate(&self, column: &str) -> Result<()> {
        self.iter().try_for_each(|item| item.validate(column))
    }
}

impl Validate for Json {
    fn validate(&self, column: &str) -> Result<()> {
        json(column, Some(self))
    }
}

impl<T: Validate> Validate for Option<T> {
    fn validate(&self, column: &str) -> Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.validate(column))
    }
}

impl<T: Validate> Validate for Change<T> {
    fn validate(&self, column: &str) -> Result<()> {
        self.as_set().map_or(Ok(()), |value| value.validate(column))
    }
}

/// Types of which both engines store every value.
macro_rules! always_valid {
    ($($type:ty),*) => {$(
        impl Validate for $type {
            fn validate(&self, _: &str) -> Result<()> {
                Ok(())
            }
        }
    )*};
}

always_valid!(bool, i32, Uuid, SpaceType);

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_community_id_has_at_most_fifty_characters_however_many_bytes() {
        assert!(community_id(&"é".repeat(50)).is_ok());
        let error = community_id(&"a".repeat(51)).expect_err("too long");
        assert_eq!((error.code(), error.kind()), (Some("22001"), ErrorKind::InvalidInput));
        assert_eq!(error.to_string(), "Database error: value too long for type character varying(50)");
    }

    #[test]
    fn json_nested_deeper_than_a_hundred_is_refused() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(json("config", Some(&nested(100))).is_ok());
        assert!(json("config", Some(&nested(101))).is_err());
    }

    #[test]
    fn a_nul_in_any_string_or_key_of_json_is_refused() {
        for value in [json!("a\0"), json!({"a\0": 1}), json!([{"a": ["\0"]}])] {
            assert!(json("config", Some(&value)).is_err(), "{value}");
        }
    }

    #[test]
    fn a_refusal_names_the_argument_and_not_the_column() {
        let error = Some("\0".to_owned()).validate("identityPublicKey").expect_err("a NUL");
        assert_eq!(error.message(), "identity_public_key contains a NUL character");
    }
}

//! Checks of arguments before they reach a database: the same for every engine.
//!
//! Invariant: SQLite and PostgreSQL can both store every value that passes, and return a value that is equal. A refusal
//! is `InvalidInput` or `TooLarge`, its message starts with the argument, and it comes before anything is written.

mod json_text;

use std::io;

use serde::Serialize;
use serde_json::{Serializer, Value as Json, ser::Formatter};
use uuid::Uuid;

pub use self::json_text::parse_json;
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

/// The columns that hold names.
const NAMES: [&str; 3] = ["name", "spaceName", "type"];

/// The largest sizes that the tables accept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of a text.
    pub(crate) max_text_size: u64,
    /// Bytes of a name: of a column in [`NAMES`].
    pub(crate) max_name_size: u64,
    /// Bytes of a JSON value, written without white space.
    pub(crate) max_json_size: u64,
    /// Rows that one call creates or changes.
    pub(crate) max_bulk_rows: u64,
    /// Spaces of one owner.
    pub(crate) max_owner_spaces: Option<u64>,
    /// Fidgets of one space.
    pub(crate) max_space_fidgets: u64,
}

impl Limits {
    /// Refuses text with a NUL, and text that is too large. A name has a smaller limit.
    pub(crate) fn text(&self, name: &str, value: &str) -> Result<()> {
        text(name, Some(&value))?;
        if NAMES.contains(&name) {
            check_size(name, value.len(), "bytes", "max_name_size", self.max_name_size)?;
        }
        check_size(name, value.len(), "bytes", "max_text_size", self.max_text_size)
    }

    /// Refuses JSON that is nested deeper than [`MAX_DEPTH`], that has a NUL in a string or key, which JSONB cannot store,
    /// or that is too large.
    pub(crate) fn json(&self, name: &str, value: &Json) -> Result<()> {
        json_at_depth(name, value, 0)?;
        self.json_size(name, value)
    }

    fn json_size(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let mut size = Counter(0);
        // Writing to a counter never fails.
        let _ = value.serialize(&mut Serializer::with_formatter(&mut size, DecimalFloats));
        check_size(name, size.0, "bytes of JSON", "max_json_size", self.max_json_size)
    }

    /// Refuses more rows than one call may create or change.
    pub(crate) fn rows(&self, name: &str, count: usize) -> Result<()> {
        check_size(name, count, "rows", "max_bulk_rows", self.max_bulk_rows)
    }

    /// Checks each row of a list, and returns the results of `check`. An error names the row.
    pub(crate) fn each<I, C>(&self, name: &str, rows: I, check: impl Fn(I::Item) -> Result<C>) -> Result<Vec<C>>
    where
        I: IntoIterator<IntoIter: ExactSizeIterator>,
    {
        let rows = rows.into_iter();
        self.rows(name, rows.len())?;
        let checked = rows
            .enumerate()
            .map(|(index, row)| check(row).map_err(|error| error.inside(&format!("{name}[{index}]")).at_row(index)));
        checked.collect()
    }
}

/// Writes numbers without an exponent, as PostgreSQL does wherever it writes JSON: there `1e308` has 309 digits before the point.
struct DecimalFloats;

impl Formatter for DecimalFloats {
    fn write_f64<W: ?Sized + io::Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        if value.fract() == 0.0 { write!(writer, "{value:.1}") } else { write!(writer, "{value}") }
    }
}

/// Counts the bytes that are written to it.
struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Refuses a `size` over the limit that `option` sets.
fn check_size(name: &str, size: usize, unit: &str, option: &str, limit: u64) -> Result<()> {
    if u64::try_from(size).is_ok_and(|size| size <= limit) {
        return Ok(());
    }
    let name = snake_case(name);
    Err(Error::new(ErrorKind::TooLarge, format!("{name} has {size} {unit}; the limit, option {option}, is {limit}")))
}

/// Refuses text with a NUL, which PostgreSQL cannot store.
pub(crate) fn text(name: &str, value: Option<&impl AsRef<str>>) -> Result<()> {
    match value {
        Some(value) if value.as_ref().contains('\0') => {
            Err(Error::invalid_input(format!("{} contains a NUL character", snake_case(name))))
        }
        _ => Ok(()),
    }
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

/// Refuses an empty id, and one that does not fit into `VARCHAR(50)`, in PostgreSQL's words.
pub(crate) fn community_id(id: &str) -> Result<()> {
    text("community_id", Some(&id))?;
    if id.is_empty() {
        return Err(Error::invalid_input("community_id is empty"));
    }
    if id.chars().count() > COMMUNITY_ID_LENGTH {
        return Err(Error::database(
            Some("22001"),
            ErrorKind::InvalidInput,
            format!("value too long for type character varying({COMMUNITY_ID_LENGTH})"),
        ));
    }
    Ok(())
}

impl Validate<Limits> for String {
    fn validate(&self, column: &str, limits: &Limits) -> Result<()> {
        limits.text(column, self)
    }
}

impl Validate<Limits> for Vec<String> {
    fn validate(&self, column: &str, limits: &Limits) -> Result<()> {
        self.iter().try_for_each(|item| item.validate(column, limits))?;
        // SQLite stores the list as JSON.
        limits.json_size(column, self)
    }
}

impl Validate<Limits> for Json {
    fn validate(&self, column: &str, limits: &Limits) -> Result<()> {
        limits.json(column, self)
    }
}

impl<T: Validate<Limits>> Validate<Limits> for Option<T> {
    fn validate(&self, column: &str, limits: &Limits) -> Result<()> {
        self.as_ref().map_or(Ok(()), |value| value.validate(column, limits))
    }
}

/// NULL would read as false, so a flag cannot be cleared.
impl Validate<Limits> for Change<bool> {
    fn validate(&self, column: &str, _: &Limits) -> Result<()> {
        match self {
            Change::Clear => Err(Error::field_missing(snake_case(column))),
            Change::Keep | Change::Set(_) => Ok(()),
        }
    }
}

/// Changes of columns that may be NULL, or that the table itself protects from NULL.
macro_rules! valid_when_cleared {
    ($($type:ty),*) => {$(
        impl Validate<Limits> for Change<$type> {
            fn validate(&self, column: &str, limits: &Limits) -> Result<()> {
                self.as_set().map_or(Ok(()), |value| value.validate(column, limits))
            }
        }
    )*};
}

valid_when_cleared!(String, Vec<String>, Json);

/// Types with values that both engines store without exception.
macro_rules! always_valid {
    ($($type:ty),*) => {$(
        impl Validate<Limits> for $type {
            fn validate(&self, _: &str, _: &Limits) -> Result<()> {
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

    const LIMITS: Limits = Limits {
        max_text_size: 1_000,
        max_name_size: 100,
        max_json_size: 1_000,
        max_bulk_rows: 3,
        max_owner_spaces: None,
        max_space_fidgets: 1_000,
    };

    #[test]
    fn a_community_id_has_at_most_fifty_characters_however_many_bytes() {
        assert!(community_id(&"é".repeat(50)).is_ok());
        let error = community_id(&"a".repeat(51)).expect_err("too long");
        assert_eq!((error.code(), error.kind()), (Some("22001"), ErrorKind::InvalidInput));
        assert_eq!(error.to_string(), "Database error: value too long for type character varying(50)");
    }

    #[test]
    fn an_empty_community_id_is_refused() {
        let error = community_id("").expect_err("empty");
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::InvalidInput, "community_id is empty"));
    }

    #[test]
    fn json_nested_deeper_than_a_hundred_is_refused() {
        let nested = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
        assert!(LIMITS.json("config", &nested(100)).is_ok());
        assert!(LIMITS.json("config", &nested(101)).is_err());
    }

    #[test]
    fn a_nul_in_any_string_or_key_of_json_is_refused() {
        for value in [json!("a\0"), json!({"a\0": 1}), json!([{"a": ["\0"]}])] {
            assert!(LIMITS.json("config", &value).is_err(), "{value}");
        }
    }

    #[test]
    fn a_refusal_names_the_argument_and_not_the_column() {
        let error = Some("\0".to_owned()).validate("identityPublicKey", &LIMITS).expect_err("a NUL");
        assert_eq!(error.message(), "identity_public_key contains a NUL character");
    }

    #[test]
    fn the_size_of_json_is_that_of_its_compact_text() {
        let json = |length: usize| json!({ "a": [1, "x".repeat(length)] });
        let fits = LIMITS.max_json_size as usize - json(0).to_string().len();
        assert!(LIMITS.json("config", &json(fits)).is_ok());
        let error = LIMITS.json("config", &json(fits + 1)).expect_err("too large");
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert_eq!(error.message(), "config has 1001 bytes of JSON; the limit, option max_json_size, is 1000");
    }

    #[test]
    fn a_number_counts_with_all_its_digits() {
        let floats = |count: usize| json!(vec![1e308; count]);
        assert!(LIMITS.json("config", &floats(3)).is_ok());
        let error = LIMITS.json("config", &floats(4)).expect_err("too large");
        assert_eq!(error.message(), "config has 1249 bytes of JSON; the limit, option max_json_size, is 1000");
        assert!(LIMITS.json("config", &json!([5e-324, 5e-324, 5e-324, 5e-324])).is_err());
        assert!(
            LIMITS.json("config", &json!(vec![1.0; 249])).is_ok()
                && LIMITS.json("config", &json!(vec![1.0; 250])).is_err()
        );
    }

    #[test]
    fn a_name_has_a_smaller_limit_than_another_text() {
        let long = "x".repeat(101);
        for column in NAMES {
            assert!(long[1..].to_owned().validate(column, &LIMITS).is_ok());
            let error = long.validate(column, &LIMITS).expect_err("too long");
            assert!(error.message().ends_with("has 101 bytes; the limit, option max_name_size, is 100"), "{error}");
            let longest = "x".repeat(100_000).validate(column, &LIMITS).expect_err("beyond both limits");
            assert!(longest.message().ends_with("option max_name_size, is 100"), "{longest}");
        }
        assert!(long.validate("description", &LIMITS).is_ok());
    }

    #[test]
    fn an_error_in_a_list_names_the_row() {
        let rows = ["x", "\0"];
        let error = LIMITS.each("spaces", &rows, |row| LIMITS.text("name", row)).expect_err("a NUL");
        assert_eq!((error.row(), error.message()), (Some(1), "spaces[1].name contains a NUL character"));
        let missing = |_: &&str| Err::<(), _>(Error::field_missing("name"));
        let error = LIMITS.each("spaces", &rows, missing).expect_err("no name");
        assert_eq!((error.row(), error.message()), (Some(0), "Required field is missing: spaces[0].name"));
        let too_long = |id: &&str| community_id(&id.repeat(51)).map_err(|error| error.in_column("community_id"));
        let error = LIMITS.each("rows", &rows, too_long).expect_err("too long");
        let sentence = "Database error: value too long for type character varying(50)";
        assert_eq!((error.sentence(), error.reason()), (sentence, Some("rows[0].community_id")));
        assert_eq!(LIMITS.each("spaces", &[(); 4], |()| Ok(())).expect_err("4 rows").kind(), ErrorKind::TooLarge);
    }
}

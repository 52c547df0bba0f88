//! A row on its way out of the database, read by place.
//!
//! Invariant: a column that does not hold what is asked for is an `Internal` error that names its place, never a
//! panic: other programs write to these tables too.

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::error::{Error, ErrorKind, Result};

/// One row of a result.
pub(crate) struct Row<'a>(pub(super) Columns<'a>);

/// Reads a record from a row.
pub(crate) type Read<T> = fn(&Row<'_>) -> Result<T>;

pub(super) enum Columns<'a> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "postgres")]
    Postgres(&'a sqlx::postgres::PgRow),
}

/// What a column can be read as; `None` is NULL.
pub(crate) trait Column: Sized {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>>;
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>>;
}

impl Row<'_> {
    /// A column that is never NULL.
    pub(crate) fn get<T: Column>(&self, column: usize) -> Result<T> {
        self.get_optional(column)?.ok_or_else(|| unexpected(column))
    }

    /// A column that may be NULL.
    pub(crate) fn get_optional<T: Column>(&self, column: usize) -> Result<Option<T>> {
        let value = match &self.0 {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => row.get_ref(column).ok().and_then(T::from_sqlite),
            #[cfg(feature = "postgres")]
            Columns::Postgres(row) => T::from_postgres(row, column),
        };
        value.ok_or_else(|| unexpected(column))
    }
}

fn unexpected(column: usize) -> Error {
    // XX001: data corrupted. Somebody else wrote this row.
    Error::database(Some("XX001"), ErrorKind::Internal, format!("column {column} of a row holds no such value"))
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use rusqlite::types::ValueRef;

    pub(super) fn read<T>(value: ValueRef<'_>, read: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
        match value {
            ValueRef::Null => Some(None),
            ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(read).map(Some),
            _ => None,
        }
    }
}

/// `Column` for what SQLite keeps as text and PostgreSQL as a type that the driver reads.
macro_rules! text_column {
    ($($type:ty, $text:ident => $read:expr, $native:ty, $value:ident => $convert:expr;)*) => {$(
        impl Column for $type {
            #[cfg(feature = "sqlite")]
            fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>> {
                sqlite::read(value, |$text| $read)
            }
            #[cfg(feature = "postgres")]
            fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>> {
                use sqlx::Row as _;
                match row.try_get::<Option<$native>, _>(column).ok()? {
                    None => Some(None),
                    Some($value) => $convert.map(Some),
                }
            }
        }
    )*};
}

text_column! {
    String, text => Some(text.to_owned()), String, value => Some(value);
    Uuid, text => Uuid::try_parse(text).ok(), Uuid, value => Some(value);
    Json, text => serde_json::from_str(text).ok(), Json, value => Some(value);
    Vec<String>, text => serde_json::from_str(text).ok(), Vec<String>, value => Some(value);
    Timestamp, text => text.parse().ok(), super::postgres::types::Time, value => Some(value.0);
}

impl Column for i64 {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>> {
        match value {
            rusqlite::types::ValueRef::Null => Some(None),
            rusqlite::types::ValueRef::Integer(number) => Some(Some(number)),
            _ => None,
        }
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>> {
        use sqlx::Row as _;
        // INTEGER and BIGINT alike.
        row.try_get::<Option<i64>, _>(column)
            .or_else(|_| row.try_get::<Option<i32>, _>(column).map(|number| number.map(i64::from)))
            .ok()
    }
}

impl Column for bool {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>> {
        <i64 as Column>::from_sqlite(value).map(|number| number.map(|number| number != 0))
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>> {
        use sqlx::Row as _;
        row.try_get(column).ok()
    }
}

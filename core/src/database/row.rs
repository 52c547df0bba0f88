//! A row of a query's result, read by column index.
//!
//! Invariant: a column that does not hold a value of the requested type is an `Internal` error that names the index,
//! never a panic: other programs write to these tables too.

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::{
    error::{Error, ErrorKind, Result},
    model::{DomainType, FromRow, ReadColumn, SpaceType},
};

/// One row of a query's result.
pub(crate) struct Row<'a>(pub(super) Columns<'a>);

/// Reads a record from a row.
pub(crate) type Read<T> = fn(&Row<'_>) -> Result<T>;

pub(super) enum Columns<'a> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "postgres")]
    Postgres(&'a sqlx::postgres::PgRow),
}

/// A type that a column can be read as: the outer `None` is a value of another type, the inner `None` is NULL.
pub(crate) trait FromColumn: Sized {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>>;
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>>;
}

impl Row<'_> {
    /// Reads a column that is never NULL.
    pub(crate) fn get<T: FromColumn>(&self, column: usize) -> Result<T> {
        self.get_optional(column)?.ok_or_else(|| unexpected(column))
    }

    /// Reads a column that may be NULL.
    pub(crate) fn get_optional<T: FromColumn>(&self, column: usize) -> Result<Option<T>> {
        let value = match &self.0 {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => row.get_ref(column).ok().and_then(T::from_sqlite),
            #[cfg(feature = "postgres")]
            Columns::Postgres(row) => T::from_postgres(row, column),
        };
        value.ok_or_else(|| unexpected(column))
    }
}

impl<T: FromColumn> ReadColumn<T> for Row<'_> {
    fn read_column(&self, index: usize) -> Result<T> {
        self.get(index)
    }
}

impl<T: FromColumn> ReadColumn<Option<T>> for Row<'_> {
    fn read_column(&self, index: usize) -> Result<Option<T>> {
        self.get_optional(index)
    }
}

/// Reads a whole row as a record, for statements that select the columns of that record.
pub(crate) fn record<T: for<'a> FromRow<Row<'a>>>(row: &Row<'_>) -> Result<T> {
    T::from_row(row, 0)
}

fn unexpected(column: usize) -> Error {
    // XX001 is data_corrupted: another program wrote this row.
    Error::database(
        Some("XX001"),
        ErrorKind::Internal,
        format!("column {column} of a row holds NULL or a value of another type"),
    )
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

/// Implements `FromColumn` for a type that SQLite stores as text and PostgreSQL as a type that the driver reads.
macro_rules! text_column {
    ($($type:ty, $text:ident => $read:expr, $native:ty, $value:ident => $convert:expr;)*) => {$(
        impl FromColumn for $type {
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
    DomainType, text => text.parse().ok(), String, value => value.parse().ok();
    SpaceType, text => text.parse().ok(), String, value => value.parse().ok();
}

impl FromColumn for i64 {
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
        // The column is BIGINT or INTEGER.
        row.try_get::<Option<i64>, _>(column)
            .or_else(|_| row.try_get::<Option<i32>, _>(column).map(|number| number.map(i64::from)))
            .ok()
    }
}

impl FromColumn for i32 {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>> {
        <i64 as FromColumn>::from_sqlite(value)?.map(i32::try_from).transpose().ok()
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>> {
        <i64 as FromColumn>::from_postgres(row, column)?.map(i32::try_from).transpose().ok()
    }
}

impl FromColumn for bool {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Option<Option<Self>> {
        <i64 as FromColumn>::from_sqlite(value).map(|number| number.map(|number| number != 0))
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Option<Option<Self>> {
        use sqlx::Row as _;
        row.try_get(column).ok()
    }
}

//! A row of a query's result, read by column index.
//!
//! Invariant: other programs write to these tables too, so a value of a wrong form is never a panic. A time or a text
//! reads as the nearest value that its type has. Any other unreadable value is an `Internal` error that names the column;
//! a list leaves such a row out ([`Row::readable`]). Either way the log has one warning for the result.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use bytes::Bytes;
use jiff::Timestamp;
#[cfg(feature = "sqlite")]
use jiff::{fmt::temporal::Pieces, tz::Offset};
use serde_json::Value as Json;
use uuid::Uuid;

use super::statement::{Bound, RESULT_MEMORY};
use crate::{
    error::{Error, ErrorKind, Result},
    model::{DomainType, FromRow, ReadColumn, SpaceType, memory_of},
};

/// One row of a query's result.
pub(crate) struct Row<'a> {
    columns: Columns<'a>,
    malformed: &'a MalformedValues,
}

/// Reads a record from a row.
pub(crate) type Read<T> = fn(&Row<'_>) -> Result<T>;

pub(super) enum Columns<'a> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "postgres")]
    Postgres(&'a sqlx::postgres::PgRow),
}

/// Counts the malformed values of a result, and the memory of its values. Logs a warning when it is dropped, if there were any
/// malformed ones.
#[derive(Default)]
pub(super) struct MalformedValues {
    memory: Cell<usize>,
    replaced: Cell<usize>,
    left_out: Cell<usize>,
    /// The column of the first one.
    column: RefCell<Option<String>>,
}

/// What a column holds, read as a `T`.
pub(crate) enum Held<T> {
    Null,
    Value(T),
    /// No value of `T`, but this one is the nearest.
    Nearest(T),
    /// No value of `T`.
    Unreadable,
}

/// A type that a column can be read as.
pub(crate) trait FromColumn: Sized {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Held<Self>;
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Held<Self>;
    /// About the memory that the value takes besides its own size.
    fn memory(&self) -> usize {
        0
    }
}

/// The rows of a result, within the bound of its statement.
pub(super) struct Rows<T> {
    rows: Vec<T>,
    bound: Bound,
    malformed: MalformedValues,
}

impl<T> Rows<T> {
    pub(super) fn new(bound: Bound) -> Rows<T> {
        Rows { rows: Vec::new(), bound, malformed: MalformedValues::default() }
    }

    /// Reads a row. Returns false if the result ends before it.
    ///
    /// # Errors
    /// Those of `read`; `TooLarge` if the rows take too much memory.
    pub(super) fn add(&mut self, columns: Columns<'_>, read: Read<T>) -> Result<bool> {
        let row = read(&Row::new(columns, &self.malformed))?;
        let memory = self.malformed.memory.get() + (self.rows.len() + 1) * size_of::<T>();
        match self.bound {
            Bound::Whole if memory > RESULT_MEMORY => return Err(too_large()),
            Bound::Page if memory > RESULT_MEMORY && !self.rows.is_empty() => return Ok(false),
            _ => self.rows.push(row),
        }
        Ok(true)
    }

    pub(super) fn into_rows(self) -> Vec<T> {
        self.rows
    }
}

/// The error for a result that takes too much memory.
pub(super) fn too_large() -> Error {
    Error::new(ErrorKind::TooLarge, "The result takes more than 64 MiB of memory; pages of it are smaller")
}

impl<'a> Row<'a> {
    pub(super) fn new(columns: Columns<'a>, malformed: &'a MalformedValues) -> Row<'a> {
        Row { columns, malformed }
    }

    /// Reads a column that is never NULL.
    pub(crate) fn get<T: FromColumn>(&self, column: usize) -> Result<T> {
        self.get_optional(column)?.ok_or_else(|| self.unreadable(column))
    }

    /// Reads a column that may be NULL.
    pub(crate) fn get_optional<T: FromColumn>(&self, column: usize) -> Result<Option<T>> {
        let held = match &self.columns {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => row.get_ref(column).map_or(Held::Unreadable, T::from_sqlite),
            #[cfg(feature = "postgres")]
            Columns::Postgres(row) => T::from_postgres(row, column),
        };
        match held {
            Held::Null => Ok(None),
            Held::Value(value) => {
                self.malformed.memory.set(self.malformed.memory.get() + value.memory());
                Ok(Some(value))
            }
            Held::Nearest(value) => {
                self.malformed.count(&self.malformed.replaced, &self.column_name(column));
                Ok(Some(value))
            }
            Held::Unreadable => Err(self.unreadable(column)),
        }
    }

    /// The result of `read`; `None` for a row that cannot be read, which a list leaves out.
    pub(crate) fn readable<T>(&self, read: impl FnOnce(&Row<'_>) -> Result<T>) -> Option<T> {
        let result = read(self);
        if let Err(error) = &result {
            self.malformed.count(&self.malformed.left_out, error.column().unwrap_or_default());
        }
        result.ok()
    }

    fn unreadable(&self, column: usize) -> Error {
        let name = self.column_name(column);
        // XX001 is data_corrupted: another program wrote this row.
        let message = format!("column {name} of a row holds NULL or a value of another type");
        Error::database(Some("XX001"), ErrorKind::Internal, message).in_column(name)
    }

    fn column_name(&self, column: usize) -> String {
        match &self.columns {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => row.as_ref().column_name(column).map_or_else(|_| column.to_string(), str::to_owned),
            #[cfg(feature = "postgres")]
            Columns::Postgres(row) => {
                use sqlx::{Column as _, Row as _};
                row.columns().get(column).map_or_else(|| column.to_string(), |column| column.name().to_owned())
            }
        }
    }
}

impl MalformedValues {
    fn count(&self, counter: &Cell<usize>, column: &str) {
        counter.set(counter.get() + 1);
        self.column.borrow_mut().get_or_insert_with(|| column.to_owned());
    }
}

impl Drop for MalformedValues {
    fn drop(&mut self) {
        if let Some(column) = self.column.take() {
            let (replaced, left_out) = (self.replaced.get(), self.left_out.get());
            tracing::warn!(column, replaced, left_out, "a query found values that another program wrote malformed");
        }
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

/// Reads a row of a list as a record; `None` for a row to leave out.
pub(crate) fn readable_record<T: for<'a> FromRow<Row<'a>>>(row: &Row<'_>) -> Result<Option<T>> {
    Ok(row.readable(record))
}

impl<T> Held<T> {
    fn of(value: Option<T>) -> Held<T> {
        value.map_or(Held::Unreadable, Held::Value)
    }

    /// The value that `read` makes of this one.
    fn and_then<U>(self, read: impl FnOnce(T) -> Held<U>) -> Held<U> {
        match self {
            Held::Null => Held::Null,
            Held::Value(value) => read(value),
            Held::Nearest(value) => match read(value) {
                Held::Value(nearest) => Held::Nearest(nearest),
                other => other,
            },
            Held::Unreadable => Held::Unreadable,
        }
    }

    /// What the driver returned for a column.
    #[cfg(feature = "postgres")]
    fn decoded(row: &sqlx::postgres::PgRow, column: usize) -> Held<T>
    where
        T: for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        use sqlx::Row as _;
        match row.try_get::<Option<T>, _>(column) {
            Ok(Some(value)) => Held::Value(value),
            Ok(None) => Held::Null,
            Err(_) => Held::Unreadable,
        }
    }
}

/// The text of a SQLite value. A BLOB and bytes that are not UTF-8 have a nearest text.
#[cfg(feature = "sqlite")]
fn sqlite_text(value: rusqlite::types::ValueRef<'_>) -> Held<std::borrow::Cow<'_, str>> {
    use rusqlite::types::ValueRef;
    match value {
        ValueRef::Null => Held::Null,
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Held::Value(text.into()),
            Err(_) => Held::Nearest(String::from_utf8_lossy(bytes)),
        },
        ValueRef::Blob(bytes) => Held::Nearest(String::from_utf8_lossy(bytes)),
        ValueRef::Integer(number) => Held::Nearest(number.to_string().into()),
        ValueRef::Real(number) => Held::Nearest(number.to_string().into()),
    }
}

/// A time from SQLite's text. PostgreSQL's infinities and times out of range are the first and the last time. A time
/// without time zone is in UTC, and any other text is the Unix epoch.
#[cfg(feature = "sqlite")]
fn time_of_text(text: &str) -> Held<Timestamp> {
    if let Ok(time) = text.parse() {
        return Held::Value(time);
    }
    Held::Nearest(match text {
        "infinity" => Timestamp::MAX,
        "-infinity" => Timestamp::MIN,
        _ => Pieces::parse(text).map_or(Timestamp::UNIX_EPOCH, |pieces| nearest_time(&pieces)),
    })
}

/// The time of a date, a time of day and an offset; the first or the last time if it is out of range.
#[cfg(feature = "sqlite")]
fn nearest_time(pieces: &Pieces<'_>) -> Timestamp {
    let offset = pieces.to_numeric_offset().unwrap_or(Offset::UTC);
    let time = pieces.date().to_datetime(pieces.time().unwrap_or_default());
    let nearest = if pieces.date().year() < 0 { Timestamp::MIN } else { Timestamp::MAX };
    offset.to_timestamp(time).unwrap_or(nearest)
}

/// Implements `FromColumn` for a type that SQLite stores as text and PostgreSQL as a type that the driver reads.
macro_rules! text_column {
    ($($type:ty, $text:ident => $read:expr, $native:ty, $value:ident => $convert:expr $(, memory: $memory:expr)?;)*) => {$(
        impl FromColumn for $type {
            #[cfg(feature = "sqlite")]
            fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Held<Self> {
                sqlite_text(value).and_then(|$text| $read)
            }
            #[cfg(feature = "postgres")]
            fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Held<Self> {
                Held::<$native>::decoded(row, column).and_then(|$value| $convert)
            }
            $(fn memory(&self) -> usize {
                $memory(self)
            })?
        }
    )*};
}

text_column! {
    String, text => Held::Value(text.into_owned()), String, value => Held::Value(value), memory: String::len;
    Uuid, text => Held::of(Uuid::try_parse(&text).ok()), Uuid, value => Held::Value(value);
    Json, text => Held::of(serde_json::from_str(&text).ok()), Json, value => Held::Value(value), memory: memory_of;
    BTreeMap<String, String>, text => Held::of(serde_json::from_str(&text).ok()), Json, value => {
        Held::of(serde_json::from_value(value).ok())
    };
    Vec<String>, text => Held::of(serde_json::from_str(&text).ok()), Vec<String>, value => Held::Value(value);
    Timestamp, text => time_of_text(&text), super::postgres::types::Time, value => {
        value.into_timestamp().map_or_else(Held::Nearest, Held::Value)
    };
    DomainType, text => Held::Value(text.parse().unwrap_or(DomainType::Other)), String, value => {
        Held::Value(value.parse().unwrap_or(DomainType::Other))
    };
    SpaceType, text => Held::Value(text.parse().unwrap_or(SpaceType::Other)), String, value => {
        Held::Value(value.parse().unwrap_or(SpaceType::Other))
    };
}

impl FromColumn for Bytes {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Held<Self> {
        match value {
            rusqlite::types::ValueRef::Null => Held::Null,
            rusqlite::types::ValueRef::Blob(bytes) | rusqlite::types::ValueRef::Text(bytes) => {
                Held::Value(Bytes::copy_from_slice(bytes))
            }
            _ => Held::Unreadable,
        }
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Held<Self> {
        Held::<Vec<u8>>::decoded(row, column).and_then(|bytes| Held::Value(bytes.into()))
    }
}

impl FromColumn for i64 {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Held<Self> {
        match value {
            rusqlite::types::ValueRef::Null => Held::Null,
            rusqlite::types::ValueRef::Integer(number) => Held::Value(number),
            _ => Held::Unreadable,
        }
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Held<Self> {
        // The column is BIGINT or INTEGER.
        match Held::<i64>::decoded(row, column) {
            Held::Unreadable => Held::<i32>::decoded(row, column).and_then(|number| Held::Value(number.into())),
            held => held,
        }
    }
}

/// Implements `FromColumn` for a type that both engines store as an integer.
macro_rules! integer_column {
    ($($type:ty, $number:ident => $read:expr;)*) => {$(
        impl FromColumn for $type {
            #[cfg(feature = "sqlite")]
            fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Held<Self> {
                i64::from_sqlite(value).and_then(|$number| $read)
            }
            #[cfg(feature = "postgres")]
            fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Held<Self> {
                i64::from_postgres(row, column).and_then(|$number| $read)
            }
        }
    )*};
}

integer_column! {
    i32, number => Held::of(i32::try_from(number).ok());
    u32, number => Held::Value(u32::try_from(number).unwrap_or_default());
    u64, number => Held::Value(number.unsigned_abs());
}

impl FromColumn for bool {
    #[cfg(feature = "sqlite")]
    fn from_sqlite(value: rusqlite::types::ValueRef<'_>) -> Held<Self> {
        <i64 as FromColumn>::from_sqlite(value).and_then(|number| Held::Value(number != 0))
    }
    #[cfg(feature = "postgres")]
    fn from_postgres(row: &sqlx::postgres::PgRow, column: usize) -> Held<Self> {
        Held::decoded(row, column)
    }
}

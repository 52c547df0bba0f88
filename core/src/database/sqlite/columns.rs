//! Columns of a SQLite row, checked as they are read.

use jiff::Timestamp;
use rusqlite::{Row, types::ValueRef};

use crate::error::{Error, ErrorKind, Result};

pub(in crate::database) fn integer(row: &Row<'_>, column: usize) -> Result<i64> {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => Ok(number),
        _ => Err(unexpected(column, "an integer")),
    }
}

pub(in crate::database) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str> {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes)) => std::str::from_utf8(bytes).map_err(|_| unexpected(column, "UTF-8")),
        _ => Err(unexpected(column, "text")),
    }
}

pub(in crate::database) fn timestamp(row: &Row<'_>, column: usize) -> Result<Timestamp> {
    text(row, column)?.parse().map_err(|_| unexpected(column, "an RFC 3339 time"))
}

fn unexpected(column: usize, expected: &str) -> Error {
    // XX001: data corrupted. Somebody else wrote this row.
    Error::database(Some("XX001"), ErrorKind::Internal, format!("column {column} of a row is not {expected}"))
}

//! A row on its way out of the database, read by place.
//!
//! Invariant: a column that does not hold what is asked for is an `Internal` error that names its place, never a
//! panic: other programs write to these tables too.

use jiff::Timestamp;

use crate::error::Result;

/// One row of a result.
pub(crate) struct Row<'a>(pub(super) Columns<'a>);

pub(super) enum Columns<'a> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'a rusqlite::Row<'a>),
}

impl Row<'_> {
    pub(crate) fn integer(&self, column: usize) -> Result<i64> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => super::sqlite::columns::integer(row, column),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => super::sqlite::columns::text(row, column),
        }
    }

    pub(crate) fn timestamp(&self, column: usize) -> Result<Timestamp> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Columns::Sqlite(row) => super::sqlite::columns::timestamp(row, column),
        }
    }
}

//! One SQLite connection with its prepared statements.

use std::borrow::Cow;

use jiff::Timestamp;
use rusqlite::{CachedStatement, ToSql, types::ToSqlOutput};

use super::{errors::translate, rows};
use crate::{
    database::{Row, Value},
    error::Result,
};

/// A connection; statements stay prepared on it.
pub(in crate::database) struct Connection(pub(super) rusqlite::Connection);

impl Connection {
    /// Prepared statements kept a connection: more than the library has.
    pub(super) const STATEMENTS: usize = 256;

    pub(in crate::database) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<u64> {
        let mut statement = self.prepare(sql, values)?;
        let changed = statement.raw_execute().map_err(translate)?;
        Ok(changed as u64)
    }

    pub(super) fn fetch<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.prepare(sql, values)?;
        rows(&mut statement.raw_query(), read)
    }

    fn prepare(&self, sql: &str, values: &[Value<'_>]) -> Result<CachedStatement<'_>> {
        let mut statement = self.0.prepare_cached(&dialect(sql)).map_err(translate)?;
        for (place, value) in (1..).zip(values) {
            statement.raw_bind_parameter(place, value).map_err(translate)?;
        }
        Ok(statement)
    }
}

/// The library's own tables have a prefix here, where PostgreSQL has a schema.
fn dialect(sql: &str) -> Cow<'_, str> {
    if sql.contains("townsquare.") { sql.replace("townsquare.", "townsquare_").into() } else { sql.into() }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Value::Integer(number) => number.to_sql(),
            Value::Text(text) => text.to_sql(),
            Value::Timestamp(time) => Ok(timestamp_text(*time).into()),
        }
    }
}

/// RFC 3339 in UTC with six places: what sorts as text as it does as time.
pub(super) fn timestamp_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_six_places_and_read_back() {
        let time = Timestamp::from_microsecond(1_700_000_000_000_000).expect("in range");
        let text = timestamp_text(time);
        assert_eq!(text, "2023-11-14T22:13:20.000000Z");
        assert_eq!(text.parse::<Timestamp>().ok(), Some(time));
    }
}

//! One SQLite connection with its prepared statements.

use jiff::Timestamp;
use rusqlite::{
    CachedStatement, ToSql,
    types::{Null, ToSqlOutput},
};

use super::{dialect::SqliteDialect, errors::translate};
use crate::{
    database::{Principal, Read, Row, Statement, Value, principal::SESSION, row::Columns, session_ended},
    error::Result,
    policy::Caller,
};

/// A connection; statements stay prepared on it.
pub(super) struct Connection(pub(super) rusqlite::Connection);

impl Connection {
    /// Prepared statements kept a connection: more than the library has.
    pub(super) const STATEMENTS: usize = 256;

    /// Does `work` for a principal whose session, if it has one, stands.
    pub(super) fn admitted<T>(&self, principal: &Principal, work: impl FnOnce(Caller) -> Result<T>) -> Result<T> {
        let Principal::User(credential) = principal else { return work(principal.caller()) };
        let mut session = self.prepare(Caller::Service, &SESSION, &[credential.access_hash.as_str().into()])?;
        let mut rows = session.raw_query();
        // The row stays open, and with it the read transaction: the work sees the moment in which the session stood,
        // and the lock is taken once.
        match rows.next().map_err(translate)? {
            Some(_) => work(principal.caller()),
            None => Err(session_ended()),
        }
    }

    pub(super) fn execute(&self, caller: Caller, statement: &'static Statement, values: &[Value<'_>]) -> Result<u64> {
        let mut statement = self.prepare(caller, statement, values)?;
        let changed = statement.raw_execute().map_err(translate)?;
        Ok(changed as u64)
    }

    pub(super) fn fetch<T>(
        &self,
        caller: Caller,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.prepare(caller, statement, values)?;
        let mut rows = statement.raw_query();
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(translate)? {
            all.push(read(&Row(Columns::Sqlite(row)))?);
        }
        Ok(all)
    }

    fn prepare(
        &self,
        caller: Caller,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<CachedStatement<'_>> {
        let runnable = statement.for_sqlite::<SqliteDialect>(caller);
        let mut prepared = self.0.prepare_cached(runnable.sql).map_err(translate)?;
        for (place, value) in (1..).zip(values) {
            prepared.raw_bind_parameter(place, value).map_err(translate)?;
        }
        if runnable.binds_caller {
            prepared.raw_bind_parameter(values.len() + 1, Value::from(caller.id())).map_err(translate)?;
        }
        Ok(prepared)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let null = || Null.into();
        Ok(match self {
            Value::Boolean(value) => value.map_or_else(null, Into::into),
            Value::Integer(value) => value.map_or_else(null, Into::into),
            Value::Text(value) => value.as_deref().map_or_else(null, ToSqlOutput::from),
            Value::Uuid(value) => value.map_or_else(null, |id| id.hyphenated().to_string().into()),
            Value::Timestamp(value) => value.map_or_else(null, |time| timestamp_text(time).into()),
            Value::Json(value) => value.as_deref().map_or_else(null, |json| json.to_string().into()),
            Value::Texts(value) => {
                value.as_deref().map_or_else(null, |texts| serde_json::json!(texts).to_string().into())
            }
        })
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

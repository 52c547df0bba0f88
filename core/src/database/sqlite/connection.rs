//! A SQLite connection: runs statements and keeps them prepared.

use rusqlite::{
    CachedStatement, ToSql,
    types::{Null, ToSqlOutput},
};

use super::{dialect::SqliteDialect, errors::translate};
use crate::{
    database::{
        principal::{Principal, SESSION, SIGNER, session_ended},
        row::{Columns, Read, Rows},
        statement::Statement,
        value::Value,
    },
    error::Result,
    model::timestamp_text,
    policy::Caller,
};

/// A connection with a cache of prepared statements.
pub(in crate::database) struct Connection(pub(super) rusqlite::Connection);

impl Connection {
    /// The capacity of the prepared statement cache: more than the library has statements.
    pub(super) const MAX_STATEMENTS: usize = 256;

    /// Runs `work` if `principal` is no user, or a user whose session has not ended.
    ///
    /// # Errors
    /// `Unauthorized` if the session has ended; else the errors of `work`.
    pub(super) fn with_valid_session<T>(&self, principal: &Principal, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let mut session = match principal {
            Principal::User(credential) => {
                self.prepare(Caller::Service, &SESSION, &[credential.access_hash.as_str().into()])?
            }
            Principal::Vouched(signer) => {
                self.prepare(Caller::Service, &SIGNER, &[signer.user_id.into(), signer.generation.into()])?
            }
            Principal::Anonymous | Principal::Service => return work(),
        };
        let mut rows = session.raw_query();
        // The open query keeps its read transaction open: `work` reads the snapshot in which the session was found, and
        // SQLite takes its lock once.
        match rows.next().map_err(translate)? {
            Some(_) => work(),
            None => Err(session_ended()),
        }
    }

    /// Runs a statement for `caller` and returns the number of rows that it changed.
    pub(in crate::database) fn execute(
        &self,
        caller: Caller,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<u64> {
        let mut statement = self.prepare(caller, statement, values)?;
        let changed = statement.raw_execute().map_err(translate)?;
        Ok(changed as u64)
    }

    /// Runs a statement for `caller` and returns its rows.
    pub(in crate::database) fn fetch<T>(
        &self,
        caller: Caller,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let mut prepared = self.prepare(caller, statement, values)?;
        let mut rows = prepared.raw_query();
        let mut all = Rows::new(statement.bound);
        while let Some(row) = rows.next().map_err(translate)? {
            if !all.add(Columns::Sqlite(row), read)? {
                break;
            }
        }
        Ok(all.into_rows())
    }

    /// Prepares a statement for `caller` and binds its values.
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
            Value::Bytes(value) => value.as_deref().map_or_else(null, ToSqlOutput::from),
        })
    }
}

//! One moment of a database: a read transaction that sees it as it was when the moment was taken.

#[cfg(feature = "postgres")]
use super::postgres::PostgresMoment;
#[cfg(feature = "sqlite")]
use super::sqlite::{BackupCopy, PreparedBackup, SqliteMoment};
use super::{row::Read, statement::Statement, value::Value};
use crate::error::Result;

/// What the database is at one moment, as the service sees it. Reads and writes of others continue meanwhile.
pub(crate) enum DatabaseMoment {
    #[cfg(feature = "sqlite")]
    Sqlite(SqliteMoment),
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresMoment>),
}

impl DatabaseMoment {
    /// Runs a statement that changes nothing and returns its rows.
    pub(crate) async fn scan<T: Send + 'static>(
        &mut self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        match self {
            #[cfg(feature = "sqlite")]
            DatabaseMoment::Sqlite(moment) => moment.scan(statement, values, read).await,
            #[cfg(feature = "postgres")]
            DatabaseMoment::Postgres(moment) => moment.fetch(statement, &values, read).await,
        }
    }

    /// Copies a SQLite database to where `prepared` wants it. Returns `None` on PostgreSQL.
    ///
    /// # Errors
    /// `Unavailable` or `Config` if it cannot be written; `Closed` if the client is closed meanwhile.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn copy_to(&self, prepared: PreparedBackup) -> Result<Option<BackupCopy>> {
        match self {
            DatabaseMoment::Sqlite(moment) => moment.copy_to(prepared).await.map(Some),
            #[cfg(feature = "postgres")]
            DatabaseMoment::Postgres(_) => Ok(None),
        }
    }
}

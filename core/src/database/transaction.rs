//! A running transaction, with the same methods for both engines.

use std::pin::Pin;

use tokio::sync::oneshot;
use uuid::Uuid;

#[cfg(feature = "postgres")]
use super::postgres::{connection::principal::Lifetime, query};
#[cfg(feature = "sqlite")]
use super::sqlite::write_connection::WriteConnection;
use super::{change_log::Erasure, row::Read, statement::Statement, value::Value};
use crate::{
    error::{Error, Result},
    policy::Caller,
};

/// The future that the work of a transaction returns.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// What a statement or a transaction does, which decides when it may run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite always answers"))]
pub(crate) enum Effect {
    Reads,
    /// It reads the change log. A PostgreSQL server in recovery does not know the transactions that write the log.
    ReadsLog,
    /// It must not run twice.
    Writes,
    /// Running it twice has the effect of running it once.
    IdempotentWrites,
}

impl Effect {
    /// Whether rows may change.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "SQLite always answers"))]
    pub(super) fn writes(self) -> bool {
        !matches!(self, Effect::Reads | Effect::ReadsLog)
    }
}

/// A write that failed, and its work if the work has not run.
pub(super) struct FailedWrite<W> {
    pub(super) error: Error,
    pub(super) work: Option<W>,
}

impl<W> From<Error> for FailedWrite<W> {
    fn from(error: Error) -> FailedWrite<W> {
        FailedWrite { error, work: None }
    }
}

/// A transaction that runs statements for one caller. The engine that began the transaction commits it or
/// rolls it back.
pub(crate) struct Transaction<'a> {
    caller: Caller,
    inner: TransactionInner<'a>,
}

enum TransactionInner<'a> {
    #[cfg(feature = "sqlite")]
    Sqlite(&'a mut WriteConnection),
    #[cfg(feature = "postgres")]
    Postgres(&'a mut sqlx::PgConnection, Lifetime),
}

impl<'a> Transaction<'a> {
    /// A transaction that `connection` has begun.
    #[cfg(feature = "sqlite")]
    pub(super) fn sqlite(connection: &'a mut WriteConnection, caller: Caller) -> Transaction<'a> {
        Transaction { caller, inner: TransactionInner::Sqlite(connection) }
    }

    /// A transaction that `connection` has begun.
    #[cfg(feature = "postgres")]
    pub(super) fn postgres(
        connection: &'a mut sqlx::PgConnection,
        lifetime: Lifetime,
        caller: Caller,
    ) -> Transaction<'a> {
        Transaction { caller, inner: TransactionInner::Postgres(connection, lifetime) }
    }

    /// Whether the engine is SQLite.
    #[cfg(feature = "postgres")]
    pub(super) fn is_sqlite(&self) -> bool {
        !matches!(self.inner, TransactionInner::Postgres(..))
    }

    /// Runs a statement and returns its rows.
    pub(crate) async fn fetch<T>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        match &mut self.inner {
            #[cfg(feature = "sqlite")]
            TransactionInner::Sqlite(connection) => connection.fetch(self.caller, statement, values, read),
            #[cfg(feature = "postgres")]
            TransactionInner::Postgres(connection, lifetime) => {
                let rows = query::fetch(connection, *lifetime, self.caller, statement, values).await?;
                query::read_rows(&rows, statement, read)
            }
        }
    }

    /// Runs a statement and returns its row, or `None` if there is no row.
    pub(crate) async fn fetch_optional<T>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.fetch(statement, values, read).await?.pop())
    }

    /// Runs a statement and returns the number of rows that it changed.
    pub(crate) async fn execute(&mut self, statement: &'static Statement, values: &[Value<'_>]) -> Result<u64> {
        match &mut self.inner {
            #[cfg(feature = "sqlite")]
            TransactionInner::Sqlite(connection) => connection.execute(self.caller, statement, values),
            #[cfg(feature = "postgres")]
            TransactionInner::Postgres(connection, lifetime) => {
                query::execute(connection, *lifetime, self.caller, statement, values).await
            }
        }
    }

    /// Locks a path of a bucket until the transaction ends: exclusively, and the folders that contain it shared. So a
    /// transaction that locked a path sees every file with its name, inside it or in its way. The space that the file belongs
    /// to is not deleted until the transaction ends. SQLite needs no such lock, because its write transactions run one after
    /// another.
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "only PostgreSQL locks"))]
    pub(crate) async fn lock_path(
        &mut self,
        bucket: &str,
        folders: &[String],
        path: &str,
        space_id: Option<Uuid>,
    ) -> Result<()> {
        match &mut self.inner {
            #[cfg(feature = "sqlite")]
            TransactionInner::Sqlite(_) => Ok(()),
            #[cfg(feature = "postgres")]
            TransactionInner::Postgres(connection, lifetime) => {
                query::lock_path(connection, *lifetime, bucket, folders, path, space_id).await
            }
        }
    }

    /// Locks the rights of a user until the end of the transaction. Transactions of uploads share the lock. A transaction that revokes
    /// the rights (migration 0009) waits for them, and they wait for it; their later statements see what it has changed. SQLite has
    /// one writer at a time, and needs no lock.
    pub(crate) async fn lock_rights(&mut self, user_id: Uuid) -> Result<()> {
        match &mut self.inner {
            #[cfg(feature = "sqlite")]
            TransactionInner::Sqlite(_) => {
                let _ = user_id;
                Ok(())
            }
            #[cfg(feature = "postgres")]
            TransactionInner::Postgres(connection, lifetime) => {
                query::lock_rights(connection, *lifetime, user_id).await
            }
        }
    }

    /// Keeps the transaction open until `ends` gets a value, which it returns; `None` if its sender is dropped. Blocks the
    /// thread of the writer of SQLite.
    pub(super) async fn hold<T>(&mut self, ends: oneshot::Receiver<T>) -> Option<T> {
        match &mut self.inner {
            #[cfg(feature = "sqlite")]
            TransactionInner::Sqlite(_) => ends.blocking_recv().ok(),
            #[cfg(feature = "postgres")]
            TransactionInner::Postgres(..) => ends.await.ok(),
        }
    }

    /// The statements that erase a user from the change log.
    pub(super) fn erasure(&self) -> &'static Erasure {
        match &self.inner {
            #[cfg(feature = "sqlite")]
            TransactionInner::Sqlite(_) => &super::sqlite::change_log::ERASURE,
            #[cfg(feature = "postgres")]
            TransactionInner::Postgres(..) => &super::postgres::change_log::ERASURE,
        }
    }
}

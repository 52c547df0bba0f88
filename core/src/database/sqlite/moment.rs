//! One moment of a database: a read transaction of a connection of the pool.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{
    Sqlite,
    backup::{BackupCopy, PreparedBackup},
    connection::Connection,
    errors::translate,
    memory,
};
use crate::{
    database::{row::Read, statement::Statement, value::Value},
    error::{Error, Result},
    policy::Caller,
};

/// What the database is at one moment.
pub(crate) struct SqliteMoment(Arc<ReadTransaction>);

struct ReadTransaction {
    sqlite: Arc<Sqlite>,
    /// `None` once it is released. In a mutex, because a connection is not `Sync`.
    connection: Mutex<Option<Connection>>,
    /// Whether the connection is of the pool, and not of a copy of a database in memory.
    is_pooled: bool,
}

impl SqliteMoment {
    /// Takes this moment. Blocks the thread.
    pub(super) fn take(sqlite: Arc<Sqlite>) -> Result<SqliteMoment> {
        let is_pooled = !sqlite.is_in_memory();
        // A read transaction of a database in memory would hold up its writer.
        let connection =
            if is_pooled { sqlite.readers.take()? } else { sqlite.readers.with_connection(memory::copy)? };
        let transaction = ReadTransaction { sqlite, connection: Mutex::new(Some(connection)), is_pooled };
        // The first read sets the moment.
        let begin = "BEGIN; SELECT 1 FROM sqlite_schema LIMIT 1;";
        transaction.with_connection(|connection| connection.0.execute_batch(begin).map_err(translate))?;
        Ok(SqliteMoment(Arc::new(transaction)))
    }

    pub(in crate::database) async fn scan<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        self.run(move |transaction| {
            transaction.with_connection(|connection| connection.fetch(Caller::Service, statement, &values, read))
        })
        .await
    }

    /// Copies the database to where `prepared` wants it.
    pub(in crate::database) async fn copy_to(&self, prepared: PreparedBackup) -> Result<BackupCopy> {
        self.run(move |transaction| {
            let sqlite = Arc::clone(&transaction.sqlite);
            let is_closed = move || sqlite.readers.is_closed();
            transaction.with_connection(|connection| prepared.fill(&connection.0, is_closed))
        })
        .await
    }

    /// Runs `work` on a blocking thread.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let transaction = Arc::clone(&self.0);
        self.0.sqlite.pool.run(move || work(&transaction)).await?
    }
}

impl ReadTransaction {
    fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        self.connection.lock().as_ref().map_or_else(|| Err(Error::closed()), work)
    }
}

impl Drop for ReadTransaction {
    fn drop(&mut self) {
        let connection = self.connection.get_mut().take();
        if !self.is_pooled {
            return;
        }
        // A connection that stays in its transaction is not used again.
        let usable = connection.filter(|connection| connection.0.execute_batch("COMMIT").is_ok());
        self.sqlite.readers.release(usable);
    }
}

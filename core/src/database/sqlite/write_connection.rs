//! The connection of the writer: a [`Connection`] that begins and ends transactions and savepoints.

use std::{ops::Deref, sync::Arc, time::Duration};

use rusqlite::config::DbConfig;

use super::{
    connection::Connection,
    errors::translate,
    memory::{Gate, Pass},
    open_files::OpenFiles,
};
use crate::error::Result;

/// How long a checkpoint waits for the readers and writers of other processes.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(100);

/// The one connection of a client that writes.
pub(in crate::database) struct WriteConnection {
    connection: Connection,
    files: Arc<OpenFiles>,
    /// Only for a database in memory.
    gate: Option<Arc<Gate>>,
    /// While a transaction is open.
    pass: Option<Pass>,
}

impl WriteConnection {
    /// `gate` is that of a database in memory.
    pub(super) fn new(connection: Connection, files: Arc<OpenFiles>, gate: Option<Arc<Gate>>) -> WriteConnection {
        WriteConnection { connection, files, gate, pass: None }
    }

    /// Begins a transaction. Waits at most `busy_timeout` for the lock of another process.
    pub(super) fn begin(&mut self, busy_timeout: Duration) -> Result<()> {
        // A leader that panicked may have left its transaction open.
        self.roll_back();
        self.connection.0.busy_timeout(busy_timeout).map_err(translate)?;
        self.pass = self.gate.as_ref().map(Gate::write);
        self.execute_cached("BEGIN IMMEDIATE").inspect_err(|_| self.pass = None)
    }

    /// Commits the transaction to the files that the paths of the database name.
    ///
    /// # Errors
    /// `Unavailable` if one of the files was removed or replaced; else the errors of SQLite. The transaction is not committed then.
    pub(super) fn commit(&mut self) -> Result<()> {
        self.files.check()?;
        self.execute_cached("COMMIT")?;
        self.pass = None;
        Ok(())
    }

    /// Rolls the transaction back, unless SQLite has done so already.
    pub(super) fn roll_back(&mut self) {
        if !self.is_rolled_back()
            && let Err(error) = self.execute_cached("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
        self.pass = None;
    }

    /// True if no transaction is open. During a group commit this means that SQLite has rolled the transaction back by
    /// itself.
    pub(super) fn is_rolled_back(&self) -> bool {
        self.connection.0.is_autocommit()
    }

    pub(super) fn begin_savepoint(&self) -> Result<()> {
        self.execute_cached("SAVEPOINT job")
    }

    /// Ends the savepoint and keeps its changes in the transaction.
    pub(super) fn release_savepoint(&self) -> Result<()> {
        self.execute_cached("RELEASE job")
    }

    /// Undoes the changes since the savepoint and ends it.
    pub(super) fn roll_back_savepoint(&self) -> Result<()> {
        self.execute_cached("ROLLBACK TO job")?;
        self.release_savepoint()
    }

    /// Moves the WAL into the database file and truncates it, so that the file alone holds everything. A reader of
    /// another process can prevent that; then the WAL stays, which SQLite reads at the next open.
    ///
    /// Does nothing if other files took the places of the database's files: the pages of the WAL are older than theirs.
    pub(super) fn checkpoint(&self) {
        if self.files.are_replaced() {
            // SQLite would also do it by itself, when the last connection is closed.
            if let Err(error) = self.connection.0.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true) {
                tracing::error!(%error, "the checkpoint at the close of a replaced database cannot be prevented");
            }
            return;
        }
        if let Err(error) = self.connection.0.busy_timeout(CHECKPOINT_WAIT) {
            tracing::debug!(%error, "the busy time-out could not be set");
        }
        let busy = self.connection.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        match busy {
            Ok(0) => {}
            Ok(_) => tracing::debug!("another process reads the database: its write-ahead log stays"),
            Err(error) => tracing::warn!(%error, "the write-ahead log could not be moved into the database"),
        }
    }

    fn execute_cached(&self, sql: &str) -> Result<()> {
        let mut statement = self.connection.0.prepare_cached(sql).map_err(translate)?;
        statement.raw_execute().map(drop).map_err(translate)
    }
}

impl Deref for WriteConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

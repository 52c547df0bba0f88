//! The connection of the writer: a [`Connection`] that begins and ends transactions and savepoints.

use std::{ops::Deref, time::Duration};

use super::{connection::Connection, errors::translate};
use crate::error::Result;

/// How long a checkpoint waits for the readers and writers of other processes.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(100);

/// The lowest value of `PRAGMA synchronous` with which each commit is flushed.
const FULL: i64 = 2;

/// When a commit is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Before its jobs are answered.
    BeforeAnswer,
    /// With the next commit that is flushed before its answer, or when the operating system writes the file. A power loss
    /// undoes it until then; the end of the process does not.
    Later,
}

/// The one connection of a client that writes.
pub(in crate::database) struct WriteConnection {
    connection: Connection,
    /// Whether the options ask for commits that are flushed.
    is_durable: bool,
    /// How the connection commits now.
    flush: Flush,
    /// True once the change log was found to be on. It is never switched off.
    captures_changes: bool,
    /// True if a transaction called `forget_pages` since the page cache was last released.
    forgets_pages: bool,
}

impl WriteConnection {
    pub(super) fn new(connection: Connection) -> WriteConnection {
        let is_full = |level: i64| level >= FULL;
        let level = connection.0.pragma_query_value(None, "synchronous", |row| row.get(0));
        WriteConnection {
            connection,
            is_durable: level.is_ok_and(is_full),
            flush: Flush::BeforeAnswer,
            captures_changes: false,
            forgets_pages: false,
        }
    }

    /// Begins a transaction. Waits at most `busy_timeout` for the lock of another process. With [`Flush::Later`] its commit is
    /// flushed later, unless changes are captured.
    pub(super) fn begin(&mut self, busy_timeout: Duration, flush: Flush) -> Result<()> {
        // A leader that panicked may have left its transaction open.
        self.roll_back();
        self.connection.0.busy_timeout(busy_timeout).map_err(translate)?;
        self.set_flush(if self.captures_changes { Flush::BeforeAnswer } else { flush })?;
        self.execute_cached("BEGIN IMMEDIATE")?;
        if self.flush == Flush::Later
            && let is_on = self.is_capture_on()
            && is_on != Some(false)
        {
            self.captures_changes = is_on == Some(true);
            // SQLite does not change the level within a transaction.
            self.roll_back();
            self.set_flush(Flush::BeforeAnswer)?;
            self.execute_cached("BEGIN IMMEDIATE")?;
        }
        Ok(())
    }

    fn set_flush(&mut self, flush: Flush) -> Result<()> {
        if self.is_durable && self.flush != flush {
            let level = if flush == Flush::BeforeAnswer { "FULL" } else { "NORMAL" };
            // Not cached: SQLite sets the level when it prepares the statement.
            self.connection.0.execute_batch(&format!("PRAGMA synchronous = {level}")).map_err(translate)?;
            self.flush = flush;
        }
        Ok(())
    }

    /// `None` if it cannot be read.
    fn is_capture_on(&self) -> Option<bool> {
        let is_on = self.connection.0.prepare_cached("SELECT is_on FROM townsquare_feed");
        is_on.and_then(|mut is_on| is_on.query_row([], |row| row.get(0))).ok()
    }

    pub(super) fn commit(&self) -> Result<()> {
        self.execute_cached("COMMIT")
    }

    /// Rolls the transaction back, unless SQLite has done so already.
    pub(super) fn roll_back(&self) {
        if !self.is_rolled_back()
            && let Err(error) = self.execute_cached("ROLLBACK")
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
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
    pub(super) fn checkpoint(&self) {
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

    /// Has [`release_forgotten_pages`](WriteConnection::release_forgotten_pages) release the page cache.
    pub(in crate::database) fn forget_pages(&mut self) {
        self.forgets_pages = true;
    }

    /// Releases the page cache if a transaction asked for it.
    pub(super) fn release_forgotten_pages(&mut self) {
        if std::mem::take(&mut self.forgets_pages) {
            self.release_pages();
        }
    }

    /// Releases the page cache.
    pub(super) fn release_pages(&self) {
        if let Err(error) = self.connection.0.release_memory() {
            tracing::debug!(%error, "the page cache could not be released");
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

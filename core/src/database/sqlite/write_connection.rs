//! The connection of the writer thread: a [`Connection`] that begins and ends transactions and savepoints.

use std::ops::Deref;

use super::{connection::Connection, errors::translate};
use crate::error::Result;

/// The one connection of a client that writes.
pub(in crate::database) struct WriteConnection {
    connection: Connection,
    /// True if a transaction called `forget_pages` since the page cache was last released.
    forgets_pages: bool,
}

impl WriteConnection {
    pub(super) fn new(connection: Connection) -> WriteConnection {
        WriteConnection { connection, forgets_pages: false }
    }

    pub(super) fn begin(&self) -> Result<()> {
        self.execute_cached("BEGIN IMMEDIATE")
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

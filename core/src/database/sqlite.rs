//! The SQLite engine: one file, a pool of read-only connections, one connection that writes.
//!
//! Invariant: every write of a client goes through its writer, which uses one connection, so the client's writes never
//! compete for SQLite's lock. Reads never wait for writes (WAL). Point reads run on the calling thread, because a thread
//! hop costs twice as much as the read.

mod backup;
mod change_log;
mod commit_watch;
mod connection;
mod dialect;
mod errors;
mod fork_guard;
mod migrate;
mod open;
mod private_file;
mod reader_pool;
pub(super) mod write_connection;
mod write_job;
mod writer;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub(crate) use self::{
    backup::{BackupCopy, BackupObject, Restore, prepare_restore},
    fork_guard::refuse_forked_child,
};
use self::{
    fork_guard::ForkGuard,
    reader_pool::ReaderPool,
    write_job::TransactionJob,
    writer::{Turns, Writer},
};
use super::{
    options::OpenOptions,
    principal::Principal,
    row::Read,
    statement::Statement,
    transaction::{Effect, FailedWrite, Transaction, Work},
    value::Value,
};
use crate::{
    clock::Clock,
    error::{Error, Result},
    threads::BlockingPool,
};

/// An open SQLite database.
pub(super) struct Sqlite {
    readers: ReaderPool,
    writer: Writer,
    pool: BlockingPool,
    clock: Clock,
    /// The process that opened the database.
    process: u32,
    /// Dropped last: the file is open until the fields above are dropped. `None` once every connection is closed.
    fork_guard: Mutex<Option<ForkGuard>>,
}

impl Sqlite {
    pub(super) async fn open(
        file: PathBuf,
        folder: Option<PathBuf>,
        options: OpenOptions,
        pool: BlockingPool,
    ) -> Result<Sqlite> {
        let clock = options.clock.clone();
        let open = move || {
            let (connection, fork_guard) = open::open_writer(&file, folder.as_deref(), &options)?;
            let writer = Writer::start(connection, options.busy_timeout, Turns::of(&file))?;
            Ok((ReaderPool::new(file, options.busy_timeout), writer, fork_guard))
        };
        let (readers, writer, fork_guard) = pool.run(open).await??;
        let process = std::process::id();
        Ok(Sqlite { readers, writer, pool, clock, process, fork_guard: Mutex::new(Some(fork_guard)) })
    }

    /// Runs a read on the calling thread.
    pub(super) fn fetch<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        self.readers.with_connection(|connection| {
            connection.with_valid_session(principal, || connection.fetch(principal.caller(), statement, values, read))
        })
    }

    /// Runs a read on a blocking thread.
    pub(super) async fn scan<T: Send + 'static>(
        self: &Arc<Self>,
        principal: Arc<Principal>,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        self.refuse_inherited()?;
        let this = Arc::clone(self);
        self.pool.run(move || this.fetch(&principal, statement, &values, read)).await?
    }

    /// Runs `work` in a transaction of the writer and returns its result after the commit.
    pub(super) async fn write<T: Send + 'static, W>(
        &self,
        principal: Arc<Principal>,
        effect: Effect,
        work: W,
    ) -> Result<T, FailedWrite<W>>
    where
        W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.refuse_inherited()?;
        let (sender, receiver) = oneshot::channel();
        self.writer.submit(Box::new(TransactionJob::new(principal, effect, work, sender)))?;
        // The writer answers every job that it accepts. It drops a job only if its thread ends by a panic.
        receiver.await.unwrap_or_else(|_| Err(Error::closed().into()))
    }

    pub(super) async fn backup(self: &Arc<Self>, target: &Path) -> Result<BackupCopy> {
        self.refuse_inherited()?;
        let (this, target) = (Arc::clone(self), target.to_owned());
        let copy = move || {
            let is_cancelled = || this.readers.is_closed();
            this.readers.with_connection(|connection| backup::copy(connection, &target, &is_cancelled))
        };
        self.pool.run(copy).await?
    }

    /// Returns `Closed` in a forked child, which has none of this database's threads. Point reads skip the check, a
    /// system call, because it would cost several percent of the read.
    fn refuse_inherited(&self) -> Result<()> {
        if self.process == std::process::id() {
            return Ok(());
        }
        Err(Error::inherited())
    }

    pub(super) fn close(&self) {
        // The readers first: with a reader open the writer cannot truncate the write-ahead log.
        let readers_closed = self.readers.close();
        self.writer.close();
        if readers_closed {
            drop(self.fork_guard.lock().take());
        }
    }
}

/// The query plan of a statement for an anonymous caller, in a new database.
#[cfg(test)]
pub(crate) fn query_plan(statement: &'static Statement) -> Vec<String> {
    use super::statement::CallerSql;
    use crate::policy::Caller;

    let mut connection = rusqlite::Connection::open_in_memory().expect("a database");
    migrate::run(&mut connection, 0, &Clock::default()).expect("the migrations");
    let CallerSql { sql, .. } = statement.for_sqlite::<dialect::SqliteDialect>(Caller::Anonymous);
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("the statement is valid");
    let steps = plan.raw_query().mapped(|row| row.get(3));
    steps.map(|step| step.expect("a step")).collect()
}

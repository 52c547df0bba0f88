//! The SQLite engine: one file, or a database in memory; a pool of read-only connections, one connection that writes.
//!
//! Invariant: every write of a client goes through its writer, which uses one connection, so the client's writes never
//! compete for SQLite's lock. Reads of a file never wait for writes (WAL). Point reads run on the calling thread, because a thread
//! hop costs twice as much as the read.

mod backup;
mod cancellable;
mod capture;
pub(in crate::database) mod change_log;
mod commit_watch;
mod connection;
mod copy_stage;
mod dialect;
mod errors;
mod file_id;
mod inspection;
mod memory;
mod migrate;
mod moment;
mod open;
mod open_files;
mod open_mark;
mod private_file;
mod reader_pool;
mod reserve;
mod stored_files;
pub(super) mod write_connection;
mod write_job;
mod writer;

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

pub use self::copy_stage::remove_named_files;
pub(crate) use self::{
    backup::{
        BackupCopy, PreparedBackup, ReservedPlace, Restore, prepare_backup, prepare_restore, refuse_unfinished_restore,
        reserve_place,
    },
    moment::SqliteMoment,
};
use self::{
    file_id::beside,
    memory::Source,
    open::CheckedFile,
    reader_pool::ReaderPool,
    write_job::TransactionJob,
    writer::{Turns, Writer},
};
use super::{
    DatabaseLoad,
    options::OpenOptions,
    principal::Principal,
    row::Read,
    statement::Statement,
    stored_files::StoredFiles,
    transaction::{FailedWrite, Transaction, Work},
    value::Value,
};
use crate::{
    clock::Clock,
    config::Durability,
    error::{Error, Result},
    file_place::file_place,
    threads::{BlockingPool, ProcessOwned},
};

/// An open SQLite database.
pub(super) struct Sqlite {
    readers: ReaderPool,
    writer: ProcessOwned<Writer>,
    pool: BlockingPool,
    clock: Clock,
    /// `None` for a database in memory.
    file: Option<PathBuf>,
    /// The write-ahead log, if commits are answered before they are on the disk.
    unflushed_log: Option<PathBuf>,
    /// Dropped last: the file is open until the fields above are dropped. `None` once every connection is closed.
    marks: Mutex<Option<open::ProcessMarks>>,
}

/// A SQLite database that was checked. Nothing was written yet.
pub(super) struct PreparedSqlite {
    checked: CheckedFile,
    source: Source,
    folder: Option<PathBuf>,
    options: OpenOptions,
    pool: BlockingPool,
}

impl PreparedSqlite {
    /// Checks the database in `file`; `None` for a new one in memory. `folder` is created with the database.
    pub(super) async fn new(
        file: Option<PathBuf>,
        folder: Option<PathBuf>,
        options: OpenOptions,
        pool: BlockingPool,
    ) -> Result<PreparedSqlite> {
        let check = move || {
            let source = file.map_or_else(Source::new_memory, Source::File);
            let checked = open::check(&source, &options).map_err(|error| open::refuse_damage(&source, error))?;
            Ok((checked, source, options))
        };
        let (checked, source, options) = pool.run(check).await??;
        Ok(PreparedSqlite { checked, source, folder, options, pool })
    }

    /// What the database knows of its object store.
    pub(super) fn take_stored_files(&mut self) -> StoredFiles {
        std::mem::take(&mut self.checked.stored_files)
    }

    /// Opens the database. Creates and migrates it if it has to be.
    pub(super) async fn open(self) -> Result<Sqlite> {
        let PreparedSqlite { checked, source, folder, options, pool } = self;
        let (clock, file) = (options.clock.clone(), source.file().map(Path::to_owned));
        let unflushed_file = file.as_deref().filter(|_| options.durability == Durability::Normal);
        let unflushed_log = unflushed_file.map(|file| beside(file, "-wal"));
        let open = move || {
            let ((connection, files, marks), turns) = match &source {
                Source::File(file) => {
                    let opened = open::open_writer(checked, file, folder.as_deref(), &options);
                    (opened.map_err(|error| open::refuse_damage(&source, error))?, Turns::of(file))
                }
                Source::Memory(uri, gate) => (open::open_memory(uri, gate, &options)?, Turns::of_one_process()),
            };
            let writer = Writer::start(connection, options.busy_timeout, turns)?;
            Ok((ReaderPool::new(source, files, options.busy_timeout), writer, marks))
        };
        let (readers, writer, marks) = pool.run(open).await??;
        Ok(Sqlite {
            readers,
            writer: ProcessOwned::new(writer),
            pool,
            clock,
            file,
            unflushed_log,
            marks: Mutex::new(Some(marks)),
        })
    }
}

impl Sqlite {
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

    pub(super) fn load(&self) -> Result<DatabaseLoad> {
        let (busy, idle) = self.readers.connections();
        Ok(DatabaseLoad { busy, idle, writes_waiting: Some(self.writer.get()?.waiting()), replica_reads: Vec::new() })
    }

    /// Runs a read on a blocking thread.
    pub(super) async fn scan<T: Send + 'static>(
        self: &Arc<Self>,
        principal: Arc<Principal>,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let this = Arc::clone(self);
        self.pool.run(move || this.fetch(&principal, statement, &values, read)).await?
    }

    /// Runs `work` in a transaction of the writer and returns its result after the commit.
    pub(super) async fn write<T: Send + 'static, W>(
        &self,
        principal: Arc<Principal>,
        work: W,
    ) -> Result<T, FailedWrite<W>>
    where
        W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.submit(principal, work, false).await
    }

    /// Does what [`write`](Sqlite::write) does, for the service.
    async fn write_as_service<T: Send + 'static, W>(&self, work: W) -> Result<T>
    where
        W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.write(Arc::new(Principal::Service), work).await.map_err(|failed| failed.error)
    }

    /// Does what [`write`](Sqlite::write) does. `is_exclusive`: what others wrote before is committed when `work` begins, and nobody
    /// else writes in its transaction.
    pub(super) async fn submit<T: Send + 'static, W>(
        &self,
        principal: Arc<Principal>,
        work: W,
        is_exclusive: bool,
    ) -> Result<T, FailedWrite<W>>
    where
        W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        self.writer.get()?.submit(Box::new(TransactionJob::new(principal, work, is_exclusive, sender)))?;
        // The writer answers every job that it accepts. It drops a job only if its thread ends by a panic.
        receiver.await.unwrap_or_else(|_| Err(Error::closed().into()))
    }

    /// Waits until the commits so far are on the disk. With `durability=full` they are when they are answered.
    pub(super) async fn flush_commits(&self) -> Result<()> {
        let Some(log) = self.unflushed_log.clone() else { return Ok(()) };
        // SQLite locks the database and its index of the log, never the log itself, so another descriptor of the log may be
        // closed. A checkpoint has flushed what it removed from the log.
        let flush = move || File::options().read(true).write(true).open(log)?.sync_all();
        self.pool.run(flush).await?.map_err(|error| {
            Error::unavailable(format!("The write-ahead log of the database cannot be flushed: {error}"))
                .caused_by(error)
        })
    }

    pub(super) fn is_in_memory(&self) -> bool {
        self.file.is_none()
    }

    /// Where the file of the database is; `None` if that is unknown or there is no file.
    pub(super) fn place(&self) -> Option<String> {
        self.file.as_deref().and_then(file_place)
    }

    /// Takes this moment of the database.
    pub(super) async fn moment(self: &Arc<Self>) -> Result<SqliteMoment> {
        let this = Arc::clone(self);
        self.pool.run(move || SqliteMoment::take(this)).await?
    }

    /// Returns `Closed` in a forked child, which has none of this database's threads. Point reads skip the check, a
    /// system call, because it would cost several percent of the read.
    fn refuse_inherited(&self) -> Result<()> {
        self.writer.get().map(drop)
    }

    pub(super) fn close(&self) {
        // The readers first: with a reader open the writer cannot truncate the write-ahead log.
        let readers_closed = self.readers.close();
        if let Ok(writer) = self.writer.get() {
            writer.close();
        }
        let mut marks = self.marks.lock();
        // A second caller waits for the first.
        if readers_closed
            && marks.take().is_some()
            && let Some(file) = &self.file
        {
            reserve::keep_room(file);
        }
    }
}

/// A new database in memory with the tables of this library.
#[cfg(test)]
pub(super) fn new_schema() -> rusqlite::Connection {
    let mut connection = rusqlite::Connection::open_in_memory().expect("a database");
    migrate::run(&mut connection, 0, &Clock::default()).expect("the migrations");
    connection
}

/// The query plan of a statement for an anonymous caller, in a new database.
#[cfg(test)]
pub(crate) fn query_plan(statement: &'static Statement) -> Vec<String> {
    use super::statement::CallerSql;
    use crate::policy::Caller;

    let connection = new_schema();
    let CallerSql { sql, .. } = statement.for_sqlite::<dialect::SqliteDialect>(Caller::Anonymous);
    let mut plan = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("the statement is valid");
    let steps = plan.raw_query().mapped(|row| row.get(3));
    steps.map(|step| step.expect("a step")).collect()
}

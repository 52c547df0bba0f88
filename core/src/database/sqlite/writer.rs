//! The thread that writes, and its adaptive group commit.
//!
//! Invariant: a job is answered only after the COMMIT that holds it. A lone job commits at once; jobs that arrived
//! while a commit was under way share the next one, each in a savepoint of its own, so that one that fails or panics
//! fails alone. A commit is what costs (a flush to disk); waiting for company would only add to it.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Context, Poll, Waker},
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{connection::Connection, errors::translate};
use crate::{
    database::{Principal, Read, Statement, Transaction, Under, Value, Work},
    error::{Error, ErrorKind, Result},
    policy::Caller,
};

/// Jobs that share one commit at the most: bounds how long the first of them waits.
const LARGEST_GROUP: usize = 256;

/// How long after the last write the page cache is given back.
const IDLE: Duration = Duration::from_secs(2);

/// Something to be done in a transaction.
pub(super) trait Job: Send {
    /// Does it; whether it may be kept.
    fn run(&mut self, transaction: &mut Transaction) -> bool;
    /// Tells whoever waits.
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// The writing connection, and for whom it works just now.
pub(in crate::database) struct Writing {
    connection: Connection,
    caller: Caller,
    /// Whether the page cache is to be given back after this commit.
    forgets_pages: bool,
}

impl Writing {
    pub(in crate::database) fn forget_pages(&mut self) {
        self.forgets_pages = true;
    }

    pub(in crate::database) fn fetch<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        self.connection.fetch(self.caller, statement, values, read)
    }

    pub(in crate::database) fn execute(&self, statement: &'static Statement, values: &[Value<'_>]) -> Result<u64> {
        self.connection.execute(self.caller, statement, values)
    }
}

pub(super) struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Box<dyn Job>>,
    is_closed: bool,
}

impl Writer {
    pub(super) fn start(connection: Connection) -> Result<Writer> {
        let queue = Arc::new(Queue { state: Mutex::default(), arrived: Condvar::new() });
        let transaction =
            Transaction(Under::Sqlite(Writing { connection, caller: Caller::Anonymous, forgets_pages: false }));
        let of_thread = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("townsquare-write".into())
            .spawn(move || of_thread.work(transaction))
            .map_err(|error| Error::unavailable(format!("cannot start a thread: {error}")).caused_by(error))?;
        Ok(Writer { queue, thread: Mutex::new(Some(thread)) })
    }

    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<()> {
        let mut state = self.queue.state.lock();
        if state.is_closed {
            return Err(Error::closed());
        }
        state.jobs.push_back(job);
        drop(state);
        self.queue.arrived.notify_one();
        Ok(())
    }

    /// Finishes what was submitted, ends the thread and closes the file.
    pub(super) fn close(&self) {
        self.queue.state.lock().is_closed = true;
        self.queue.arrived.notify_one();
        // A job never holds the last handle of its own database: work is 'static and takes what it needs by value.
        if let Some(thread) = self.thread.lock().take()
            && thread.join().is_err()
        {
            tracing::error!("the writer thread panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

impl Queue {
    fn work(&self, mut transaction: Transaction) {
        let mut has_written = false;
        loop {
            let mut state = self.state.lock();
            let mut is_idle = false;
            while state.jobs.is_empty() && !is_idle {
                if state.is_closed {
                    return;
                }
                if has_written {
                    is_idle = self.arrived.wait_for(&mut state, IDLE).timed_out();
                } else {
                    self.arrived.wait(&mut state);
                }
            }
            let first = state.jobs.pop_front();
            drop(state);
            match first {
                Some(first) => {
                    self.commit_group(&mut transaction, first);
                    if forgets_pages(&mut transaction) {
                        give_back_memory(&transaction);
                    }
                }
                // What nobody writes to need not stay in memory.
                None => give_back_memory(&transaction),
            }
            has_written = !is_idle;
        }
    }

    /// Runs `first` and whatever has arrived by the time it is done, then commits.
    fn commit_group(&self, transaction: &mut Transaction, mut first: Box<dyn Job>) {
        if let Err(error) = command(transaction, "BEGIN IMMEDIATE") {
            return first.answer(Err(error));
        }
        if !run(&mut *first, transaction) {
            // Alone in the transaction: undoing all of it undoes just this one.
            roll_back(transaction);
            return first.answer(Ok(()));
        }
        let mut group = vec![first];
        while group.len() < LARGEST_GROUP
            && let Some(mut job) = self.next()
        {
            let begun = command(transaction, "SAVEPOINT job");
            let keep = begun.is_ok() && run(&mut *job, transaction);
            if lost(transaction) {
                // A full disk and the like end the transaction, and everything in it, at once.
                job.answer(begun);
                return answer_all(group, &Err(interrupted()));
            }
            let ended = match (begun, keep) {
                (Ok(()), true) => command(transaction, "RELEASE job"),
                (Ok(()), false) => {
                    command(transaction, "ROLLBACK TO job").and_then(|()| command(transaction, "RELEASE job"))
                }
                (failed, _) => failed,
            };
            match (ended, keep) {
                (Ok(()), true) => group.push(job),
                (ended, _) => job.answer(ended),
            }
        }
        let committed = command(transaction, "COMMIT");
        if committed.is_err() {
            roll_back(transaction);
        }
        answer_all(group, &committed);
    }

    fn next(&self) -> Option<Box<dyn Job>> {
        self.state.lock().jobs.pop_front()
    }
}

fn answer_all(group: Vec<Box<dyn Job>>, committed: &Result<()>) {
    for job in group {
        job.answer(committed.clone());
    }
}

/// Runs a job; one that panics is not kept.
fn run(job: &mut dyn Job, transaction: &mut Transaction) -> bool {
    catch_unwind(AssertUnwindSafe(|| job.run(transaction))).unwrap_or(false) && !lost(transaction)
}

fn command(transaction: &Transaction, sql: &str) -> Result<()> {
    let mut statement = connection(transaction).prepare_cached(sql).map_err(translate)?;
    statement.raw_execute().map(drop).map_err(translate)
}

/// Whether a transaction of the group asked for it; asks once.
fn forgets_pages(transaction: &mut Transaction) -> bool {
    match &mut transaction.0 {
        Under::Sqlite(writing) => std::mem::take(&mut writing.forgets_pages),
        #[cfg(feature = "postgres")]
        Under::Postgres(_) => false,
    }
}

fn give_back_memory(transaction: &Transaction) {
    if let Err(error) = connection(transaction).release_memory() {
        tracing::debug!(%error, "the page cache could not be given back");
    }
}

fn connection(transaction: &Transaction) -> &rusqlite::Connection {
    match &transaction.0 {
        Under::Sqlite(writing) => &writing.connection.0,
        #[cfg(feature = "postgres")]
        Under::Postgres(_) => unreachable!("the writer thread makes its own transactions"),
    }
}

fn roll_back(transaction: &Transaction) {
    if !lost(transaction)
        && let Err(error) = command(transaction, "ROLLBACK")
    {
        tracing::error!(%error, "a transaction could not be rolled back");
    }
}

/// Whether SQLite has ended the transaction by itself.
fn lost(transaction: &Transaction) -> bool {
    connection(transaction).is_autocommit()
}

fn interrupted() -> Error {
    // 40000: transaction rollback.
    Error::database(Some("40000"), ErrorKind::Unavailable, "the transaction was undone by a failure of another write")
}

/// Lets the transaction go on for a principal whose session, if it has one, stands.
fn admit(principal: &Principal, transaction: &mut Transaction) -> Result<()> {
    #[allow(irrefutable_let_patterns, reason = "a build may have one engine")]
    if let Under::Sqlite(writing) = &mut transaction.0 {
        writing.caller = writing.connection.admitted(principal, Ok)?;
    }
    Ok(())
}

/// A job that runs `work` and sends what it returned.
pub(super) fn job<T: Send + 'static>(
    principal: Arc<Principal>,
    work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    answer: oneshot::Sender<Result<T>>,
) -> Box<dyn Job> {
    Box::new(Typed { principal, work: Some(work), result: None, answer })
}

struct Typed<T, W> {
    principal: Arc<Principal>,
    work: Option<W>,
    result: Option<Result<T>>,
    answer: oneshot::Sender<Result<T>>,
}

impl<T: Send, W: for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send> Job for Typed<T, W> {
    fn run(&mut self, transaction: &mut Transaction) -> bool {
        let Some(work) = self.work.take() else { return false };
        if let Err(refused) = admit(&self.principal, transaction) {
            return self.result.insert(Err(refused)).is_ok();
        }
        let mut work = work(transaction);
        // A statement of SQLite never waits, so neither does work that awaits only statements.
        let result = match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(Error::new(ErrorKind::Internal, "a transaction waited for something outside of it")),
        };
        self.result.insert(result).is_ok()
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let panicked = || Err(Error::new(ErrorKind::Internal, "the operation panicked"));
        // A caller that went away does not hear of it; what was committed stays.
        let _ = self.answer.send(match (self.result, committed) {
            (Some(Ok(_)), Err(error)) => Err(error),
            (Some(result), _) => result,
            (None, committed) => committed.and_then(|()| panicked()),
        });
    }
}

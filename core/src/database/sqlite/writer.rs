//! The writer thread: a queue of jobs and a group commit.
//!
//! Invariant: a job is answered only after the COMMIT that contains it. A lone job commits at once. Jobs that arrive
//! while another job runs or commits share the next transaction, each in a savepoint of its own, so a job that fails or
//! panics fails alone. The writer never waits for more jobs: the cost of a commit is its flush to disk, and waiting
//! would only add to it.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use parking_lot::{Condvar, Mutex};

use super::write_connection::WriteConnection;
use crate::error::{Error, ErrorKind, Result};

/// The most jobs in one commit. Bounds how long the first job of a group waits.
const MAX_GROUP: usize = 256;

/// How long after the last write the page cache is released.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);

/// A unit of work for the writer thread.
pub(super) trait Job: Send {
    /// Runs the job's statements in the transaction of `connection`. Returns true if they are to be committed.
    fn run(&mut self, connection: &mut WriteConnection) -> bool;

    /// Sends the job's result to its submitter. `committed` is the result of the transaction.
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// The handle of the writer thread.
pub(super) struct Writer {
    queue: Arc<JobQueue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct JobQueue {
    state: Mutex<JobQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct JobQueueState {
    jobs: VecDeque<Box<dyn Job>>,
    is_closed: bool,
}

/// What ended a wait for the next job.
enum Wakeup {
    Job(Box<dyn Job>),
    /// No job arrived within `IDLE_TIMEOUT`.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

impl Writer {
    /// Starts the writer thread, which owns `connection`.
    pub(super) fn start(connection: WriteConnection) -> Result<Writer> {
        let queue = Arc::new(JobQueue { state: Mutex::default(), changed: Condvar::new() });
        let thread_queue = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("townsquare-write".into())
            .spawn(move || run_thread(&thread_queue, connection))
            .map_err(|error| Error::unavailable(format!("cannot start a thread: {error}")).caused_by(error))?;
        Ok(Writer { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Queues `job`.
    ///
    /// # Errors
    /// `Closed` after [`Writer::close`].
    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<()> {
        let mut state = self.queue.state.lock();
        if state.is_closed {
            return Err(Error::closed());
        }
        state.jobs.push_back(job);
        drop(state);
        self.queue.changed.notify_one();
        Ok(())
    }

    /// Finishes the queued jobs, ends the thread and closes its connection.
    pub(super) fn close(&self) {
        self.queue.state.lock().is_closed = true;
        self.queue.changed.notify_one();
        // The thread never joins itself: a job owns the values of its work and no handle of the database.
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

impl JobQueue {
    /// Takes the next job without waiting.
    fn try_pop(&self) -> Option<Box<dyn Job>> {
        self.state.lock().jobs.pop_front()
    }

    /// Waits for the next job; at most `IDLE_TIMEOUT` if `has_timeout`.
    fn pop(&self, has_timeout: bool) -> Wakeup {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Wakeup::Job(job);
            }
            if state.is_closed {
                return Wakeup::Closed;
            }
            if !has_timeout {
                self.changed.wait(&mut state);
            } else if self.changed.wait_for(&mut state, IDLE_TIMEOUT).timed_out() && state.jobs.is_empty() {
                return Wakeup::Idle;
            }
        }
    }
}

/// The body of the writer thread.
fn run_thread(queue: &JobQueue, mut connection: WriteConnection) {
    let mut has_cached_pages = false;
    loop {
        match queue.pop(has_cached_pages) {
            Wakeup::Job(first) => {
                commit_group(&mut connection, first, queue);
                connection.release_forgotten_pages();
                has_cached_pages = true;
            }
            Wakeup::Idle => {
                connection.release_pages();
                has_cached_pages = false;
            }
            Wakeup::Closed => return,
        }
    }
}

/// Runs `first` and every job that arrives until the last of them has run, then commits all of them together.
fn commit_group(connection: &mut WriteConnection, mut first: Box<dyn Job>, queue: &JobQueue) {
    if let Err(error) = connection.begin() {
        return first.answer(Err(error));
    }
    if !run_job(&mut *first, connection) {
        // `first` is the transaction's only job, so a full rollback undoes nothing else.
        connection.roll_back();
        return first.answer(Ok(()));
    }
    let mut group = vec![first];
    while group.len() < MAX_GROUP
        && let Some(mut job) = queue.try_pop()
    {
        match run_in_savepoint(&mut *job, connection) {
            Savepoint::Released => group.push(job),
            Savepoint::RolledBack(result) => job.answer(result),
            Savepoint::TransactionLost(result) => {
                job.answer(result);
                return answer_all(group, &Err(transaction_lost()));
            }
        }
    }
    let committed = connection.commit();
    if committed.is_err() {
        connection.roll_back();
    }
    answer_all(group, &committed);
}

/// The outcome of a job that ran in a savepoint.
enum Savepoint {
    /// The job's changes are part of the transaction.
    Released,
    /// The job's changes are undone, or the savepoint failed with this error.
    RolledBack(Result<()>),
    /// SQLite rolled the whole transaction back, for example because the disk is full.
    TransactionLost(Result<()>),
}

fn run_in_savepoint(job: &mut dyn Job, connection: &mut WriteConnection) -> Savepoint {
    let begun = connection.begin_savepoint();
    let keeps = begun.is_ok() && run_job(job, connection);
    if connection.is_rolled_back() {
        return Savepoint::TransactionLost(begun);
    }
    let ended = match (begun, keeps) {
        (Ok(()), true) => connection.release_savepoint(),
        (Ok(()), false) => connection.roll_back_savepoint(),
        (failed, _) => failed,
    };
    if keeps && ended.is_ok() { Savepoint::Released } else { Savepoint::RolledBack(ended) }
}

/// Runs a job. Returns true if its changes are to be committed: `run` returned true without a panic, and the
/// transaction is still open.
fn run_job(job: &mut dyn Job, connection: &mut WriteConnection) -> bool {
    catch_unwind(AssertUnwindSafe(|| job.run(connection))).unwrap_or(false) && !connection.is_rolled_back()
}

fn answer_all(group: Vec<Box<dyn Job>>, committed: &Result<()>) {
    for job in group {
        job.answer(committed.clone());
    }
}

fn transaction_lost() -> Error {
    // 40000: transaction rollback.
    Error::database(Some("40000"), ErrorKind::Unavailable, "the failure of another write rolled the transaction back")
}

//! The writer of a database: a queue of jobs and a group commit, run by one thread at a time.
//!
//! Invariant: a job is answered only after the COMMIT that contains it. A lone job commits at once. Jobs that arrive
//! while another job runs or commits share the next transaction, each in a savepoint of its own, so a job that fails or
//! panics fails alone. A job whose submitter was cancelled before the job began does not run; a job that has begun runs
//! to completion. The writer never waits for more jobs: the cost of a commit is its flush to disk, and waiting
//! would only add to it.
//!
//! The write connection belongs to the thread that holds its lock, the *leader*. A blocking caller that finds the
//! writer idle leads for its own job and commits on its own thread, together with the jobs that arrive meanwhile: that
//! saves two thread hops. All other jobs wait in the queue for the writer thread. The writers of several processes take
//! [turns](turns).

mod turns;

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

pub(super) use self::turns::Turns;
use super::{commit_watch::CommitListener, errors::is_busy, write_connection::WriteConnection};
use crate::{
    clock::{Clock, Moment},
    error::{Error, ErrorKind, Result},
    threads::{
        self, blocking_caller,
        sync::{
            Condvar, Mutex,
            atomic::{AtomicUsize, Ordering},
            thread::{self, JoinHandle},
        },
    },
};

/// The most jobs in one commit. Bounds how long the first job of a group waits.
const MAX_GROUP: usize = 256;

/// The longest wait for another process's lock between two checks whether the writer is closed.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// The same for a writer who has the turn: the others wait for it to get the lock.
const LOCK_WAIT_IN_TURN: Duration = Duration::from_millis(2);

/// A unit of work for the writer.
pub(super) trait Job: Send {
    /// Runs the job's statements in the transaction of `connection`. Returns true if they are to be committed.
    fn run(&mut self, connection: &mut WriteConnection) -> bool;

    /// True if nobody waits for the result: the submitter was cancelled.
    fn is_abandoned(&self) -> bool;

    /// True if no other job may be in the transaction of this one.
    fn is_exclusive(&self) -> bool;

    /// Sends the job's result to its submitter. `committed` is the result of the transaction.
    fn answer(self: Box<Self>, committed: Result<()>);
}

/// The handle of the writer.
pub(super) struct Writer {
    shared: Arc<WriterShared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the writer thread and leading callers share.
struct WriterShared {
    queue: JobQueue,
    /// Held by the leader. `None` once the writer is closed.
    connection: Mutex<Option<WriteConnection>>,
    /// How long a job may wait for another process's lock, counted from its submission.
    busy_timeout: Duration,
    clock: Clock,
    /// The size of the last group. More than one job means that writers compete: then callers queue, because larger
    /// groups cost fewer flushes.
    last_group: AtomicUsize,
    turns: Turns,
    /// Told of each commit, before the jobs are answered.
    commit_listener: CommitListener,
}

struct JobQueue {
    state: Mutex<JobQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct JobQueueState {
    jobs: VecDeque<QueuedJob>,
    is_closed: bool,
}

/// A job and the time at which its wait for another process's lock ends.
struct QueuedJob {
    job: Box<dyn Job>,
    deadline: Moment,
}

impl Writer {
    /// Starts the writer thread. A job waits at most `busy_timeout` for another process's lock.
    pub(super) fn start(connection: WriteConnection, busy_timeout: Duration, turns: Turns) -> Result<Writer> {
        let shared = Arc::new(WriterShared {
            queue: JobQueue { state: Mutex::default(), changed: Condvar::new() },
            connection: Mutex::new(Some(connection)),
            busy_timeout,
            clock: Clock::default(),
            last_group: AtomicUsize::new(0),
            turns,
            commit_listener: CommitListener::default(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = threads::spawn("townsquare-write", move || of_thread.run_thread())?;
        Ok(Writer { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Runs `job` on this thread if it belongs to a blocking caller and the writer is idle, else queues it. Either way
    /// the job's submitter gets its answer from the job.
    ///
    /// # Errors
    /// `Closed` after [`Writer::close`].
    pub(super) fn submit(&self, job: Box<dyn Job>) -> Result<()> {
        let job = QueuedJob { job, deadline: self.shared.clock.moment().after(self.shared.busy_timeout) };
        let not_led = if blocking_caller::is_current() { self.shared.lead(job) } else { Some(job) };
        not_led.map_or(Ok(()), |job| self.shared.queue.push(job))
    }

    /// How many transactions wait.
    pub(super) fn waiting(&self) -> usize {
        self.shared.queue.state.lock().jobs.len()
    }

    /// Where to register who is told of each commit.
    pub(super) fn commit_listener(&self) -> CommitListener {
        Arc::clone(&self.shared.commit_listener)
    }

    /// Finishes the queued jobs, ends the thread, checkpoints the WAL and closes the connection. A job that waits for
    /// another process's lock fails instead of holding up `close`. A second caller waits for the first.
    pub(super) fn close(&self) {
        self.shared.queue.close();
        let mut thread = self.thread.lock();
        let Some(thread) = thread.take() else { return };
        // A waker that drops the last handle of the client runs this on the writer thread, which then ends by itself.
        if thread.thread().id() == thread::current().id() {
            return;
        }
        if thread.join().is_err() {
            tracing::error!("the writer thread panicked");
            self.shared.close_connection();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

impl JobQueue {
    fn push(&self, job: QueuedJob) -> Result<()> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Error::closed());
        }
        state.jobs.push_back(job);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the next job without waiting, if `is_wanted` returns true for it.
    fn pop_if(&self, is_wanted: impl FnOnce(&QueuedJob) -> bool) -> Option<QueuedJob> {
        let mut state = self.state.lock();
        if state.jobs.front().is_some_and(is_wanted) { state.jobs.pop_front() } else { None }
    }

    fn is_empty(&self) -> bool {
        self.state.lock().jobs.is_empty()
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_one();
    }

    fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Waits for a job. Returns false once the queue is closed and empty.
    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.jobs.is_empty() {
            if state.is_closed {
                return false;
            }
            self.changed.wait(&mut state);
        }
        true
    }
}

impl WriterShared {
    /// The body of the writer thread.
    fn run_thread(&self) {
        // A panic outside of a job would leave callers without an answer: the queue closes and drops their jobs.
        let _close_queue = CloseOnDrop(&self.queue);
        while self.queue.wait() {
            let mut connection = self.connection.lock();
            if let (Some(connection), Some(first)) = (connection.as_mut(), self.queue.pop_if(|_| true)) {
                self.commit_next_group(connection, first);
            }
        }
        self.close_connection();
    }

    fn close_connection(&self) {
        if let Some(connection) = self.connection.lock().take() {
            connection.checkpoint();
        }
    }

    /// Leads for `job` and commits it on this thread. Returns the job if another thread leads, if jobs wait, or if
    /// another process holds or awaits the lock: such a job goes to the queue.
    fn lead(&self, job: QueuedJob) -> Option<QueuedJob> {
        if self.last_group.load(Ordering::Relaxed) > 1 || self.turns.is_awaited() {
            return Some(job);
        }
        let Some(mut guard) = self.connection.try_lock() else { return Some(job) };
        let Some(connection) = guard.as_mut().filter(|_| self.queue.is_empty()) else { return Some(job) };
        match connection.begin(Duration::ZERO) {
            Ok(()) => self.commit_group(connection, job.job),
            Err(error) if is_busy(&error) => return Some(job),
            Err(error) => answer(job.job, Err(error)),
        }
        // The writer thread takes over the jobs that this group left: `push` woke it.
        None
    }

    /// Begins a transaction and commits a group that starts with `first`. If another process holds the lock, `first`
    /// and every job whose deadline passed fail at once; if the writer is closed meanwhile, all jobs do.
    fn commit_next_group(&self, connection: &mut WriteConnection, first: QueuedJob) {
        match self.begin_before(connection, first.deadline) {
            Ok(()) => {
                self.commit_group(connection, first.job);
            }
            Err(error) => {
                answer(first.job, Err(error.clone()));
                let fails_too = |queue: &JobQueue| match error.kind() {
                    ErrorKind::Closed => queue.pop_if(|_| true),
                    // Jobs are queued in the order of their deadlines.
                    _ if is_busy(&error) => queue.pop_if(|next| next.deadline <= self.clock.moment()),
                    _ => None,
                };
                while let Some(next) = fails_too(&self.queue) {
                    answer(next.job, Err(error.clone()));
                }
            }
        }
    }

    /// Begins a transaction. Waits for another process's lock until `deadline`, or until the writer is closed.
    fn begin_before(&self, connection: &mut WriteConnection, deadline: Moment) -> Result<()> {
        if !self.turns.is_awaited() {
            match connection.begin(Duration::ZERO) {
                Err(error) if is_busy(&error) => {}
                result => return result,
            }
        }
        let turn = self.turns.take(deadline, || self.queue.is_closed());
        let wait = if turn.is_some() { LOCK_WAIT_IN_TURN } else { LOCK_WAIT };
        loop {
            let remaining = deadline.since(self.clock.moment());
            match connection.begin(remaining.min(wait)) {
                Err(error) if is_busy(&error) && self.queue.is_closed() => return Err(Error::closed()),
                Err(error) if is_busy(&error) && !remaining.is_zero() => {}
                result => return result,
            }
        }
    }

    /// Takes the next job that may be in a group.
    fn pop_for_group(&self) -> Option<Box<dyn Job>> {
        self.queue.pop_if(|next| !next.job.is_exclusive()).map(|next| next.job)
    }

    /// Runs `first` and every job that arrives until the last of them has run, then commits all of them together; an exclusive
    /// job alone. The transaction has begun.
    fn commit_group(&self, connection: &mut WriteConnection, first: Box<dyn Job>) {
        let mut group = Vec::new();
        let most = if first.is_exclusive() { 1 } else { MAX_GROUP };
        let mut next = Some(first);
        let mut tried = 0;
        while tried < most
            && let Some(mut job) = next.take().or_else(|| self.pop_for_group())
        {
            tried += 1;
            // A job that is alone needs no savepoint, because a full rollback undoes nothing else. Among others it has one
            // also if it is the first: a rollback would give up the lock, and the jobs behind it would wait for another
            // turn after each job that fails.
            let is_alone = group.is_empty() && (most == 1 || self.queue.is_empty());
            let outcome = match is_alone {
                true => Ok(run_job(&mut *job, connection)),
                false => run_in_savepoint(&mut *job, connection),
            };
            match outcome {
                Ok(JobOutcome::Commit) => group.push(job),
                Ok(JobOutcome::Undo) if is_alone => {
                    connection.roll_back();
                    return answer(job, Ok(()));
                }
                Ok(JobOutcome::Undo) => answer(job, Ok(())),
                Ok(JobOutcome::TransactionLost) | Err(_) => {
                    // Without its savepoint no job of the group can be told from this one: all of them are undone.
                    connection.roll_back();
                    group.push(job);
                    return answer_all(group, &Err(transaction_lost()));
                }
            }
        }
        self.last_group.store(tried, Ordering::Relaxed);
        if group.is_empty() {
            return connection.roll_back();
        }
        let committed = connection.commit();
        if committed.is_err() {
            connection.roll_back();
        } else if let Some(tell) = self.commit_listener.load().as_deref() {
            tell();
        }
        answer_all(group, &committed);
    }
}

/// Closes the queue and drops its jobs, whose submitters then get `Closed`.
struct CloseOnDrop<'a>(&'a JobQueue);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close();
        let jobs = std::mem::take(&mut self.0.state.lock().jobs);
        drop(jobs);
    }
}

/// What a job left in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobOutcome {
    /// Changes to be committed.
    Commit,
    /// Changes to be undone, if any: the job failed or panicked, or it was abandoned and did not run.
    Undo,
    /// Nothing: SQLite rolled the whole transaction back, for example because the disk is full.
    TransactionLost,
}

fn run_job(job: &mut dyn Job, connection: &mut WriteConnection) -> JobOutcome {
    if job.is_abandoned() {
        return JobOutcome::Undo;
    }
    let commits = catch_unwind(AssertUnwindSafe(|| job.run(connection))).unwrap_or(false);
    match (connection.is_rolled_back(), commits) {
        (true, _) => JobOutcome::TransactionLost,
        (false, true) => JobOutcome::Commit,
        (false, false) => JobOutcome::Undo,
    }
}

/// Runs a job in a savepoint.
///
/// # Errors
/// Those of beginning or ending the savepoint; then the state of the transaction is unknown.
fn run_in_savepoint(job: &mut dyn Job, connection: &mut WriteConnection) -> Result<JobOutcome> {
    connection.begin_savepoint()?;
    let outcome = run_job(job, connection);
    match outcome {
        JobOutcome::Commit => connection.release_savepoint()?,
        JobOutcome::Undo => connection.roll_back_savepoint()?,
        JobOutcome::TransactionLost => {}
    }
    Ok(outcome)
}

/// Answers a job. The submitter's waker is foreign code: a panic of it stays here.
fn answer(job: Box<dyn Job>, committed: Result<()>) {
    if catch_unwind(AssertUnwindSafe(|| job.answer(committed))).is_err() {
        tracing::error!("the waker of a write panicked");
    }
}

fn answer_all(group: Vec<Box<dyn Job>>, committed: &Result<()>) {
    for job in group {
        answer(job, committed.clone());
    }
}

fn transaction_lost() -> Error {
    // 40000: transaction rollback.
    Error::database(Some("40000"), ErrorKind::Unavailable, "the failure of another write rolled the transaction back")
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests;

//! A pool of threads for work that blocks: callbacks, files, SQLite.
//!
//! Invariant: a job that was accepted runs, unless the pool is closed first. A few jobs start at once. Further jobs start when
//! others end, or when none has ended for [`STALL_TIMEOUT`]: so a job that waits for something holds up no other, and many
//! short jobs take few threads. A pool that has no thread and cannot start one refuses a job. A pool of callbacks or of readers
//! keeps the job, because nobody submits it again, and asks the system again for a thread. (tokio's own pool counts the runtime's
//! workers, and queues a job for them that they never run.) Idle threads end after [`KEEP_ALIVE`].

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::available_parallelism,
    time::Duration,
};

use tokio::{runtime::Handle, sync::oneshot};

use super::{
    ProcessOwned, panicked, spawn,
    sync::{
        Condvar, Mutex, MutexGuard,
        thread::{self, JoinHandle, ThreadId},
    },
};
use crate::{
    error::{Error, Result},
    metrics::AtomicHistogram,
};

/// How long an idle thread waits for a job.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// How long queued jobs wait for one that runs to end. Then the running jobs count as blocked.
const STALL_TIMEOUT: Duration = Duration::from_millis(1);

/// How long a pool that keeps its jobs waits before it asks the system for a thread again.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The most threads of a pool of callbacks.
const MAX_CALLBACK_THREADS: usize = 512;

/// A job of a pool.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Work that a thread of a pool does.
#[derive(Debug)]
pub(crate) struct RunningJob<T>(oneshot::Receiver<thread::Result<T>>);

/// A pool. Clones share its threads.
#[derive(Clone)]
pub(crate) struct BlockingPool(Arc<ProcessOwned<PoolShared>>);

struct PoolShared {
    thread_name: &'static str,
    /// Whether jobs run on the thread that queues them, so that a simulation has one thread.
    #[cfg(test)]
    is_inline: bool,
    /// How many jobs start at once.
    prompt_threads: usize,
    max_threads: usize,
    /// Where a pool that keeps its jobs waits for a thread; `None` for one that refuses them.
    retries_on: Option<Handle>,
    state: Mutex<PoolState>,
    /// Notified when a thread is called for a job, and when the pool is closed.
    called: Condvar,
    /// Notified when a thread ends.
    ended: Condvar,
    callback_times: AtomicHistogram,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<Job>,
    threads: HashMap<ThreadId, JoinHandle<()>>,
    /// The number of threads that have not left their loop.
    running: usize,
    /// The number of threads that run a job which does not count as blocked.
    active: usize,
    /// The number of threads that were notified or started, and have not looked for a job since.
    called: usize,
    /// Whether a thread watches the running jobs.
    has_watcher: bool,
    /// The number of jobs that have ended.
    ended_jobs: u64,
    /// How often the running jobs were counted as blocked.
    stalls: u64,
    /// Whether a task is about to ask the system for a thread again.
    is_retrying: bool,
    /// The thread that ended last of idleness. The next one joins it, so that `close` joins every thread.
    ended_last: Option<JoinHandle<()>>,
    is_closed: bool,
}

impl BlockingPool {
    /// A pool in which jobs start at once while fewer than `max_threads` run.
    pub(crate) fn new(thread_name: &'static str, max_threads: usize) -> BlockingPool {
        BlockingPool::with_limits(thread_name, max_threads, max_threads, None)
    }

    /// As [`new`](BlockingPool::new), for readers of the change log: it keeps the jobs that have no thread, and tries again on the
    /// runtime.
    pub(crate) fn for_readers(thread_name: &'static str, max_threads: usize, runtime: Handle) -> BlockingPool {
        BlockingPool::with_limits(thread_name, max_threads, max_threads, Some(runtime))
    }

    /// A pool for callbacks of the program, which keeps the jobs that have no thread, and tries again on the runtime. Twice as many
    /// as the machine has cores start at once, because some wait for a moment. More threads are not faster, unless all of these
    /// callbacks wait.
    pub(crate) fn for_callbacks(thread_name: &'static str, runtime: Handle) -> BlockingPool {
        let cores = available_parallelism().map_or(1, usize::from);
        BlockingPool::with_limits(thread_name, 2 * cores, MAX_CALLBACK_THREADS, Some(runtime))
    }

    fn with_limits(
        thread_name: &'static str,
        prompt_threads: usize,
        max_threads: usize,
        retries_on: Option<Handle>,
    ) -> BlockingPool {
        BlockingPool::of(PoolShared { retries_on, ..PoolShared::new(thread_name, prompt_threads, max_threads) })
    }

    fn of(shared: PoolShared) -> BlockingPool {
        BlockingPool(Arc::new(ProcessOwned::new(shared)))
    }

    /// A pool without threads: a job runs on the thread that queues it.
    #[cfg(test)]
    pub(crate) fn inline() -> BlockingPool {
        BlockingPool::of(PoolShared { is_inline: true, ..PoolShared::new("townsquare-inline", 0, 0) })
    }

    /// Runs `work` on a thread of the pool and returns its result. `work` runs to completion even if the caller drops
    /// the future.
    ///
    /// # Errors
    /// Those of [`start`](BlockingPool::start) and of [`RunningJob::join`].
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        self.start(work)?.join().await
    }

    /// Starts `work` on a thread of the pool. It runs to completion even if the caller drops the job.
    ///
    /// # Errors
    /// Those of [`submit`](BlockingPool::submit).
    pub(crate) fn start<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<RunningJob<T>> {
        let (sender, receiver) = oneshot::channel();
        self.submit(move || {
            // Unwind safe: the panic drops everything that `work` owns.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        })?;
        Ok(RunningJob(receiver))
    }

    /// How many jobs wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.0.get().map_or(0, |shared| shared.state.lock().jobs.len())
    }

    /// The times that callbacks of the program took. `None` in a forked child.
    pub(crate) fn callback_times(&self) -> Option<&AtomicHistogram> {
        self.0.get().ok().map(|shared| &shared.callback_times)
    }

    /// Whether the pool refuses every job.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.get().is_ok_and(|shared| shared.state.lock().is_closed)
    }

    /// Queues a job.
    ///
    /// # Errors
    /// `Closed` after [`close`](BlockingPool::close) and in a forked child; `Unavailable` if the pool has no thread, cannot
    /// start one and keeps no jobs.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        self.queue([Box::new(job) as Job], VecDeque::push_back, true)
    }

    /// Queues a job whose caller waits for its end: any pool without a thread refuses it.
    ///
    /// # Errors
    /// Those of [`submit`](BlockingPool::submit).
    pub(crate) fn submit_now(&self, job: Job) -> Result<()> {
        self.queue([job], VecDeque::push_back, false)
    }

    /// Queues a short job before the others, because they or their callers wait for its result.
    ///
    /// # Errors
    /// Those of [`submit`](BlockingPool::submit).
    pub(crate) fn submit_first(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        self.queue([Box::new(job) as Job], VecDeque::push_front, true)
    }

    /// Queues jobs.
    ///
    /// # Errors
    /// Those of [`submit`](BlockingPool::submit).
    pub(crate) fn submit_all(&self, jobs: Vec<Job>) -> Result<()> {
        self.queue(jobs, VecDeque::push_back, true)
    }

    /// Queues jobs for the job of this pool that calls this and then returns: its thread runs the first of them without a change
    /// of threads, and calls others if there are more.
    ///
    /// # Errors
    /// `Closed` after [`close`](BlockingPool::close).
    pub(crate) fn submit_before_return(&self, jobs: Vec<Job>) -> Result<()> {
        let mut state = self.0.get()?.open_state()?;
        state.jobs.extend(jobs);
        Ok(())
    }

    /// With `may_keep`, a pool that keeps its jobs does.
    fn queue(
        &self,
        jobs: impl IntoIterator<Item = Job>,
        push: fn(&mut VecDeque<Job>, Job),
        may_keep: bool,
    ) -> Result<()> {
        #[cfg(test)]
        if self.0.get()?.is_inline {
            drop(self.0.get()?.open_state()?);
            jobs.into_iter().for_each(|job| job());
            return Ok(());
        }
        let mut state = self.0.get()?.open_state()?;
        for job in jobs {
            push(&mut state.jobs, job);
            match self.call_thread(&mut state) {
                Err(error) if state.running == 0 && !(may_keep && self.keeps_jobs()) => {
                    let refused = state.jobs.pop_back();
                    drop(state);
                    drop(refused);
                    return Err(error);
                }
                // The next thread that has finished its job runs this one.
                Err(error) => tracing::debug!(%error, "a job waits for a thread"),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn keeps_jobs(&self) -> bool {
        self.0.get().is_ok_and(|shared| shared.retries_on.is_some())
    }

    /// Asks the system for a thread again after a while, if the pool keeps its jobs. Nobody else would: a pool with one thread, whose
    /// job waits, would run no other job, also when the system has threads again.
    fn retry_later(&self, shared: &PoolShared, state: &mut PoolState) {
        let Some(runtime) = &shared.retries_on else { return };
        if std::mem::replace(&mut state.is_retrying, true) {
            return;
        }
        let this = self.clone();
        runtime.spawn(async move {
            tracing::debug!("callbacks or readers of the change log wait for a thread of the system");
            tokio::time::sleep(RETRY_AFTER).await;
            let Some(mut state) = this.0.get().ok().and_then(|shared| shared.open_state().ok()) else { return };
            state.is_retrying = false;
            // A failure makes another task.
            let _ = this.call_thread(&mut state);
        });
    }

    /// Wakes or starts a thread if a queued job may run and none has been woken for it, or if jobs have to wait and no thread
    /// watches the running ones.
    fn call_thread(&self, state: &mut PoolState) -> Result<()> {
        let shared = self.0.get()?;
        let due = state.jobs.len().min(shared.prompt_threads.saturating_sub(state.active));
        let needed = due + usize::from(state.jobs.len() > due && !state.has_watcher);
        if state.called >= needed {
            return Ok(());
        }
        if shared.called.notify_one() {
            state.called += 1;
        } else if state.running < shared.max_threads {
            let this = self.clone();
            let thread = spawn(shared.thread_name, move || this.run_thread());
            let thread = thread.inspect_err(|_| self.retry_later(shared, state))?;
            state.threads.insert(thread.thread().id(), thread);
            state.running += 1;
            state.called += 1;
        }
        Ok(())
    }

    /// The body of a thread.
    fn run_thread(&self) {
        let Ok(shared) = self.0.get() else { return };
        let mut state = shared.state.lock();
        state.called = state.called.saturating_sub(1);
        loop {
            if state.active < shared.prompt_threads
                && let Some(job) = state.jobs.pop_front()
            {
                state.active += 1;
                if let Err(error) = self.call_thread(&mut state) {
                    tracing::debug!(%error, "jobs wait for a thread");
                }
                let stalls = state.stalls;
                drop(state);
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!("a job on a thread of the library panicked");
                }
                state = shared.state.lock();
                state.ended_jobs += 1;
                if state.stalls == stalls {
                    state.active -= 1;
                }
                continue;
            }
            if state.is_closed || !shared.wait_for_jobs(&mut state) {
                break;
            }
        }
        let mut before = None;
        if !state.is_closed {
            let this = state.threads.remove(&thread::current().id());
            before = std::mem::replace(&mut state.ended_last, this);
        }
        state.running -= 1;
        drop(state);
        shared.ended.notify_all();
        before.into_iter().for_each(join);
    }

    /// Whether jobs wait for a thread.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.get().is_ok_and(|shared| !shared.state.lock().jobs.is_empty())
    }

    /// Drops the queued jobs and waits for the running ones, at most `timeout`. Threads that run longer end after their job. Does
    /// nothing in a forked child.
    pub(crate) fn close(&self, timeout: Duration) {
        let Ok(shared) = self.0.get() else { return };
        let mut state = shared.state.lock();
        state.is_closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        shared.called.notify_all();
        drop(state);
        drop(jobs);
        let mut state = shared.state.lock();
        // A thread of the pool does not wait for itself.
        let own = thread::current().id();
        let kept = usize::from(state.threads.remove(&own).is_some());
        shared.ended.wait_while_for(&mut state, |state| state.running > kept, timeout);
        let has_ended = state.running <= kept;
        if !has_ended && !timeout.is_zero() {
            let running = state.running - kept;
            tracing::warn!(running, "closed while callbacks or file work still ran, after {} s", timeout.as_secs());
        }
        let (threads, ended_last) = (std::mem::take(&mut state.threads), state.ended_last.take());
        drop(state);
        if has_ended {
            threads.into_values().chain(ended_last).for_each(join);
        }
    }
}

impl<T> RunningJob<T> {
    /// Waits for the result. May be called again if the caller drops the future.
    ///
    /// # Errors
    /// `Closed` if the pool is closed before the work begins; `Internal` if the work panicked.
    pub(crate) async fn join(&mut self) -> Result<T> {
        (&mut self.0).await.map_err(|_| Error::closed())?.map_err(|_| panicked())
    }
}

impl PoolShared {
    fn new(thread_name: &'static str, prompt_threads: usize, max_threads: usize) -> PoolShared {
        PoolShared {
            thread_name,
            #[cfg(test)]
            is_inline: false,
            prompt_threads,
            max_threads,
            retries_on: None,
            state: Mutex::default(),
            called: Condvar::new(),
            ended: Condvar::new(),
            callback_times: AtomicHistogram::default(),
        }
    }

    /// # Errors
    /// `Closed` after the pool was closed.
    fn open_state(&self) -> Result<MutexGuard<'_, PoolState>> {
        let state = self.state.lock();
        if state.is_closed { Err(Error::closed()) } else { Ok(state) }
    }

    /// Waits for a job. While jobs are queued, one thread watches the running ones, and counts them as blocked if none of them
    /// ends in time. Returns false if the thread is of no use any more.
    fn wait_for_jobs(&self, state: &mut MutexGuard<'_, PoolState>) -> bool {
        let watches = !state.jobs.is_empty() && !state.has_watcher;
        let ended_jobs = state.ended_jobs;
        state.has_watcher |= watches;
        let timeout = if watches { STALL_TIMEOUT } else { KEEP_ALIVE };
        let has_timed_out = self.called.wait_for(state, timeout).timed_out();
        if watches {
            state.has_watcher = false;
        }
        if !has_timed_out {
            state.called = state.called.saturating_sub(1);
            return true;
        }
        if watches && !state.jobs.is_empty() && state.ended_jobs == ended_jobs {
            state.active = 0;
            state.stalls += 1;
        }
        watches || !state.jobs.is_empty()
    }
}

crate::model::opaque!(BlockingPool);

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the library panicked");
    }
}

#[cfg(all(test, shuttle))]
mod schedules;
#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::error::ErrorKind;

    const LONG: Duration = Duration::from_secs(10);

    #[tokio::test]
    async fn a_job_that_panics_is_an_error_and_the_next_one_runs() {
        let pool = BlockingPool::new("townsquare-test", 1);
        let error = pool.run(|| panic!("on purpose")).await.expect_err("a panic is an error");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(pool.run(|| 7).await.expect("it runs"), 7);
        pool.close(LONG);
        assert_eq!(pool.run(|| 7).await.expect_err("closed").kind(), ErrorKind::Closed);
    }

    #[test]
    fn jobs_run_at_the_same_time_up_to_the_limit() {
        let pool = BlockingPool::new("townsquare-test", 2);
        let (started, starts) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        for number in 0..3 {
            let (started, released) = (started.clone(), Arc::clone(&released));
            pool.submit(move || {
                started.send(number).expect("the test receives");
                let _ = released.lock().recv();
            })
            .expect("accepted");
        }
        let mut first = [starts.recv().expect("one"), starts.recv().expect("two")];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert!(starts.try_recv().is_err(), "the third job waits");
        assert_eq!(pool.waiting(), 1, "it is in the metric of jobs that wait");
        (0..3).for_each(|_| release.send(()).expect("a job waits"));
        assert_eq!(starts.recv(), Ok(2));
        assert_eq!(pool.waiting(), 0);
        pool.close(LONG);
    }

    #[test]
    fn jobs_that_wait_hold_up_no_other_and_short_jobs_share_a_thread() {
        let pool = BlockingPool::with_limits("townsquare-test", 1, 8, None);
        let threads = Arc::new(Mutex::new(std::collections::HashSet::new()));
        let (done, ends) = mpsc::channel();
        let jobs = (0..100).map(|_| {
            let (threads, done) = (Arc::clone(&threads), done.clone());
            Box::new(move || {
                threads.lock().insert(thread::current().id());
                done.send(()).expect("the test receives");
            }) as Job
        });
        pool.submit_all(jobs.collect()).expect("accepted");
        (0..100).for_each(|_| ends.recv().expect("a job ran"));
        assert!(threads.lock().len() < 8, "a job that ends at once needs no thread of its own");
        // Each of these jobs waits for the next one.
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..5).map(|_| mpsc::channel::<()>()).unzip();
        for (sender, receiver) in senders.into_iter().zip(receivers.into_iter().skip(1).map(Some).chain([None])) {
            pool.submit(move || {
                receiver.map(|receiver| receiver.recv());
                drop(sender);
            })
            .expect("accepted");
        }
        pool.submit(move || done.send(()).expect("the test receives")).expect("accepted");
        ends.recv().expect("the last job ran");
        pool.close(LONG);
    }

    #[test]
    fn jobs_that_are_queued_before_a_return_run_on_the_same_thread_and_first_jobs_before_others() {
        let pool = BlockingPool::new("townsquare-test", 1);
        let (sender, receiver) = mpsc::channel();
        let job = |name: &'static str| {
            let sender = sender.clone();
            Box::new(move || sender.send((name, thread::current().id())).expect("the test receives")) as Job
        };
        let (of_job, first, last, begin) = (pool.clone(), job("first"), job("last"), job("begin"));
        pool.submit(move || {
            begin();
            of_job.submit_before_return(vec![last]).expect("accepted");
            of_job.submit_first(first).expect("accepted");
        })
        .expect("accepted");
        let ran: Vec<_> = (0..3).map(|_| receiver.recv().expect("a job ran")).collect();
        assert_eq!(ran.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["begin", "first", "last"]);
        assert!(ran.iter().all(|(_, thread)| *thread == ran[0].1));
        pool.close(LONG);
    }

    #[test]
    fn close_drops_queued_jobs_and_waits_for_the_running_one() {
        let pool = BlockingPool::new("townsquare-test", 1);
        let (started, starts) = mpsc::channel();
        let (finished, finishes) = mpsc::channel();
        let of_pool = pool.clone();
        pool.submit(move || {
            started.send(()).expect("the test receives");
            while !of_pool.is_closed() {
                thread::yield_now();
            }
            finished.send("first").expect("the test receives");
        })
        .expect("accepted");
        starts.recv().expect("the job starts");
        let (unused, never) = mpsc::channel();
        pool.submit(move || unused.send(()).expect("the test receives")).expect("accepted");
        pool.close(LONG);
        assert_eq!(finishes.try_recv(), Ok("first"));
        assert!(never.try_recv().is_err());
    }

    #[test]
    fn a_job_of_the_pool_may_close_it() {
        let pool = BlockingPool::new("townsquare-test", 1);
        let (closed, closes) = mpsc::channel();
        let of_job = pool.clone();
        pool.submit(move || {
            of_job.close(LONG);
            closed.send(()).expect("the test receives");
        })
        .expect("accepted");
        closes.recv().expect("it does not wait for itself");
    }
}

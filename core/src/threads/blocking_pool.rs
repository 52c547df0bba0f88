//! A pool of threads for work that blocks.
//!
//! Invariant: a job that was accepted runs, unless the pool is closed first. The pool starts a thread if no thread is
//! idle, up to its limit. It refuses a job only if it has no thread and cannot start one. (tokio's own pool counts the
//! runtime's workers, and queues a job for them that they never run.) Idle threads end after [`KEEP_ALIVE`].

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread::{self, JoinHandle, ThreadId},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::{panicked, spawn};
use crate::error::{Error, Result};

/// How long an idle thread waits for a job.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

type BoxedJob = Box<dyn FnOnce() + Send>;

/// Work that a thread of the pool does.
#[derive(Debug)]
pub(crate) struct Job<T>(oneshot::Receiver<thread::Result<T>>);

/// A pool. Clones share its threads.
#[derive(Clone)]
pub(crate) struct BlockingPool(Arc<PoolShared>);

struct PoolShared {
    thread_name: &'static str,
    max_threads: usize,
    state: Mutex<PoolState>,
    /// Notified when a job is queued, and when the pool is closed.
    job_queued: Condvar,
    /// Notified when a thread ends.
    ended: Condvar,
}

#[derive(Default)]
struct PoolState {
    jobs: VecDeque<BoxedJob>,
    /// The number of threads that wait for a job.
    idle: usize,
    threads: HashMap<ThreadId, JoinHandle<()>>,
    /// The number of threads that have not left their loop.
    running: usize,
    /// The thread that ended last of idleness. The next one joins it, so that `close` joins every thread.
    ended_last: Option<JoinHandle<()>>,
    is_closed: bool,
}

impl BlockingPool {
    pub(crate) fn new(thread_name: &'static str, max_threads: usize) -> BlockingPool {
        BlockingPool(Arc::new(PoolShared {
            thread_name,
            max_threads,
            state: Mutex::default(),
            job_queued: Condvar::new(),
            ended: Condvar::new(),
        }))
    }

    /// Runs `work` on a thread of the pool and returns its result. `work` runs to completion even if the caller drops
    /// the future.
    ///
    /// # Errors
    /// Those of [`start`](BlockingPool::start) and of [`Job::join`].
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        self.start(work)?.join().await
    }

    /// Starts `work` on a thread of the pool. It runs to completion even if the caller drops the job.
    ///
    /// # Errors
    /// Those of [`submit`](BlockingPool::submit).
    pub(crate) fn start<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<Job<T>> {
        let (sender, receiver) = oneshot::channel();
        self.submit(move || {
            // Unwind safe: the panic drops everything that `work` owns.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        })?;
        Ok(Job(receiver))
    }

    /// Whether the pool refuses every job.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.state.lock().is_closed
    }

    /// Queues a job.
    ///
    /// # Errors
    /// `Closed` after [`close`](BlockingPool::close); `Unavailable` if the pool has no thread and cannot start one.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<()> {
        let mut state = self.0.state.lock();
        if state.is_closed {
            return Err(Error::closed());
        }
        state.jobs.push_back(Box::new(job));
        if state.jobs.len() <= state.idle {
            self.0.job_queued.notify_one();
        } else if state.running < self.0.max_threads {
            let shared = Arc::clone(&self.0);
            match spawn(self.0.thread_name, move || shared.run_thread()) {
                Ok(thread) => {
                    state.running += 1;
                    state.threads.insert(thread.thread().id(), thread);
                }
                Err(error) if state.running == 0 => {
                    let job = state.jobs.pop_back();
                    drop(state);
                    drop(job);
                    return Err(error);
                }
                // The next thread that has finished its job runs this one.
                Err(error) => tracing::debug!(%error, "a job waits for a thread"),
            }
        }
        Ok(())
    }

    /// Whether jobs wait for a thread.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.0.state.lock();
        state.jobs.len() > state.idle
    }

    /// Drops the queued jobs and waits for the running ones: at most `timeout` for each thread to end. Threads that run
    /// longer end after their job.
    pub(crate) fn close(&self, timeout: Duration) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        self.0.job_queued.notify_all();
        drop(state);
        drop(jobs);
        let mut state = self.0.state.lock();
        // A thread of the pool does not wait for itself.
        let own = thread::current().id();
        let kept = usize::from(state.threads.remove(&own).is_some());
        while state.running > kept && !self.0.ended.wait_for(&mut state, timeout).timed_out() {}
        let has_ended = state.running <= kept;
        let (threads, ended_last) = (std::mem::take(&mut state.threads), state.ended_last.take());
        drop(state);
        if has_ended {
            threads.into_values().chain(ended_last).for_each(join);
        }
    }
}

impl<T> Job<T> {
    /// Waits for the result. May be called again if the caller drops the future.
    ///
    /// # Errors
    /// `Closed` if the pool is closed before the work begins; `Internal` if the work panicked.
    pub(crate) async fn join(&mut self) -> Result<T> {
        (&mut self.0).await.map_err(|_| Error::closed())?.map_err(|_| panicked())
    }
}

impl fmt::Debug for BlockingPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BlockingPool").field(&self.0.thread_name).finish()
    }
}

impl PoolShared {
    /// The body of a thread.
    fn run_thread(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                if catch_unwind(AssertUnwindSafe(job)).is_err() {
                    tracing::error!("a job on a thread of the library panicked");
                }
                state = self.state.lock();
                continue;
            }
            if state.is_closed {
                break;
            }
            state.idle += 1;
            let has_timed_out = self.job_queued.wait_for(&mut state, KEEP_ALIVE).timed_out();
            state.idle -= 1;
            if has_timed_out && state.jobs.is_empty() {
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
        self.ended.notify_all();
        before.into_iter().for_each(join);
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the library panicked");
    }
}

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
        (0..3).for_each(|_| release.send(()).expect("a job waits"));
        assert_eq!(starts.recv(), Ok(2));
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
            while !of_pool.0.state.lock().is_closed {
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

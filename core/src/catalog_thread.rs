//! The catalog thread: a dedicated thread for allocation-heavy catalog jobs, so that freed memory is reused.
//!
//! Invariant: jobs run one at a time, in the order of submission, on one thread that lives until `close`. Allocators
//! keep freed memory per thread; on a thread pool every thread would retain as much as the largest job needs. When
//! `close` returns, the thread has ended.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread::JoinHandle,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    error::{Error, ErrorKind, Result},
    threads,
};

type Job = Box<dyn FnOnce() + Send>;

/// The first job starts the thread; dropping this value ends it without waiting.
#[derive(Default)]
pub(crate) struct CatalogThread(Mutex<State>);

#[derive(Default)]
enum State {
    #[default]
    Unused,
    Running(mpsc::Sender<Job>, JoinHandle<()>),
    Closed,
}

impl CatalogThread {
    /// Runs `work` on the thread and returns its result. The job runs to completion even if the caller drops the
    /// future.
    ///
    /// # Errors
    /// `Closed` after [`close`](CatalogThread::close); `Internal` if `work` panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (sender, receiver) = oneshot::channel();
        let job = move || {
            // Unwind safe: the panic drops everything that `work` owns. Sending fails if the caller dropped the future.
            let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
        };
        self.submit(Box::new(job))?;
        let result = receiver.await.map_err(|_| Error::closed())?;
        result.map_err(|_| Error::new(ErrorKind::Internal, "A catalog job panicked"))
    }

    fn submit(&self, job: Job) -> Result<()> {
        let mut state = self.0.lock();
        if let State::Unused = *state {
            let (sender, jobs) = mpsc::channel::<Job>();
            let run_jobs = move || jobs.into_iter().for_each(|job| job());
            let thread = threads::spawn("townsquare-catalog", run_jobs)?;
            *state = State::Running(sender, thread);
        }
        match &*state {
            State::Running(jobs, _) => jobs.send(job).map_err(|_| Error::closed()),
            State::Unused | State::Closed => Err(Error::closed()),
        }
    }

    /// Waits for the queued jobs and ends the thread. Must not be called from a job.
    pub(crate) fn close(&self) {
        let state = std::mem::replace(&mut *self.0.lock(), State::Closed);
        if let State::Running(jobs, thread) = state {
            drop(jobs);
            if thread.join().is_err() {
                tracing::error!("the catalog thread panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn jobs_run_on_one_thread_that_survives_a_panic() {
        let thread = CatalogThread::default();
        let first = thread.run(|| thread::current().id()).await.expect("it runs");
        let error = thread.run(|| panic!("on purpose")).await.expect_err("a panic is an error");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(thread.run(|| thread::current().id()).await.expect("it runs"), first);
        thread.close();
        assert_eq!(thread.run(|| ()).await.expect_err("closed").kind(), ErrorKind::Closed);
    }
}

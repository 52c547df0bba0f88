//! The catalog's thread: for long work that makes and drops much.
//!
//! Invariant: pieces of work run one at a time, in the order they came, on one thread that lives until `close`: memory
//! that one leaves free there, the next one takes. (Allocators keep memory by thread. Pieces that run now on this, now
//! on that thread of a pool leave as much behind on each.) After `close` returns the thread is gone.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread::{Builder, JoinHandle},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::error::{Error, ErrorKind, Result};

type Job = Box<dyn FnOnce() + Send>;

/// The thread starts with the first work; dropping it ends it without waiting.
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
    /// Runs `work` on the thread and returns what it returned.
    ///
    /// # Errors
    /// `Closed` after [`close`](CatalogThread::close); `Internal` when the work panicked.
    pub(crate) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let job = move || {
            // Whoever waited may have gone away. Unwind safe: what the work held is gone with it.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
        };
        self.submit(Box::new(job))?;
        let result = answered.await.map_err(|_| Error::closed())?;
        result.map_err(|_| Error::new(ErrorKind::Internal, "Work on the catalog panicked"))
    }

    fn submit(&self, job: Job) -> Result<()> {
        let mut state = self.0.lock();
        if let State::Unused = *state {
            let (sender, jobs) = mpsc::channel::<Job>();
            let work = move || jobs.into_iter().for_each(|job| job());
            let thread = Builder::new()
                .name("townsquare-catalog".into())
                .spawn(work)
                .map_err(|error| Error::unavailable(format!("Cannot start a thread: {error}")).caused_by(error))?;
            *state = State::Running(sender, thread);
        }
        match &*state {
            State::Running(jobs, _) => jobs.send(job).map_err(|_| Error::closed()),
            State::Unused | State::Closed => Err(Error::closed()),
        }
    }

    /// Waits for the work under way and ends the thread. Not to be called from it.
    pub(crate) fn close(&self) {
        let state = std::mem::replace(&mut *self.0.lock(), State::Closed);
        if let State::Running(jobs, thread) = state {
            drop(jobs);
            if thread.join().is_err() {
                tracing::error!("the catalog's thread panicked");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn work_runs_on_one_thread_and_survives_a_panic() {
        let thread = CatalogThread::default();
        let first = thread.run(|| thread::current().id()).await.expect("it runs");
        let error = thread.run(|| panic!("on purpose")).await.expect_err("a panic is an error");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(thread.run(|| thread::current().id()).await.expect("it runs"), first);
        thread.close();
        assert_eq!(thread.run(|| ()).await.expect_err("closed").kind(), ErrorKind::Closed);
    }
}

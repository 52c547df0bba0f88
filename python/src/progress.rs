//! The progress callback of a transfer: `callback(done, total)`.
//!
//! Invariant: an exception in the callback ends the transfer at once, before its file changes, and the caller gets that
//! exception.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    task::Poll,
};

use pyo3::PyErr;

use crate::{callback::Callback, errors::Failure};

/// The exception of a callback, as the payload of a panic.
struct Stopped(PyErr);

/// A progress callback, or none.
#[derive(Default)]
pub(crate) struct Progress(Option<Callback>);

impl From<Callback> for Progress {
    fn from(callback: Callback) -> Progress {
        Progress(Some(callback))
    }
}

impl Progress {
    /// Reports progress to the callback.
    pub(crate) fn report(&self, done: u64, total: u64) {
        if let Some(Err(raised)) = self.0.as_ref().map(|callback| callback.try_call((done, total))) {
            resume_unwind(Box::new(Stopped(raised)));
        }
    }

    /// Runs a transfer. `start` makes its future, which calls [`report`](Progress::report).
    ///
    /// The core's progress functions return nothing. So `report` unwinds the stack to stop the transfer, which drops
    /// the transfer's values as a cancellation does. No panic hook runs.
    pub(crate) async fn run<T, F>(self, start: impl FnOnce(Progress) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut transfer = pin!(start(self));
        poll_fn(|context| {
            let poll = catch_unwind(AssertUnwindSafe(|| transfer.as_mut().poll(context)));
            poll.unwrap_or_else(|payload| Poll::Ready(Err(stopped(payload))))
        })
        .await
    }
}

fn stopped(payload: Box<dyn Any + Send>) -> Failure {
    match payload.downcast::<Stopped>() {
        Ok(stopped) => Failure::Raised(stopped.0),
        Err(payload) => resume_unwind(payload),
    }
}

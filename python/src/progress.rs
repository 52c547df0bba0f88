//! The progress callback of a transfer: `callback(done, total)`.
//!
//! Invariant: an exception in the callback ends the transfer at once, before its file changes, and the caller gets that
//! exception.

use std::{
    future::Future,
    ops::ControlFlow,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::PyErr;

use crate::{callback::Callback, errors::Failure};

/// A progress callback, or none.
#[derive(Default)]
pub(crate) struct Progress {
    callback: Option<Callback>,
    /// The exception that ended the transfer.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl From<Callback> for Progress {
    fn from(callback: Callback) -> Progress {
        Progress { callback: Some(callback), raised: Arc::default() }
    }
}

impl Progress {
    /// Reports progress to the callback. An exception cancels the transfer.
    pub(crate) fn report(&self, done: u64, total: u64) -> ControlFlow<()> {
        match self.callback.as_ref().map(|callback| callback.try_call((done, total))) {
            Some(Err(raised)) => {
                *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
                ControlFlow::Break(())
            }
            Some(Ok(_)) | None => ControlFlow::Continue(()),
        }
    }

    /// Runs a transfer. `start` makes its future, which calls [`report`](Progress::report).
    pub(crate) async fn run<T, F>(self, start: impl FnOnce(Progress) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let raised = Arc::clone(&self.raised);
        let result = start(self).await;
        let raised = raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(result, |raised| Err(Failure::Raised(raised)))
    }
}

//! A core client as Python objects share it: a Python client, its areas and its coroutines hold one [`ProcessClient`].
//!
//! Invariants: after a `fork` the child process can neither use the client nor run its destructor, which would wait for
//! threads that only the parent has; and a Python object that drops the last share releases the GIL first, because
//! ending a client may wait for running work.

use std::{mem::ManuallyDrop, ops::Deref, sync::Arc};

use pyo3::prelude::*;
use townsquare::{Client, ErrorKind};

use crate::{errors::Failure, loop_waker::LoopWaker, process};

/// A client and the process that opened it.
pub(crate) struct ProcessClient {
    client: Client,
    waker: Arc<LoopWaker>,
    fork_count: u64,
}

impl ProcessClient {
    pub(crate) fn new(client: Client, waker: Arc<LoopWaker>) -> ProcessClient {
        ProcessClient { client, waker, fork_count: process::fork_count() }
    }

    /// The core client.
    ///
    /// # Errors
    /// `Closed` in a child process: the client belongs to its parent.
    pub(crate) fn get(&self) -> Result<&Client, Failure> {
        if self.fork_count == process::fork_count() { Ok(&self.client) } else { Err(opened_before_fork()) }
    }

    /// Refuses more rows than one call may write.
    ///
    /// # Errors
    /// `TooLarge`; `Closed` in a child process.
    pub(crate) fn check_rows(&self, name: &str, count: usize) -> Result<(), Failure> {
        Ok(self.get()?.check_rows(name, count)?)
    }

    /// Wakes the event loops that wait for this client.
    pub(crate) fn waker(&self) -> &Arc<LoopWaker> {
        &self.waker
    }
}

impl Drop for ProcessClient {
    fn drop(&mut self) {
        if self.fork_count != process::fork_count() {
            // A clone that is never dropped keeps the core client's destructor from running.
            let _leaked = ManuallyDrop::new(self.client.clone());
        }
    }
}

/// The failure of a call in a child process.
pub(crate) fn opened_before_fork() -> Failure {
    Failure::new(
        ErrorKind::Closed,
        "The client was opened before a fork and belongs to the parent process: start workers before opening, or spawn them",
    )
}

/// A Python object's share of a client.
#[derive(Clone)]
pub(crate) struct ClientShare(Option<Arc<ProcessClient>>);

impl ClientShare {
    pub(crate) fn new(client: ProcessClient) -> ClientShare {
        ClientShare(Some(Arc::new(client)))
    }

    /// A share for a future. A future may be dropped on any thread, where there may be no GIL to release.
    pub(crate) fn for_future(&self) -> Arc<ProcessClient> {
        Arc::clone(self)
    }
}

impl Deref for ClientShare {
    type Target = Arc<ProcessClient>;
    fn deref(&self) -> &Arc<ProcessClient> {
        self.0.as_ref().expect("only drop takes the client out")
    }
}

impl Drop for ClientShare {
    fn drop(&mut self) {
        if let Some(last) = self.0.take().and_then(Arc::into_inner) {
            Python::try_attach(|py| py.detach(move || drop(last)));
        }
    }
}

//! A core client as Python objects share it: a client, its areas and its coroutines hold one [`Handle`].
//!
//! Invariants: after a `fork` the child is refused, and never runs the client's destructor, which would wait for
//! threads that do not exist there; and a Python object that drops the last share does so detached, because ending a
//! client may wait for work that is under way.

use std::{mem::ManuallyDrop, ops::Deref, sync::Arc};

use pyo3::prelude::*;
use townsquare::ErrorKind;

use crate::{courier::Courier, errors::Failure, process};

/// A client and the process it belongs to.
pub(crate) struct Handle {
    client: townsquare::Client,
    courier: Arc<Courier>,
    born: u64,
}

impl Handle {
    pub(crate) fn new(client: townsquare::Client, courier: Arc<Courier>) -> Handle {
        Handle { client, courier, born: process::generation() }
    }

    /// The client, in the process that opened it.
    pub(crate) fn client(&self) -> Result<&townsquare::Client, Failure> {
        if self.born == process::generation() { Ok(&self.client) } else { Err(forked()) }
    }

    /// The way to the event loops that wait for this client.
    pub(crate) fn courier(&self) -> &Arc<Courier> {
        &self.courier
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.born != process::generation() {
            // One share that is never given back: the destructor does not run in this process.
            let _kept = ManuallyDrop::new(self.client.clone());
        }
    }
}

/// The refusal in a child process.
pub(crate) fn forked() -> Failure {
    Failure::own(
        ErrorKind::Closed,
        "The client was opened before a fork and belongs to the parent process; open one in this process",
    )
}

/// A Python object's share of a handle.
#[derive(Clone)]
pub(crate) struct Share(Option<Arc<Handle>>);

impl Share {
    pub(crate) fn new(handle: Handle) -> Share {
        Share(Some(Arc::new(handle)))
    }

    /// A share for a future: that one may end on any thread, and is dropped where it ends.
    pub(crate) fn lend(&self) -> Arc<Handle> {
        Arc::clone(self)
    }
}

impl Deref for Share {
    type Target = Arc<Handle>;
    fn deref(&self) -> &Arc<Handle> {
        self.0.as_ref().expect("taken by drop alone")
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if let Some(last) = self.0.take().and_then(Arc::into_inner) {
            Python::try_attach(|py| py.detach(move || drop(last)));
        }
    }
}

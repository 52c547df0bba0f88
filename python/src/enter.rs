//! The two doors from Python into the core, and the only ones.
//!
//! Invariant: an operation is a future of the core, named once; [`Door::enter`] blocks on it for `Client` and makes a
//! coroutine of it for `AsyncClient`. A future that is ready at once (an answer in memory, one row by its key) is polled
//! where the caller stands, the GIL held: beside a busy thread, getting it back may take a thousand times as long as the
//! answer. Any other is waited for detached, with Ctrl-C working; a list from the database is detached from the start.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use pyo3::{IntoPyObjectExt, prelude::*};
use townsquare::Operation;

use crate::{
    coroutine::{Coroutine, Place, Work, answer},
    courier::Courier,
    errors::Failure,
    handle::{Handle, Share},
    process,
};

/// Which method was called: for the error's prefix and the coroutine's name.
#[derive(Clone, Copy)]
pub(crate) enum Call {
    /// One that the core has a name for.
    Operation(Operation),
    /// One that can fail in no way of its own.
    Plain(&'static str),
}

impl Call {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Call::Operation(operation) => operation.name(),
            Call::Plain(name) => name,
        }
    }

    pub(crate) fn operation(self) -> Option<Operation> {
        match self {
            Call::Operation(operation) => Some(operation),
            Call::Plain(_) => None,
        }
    }
}

impl From<Operation> for Call {
    fn from(operation: Operation) -> Call {
        Call::Operation(operation)
    }
}

impl From<&'static str> for Call {
    fn from(name: &'static str) -> Call {
        Call::Plain(name)
    }
}

/// How a Python class wants its answers.
#[derive(Clone, Copy)]
pub(crate) enum Face {
    /// `Client`: now.
    Blocking,
    /// `AsyncClient`: to be awaited.
    Awaiting,
}

/// A client with the face that it shows to Python.
#[derive(Clone)]
pub(crate) struct Door {
    share: Share,
    face: Face,
}

impl Door {
    pub(crate) fn new(handle: Handle, face: Face) -> Door {
        Door { share: Share::new(handle), face }
    }

    pub(crate) fn share(&self) -> &Share {
        &self.share
    }

    pub(crate) fn face(&self) -> Face {
        self.face
    }

    /// Runs an operation: its result, or a coroutine of it.
    pub(crate) fn enter<'py, T, F>(
        &self,
        py: Python<'py>,
        call: impl Into<Call>,
        operation: impl FnOnce(Arc<Handle>) -> F,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        let (call, handle) = (call.into(), self.share.lend());
        match self.face {
            Face::Blocking => run_sync(py, call, operation(handle)),
            Face::Awaiting => run_async(py, call, Place::Here(self.share.clone()), operation(handle)),
        }
    }

    /// The same for what may take a while before it is ready: other threads and event loops run from the start.
    pub(crate) fn enter_detached<'py, T, F>(
        &self,
        py: Python<'py>,
        call: impl Into<Call>,
        operation: impl FnOnce(Arc<Handle>) -> F,
    ) -> PyResult<Bound<'py, PyAny>>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        let (call, handle) = (call.into(), self.share.lend());
        match self.face {
            Face::Blocking => finish(py, call, process::wait(py, operation(handle))?),
            Face::Awaiting => run_async(py, call, Place::Runtime(self.share.clone()), operation(handle)),
        }
    }
}

/// The same for what opens or closes a client: never on the client's own runtime, never with the GIL held.
pub(crate) fn enter_apart<'py, T, F>(
    py: Python<'py>,
    face: Face,
    call: impl Into<Call>,
    courier: &Arc<Courier>,
    future: F,
) -> PyResult<Bound<'py, PyAny>>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    T: for<'p> IntoPyObject<'p> + Send + 'static,
{
    let call = call.into();
    match face {
        Face::Blocking => finish(py, call, process::wait(py, future)?),
        Face::Awaiting => run_async(py, call, Place::Thread(Arc::clone(courier)), future),
    }
}

fn run_sync<T, F>(py: Python<'_>, call: Call, future: F) -> PyResult<Bound<'_, PyAny>>
where
    F: Future<Output = Result<T, Failure>> + Send,
    T: for<'p> IntoPyObject<'p> + Send,
{
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => finish(py, call, outcome),
        Poll::Pending => finish(py, call, process::wait(py, future)?),
    }
}

fn finish<T>(py: Python<'_>, call: Call, outcome: Result<T, Failure>) -> PyResult<Bound<'_, PyAny>>
where
    T: for<'p> IntoPyObject<'p>,
{
    match outcome {
        Ok(value) => value.into_bound_py_any(py),
        Err(failure) => Err(failure.into_exception(py, call.operation())),
    }
}

fn run_async<T, F>(py: Python<'_>, call: Call, place: Place, future: F) -> PyResult<Bound<'_, PyAny>>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    T: for<'p> IntoPyObject<'p> + Send + 'static,
{
    let work: Work = Box::pin(async move { future.await.map(answer) });
    Coroutine::new(call, place, work).into_bound_py_any(py)
}

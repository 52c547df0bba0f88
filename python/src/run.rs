//! Runs a future of the core for Python: [`run_sync`] returns its result to `Client`, [`run_async`] returns a coroutine
//! to `AsyncClient`.
//!
//! Invariant: only this module, `process::block_on` and `background::Work` poll futures of the core.
//!
//! [`Runner::run`] first polls on the calling thread with the GIL held. A read from memory or of one row is often ready
//! at the first poll. Releasing the GIL and acquiring it again can take a thousand times as long when another thread is
//! busy. [`Runner::run_detached`] releases the GIL before the first poll; it is for lists, password hashing and
//! backups. [`Runner::run_without_gil`] also releases the GIL and polls first on the calling thread; every call of the change
//! feed uses it. [`Runner::run_write`] releases the GIL for a `Client`: the calling thread then commits the write itself.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use pyo3::{IntoPyObjectExt, prelude::*};

use crate::{
    background::{Executor, Work},
    callback::Callback,
    client_share::{ClientShare, ProcessClient},
    coroutine::Coroutine,
    errors::Failure,
    loop_waker::LoopWaker,
    method::Method,
    process,
    progress::Progress,
};

/// What a method returns to Python: its result, or a coroutine of it.
pub(crate) type MethodResult<'py> = PyResult<Bound<'py, PyAny>>;

/// Whether a class returns results or coroutines.
#[derive(Clone, Copy)]
pub(crate) enum Mode {
    /// `Client`: the calling thread waits.
    Sync,
    /// `AsyncClient`: the method returns a coroutine.
    Async,
}

/// Runs the operations of one client in one mode.
#[derive(Clone)]
pub(crate) struct Runner {
    client: ClientShare,
    mode: Mode,
}

impl Runner {
    pub(crate) fn new(client: ProcessClient, mode: Mode) -> Runner {
        Runner { client: ClientShare::new(client), mode }
    }

    /// The same client in another mode.
    pub(crate) fn in_mode(&self, mode: Mode) -> Runner {
        Runner { client: self.client.clone(), mode }
    }

    pub(crate) fn client(&self) -> &ClientShare {
        &self.client
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    /// Runs an operation that is often ready at the first poll.
    pub(crate) fn run<'py, T, F>(
        &self,
        py: Python<'py>,
        method: impl Into<Method>,
        operation: impl FnOnce(Arc<ProcessClient>) -> F,
    ) -> MethodResult<'py>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        let (method, future) = (method.into(), operation(self.client.for_future()));
        match self.mode {
            Mode::Sync => run_sync(py, method, future),
            Mode::Async => run_async(py, method, Executor::CallerThenRuntime(self.client.clone()), future),
        }
    }

    /// Runs an operation that is often ready at the first poll. The GIL is released before the first poll, because the poll may
    /// wait for another thread, read the database or parse long JSON.
    pub(crate) fn run_without_gil<'py, T, F>(
        &self,
        py: Python<'py>,
        method: impl Into<Method>,
        operation: impl FnOnce(Arc<ProcessClient>) -> F,
    ) -> MethodResult<'py>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        self.run_released(py, method, Executor::CallerWithoutGil(self.client.clone()), operation)
    }

    /// Runs an operation that writes. The calling thread of a `Client` commits the write itself, without the GIL.
    pub(crate) fn run_write<'py, T, F>(
        &self,
        py: Python<'py>,
        method: impl Into<Method>,
        operation: impl FnOnce(Arc<ProcessClient>) -> F,
    ) -> MethodResult<'py>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        match self.mode {
            Mode::Sync => self.run_detached(py, method, operation),
            // The first poll submits the write and does not wait for the disk.
            Mode::Async => self.run(py, method, operation),
        }
    }

    /// Runs an operation that may take long. The GIL is released before the first poll, so other threads and event
    /// loops continue.
    pub(crate) fn run_detached<'py, T, F>(
        &self,
        py: Python<'py>,
        method: impl Into<Method>,
        operation: impl FnOnce(Arc<ProcessClient>) -> F,
    ) -> MethodResult<'py>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        self.run_released(py, method, Executor::Runtime(self.client.clone()), operation)
    }

    /// Runs an operation without the GIL: on the calling thread in `Sync` mode, else as `executor` does.
    fn run_released<'py, T, F>(
        &self,
        py: Python<'py>,
        method: impl Into<Method>,
        executor: Executor,
        operation: impl FnOnce(Arc<ProcessClient>) -> F,
    ) -> MethodResult<'py>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        let (method, future) = (method.into(), operation(self.client.for_future()));
        match self.mode {
            Mode::Sync => into_result(py, method, process::block_on(py, future)?),
            Mode::Async => run_async(py, method, executor, future),
        }
    }

    /// Runs a transfer with its progress callback, which may wait for the GIL: a new thread runs it in `Async` mode.
    pub(crate) fn run_transfer<'py, T, F>(
        &self,
        py: Python<'py>,
        method: impl Into<Method>,
        callback: Option<Callback>,
        transfer: impl FnOnce(Arc<ProcessClient>, Progress) -> F + Send + 'static,
    ) -> MethodResult<'py>
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'p> IntoPyObject<'p> + Send + 'static,
    {
        // In a child process nothing wakes an event loop; `run_detached` refuses the call.
        let Some(callback) = callback.filter(|_| self.client.get().is_ok()) else {
            return self.run_detached(py, method, |client| transfer(client, Progress::default()));
        };
        let client = self.client.for_future();
        let transfer = Progress::from(callback).run(move |progress| transfer(client, progress));
        run_on_own_thread(py, self.mode, method, self.client.waker(), transfer)
    }
}

/// Runs work that the client's runtime cannot run: work that opens or closes the client, because the runtime does not
/// exist yet or is about to end, and work that calls Python. In `Async` mode a new thread runs the work; in `Sync` mode
/// the calling thread runs it without the GIL.
pub(crate) fn run_on_own_thread<'py, T, F>(
    py: Python<'py>,
    mode: Mode,
    method: impl Into<Method>,
    waker: &Arc<LoopWaker>,
    future: F,
) -> MethodResult<'py>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    T: for<'p> IntoPyObject<'p> + Send + 'static,
{
    let method = method.into();
    match mode {
        Mode::Sync => into_result(py, method, process::block_on(py, future)?),
        Mode::Async => run_async(py, method, Executor::OwnThread(Arc::clone(waker)), future),
    }
}

fn run_sync<T, F>(py: Python<'_>, method: Method, future: F) -> MethodResult<'_>
where
    F: Future<Output = Result<T, Failure>> + Send,
    T: for<'p> IntoPyObject<'p> + Send,
{
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => into_result(py, method, outcome),
        Poll::Pending => into_result(py, method, process::block_on(py, future)?),
    }
}

fn run_async<T, F>(py: Python<'_>, method: Method, executor: Executor, future: F) -> MethodResult<'_>
where
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    T: for<'p> IntoPyObject<'p> + Send + 'static,
{
    Coroutine::new(method, executor, Work::new(future)).into_bound_py_any(py)
}

pub(crate) fn into_result<T>(py: Python<'_>, method: Method, outcome: Result<T, Failure>) -> MethodResult<'_>
where
    T: for<'p> IntoPyObject<'p>,
{
    match outcome {
        Ok(value) => value.into_bound_py_any(py),
        Err(failure) => Err(failure.into_exception(py, method.operation())),
    }
}

/// The return value of a method that returns `None`.
pub(crate) struct NoValue;

impl<'py> IntoPyObject<'py> for NoValue {
    type Target = pyo3::types::PyNone;
    type Output = Borrowed<'py, 'py, pyo3::types::PyNone>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(pyo3::types::PyNone::get(py))
    }
}

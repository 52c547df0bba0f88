//! Python functions as callbacks of the core, and `Subscription`, which ends them.
//!
//! Invariant: a callback runs on a library thread that is attached to the interpreter like a Python thread, so it may
//! call the library. An exception in it goes to the logger `townsquare`, but one in a progress callback ends the transfer.
//! No callback starts once the interpreter finalizes. None starts in a forked child process unless a
//! callback forked it.

use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyTuple},
};

use crate::{
    client_share::opened_before_fork,
    errors::{expected, type_error},
    process,
};

/// A Python function that the library calls.
pub(crate) struct Callback(Py<PyAny>);

impl Callback {
    /// Calls the function and logs its exception. `source` is the method that registered it.
    pub(crate) fn call<A>(&self, source: &str, arguments: A)
    where
        A: for<'py> IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        process::attach(|py| {
            if let Err(error) = self.call_attached(py, arguments) {
                log(py, source, error);
            }
        });
    }

    /// Calls the function and returns its exception. Does nothing once the interpreter finalizes.
    pub(crate) fn try_call<A>(&self, arguments: A) -> PyResult<()>
    where
        A: for<'py> IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        process::attach(|py| self.call_attached(py, arguments)).unwrap_or(Ok(()))
    }

    fn call_attached<'py, A>(&self, py: Python<'py>, arguments: A) -> PyResult<()>
    where
        A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        // `arguments` lives here, outside `call_python`, so that the call never drops their last reference.
        let arguments = arguments.into_pyobject(py)?;
        process::call_python(|| self.0.bind(py).call1(&arguments).map(drop)).unwrap_or(Ok(()))
    }
}

/// Logs an exception of a callback with its traceback. If that fails too, Python's `unraisablehook` gets the failure.
fn log(py: Python<'_>, source: &str, error: PyErr) {
    let log = || {
        let details = PyDict::new(py);
        details.set_item("exc_info", error.into_value(py))?;
        let logger = py.import("logging")?.call_method1("getLogger", ("townsquare",))?;
        logger.call_method("error", ("A callback of %s raised", source), Some(&details)).map(drop)
    };
    if let Err(unlogged) = log() {
        unlogged.write_unraisable(py, None);
    }
}

impl<'py> FromPyObject<'_, 'py> for Callback {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Callback> {
        static IS_COROUTINE_FUNCTION: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if !value.is_callable() {
            return Err(expected("a function", &value));
        }
        let is_coroutine_function = IS_COROUTINE_FUNCTION.import(value.py(), "inspect", "iscoroutinefunction")?;
        if is_coroutine_function.call1((value,))?.is_truthy()? {
            let message = "expected a plain function, not a coroutine function: it is called outside any event loop";
            return Err(type_error(value.py(), message.to_owned()));
        }
        Ok(Callback(value.to_owned().unbind()))
    }
}

#[doc = text_of!(Subscription)]
#[pyclass(frozen, module = "townsquare")]
pub(crate) struct Subscription {
    subscription: townsquare::Subscription,
    fork_count: u64,
}

impl From<townsquare::Subscription> for Subscription {
    fn from(subscription: townsquare::Subscription) -> Subscription {
        Subscription { subscription, fork_count: process::fork_count() }
    }
}

#[pymethods]
impl Subscription {
    #[doc = text_of!(Subscription.unsubscribe)]
    fn unsubscribe(&self, py: Python<'_>) -> PyResult<()> {
        if self.fork_count != process::fork_count() {
            return Err(opened_before_fork().into_exception(py, None));
        }
        let subscription = self.subscription.clone();
        process::block_on_thread(py, move || subscription.unsubscribe())
    }

    fn __repr__(&self) -> &'static str {
        "<townsquare.Subscription>"
    }
}

//! Python's functions as callbacks of the core, and what ends them.
//!
//! Invariant: a callback runs on a thread of the library's that drives nothing else, attached to the interpreter like a
//! thread of Python's own, so it may call the library. What it raises goes to the log and to nobody else. None starts
//! once the interpreter has begun to end, and none in a forked child, which has no such thread.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyDict, PyTuple},
};

use crate::{argument::expected, handle::forked, process};

/// A function that the library calls.
pub(crate) struct Callback(Py<PyAny>);

impl Callback {
    /// Calls it, for events of `source`.
    pub(crate) fn call<A>(&self, source: &str, arguments: A)
    where
        A: for<'py> IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    {
        process::visit(|py| {
            // Held here, so that what is dropped during the call is never the last of it.
            let called = arguments
                .into_pyobject(py)
                .and_then(|arguments| process::stay(|| self.0.bind(py).call1(&arguments).map(drop)));
            if let Err(error) = called {
                report(py, source, error);
            }
        });
    }
}

/// Tells the log, with the traceback; where that fails too, whatever Python has for what nobody can be told.
fn report(py: Python<'_>, source: &str, error: PyErr) {
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
            let refusal = "expected a plain function, not a coroutine function: it is called outside any event loop";
            return Err(PyTypeError::new_err(refusal));
        }
        Ok(Callback(value.to_owned().unbind()))
    }
}

/// A subscription to events. It lasts until `unsubscribe`, whatever becomes of this object.
#[pyclass(frozen, module = "townsquare")]
pub(crate) struct Subscription {
    subscription: townsquare::Subscription,
    born: u64,
}

impl From<townsquare::Subscription> for Subscription {
    fn from(subscription: townsquare::Subscription) -> Subscription {
        Subscription { subscription, born: process::generation() }
    }
}

#[pymethods]
impl Subscription {
    /// Ends it: after this the callback is not running and never runs again.
    fn unsubscribe(&self, py: Python<'_>) -> PyResult<()> {
        if self.born != process::generation() {
            return Err(forked().into_exception(py, None));
        }
        let subscription = self.subscription.clone();
        process::wait_for(py, move || subscription.unsubscribe())
    }

    fn __repr__(&self) -> &'static str {
        "<townsquare.Subscription>"
    }
}

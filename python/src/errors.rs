//! Failures on their way to Python: the core's, and the few that only the binding can notice.
//!
//! Invariant: both become an exception of `townsquare.exceptions`, with the same attributes, and the operation that was
//! called is named in each.

use std::borrow::Cow;

use pyo3::{prelude::*, sync::PyOnceLock, types::PyDict};
use townsquare::{ErrorKind, Operation};

/// Why a call from Python failed.
pub(crate) enum Failure {
    /// The core said no.
    Core(townsquare::Error),
    /// The binding did: a fork, an integer no core type holds.
    Own {
        /// What a program branches on.
        kind: ErrorKind,
        /// For people, without the operation's prefix.
        message: Cow<'static, str>,
    },
}

impl Failure {
    pub(crate) fn own(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure::Own { kind, message: message.into() }
    }

    /// What an operation answers whose client went away under it.
    pub(crate) fn closed() -> Failure {
        Failure::own(ErrorKind::Closed, "The client is closed")
    }

    /// The exception. `operation` is named unless the core has named a deeper one.
    pub(crate) fn into_exception(self, py: Python<'_>, operation: Option<Operation>) -> PyErr {
        exception(py, &self, operation).unwrap_or_else(|broken| broken)
    }
}

impl From<townsquare::Error> for Failure {
    fn from(error: townsquare::Error) -> Failure {
        Failure::Core(error)
    }
}

fn exception(py: Python<'_>, failure: &Failure, called: Option<Operation>) -> PyResult<PyErr> {
    let details = PyDict::new(py);
    let (kind, message, named) = match failure {
        Failure::Own { kind, message } => (*kind, message.as_ref(), None),
        Failure::Core(error) => {
            details.set_item("code", error.code())?;
            details.set_item("status", error.status())?;
            details.set_item("is_retryable", error.is_retryable())?;
            details.set_item("retry_after", error.retry_after().map(|wait| wait.as_secs_f64()))?;
            (error.kind(), error.message(), error.operation())
        }
    };
    let operation = named.or(called);
    let prefix = operation.map_or("", Operation::prefix);
    details.set_item("kind", kind.as_str())?;
    details.set_item("message", message)?;
    details.set_item("operation", operation.map(Operation::name))?;
    let class = classes(py)?.as_any().get_item(kind.as_str())?;
    Ok(PyErr::from_value(class.call((format!("{prefix}{message}"),), Some(&details))?))
}

/// `townsquare.exceptions.BY_KIND`.
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let load =
        || Ok::<_, PyErr>(py.import("townsquare.exceptions")?.getattr("BY_KIND")?.cast_into::<PyDict>()?.unbind());
    Ok(CLASSES.get_or_try_init(py, load)?.bind(py))
}

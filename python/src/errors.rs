//! Failures of the core and of the binding, turned into exceptions of `townsquare.exceptions`.
//!
//! Invariant: a failure of the core and one of the binding become an exception with the same attributes, which names
//! the operation. A `TypeError` for an argument names the argument in its text.

use std::borrow::Cow;

use pyo3::{exceptions::PyTypeError, prelude::*, sync::PyOnceLock, types::PyDict};
use townsquare::{Error, ErrorKind, Operation};

/// How many characters of a refused value an error message shows.
const SHOWN_CHARS: usize = 60;

/// Why a call from Python failed.
pub(crate) enum Failure {
    /// The core failed.
    Core(Error),
    /// The binding refused the call: after a fork, or for an argument that no type of the core holds.
    Binding {
        /// The error's kind.
        kind: ErrorKind,
        /// The message, without the operation's prefix.
        message: Cow<'static, str>,
        /// The index of the row, for a list of new rows.
        row: Option<usize>,
    },
    /// The binding refused an argument of an operation on files, for this reason.
    File(Cow<'static, str>),
    /// A Python callback raised.
    Raised(PyErr),
}

impl Failure {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Failure {
        Failure::Binding { kind, message: message.into(), row: None }
    }

    pub(crate) fn invalid_input(message: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(ErrorKind::InvalidInput, message)
    }

    /// Sets the index of the row that was refused.
    pub(crate) fn at_row(self, index: usize) -> Failure {
        match self {
            Failure::Binding { kind, message, .. } => Failure::Binding { kind, message, row: Some(index) },
            Failure::Core(error) => Failure::Core(error.at_row(index)),
            other => other,
        }
    }

    /// The same failure as the core reports it for a file: status 400, with the message as the reason.
    pub(crate) fn of_file(self) -> Failure {
        match self {
            Failure::Binding { kind: ErrorKind::InvalidInput, message, .. } => Failure::File(message),
            other => other,
        }
    }

    /// The failure of work that was cancelled because its client closed.
    pub(crate) fn closed() -> Failure {
        Failure::new(ErrorKind::Closed, "The client is closed")
    }

    /// The exception. It names the core's operation if the error has one, else `operation`.
    pub(crate) fn into_exception(self, py: Python<'_>, operation: Option<Operation>) -> PyErr {
        if let Failure::Raised(raised) = self {
            return raised;
        }
        exception(py, &self, operation).unwrap_or_else(|broken| broken)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Core(error)
    }
}

fn exception(py: Python<'_>, failure: &Failure, called: Option<Operation>) -> PyResult<PyErr> {
    let error = match failure {
        Failure::Raised(raised) => return Ok(raised.clone_ref(py)),
        Failure::Core(error) => error.clone(),
        Failure::Binding { kind, message, row } => Error::of_binding(*kind, message.clone(), *row),
        Failure::File(reason) => Error::of_file_binding(reason.clone()),
    };
    let error = match called {
        Some(operation) => error.with_operation(operation),
        None => error,
    };
    let details = PyDict::new(py);
    details.set_item("kind", error.kind().as_str())?;
    details.set_item("message", error.message())?;
    details.set_item("operation", error.operation().map(Operation::name))?;
    details.set_item("code", error.code())?;
    details.set_item("status", error.status())?;
    details.set_item("explanation", error.explanation())?;
    details.set_item("reason", error.reason())?;
    details.set_item("row", error.row())?;
    details.set_item("column", error.column())?;
    details.set_item("is_retryable", error.is_retryable())?;
    details.set_item("retry_after", error.retry_after().map(|wait| wait.as_secs_f64()))?;
    let class = classes(py)?.as_any().get_item(error.kind().as_str())?;
    Ok(PyErr::from_value(class.call((error.to_string(),), Some(&details))?))
}

/// `townsquare.exceptions.BY_KIND`.
fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let load =
        || Ok::<_, PyErr>(py.import("townsquare.exceptions")?.getattr("BY_KIND")?.cast_into::<PyDict>()?.unbind());
    Ok(CLASSES.get_or_try_init(py, load)?.bind(py))
}

/// The `TypeError` for an argument of another type.
pub(crate) fn expected(wanted: &str, value: &Bound<'_, PyAny>) -> PyErr {
    type_error(value.py(), format!("expected {wanted}, not {}", class_name(value)))
}

/// A `TypeError` for an argument of a method. PyO3 gives it the argument's name, which becomes the start of its text.
pub(crate) fn type_error(py: Python<'_>, message: String) -> PyErr {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = CLASS
        .import(py, "townsquare.exceptions", "ArgumentTypeError")
        .and_then(|class| class.call1((message,)))
        .map(PyErr::from_value);
    made.unwrap_or_else(|broken| broken)
}

/// Puts the name of an argument before the text of a `TypeError`. Other errors stay.
pub(crate) fn in_argument(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    PyTypeError::new_err(format!("{name}: {}", error.value(py)))
}

/// The name of a value's class. Read from the type object, so that none of the value's own code runs.
pub(crate) fn class_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "an unnamed type".to_owned(), |name| name.to_string())
}

/// The start of a value's `repr`, for an error message.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "?".to_owned(), |repr| repr.to_string_lossy().chars().take(SHOWN_CHARS).collect())
}

/// Panics on purpose, for a test. Release builds do not have it.
#[cfg(debug_assertions)]
#[pyfunction]
pub(crate) fn _panic() {
    panic!("on purpose");
}

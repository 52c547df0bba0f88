//! Values between the two worlds: lists of names, counts, bytes, JSON.
//!
//! Invariant: a value of the wrong *type* is a `TypeError` that names the argument; a value out of *range* is the
//! library's `InvalidInputError`, whatever its size. JSON crosses as text through Python's own `json`, so both sides
//! agree on what a number or a string may be.

use std::convert::Infallible;

use pyo3::{
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    pybacked::PyBackedBytes,
    sync::PyOnceLock,
    types::{PyByteArray, PyBytes, PyNone, PyString},
};
use serde::Serialize;
use townsquare::ErrorKind;

use crate::errors::Failure;

/// The strings of any iterable but a string: `"games"` for `["games"]` would otherwise ask for `g`, `a`, `m`, …
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Names {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Names> {
        if value.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err(format!(
                "expected a list of strings, not a string; write [{}]",
                value.repr()?
            )));
        }
        if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
            return Err(PyTypeError::new_err("expected a list of strings, not bytes"));
        }
        value.try_iter()?.map(|name| name?.extract::<String>()).collect::<PyResult<_>>().map(Names)
    }
}

/// How many: any integer, judged by the core where it can hold it.
pub(crate) struct Count(Result<u32, String>);

impl Count {
    pub(crate) const fn of(count: u32) -> Count {
        Count(Ok(count))
    }

    /// # Errors
    /// An invalid input, in the core's words, for an integer that the core's type cannot hold.
    pub(crate) fn get(self, name: &str, most: u32) -> Result<u32, Failure> {
        self.0.map_err(|shown| Failure::own(ErrorKind::InvalidInput, format!("{name} is 1 to {most}, not {shown}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for Count {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Count> {
        match value.extract::<u32>() {
            Ok(count) => Ok(Count(Ok(count))),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
                let huge = "an integer of more than 64 bits".to_owned();
                Ok(Count(Err(value.extract::<i64>().map_or(huge, |count| count.to_string()))))
            }
            Err(error) => Err(error),
        }
    }
}

/// A body: `bytes` as it is, and what can be turned into it.
pub(crate) struct Body(Option<PyBackedBytes>);

impl Body {
    pub(crate) const EMPTY: Body = Body(None);
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

impl<'py> FromPyObject<'_, 'py> for Body {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Body> {
        if let Ok(bytes) = value.extract() {
            return Ok(Body(Some(bytes)));
        }
        // memoryview, array, mmap, …: whatever shows its bytes.
        if value.hasattr("__buffer__")? || value.hasattr("tobytes")? {
            let bytes = value.py().get_type::<PyBytes>().call1((value,))?;
            return Ok(Body(Some(bytes.extract()?)));
        }
        Err(PyTypeError::new_err(format!("expected bytes, not {}", value.get_type().name()?)))
    }
}

/// A JSON text that reads as a Python value.
pub(crate) struct Json(String);

impl Json {
    /// The JSON of a value, its keys in the order they are written.
    pub(crate) fn of(value: &impl Serialize) -> PyResult<Json> {
        serde_json::to_string(value).map(Json).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

impl<'py> IntoPyObject<'py> for Json {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        LOADS.import(py, "json", "loads")?.call1((self.0,))
    }
}

/// What a method returns that has nothing to say.
pub(crate) struct Nothing;

impl<'py> IntoPyObject<'py> for Nothing {
    type Target = PyNone;
    type Output = Borrowed<'py, 'py, PyNone>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Self::Output, Self::Error> {
        Ok(PyNone::get(py))
    }
}

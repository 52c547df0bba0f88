//! JSON: Python values to the core's values ([`JsonArg`]) and back ([`PyJson`]).
//!
//! Invariant: an accepted value comes back equal: `dict` with `str` keys, `list`, `str`, `int` of 64 bits, finite
//! `float`, `bool`, `None`. A tuple comes back as a list, a scalar of numpy as the Python value that it equals. Any other value
//! is refused. No code written in Python runs while a value is read, so no value can change or raise meanwhile. Depth and
//! number of values are limited, which bounds stack and memory.

use pyo3::{
    IntoPyObjectExt,
    exceptions::PyValueError,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple},
};
use serde::Serialize;
use serde_json::Map;
use townsquare::Json;

use crate::errors::{Failure, class_name, expected};

/// How deep JSON may be nested. The core has the same limit; reading needs it before the stack overflows.
const MAX_DEPTH: u32 = 100;
/// How many values one JSON may have. A list that holds itself twice, 100 deep, would otherwise never end.
const MAX_VALUES: u32 = 4_000_000;

/// An argument of a JSON column. Python's `None` is SQL's NULL.
pub(crate) struct JsonArg(Result<Option<Json>, String>);

impl JsonArg {
    pub(crate) const NONE: JsonArg = JsonArg(Ok(None));

    /// # Errors
    /// `InvalidInput`, naming the argument, for a value that is not JSON.
    pub(crate) fn value(self, name: &str) -> Result<Option<Json>, Failure> {
        self.0.map_err(|complaint| Failure::invalid_input(format!("{name} {complaint}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for JsonArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<JsonArg> {
        if value.is_none() {
            return Ok(JsonArg::NONE);
        }
        Ok(JsonArg(read(&value, 0, &mut 0).map(Some)))
    }
}

/// A mapping as a JSON object.
pub(crate) struct JsonObjectArg(JsonArg);

impl JsonObjectArg {
    /// # Errors
    /// As [`JsonArg::value`].
    pub(crate) fn value(self, name: &str) -> Result<Json, Failure> {
        Ok(self.0.value(name)?.unwrap_or_default())
    }
}

impl<'py> FromPyObject<'_, 'py> for JsonObjectArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<JsonObjectArg> {
        let Ok(mapping) = value.cast::<PyMapping>() else { return Err(expected("a mapping", &value)) };
        let members = PyDict::new(value.py());
        members.update(&mapping)?;
        members.extract().map(JsonObjectArg)
    }
}

fn read(value: &Bound<'_, PyAny>, depth: u32, count: &mut u32) -> Result<Json, String> {
    *count += 1;
    if *count > MAX_VALUES {
        return Err(format!("is JSON of more than {MAX_VALUES} values"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return string(text).map(Json::String);
    }
    if value.is_none() {
        return Ok(Json::Null);
    }
    // `bool` is a subclass of `int`, so it comes first.
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Json::Bool(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>().map(Json::from).or_else(|_| value.extract::<u64>().map(Json::from));
        return number.map_err(|_| "has an integer of more than 64 bits".to_owned());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = serde_json::Number::from_f64(number.value()).map(Json::Number);
        return number.ok_or_else(|| "has a number that is not finite".to_owned());
    }
    let (is_dict, is_tuple) = (value.is_instance_of::<PyDict>(), value.is_instance_of::<PyTuple>());
    if depth >= MAX_DEPTH && (is_dict || is_tuple || value.is_instance_of::<PyList>()) {
        return Err(format!("is JSON nested deeper than {MAX_DEPTH}"));
    }
    if let Ok(items) = value.cast::<PyList>() {
        return items.iter().map(|item| read(&item, depth + 1, count)).collect::<Result<_, _>>().map(Json::Array);
    }
    if let Ok(items) = value.cast::<PyTuple>() {
        return items.iter().map(|item| read(&item, depth + 1, count)).collect::<Result<_, _>>().map(Json::Array);
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let read = |(key, member): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let key =
                key.cast::<PyString>().map_err(|_| format!("has a key that is not text but {}", class_name(&key)))?;
            Ok((string(key)?, read(&member, depth + 1, count)?))
        };
        return members.iter().map(read).collect::<Result<_, String>>().map(Json::Object);
    }
    match numpy_item(value) {
        Some(item) => read(&item, depth, count),
        None => Err(format!("has a value that JSON does not know: {}", class_name(value))),
    }
}

/// The Python value of a scalar of numpy, if the program has imported numpy and the value has one of another type.
fn numpy_item<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let numpy = value.py().import("sys").ok()?.getattr("modules").ok()?.get_item("numpy").ok()?;
    let scalar = numpy.getattr("generic").ok()?;
    let is_scalar = |value: &Bound<'py, PyAny>| value.is_instance(&scalar).unwrap_or(false);
    if !is_scalar(value) {
        return None;
    }
    // The method of numpy itself: a class that inherits from a scalar may have another one.
    scalar.getattr("item").ok()?.call1((value,)).ok().filter(|item| !is_scalar(item))
}

fn string(text: &Bound<'_, PyString>) -> Result<String, String> {
    text.extract().map_err(|_| "has text with half a surrogate pair, which is not Unicode".to_owned())
}

/// JSON as Python values.
pub(crate) struct PyJson<'a>(pub(crate) &'a Json);

/// A result of the core as a Python value.
pub(crate) struct OwnedJson(pub(crate) Json);

impl<'py> IntoPyObject<'py> for OwnedJson {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyJson(&self.0).into_pyobject(py)
    }
}

impl<'py> IntoPyObject<'py> for PyJson<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Json::Null => Ok(py.None().into_bound(py)),
            Json::Bool(flag) => flag.into_bound_py_any(py),
            Json::String(text) => text.into_bound_py_any(py),
            Json::Number(number) => {
                if let Some(number) = number.as_i64() {
                    number.into_bound_py_any(py)
                } else if let Some(number) = number.as_u64() {
                    number.into_bound_py_any(py)
                } else {
                    number.as_f64().into_bound_py_any(py)
                }
            }
            Json::Array(items) => {
                let list = PyList::empty(py);
                for item in items {
                    list.append(PyJson(item))?;
                }
                Ok(list.into_any())
            }
            Json::Object(members) => Ok(PyJsonObject(members).into_pyobject(py)?.into_any()),
        }
    }
}

/// A JSON object as a dict.
pub(crate) struct PyJsonObject<'a>(pub(crate) &'a Map<String, Json>);

impl<'py> IntoPyObject<'py> for PyJsonObject<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (key, member) in self.0 {
            dict.set_item(key, PyJson(member))?;
        }
        Ok(dict)
    }
}

/// The JSON of a serializable value as Python values, its keys in the order of serialization.
pub(crate) fn serialized<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let text = serde_json::to_string(value).map_err(|error| PyValueError::new_err(error.to_string()))?;
    LOADS.import(py, "json", "loads")?.call1((text,))
}

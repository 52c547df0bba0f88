//! JSON between Python's objects and the core's values, directly.
//!
//! Invariant: what is taken is given back equal: `dict` with text keys, `list`, `str`, `int` of 64 bits, finite `float`,
//! `bool`, `None`. Anything else is refused with a complaint that a method joins to the argument's name, and nothing of
//! Python runs meanwhile, so that no value can change or raise under the reader. Depth and size are bounded before the
//! stack and the memory are.

use pyo3::{
    IntoPyObjectExt,
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString},
};
use townsquare::{ErrorKind, Json};

use crate::errors::Failure;

/// How deep JSON may be nested; the core's bound, met here before the stack is.
const DEPTH: u32 = 100;
/// How many values one JSON may have: a list that holds itself twice over, a hundred deep, would never end.
const VALUES: u32 = 4_000_000;

/// JSON given by Python; `None` for None, which a column keeps as NULL.
pub(crate) struct Given(Result<Option<Json>, String>);

impl Given {
    pub(crate) const NONE: Given = Given(Ok(None));

    /// The JSON of the argument `name`.
    ///
    /// # Errors
    /// An invalid input for what JSON has no word for.
    pub(crate) fn named(self, name: &str) -> Result<Option<Json>, Failure> {
        self.0.map_err(|complaint| Failure::own(ErrorKind::InvalidInput, format!("{name} {complaint}")))
    }
}

impl<'py> FromPyObject<'_, 'py> for Given {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Given> {
        if value.is_none() {
            return Ok(Given::NONE);
        }
        Ok(Given(read(&value, 0, &mut 0).map(Some)))
    }
}

fn read(value: &Bound<'_, PyAny>, depth: u32, count: &mut u32) -> Result<Json, String> {
    *count += 1;
    if *count > VALUES {
        return Err(format!("is JSON of more than {VALUES} values"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return string(text).map(Json::String);
    }
    if value.is_none() {
        return Ok(Json::Null);
    }
    // Before int, which bool is a kind of.
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(Json::Bool(yes.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let number = value.extract::<i64>().map(Json::from).or_else(|_| value.extract::<u64>().map(Json::from));
        return number.map_err(|_| "has an integer of more than 64 bits".to_owned());
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        let number = serde_json::Number::from_f64(number.value()).map(Json::Number);
        return number.ok_or_else(|| "has a number that is not finite".to_owned());
    }
    let is_dict = value.is_instance_of::<PyDict>();
    if depth >= DEPTH && (is_dict || value.is_instance_of::<PyList>()) {
        return Err(format!("is JSON nested deeper than {DEPTH}"));
    }
    if let Ok(items) = value.cast::<PyList>() {
        return items.iter().map(|item| read(&item, depth + 1, count)).collect::<Result<_, _>>().map(Json::Array);
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let read = |(key, member): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let key = key.cast::<PyString>().map_err(|_| format!("has a key that is not text but {}", class(&key)))?;
            Ok((string(key)?, read(&member, depth + 1, count)?))
        };
        return members.iter().map(read).collect::<Result<_, String>>().map(Json::Object);
    }
    Err(format!("has a value that JSON does not know: {}", class(value)))
}

fn string(text: &Bound<'_, PyString>) -> Result<String, String> {
    text.extract().map_err(|_| "has text with half a surrogate pair, which is not Unicode".to_owned())
}

/// The name of a value's type; read from the type itself, so that no code of the value's runs.
fn class(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "something".to_owned(), |name| name.to_string())
}

/// JSON on its way to Python.
pub(crate) struct Shown<'a>(pub(crate) &'a Json);

impl<'py> IntoPyObject<'py> for Shown<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Json::Null => Ok(py.None().into_bound(py)),
            Json::Bool(yes) => yes.into_bound_py_any(py),
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
                    list.append(Shown(item))?;
                }
                Ok(list.into_any())
            }
            Json::Object(members) => {
                let dict = PyDict::new(py);
                for (key, member) in members {
                    dict.set_item(key, Shown(member))?;
                }
                Ok(dict.into_any())
            }
        }
    }
}

//! Record classes: frozen Python objects around a value of the core.
//!
//! Invariant: a record holds the core's value, or a part of it, and nothing else. An attribute is converted when it is
//! read. Two records are equal when their classes are the same and their values are equal.

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::Timestamp;
use pyo3::{
    IntoPyObjectExt,
    basic::CompareOp,
    prelude::*,
    types::{PyDateTime, PyList},
};

/// How many characters of a value a `repr` shows.
const SHOWN_CHARS: usize = 200;

/// Declares a record class. A column is one line: its documentation, its name and the expression that reads it.
///
/// `hash` lists the values that the hash is computed from, `secret` the attributes with values that `repr` does not show.
/// Every record has `==`, `hash`, `repr`, `copy` and `to_dict`; `nested` after an attribute says that `to_dict` turns the records in it
/// into dicts. The list in brackets holds further options of `pyclass`. A block after `also` adds methods; it replaces
/// `to_dict`.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident($inner:ty) [$($option:tt)*] as $this:ident, hash $key:expr $(, secret [$($secret:ident),*])? => {
            $($(#[doc = $doc:literal])* $field:ident: $value:expr $(=> $nested:ident)?,)*
        }
    ) => {
        record! {
            $(#[$about])*
            $name($inner) [$($option)*] as $this, hash $key $(, secret [$($secret),*])? => {
                $($(#[doc = $doc])* $field: $value,)*
            }
            also {
                /// The attributes by name.
                pub(crate) fn to_dict<'py>(
                    &self,
                    py: pyo3::Python<'py>,
                ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                    let attributes = pyo3::types::PyDict::new(py);
                    $(
                        let value = self.$field(py)?;
                        $(let value = $crate::record::$nested(&value)?;)?
                        pyo3::types::PyDictMethods::set_item(&attributes, $crate::record::name!($field), value)?;
                    )*
                    Ok(attributes)
                }
            }
        }
    };
    (
        $(#[$about:meta])*
        $name:ident($inner:ty) [$($option:tt)*] as $this:ident, hash $key:expr $(, secret [$($secret:ident),*])? => {
            $($(#[doc = $doc:literal])* $field:ident: $value:expr,)*
        }
        also { $($method:tt)* }
    ) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, module = "townsquare", $($option)*)]
        #[derive(Clone, PartialEq)]
        pub(crate) struct $name(pub(crate) $inner);

        #[pyo3::pymethods]
        #[allow(clippy::new_ret_no_self, clippy::wrong_self_convention, reason = "a change has the attribute `new`")]
        impl $name {
            $(
                $(#[doc = $doc])*
                #[getter]
                fn $field<'py>(&self, py: pyo3::Python<'py>) -> $crate::run::MethodResult<'py> {
                    let $this = &self.0;
                    pyo3::IntoPyObjectExt::into_bound_py_any($value, py)
                }
            )*

            fn __hash__(&self) -> u64 {
                let $this = &self.0;
                $crate::record::hash_of($key)
            }

            fn __richcmp__(
                this: &pyo3::Bound<'_, Self>,
                other: &pyo3::Bound<'_, pyo3::PyAny>,
                op: pyo3::basic::CompareOp,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                $crate::record::compare(this, other, op, |one, other| one.get() == other.get())
            }

            fn __repr__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<String> {
                const SECRET: &[&str] = &[$($(stringify!($secret)),*)?];
                let shown = [
                    $(match $crate::record::name!($field) {
                        name if SECRET.contains(&name) => format!("{name}=<secret>"),
                        name => $crate::record::attribute(name, &self.$field(py)?)?,
                    }),*
                ];
                Ok(format!("{}({})", stringify!($name), shown.join(", ")))
            }

            fn __copy__(this: pyo3::Py<Self>) -> pyo3::Py<Self> {
                this
            }

            fn __deepcopy__(this: pyo3::Py<Self>, _memo: &pyo3::Bound<'_, pyo3::PyAny>) -> pyo3::Py<Self> {
                this
            }

            $($method)*
        }
    };
}

/// The Python name of a field: `r#type` is `type`.
macro_rules! name {
    ($field:ident) => {
        stringify!($field).trim_start_matches("r#")
    };
}

pub(crate) use {name, record};

/// A time as an aware datetime in UTC. A time before the year 1, which Python has no datetime for, is `datetime.min`.
pub(crate) struct PyTime(pub(crate) Timestamp);

impl PyTime {
    /// 0001-01-01T00:00:00Z, Python's first time. The core's last time is before Python's last one.
    const MIN: Timestamp = Timestamp::constant(-62_135_596_800, 0);
}

impl<'py> IntoPyObject<'py> for PyTime {
    type Target = PyDateTime;
    type Output = Bound<'py, PyDateTime>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        self.0.max(PyTime::MIN).into_pyobject(py)
    }
}

pub(crate) fn hash_of(key: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// `name=value` in a `repr`. Long text, bytes and JSON are cut; records are shown whole.
pub(crate) fn attribute(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let repr = value.repr()?;
    let repr = repr.to_string_lossy();
    let is_of_records =
        |list: &Bound<'_, PyList>| list.get_item(0).is_ok_and(|item| item.hasattr("to_dict").unwrap_or(false));
    let is_record = match value.cast::<PyList>() {
        Ok(list) => is_of_records(list),
        Err(_) => value.hasattr("to_dict")?,
    };
    match repr.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) if !is_record => Ok(format!("{name}={}…", &repr[..end])),
        _ => Ok(format!("{name}={repr}")),
    }
}

/// `==` and `!=` of two records. Other operators and records of another class are `NotImplemented`.
pub(crate) fn compare<'py, T: pyo3::PyClass>(
    this: &Bound<'py, T>,
    other: &Bound<'py, PyAny>,
    op: CompareOp,
    equal: impl FnOnce(&Bound<'py, T>, &Bound<'py, T>) -> bool,
) -> PyResult<Py<PyAny>> {
    let py = this.py();
    let same_class = this.as_any().get_type().is(other.get_type());
    match (op, other.cast::<T>()) {
        (CompareOp::Eq, Ok(other)) if same_class => equal(this, other).into_py_any(py),
        (CompareOp::Ne, Ok(other)) if same_class => (!equal(this, other)).into_py_any(py),
        _ => Ok(py.NotImplemented()),
    }
}

/// `to_dict()` of a record, of each record in a list, or `None`.
pub(crate) fn nested<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if value.is_none() {
        return Ok(value.clone());
    }
    if let Ok(records) = value.cast::<PyList>() {
        let dicts = records.iter().map(|record| record.call_method0("to_dict")).collect::<PyResult<Vec<_>>>()?;
        return dicts.into_bound_py_any(value.py());
    }
    value.call_method0("to_dict")
}

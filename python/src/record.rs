//! Record classes: frozen Python objects around a value of the core. Python sees each one as a frozen dataclass.
//!
//! Invariant: a record holds the core's value, or the attributes that Python code gave, and nothing else. An attribute of a
//! core's value is converted when it is read. Two records are equal when their classes are the same and their attributes
//! are equal. The module `townsquare._records` adds what Python can write better: the fields of `dataclasses` and a schema
//! for pydantic.

use std::sync::Arc;

use jiff::Timestamp;
use pyo3::{
    IntoPyObjectExt,
    basic::CompareOp,
    intern,
    prelude::*,
    types::{PyDateTime, PyDict, PyList, PyString, PyTuple},
};

use crate::run::MethodResult;

/// How many characters of a value a `repr` shows.
const SHOWN_CHARS: usize = 200;

/// What a record holds.
#[derive(Clone)]
pub(crate) enum RecordValue<T> {
    /// A value of the core.
    Core(T),
    /// The attributes of a record that Python code made, in the order of the fields: by `dataclasses.replace`, `pickle`,
    /// pydantic or a call of the class.
    Attributes(Arc<[Py<PyAny>]>),
}

/// Declares a record class. A column is one line: its documentation, its name, its Python type and the expression that reads
/// it.
///
/// `hash` lists the attributes that the hash is computed from, `secret` those with values that `repr` does not show. The list in
/// brackets holds further options of `pyclass`. A block after `also` adds methods; it replaces `to_dict`.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident($inner:ty) [$($option:tt)*] as $this:ident, hash [$($key:ident),*] $(, secret [$($secret:ident),*])? => {
            $($(#[doc = $doc:literal])* $field:ident: $type:literal = $value:expr,)*
        }
    ) => {
        record! {
            $(#[$about])*
            $name($inner) [$($option)*] as $this, hash [$($key),*] $(, secret [$($secret),*])? => {
                $($(#[doc = $doc])* $field: $type = $value,)*
            }
            also {
                #[doc = text_of!(_Record.to_dict)]
                fn to_dict<'py>(
                    this: &pyo3::Bound<'py, Self>,
                ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                    $crate::record::to_dict(this)
                }
            }
        }
    };
    (
        $(#[$about:meta])*
        $name:ident($inner:ty) [$($option:tt)*] as $this:ident, hash [$($key:ident),*] $(, secret [$($secret:ident),*])? => {
            $($(#[doc = $doc:literal])* $field:ident: $type:literal = $value:expr,)*
        }
        also { $($method:tt)* }
    ) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, module = "townsquare", $($option)*)]
        #[derive(Clone)]
        pub(crate) struct $name(pub(crate) $crate::record::RecordValue<$inner>);

        impl From<$inner> for $name {
            fn from(value: $inner) -> $name {
                $name($crate::record::RecordValue::Core(value))
            }
        }

        impl $name {
            const FIELDS: &[&str] = &[$(stringify!($field)),*];
        }

        #[pyo3::pymethods]
        #[allow(clippy::new_ret_no_self, clippy::wrong_self_convention, reason = "a change has the attribute `new`")]
        #[allow(clippy::too_many_arguments, reason = "one for each field")]
        impl $name {
            #[new]
            #[pyo3(signature = ($($field),*))]
            pub(crate) fn __new__($($field: pyo3::Py<pyo3::PyAny>),*) -> $name {
                $name($crate::record::RecordValue::Attributes(std::sync::Arc::new([$($field),*])))
            }

            /// The names of the fields.
            #[classattr]
            pub(crate) fn __match_args__(py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Bound<'_, pyo3::types::PyTuple>> {
                pyo3::types::PyTuple::new(py, [$($crate::record::name!($field)),*])
            }

            /// The types of the fields, which `townsquare._records` evaluates.
            #[classattr]
            fn __annotations__(py: pyo3::Python<'_>) -> pyo3::PyResult<pyo3::Bound<'_, pyo3::types::PyDict>> {
                $crate::record::annotations(py, &[$(($crate::record::name!($field), $type)),*])
            }

            $(
                $(#[doc = $doc])*
                #[getter]
                fn $field<'py>(&self, py: pyo3::Python<'py>) -> $crate::run::MethodResult<'py> {
                    match &self.0 {
                        $crate::record::RecordValue::Core($this) => pyo3::IntoPyObjectExt::into_bound_py_any($value, py),
                        $crate::record::RecordValue::Attributes(attributes) => {
                            Ok($crate::record::given(py, attributes, $name::FIELDS, stringify!($field)))
                        }
                    }
                }
            )*

            fn __hash__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<isize> {
                let key = pyo3::types::PyTuple::new(py, [$(self.$key(py)?),*])?;
                pyo3::types::PyAnyMethods::hash(key.as_any())
            }

            fn __richcmp__(
                this: &pyo3::Bound<'_, Self>,
                other: &pyo3::Bound<'_, pyo3::PyAny>,
                op: pyo3::basic::CompareOp,
            ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
                $crate::record::compare(this, other, op)
            }

            fn __repr__(this: &pyo3::Bound<'_, Self>) -> pyo3::PyResult<String> {
                $crate::record::repr(this, &[$($(stringify!($secret)),*)?])
            }

            /// The names and values that the package rich shows.
            fn __rich_repr__<'py>(this: &pyo3::Bound<'py, Self>) -> $crate::run::MethodResult<'py> {
                $crate::record::rich_repr(this, &[$($(stringify!($secret)),*)?])
            }

            fn __copy__(this: pyo3::Py<Self>) -> pyo3::Py<Self> {
                this
            }

            fn __deepcopy__<'py>(
                this: &pyo3::Bound<'py, Self>,
                _memo: &pyo3::Bound<'py, pyo3::PyAny>,
            ) -> $crate::run::MethodResult<'py> {
                match &this.get().0 {
                    $crate::record::RecordValue::Core(_) => Ok(this.as_any().clone()),
                    $crate::record::RecordValue::Attributes(_) => $crate::record::deep_copy(this, _memo),
                }
            }

            fn __reduce__<'py>(
                this: &pyo3::Bound<'py, Self>,
            ) -> pyo3::PyResult<(pyo3::Bound<'py, pyo3::types::PyType>, pyo3::Bound<'py, pyo3::types::PyTuple>)> {
                Ok((pyo3::types::PyAnyMethods::get_type(this.as_any()), $crate::record::attributes(this)?))
            }

            /// A copy with other values of some attributes: `copy.replace` of Python 3.13.
            #[pyo3(signature = (**changes))]
            fn __replace__<'py>(
                this: &pyo3::Bound<'py, Self>,
                changes: Option<&pyo3::Bound<'py, pyo3::types::PyDict>>,
            ) -> $crate::run::MethodResult<'py> {
                $crate::record::replace(this, changes)
            }

            #[doc = text_of!(_Record.to_json)]
            fn to_json<'py>(this: &pyo3::Bound<'py, Self>) -> $crate::run::MethodResult<'py> {
                $crate::record::to_json(this)
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

pub(crate) fn annotations<'py>(py: Python<'py>, fields: &[(&str, &str)]) -> PyResult<Bound<'py, PyDict>> {
    let annotations = PyDict::new(py);
    for (name, python_type) in fields {
        annotations.set_item(name, python_type)?;
    }
    Ok(annotations)
}

/// The attribute `name` of those that Python code gave.
pub(crate) fn given<'py>(py: Python<'py>, attributes: &[Py<PyAny>], names: &[&str], name: &str) -> Bound<'py, PyAny> {
    let (_, attribute) =
        names.iter().zip(attributes).find(|(each, _)| **each == name).expect("a record has every field");
    attribute.bind(py).clone()
}

/// The names of a record's fields, also of those that a subclass adds.
fn names<'py>(record: &Bound<'py, PyAny>) -> PyResult<impl Iterator<Item = PyResult<Bound<'py, PyString>>>> {
    let names = record.get_type().getattr(intern!(record.py(), "__match_args__"))?.cast_into::<PyTuple>()?;
    Ok((0..names.len()).map(move |index| Ok(names.get_item(index)?.cast_into::<PyString>()?)))
}

/// The values of a record's fields.
pub(crate) fn attributes<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyTuple>> {
    let values = names(record)?.map(|name| record.getattr(name?)).collect::<PyResult<Vec<_>>>()?;
    PyTuple::new(record.py(), values)
}

pub(crate) fn to_dict<'py>(record: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyDict>> {
    let attributes = PyDict::new(record.py());
    for name in names(record)? {
        let name = name?;
        attributes.set_item(&name, nested(record.getattr(&name)?)?)?;
    }
    Ok(attributes)
}

/// `to_dict()` of a record, and of each record in a list. Other values stay.
fn nested(value: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let to_dict = intern!(value.py(), "to_dict");
    if let Ok(records) = value.cast::<PyList>() {
        if has_records(records) {
            let dicts = records.iter().map(|record| record.call_method0(to_dict)).collect::<PyResult<Vec<_>>>()?;
            return dicts.into_bound_py_any(value.py());
        }
    } else if value.hasattr(to_dict)? {
        return value.call_method0(to_dict);
    }
    Ok(value)
}

/// Whether a list is one of records.
fn has_records(list: &Bound<'_, PyList>) -> bool {
    list.get_item(0).is_ok_and(|first| first.hasattr(intern!(list.py(), "to_dict")).unwrap_or(false))
}

/// `CLASS(name=value, …)`. Long text, bytes and JSON are cut; records are shown whole.
pub(crate) fn repr(record: &Bound<'_, PyAny>, secret: &[&str]) -> PyResult<String> {
    let mut shown = Vec::new();
    for name in names(record)? {
        let name = name?;
        let text = name.to_cow()?;
        if secret.contains(&&*text) {
            shown.push(format!("{text}=<secret>"));
            continue;
        }
        let value = record.getattr(&name)?;
        let value_repr = value.repr()?;
        let value_repr = value_repr.to_string_lossy();
        let is_of_records = match value.cast::<PyList>() {
            Ok(list) => has_records(list),
            Err(_) => value.hasattr(intern!(value.py(), "to_dict"))?,
        };
        shown.push(match value_repr.char_indices().nth(SHOWN_CHARS) {
            Some((end, _)) if !is_of_records => format!("{text}={}…", &value_repr[..end]),
            _ => format!("{text}={value_repr}"),
        });
    }
    Ok(format!("{}({})", record.get_type().name()?, shown.join(", ")))
}

/// The names and values of the fields, for the package rich. Values that `repr` does not show are hidden.
pub(crate) fn rich_repr<'py>(record: &Bound<'py, PyAny>, secret: &[&str]) -> MethodResult<'py> {
    record.py().import("townsquare._records")?.call_method1("rich_repr", (record, secret))
}

/// `==` and `!=` of two records. Other operators and records of another class are `NotImplemented`.
pub(crate) fn compare(record: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
    let py = record.py();
    if !record.get_type().is(other.get_type()) {
        return Ok(py.NotImplemented());
    }
    let is_equal = || Ok::<_, PyErr>(record.is(other) || attributes(record)?.eq(attributes(other)?)?);
    match op {
        CompareOp::Eq => is_equal()?.into_py_any(py),
        CompareOp::Ne => (!is_equal()?).into_py_any(py),
        _ => Ok(py.NotImplemented()),
    }
}

/// A copy of a record that Python code made. Its attributes may be lists and dicts, which can change.
pub(crate) fn deep_copy<'py>(record: &Bound<'py, PyAny>, memo: &Bound<'py, PyAny>) -> MethodResult<'py> {
    let copied = record.py().import("copy")?.call_method1("deepcopy", (attributes(record)?, memo))?;
    record.get_type().call1(copied.cast_into::<PyTuple>()?)
}

/// # Errors
/// `TypeError` for a name that is no field.
pub(crate) fn replace<'py>(record: &Bound<'py, PyAny>, changes: Option<&Bound<'py, PyDict>>) -> MethodResult<'py> {
    let values = PyDict::new(record.py());
    for name in names(record)? {
        let name = name?;
        values.set_item(&name, record.getattr(&name)?)?;
    }
    if let Some(changes) = changes {
        values.update(changes.as_mapping())?;
    }
    record.get_type().call((), Some(&values))
}

/// The dict of a record that Python code made, in the shape of the endpoint that the core gives it.
pub(crate) fn endpoint_dict<'py>(record: &Bound<'py, PyAny>) -> MethodResult<'py> {
    record.py().import("townsquare._records")?.call_method1("endpoint_dict", (record,))
}

pub(crate) fn to_json<'py>(record: &Bound<'py, PyAny>) -> MethodResult<'py> {
    record.py().import("townsquare._records")?.call_method1("to_json", (record,))
}

//! Frozen records: core values as Python objects that read like dataclasses.
//!
//! Invariant: a record holds the core's value and nothing else; an attribute is read from it when asked for, and no
//! record ever changes. Equality is by value, the hash by what names the record.

/// Declares a record class: its attributes with how each is read, and methods besides.
///
/// `hashed by` names what its hash is made of; `shown by` which attributes its `repr` has, in the order of declaration.
macro_rules! record {
    (
        $(#[$about:meta])*
        $name:ident($inner:ty) as $this:ident, hashed by $key:expr, shown by [$($shown:ident),*] {
            $($(#[doc = $doc:literal])* $field:ident: $value:expr,)*
        }
        $(also { $($method:tt)* })?
    ) => {
        $(#[$about])*
        #[pyo3::pyclass(frozen, eq, module = "townsquare")]
        #[derive(Clone, PartialEq)]
        pub(crate) struct $name(pub(crate) $inner);

        $crate::record::methods! {
            $name as $this, hashed by $key, shown by [$($shown),*] { $($(#[doc = $doc])* $field: $value,)* }
            also { $($($method)*)? }
        }
    };
}

/// The methods of a record, for a class that is declared elsewhere.
macro_rules! methods {
    (
        $name:ident as $this:ident, hashed by $key:expr, shown by [$($shown:ident),*] {
            $($(#[doc = $doc:literal])* $field:ident: $value:expr,)*
        }
        also { $($method:tt)* }
    ) => {
        #[pyo3::pymethods]
        impl $name {
            $(
                $(#[doc = $doc])*
                #[getter]
                fn $field<'py>(
                    &self,
                    py: pyo3::Python<'py>,
                ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::PyAny>> {
                    let $this = &self.0;
                    pyo3::IntoPyObjectExt::into_bound_py_any($value, py)
                }
            )*

            fn __hash__(&self) -> u64 {
                use std::hash::{DefaultHasher, Hash, Hasher};
                let $this = &self.0;
                let mut hasher = DefaultHasher::new();
                $key.hash(&mut hasher);
                hasher.finish()
            }

            fn __repr__(&self, py: pyo3::Python<'_>) -> pyo3::PyResult<String> {
                use pyo3::types::PyAnyMethods;
                let shown: Vec<String> = vec![
                    $(format!("{}={}", stringify!($shown).trim_start_matches("r#"), self.$shown(py)?.repr()?)),*
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

/// A `dict` of the named attributes of a record.
macro_rules! attributes {
    ($record:expr, $py:expr, [$($field:ident),*]) => {{
        let attributes = pyo3::types::PyDict::new($py);
        $(pyo3::types::PyDictMethods::set_item(&attributes, stringify!($field).trim_start_matches("r#"), $record.$field($py)?)?;)*
        Ok(attributes)
    }};
}

pub(crate) use {attributes, methods, record};

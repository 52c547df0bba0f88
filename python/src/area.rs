//! Declares an area: the object behind `client.discovery`, `client.spaces` and so on.
//!
//! Invariant: an area's methods are written once, in one base class. The class for `Client` and the class for
//! `AsyncClient` differ in the mode of their runner only.

/// Declares the base class `Methods`, its two subclasses and the function `area`, which makes the subclass for a
/// runner's mode.
macro_rules! area {
    ($methods:literal, $(#[$about:meta])* $sync:ident, $(#[$about_async:meta])* $async:ident) => {
        $(#[$about])*
        #[pyo3::pyclass(name = $methods, frozen, subclass, module = "townsquare._native")]
        pub(crate) struct Methods {
            runner: crate::run::Runner,
        }

        $(#[$about])*
        #[pyo3::pyclass(frozen, extends = Methods, module = "townsquare")]
        pub(crate) struct $sync;

        $(#[$about_async])*
        #[pyo3::pyclass(frozen, extends = Methods, module = "townsquare")]
        pub(crate) struct $async;

        /// The area's object for the runner's mode.
        pub(crate) fn area(
            py: pyo3::Python<'_>,
            runner: crate::run::Runner,
        ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
            let mode = runner.mode();
            let methods = pyo3::PyClassInitializer::from(Methods { runner });
            Ok(match mode {
                crate::run::Mode::Sync => pyo3::Py::new(py, methods.add_subclass($sync))?.into_any(),
                crate::run::Mode::Async => pyo3::Py::new(py, methods.add_subclass($async))?.into_any(),
            })
        }
    };
}

pub(crate) use area;

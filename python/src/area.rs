//! Areas: what stands behind `client.discovery`, `client.spaces`, and so on.
//!
//! Invariant: an area is one class of methods under two names, one for each face; what differs is the door's face.

/// Declares an area: the class that has the methods, its two faces, and the way in.
macro_rules! area {
    ($methods:literal, $(#[$about:meta])* $blocking:ident, $(#[$about_awaiting:meta])* $awaiting:ident) => {
        $(#[$about])*
        #[pyo3::pyclass(name = $methods, frozen, subclass, module = "townsquare._native")]
        pub(crate) struct Methods {
            door: crate::enter::Door,
        }

        $(#[$about])*
        #[pyo3::pyclass(frozen, extends = Methods, module = "townsquare")]
        pub(crate) struct $blocking;

        $(#[$about_awaiting])*
        #[pyo3::pyclass(frozen, extends = Methods, module = "townsquare")]
        pub(crate) struct $awaiting;

        /// The area as the door's face wants it.
        pub(crate) fn area(
            py: pyo3::Python<'_>,
            door: crate::enter::Door,
        ) -> pyo3::PyResult<pyo3::Py<pyo3::PyAny>> {
            let face = door.face();
            let methods = pyo3::PyClassInitializer::from(Methods { door });
            Ok(match face {
                crate::enter::Face::Blocking => pyo3::Py::new(py, methods.add_subclass($blocking))?.into_any(),
                crate::enter::Face::Awaiting => pyo3::Py::new(py, methods.add_subclass($awaiting))?.into_any(),
            })
        }
    };
}

pub(crate) use area;

//! The iterators over long lists: blocking ones and async ones.

/// Declares the iterators over a stream of rows. `$item` wraps a row for the conversion to its Python record.
macro_rules! iteration {
    ($next:ident: $stream:ty, $operation:expr, $item:path, $iterator:ident, $async_iterator:ident) => {
        /// The rest of the rows. `rows` is dropped before `runner`, so that it does not hold the last share of the client.
        pub(crate) struct $next {
            rows: std::sync::Arc<tokio::sync::Mutex<$stream>>,
            runner: $crate::run::Runner,
        }

        impl $next {
            /// Returns the iterator over `rows` in the mode of `runner`.
            pub(crate) fn iterator<'py>(
                py: pyo3::Python<'py>,
                rows: $stream,
                runner: &$crate::run::Runner,
            ) -> $crate::run::MethodResult<'py> {
                let next = $next { rows: std::sync::Arc::new(tokio::sync::Mutex::new(rows)), runner: runner.clone() };
                Ok(match runner.mode() {
                    $crate::run::Mode::Sync => pyo3::Bound::new(py, $iterator(next))?.into_any(),
                    $crate::run::Mode::Async => pyo3::Bound::new(py, $async_iterator(next))?.into_any(),
                })
            }

            fn next<'py>(&self, py: pyo3::Python<'py>) -> $crate::run::MethodResult<'py> {
                let is_read = self.rows.try_lock().is_ok_and(|rows| rows.has_read_ahead());
                let (rows, mode) = (std::sync::Arc::clone(&self.rows), self.runner.mode());
                let next = move |client: std::sync::Arc<$crate::client_share::ProcessClient>| async move {
                    // Fails in a forked process.
                    client.get()?;
                    let row = rows.lock().await.next().await.transpose()?;
                    Ok($crate::iteration::NextRow(row.map($item), mode))
                };
                if is_read {
                    self.runner.run(py, $operation, next)
                } else {
                    self.runner.run_detached(py, $operation, next)
                }
            }
        }

        /// The blocking iterator.
        #[pyo3::pyclass(frozen, module = "townsquare._native")]
        pub(crate) struct $iterator($next);

        #[pyo3::pymethods]
        impl $iterator {
            fn __iter__(this: pyo3::Py<Self>) -> pyo3::Py<Self> {
                this
            }

            fn __next__<'py>(&self, py: pyo3::Python<'py>) -> $crate::run::MethodResult<'py> {
                self.0.next(py)
            }
        }

        /// The async iterator.
        #[pyo3::pyclass(frozen, module = "townsquare._native")]
        pub(crate) struct $async_iterator($next);

        #[pyo3::pymethods]
        impl $async_iterator {
            fn __aiter__(this: pyo3::Py<Self>) -> pyo3::Py<Self> {
                this
            }

            fn __anext__<'py>(&self, py: pyo3::Python<'py>) -> $crate::run::MethodResult<'py> {
                self.0.next(py)
            }
        }
    };
}

pub(crate) use iteration;
use pyo3::{
    exceptions::{PyStopAsyncIteration, PyStopIteration},
    prelude::*,
};

use crate::run::Mode;

/// Converts to the Python object of a row; `None` raises the exception that ends an iteration.
pub(crate) struct NextRow<T>(pub(crate) Option<T>, pub(crate) Mode);

impl<'py, T> IntoPyObject<'py> for NextRow<T>
where
    T: IntoPyObject<'py>,
    PyErr: From<T::Error>,
{
    type Target = T::Target;
    type Output = T::Output;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<T::Output> {
        match (self.0, self.1) {
            (Some(row), _) => Ok(row.into_pyobject(py)?),
            (None, Mode::Sync) => Err(PyStopIteration::new_err(())),
            (None, Mode::Async) => Err(PyStopAsyncIteration::new_err(())),
        }
    }
}

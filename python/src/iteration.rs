//! The iterators over long lists: blocking ones and async ones.

/// Declares the iterators over a stream of rows. `$item` wraps a row for the conversion to its Python record.
macro_rules! iteration {
    ($next:ident: $stream:ty as $row:ty, $operation:expr, $item:path, $iterator:ident, $async_iterator:ident) => {
        /// The rest of the rows. `rows` is dropped before `runner`, so that it does not hold the last share of the client.
        pub(crate) struct $next {
            rows: std::sync::Arc<tokio::sync::Mutex<$crate::undelivered::WithUndelivered<$stream, $row>>>,
            runner: $crate::run::Runner,
        }

        impl $next {
            /// Returns the iterator over `rows` in the mode of `runner`.
            pub(crate) fn iterator<'py>(
                py: pyo3::Python<'py>,
                rows: $stream,
                runner: &$crate::run::Runner,
            ) -> $crate::run::MethodResult<'py> {
                let rows = $crate::undelivered::WithUndelivered::new(rows);
                let next = $next { rows: std::sync::Arc::new(tokio::sync::Mutex::new(rows)), runner: runner.clone() };
                Ok(match runner.mode() {
                    $crate::run::Mode::Sync => pyo3::Bound::new(py, $iterator(next))?.into_any(),
                    $crate::run::Mode::Async => pyo3::Bound::new(py, $async_iterator(next))?.into_any(),
                })
            }

            fn next<'py>(&self, py: pyo3::Python<'py>) -> $crate::run::MethodResult<'py> {
                let is_ahead = |rows: &$crate::undelivered::WithUndelivered<$stream, $row>| {
                    rows.undelivered.is_some() || rows.source.has_read_ahead()
                };
                let is_read = self.rows.try_lock().is_ok_and(|rows| is_ahead(&rows));
                let (rows, mode) = (std::sync::Arc::clone(&self.rows), self.runner.mode());
                let next = move |client: std::sync::Arc<$crate::client_share::ProcessClient>| async move {
                    // Fails in a forked process.
                    client.get()?;
                    let mut rows = rows.lock_owned().await;
                    let row = match rows.undelivered.take() {
                        None => rows.source.next().await.transpose()?,
                        undelivered => undelivered,
                    };
                    let row = $crate::undelivered::WithUndelivered::taken(rows, row);
                    Ok($crate::iteration::NextRow { row, item: $item, mode })
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

use crate::{run::Mode, undelivered::Undelivered};

/// Converts to the Python object of a row; no row raises the exception that ends an iteration.
pub(crate) struct NextRow<S, R, T> {
    pub(crate) row: Undelivered<S, R>,
    pub(crate) item: fn(R) -> T,
    pub(crate) mode: Mode,
}

impl<'py, S, R, T> IntoPyObject<'py> for NextRow<S, R, T>
where
    T: IntoPyObject<'py>,
    PyErr: From<T::Error>,
{
    type Target = T::Target;
    type Output = T::Output;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<T::Output> {
        match (self.row.deliver(), self.mode) {
            (Some(row), _) => Ok((self.item)(row).into_pyobject(py)?),
            (None, Mode::Sync) => Err(PyStopIteration::new_err(())),
            (None, Mode::Async) => Err(PyStopAsyncIteration::new_err(())),
        }
    }
}

//! Subscriptions as iterators: `ChangeStream` and `LiveQuery`, each for `Client` and for `AsyncClient`.
//!
//! Invariant: a change is delivered or stays in its stream, also if the call that received it is cancelled.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, PoisonError},
    task::Poll,
    time::Duration,
};

use pyo3::{
    exceptions::{PyStopAsyncIteration, PyStopIteration},
    prelude::*,
    sync::PyOnceLock,
    types::{PyList, PyListMethods, PyTuple},
};
use serde_json::Map;
use tokio::{runtime::Handle, sync::Mutex, task::JoinSet};
use townsquare::{
    Json, Operation,
    realtime::{ChangeStream as CoreStream, RowChange, StreamCloser},
};

use crate::{
    argument::SecondsArg,
    change::{Change, PyRow},
    errors::Failure,
    process::ProcessOwned,
    run::{MethodResult, Mode, NoValue, Runner},
    undelivered::{Undelivered, WithUndelivered},
};

#[doc = text_of!(ChangeStream)]
// The base of the four classes. `state` and `closer` are dropped before `runner`, so that they do not hold the last share of
// the client.
#[pyclass(name = "ChangeStream", frozen, subclass, module = "townsquare._native")]
pub(crate) struct StreamMethods {
    state: Arc<Mutex<StreamState>>,
    closer: Arc<std::sync::Mutex<ProcessOwned<StreamCloser>>>,
    runner: Runner,
}

/// A stream, and what a cancelled call received.
type StreamState = WithUndelivered<ProcessOwned<CoreStream>, townsquare::Result<RowChange>>;

impl StreamState {
    async fn next(&mut self) -> Option<townsquare::Result<RowChange>> {
        match (self.undelivered.take(), self.source.get_mut()) {
            (None, Some(stream)) => stream.next().await,
            (undelivered, _) => undelivered,
        }
    }
}

#[pymethods]
impl StreamMethods {
    #[doc = text_of!(ChangeStream.next)]
    #[pyo3(signature = (timeout = None))]
    fn next<'py>(&self, py: Python<'py>, timeout: Option<SecondsArg>) -> MethodResult<'py> {
        self.take_next(py, timeout, None)
    }

    #[doc = text_of!(ChangeStream.close)]
    fn close<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let closer = Arc::clone(&self.closer);
        self.runner.run_without_gil(py, "close", |client| async move {
            // In a child process the stream is the parent's.
            if client.get().is_ok()
                && let Some(closer) = closer.lock().unwrap_or_else(PoisonError::into_inner).get_mut()
            {
                closer.close();
            }
            Ok(NoValue)
        })
    }
}

impl StreamMethods {
    /// `end` is the mode of an iteration, which an exception ends.
    fn take_next<'py>(&self, py: Python<'py>, timeout: Option<SecondsArg>, end: Option<Mode>) -> MethodResult<'py> {
        let state = Arc::clone(&self.state);
        self.runner.run_without_gil(py, Operation::Changes, move |client| async move {
            // Fails in a child process.
            let runtime = client.get()?.runtime().clone();
            let timeout = timeout.map(|timeout| timeout.value("timeout")).transpose()?;
            let receive = async {
                let mut state = state.lock_owned().await;
                let change = state.next().await;
                StreamState::taken(state, change)
            };
            Ok(PyNext(within(&runtime, timeout, receive).await, end))
        })
    }
}

/// Waits for `future`, at most `timeout`.
async fn within<T>(runtime: &Handle, timeout: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    let Some(timeout) = timeout else { return Some(future.await) };
    // Dropping the set ends the timer.
    let mut timer = JoinSet::new();
    timer.spawn_on(async move { tokio::time::sleep(timeout).await }, runtime);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => timer.poll_join_next(context).map(|_| None),
    })
    .await
}

/// The result of a wait: a change or `None`, or the exception that ends an iteration of this mode.
struct PyNext(Option<Undelivered<ProcessOwned<CoreStream>, townsquare::Result<RowChange>>>, Option<Mode>);

impl<'py> IntoPyObject<'py> for PyNext {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        let change = self.0.and_then(Undelivered::deliver);
        match (change, self.1) {
            (Some(Ok(change)), _) => Ok(Bound::new(py, Change::from(change))?.into_any()),
            (Some(Err(error)), _) => Err(Failure::from(error).into_exception(py, Some(Operation::Changes))),
            (None, None) => Ok(py.None().into_bound(py)),
            (None, Some(Mode::Sync)) => Err(PyStopIteration::new_err(())),
            (None, Some(Mode::Async)) => Err(PyStopAsyncIteration::new_err(())),
        }
    }
}

#[doc = text_of!(ChangeStream)]
#[pyclass(frozen, subclass, extends = StreamMethods, module = "townsquare")]
pub(crate) struct ChangeStream;

#[pymethods]
impl ChangeStream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
        this.as_super().get().take_next(this.py(), None, Some(Mode::Sync))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(this: &Bound<'_, Self>, exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        let _ = exc;
        this.as_super().get().close(this.py()).map(drop)
    }
}

#[doc = text_of!(AsyncChangeStream)]
#[pyclass(frozen, subclass, extends = StreamMethods, module = "townsquare")]
pub(crate) struct AsyncChangeStream;

#[pymethods]
impl AsyncChangeStream {
    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
        this.as_super().get().take_next(this.py(), None, Some(Mode::Async))
    }

    fn __aenter__<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
        let itself = this.clone().unbind();
        this.as_super().get().runner.run(this.py(), "__aenter__", |_| async move { Ok(itself) })
    }

    #[pyo3(signature = (*exc))]
    fn __aexit__<'py>(this: &Bound<'py, Self>, exc: &Bound<'py, PyTuple>) -> MethodResult<'py> {
        let _ = exc;
        this.as_super().get().close(this.py())
    }
}

/// The rows of a live query. They become Python objects when they are first read.
pub(crate) struct LiveRows {
    rows: Vec<Map<String, Json>>,
    list: PyOnceLock<Py<PyList>>,
}

impl LiveRows {
    fn list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = self.list.get_or_try_init(py, || {
            let list = PyList::empty(py);
            for row in &self.rows {
                list.append(PyRow(row))?;
            }
            Ok::<_, PyErr>(list.unbind())
        })?;
        Ok(list.bind(py).clone())
    }
}

#[doc = text_of!(LiveQuery)]
#[pyclass(frozen, extends = ChangeStream, module = "townsquare")]
pub(crate) struct LiveQuery(LiveRows);

#[pymethods]
impl LiveQuery {
    #[doc = text_of!(LiveQuery.rows)]
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.0.list(py)
    }
}

#[doc = text_of!(AsyncLiveQuery)]
#[pyclass(frozen, extends = AsyncChangeStream, module = "townsquare")]
pub(crate) struct AsyncLiveQuery(LiveRows);

#[pymethods]
impl AsyncLiveQuery {
    #[doc = text_of!(LiveQuery.rows)]
    #[getter]
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.0.list(py)
    }
}

/// A stream, with the rows of a live query, that becomes the object of its runner's mode.
pub(crate) struct NewStream {
    pub(crate) stream: CoreStream,
    pub(crate) rows: Option<Vec<Map<String, Json>>>,
    pub(crate) runner: Runner,
}

impl<'py> IntoPyObject<'py> for NewStream {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        let NewStream { stream, rows, runner } = self;
        let mode = runner.mode();
        let closer = Arc::new(std::sync::Mutex::new(ProcessOwned::new(stream.closer())));
        let state = StreamState::new(ProcessOwned::new(stream));
        let methods = PyClassInitializer::from(StreamMethods { state: Arc::new(Mutex::new(state)), closer, runner });
        let rows = rows.map(|rows| LiveRows { rows, list: PyOnceLock::new() });
        Ok(match (mode, rows) {
            (Mode::Sync, None) => Bound::new(py, methods.add_subclass(ChangeStream))?.into_any(),
            (Mode::Async, None) => Bound::new(py, methods.add_subclass(AsyncChangeStream))?.into_any(),
            (Mode::Sync, Some(rows)) => {
                Bound::new(py, methods.add_subclass(ChangeStream).add_subclass(LiveQuery(rows)))?.into_any()
            }
            (Mode::Async, Some(rows)) => {
                Bound::new(py, methods.add_subclass(AsyncChangeStream).add_subclass(AsyncLiveQuery(rows)))?.into_any()
            }
        })
    }
}

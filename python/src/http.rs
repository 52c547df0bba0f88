//! HTTP without a server: the response of the discovery endpoint (SPEC 4.1), and responses with a streamed body.

use std::sync::Arc;

use bytes::Bytes;
use pyo3::{
    exceptions::{PyStopAsyncIteration, PyStopIteration},
    prelude::*,
    types::{PyBytes, PyDict, PyTuple},
};
use tokio::sync::Mutex;
use townsquare::{
    Operation,
    http::{BodyCloser, HttpResponse as CoreResponse, ResponseBody},
};

use crate::{
    process::ProcessOwned,
    record::record,
    run::{MethodResult, Mode, NoValue, Runner},
    undelivered::{Undelivered, WithUndelivered},
};

record! {
    #[doc = text_of!(HttpResponse)]
    HttpResponse(townsquare::discovery::HttpResponse) [] as response, hash [status, body] => {
        /// The HTTP status.
        status: "int" = response.status,
        /// Header names in lower case, with their values.
        headers: "dict[str, str]" = Headers(&response.headers),
        /// The body: JSON in UTF-8, or empty.
        body: "bytes" = Body(&response.body),
    }
}

struct Headers<'a>(&'a [(String, String)]);

impl<'py> IntoPyObject<'py> for Headers<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in self.0 {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }
}

/// Bytes as a `bytes` object.
struct Body<'a>(&'a [u8]);

impl<'py> IntoPyObject<'py> for Body<'_> {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Self::Error> {
        Ok(PyBytes::new(py, self.0))
    }
}

#[doc = text_of!(HttpStream)]
// What `HttpStream` and `AsyncHttpStream` have in common. `body` is dropped before `runner`, so that the share of the client in
// `runner` outlives it.
#[pyclass(name = "HttpStream", frozen, subclass, module = "townsquare._native")]
pub(crate) struct StreamMethods {
    status: u16,
    headers: Vec<(String, String)>,
    body: Arc<Mutex<StreamBody>>,
    /// Ends the body while another thread waits for its next chunk; `None` for a body that never waits long.
    closer: Option<BodyCloser>,
    runner: Runner,
}

#[pymethods]
impl StreamMethods {
    #[doc = text_of!(HttpStream.status)]
    #[getter]
    fn status(&self) -> u16 {
        self.status
    }

    #[doc = text_of!(HttpStream.headers)]
    #[getter]
    fn headers(&self) -> Headers<'_> {
        Headers(&self.headers)
    }

    #[doc = text_of!(HttpStream.close)]
    fn close<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let (body, closer) = (Arc::clone(&self.body), self.closer.clone());
        self.runner.run_without_gil(py, "close", |client| async move {
            // In a child process the body is the parent's.
            if client.get().is_ok() {
                closer.inspect(BodyCloser::close);
                let mut body = body.lock().await;
                drop((body.source.take(), body.undelivered.take()));
            }
            Ok(NoValue)
        })
    }

    fn __repr__(&self) -> String {
        let class = match self.runner.mode() {
            Mode::Sync => "HttpStream",
            Mode::Async => "AsyncHttpStream",
        };
        format!("<townsquare.{class} {}>", self.status)
    }
}

impl StreamMethods {
    fn next<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let (body, mode) = (Arc::clone(&self.body), self.runner.mode());
        self.runner.run_without_gil(py, Operation::HandleFile, move |client| async move {
            // Fails in a child process.
            client.get()?;
            let mut body = body.lock_owned().await;
            let chunk = match (body.undelivered.take(), body.source.get_mut()) {
                (Some(undelivered), _) => Some(undelivered),
                (None, Some(body)) => body.next_chunk().await?,
                (None, None) => None,
            };
            Ok(PyChunk(WithUndelivered::taken(body, chunk), mode))
        })
    }
}

#[doc = text_of!(HttpStream)]
#[pyclass(frozen, extends = StreamMethods, module = "townsquare")]
pub(crate) struct HttpStream;

#[pymethods]
impl HttpStream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
        this.as_super().get().next(this.py())
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

#[doc = text_of!(AsyncHttpStream)]
#[pyclass(frozen, extends = StreamMethods, module = "townsquare")]
pub(crate) struct AsyncHttpStream;

#[pymethods]
impl AsyncHttpStream {
    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__<'py>(this: &Bound<'py, Self>) -> MethodResult<'py> {
        this.as_super().get().next(this.py())
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

/// A response that becomes the object of its runner's mode.
pub(crate) struct NewStream {
    response: CoreResponse<ResponseBody>,
    runner: Runner,
}

impl NewStream {
    pub(crate) fn new(response: CoreResponse<ResponseBody>, runner: Runner) -> NewStream {
        NewStream { response, runner }
    }
}

/// What a method with a streamed response returns: the response, or a coroutine of it that `async with` takes too.
pub(crate) fn opening(opened: Bound<'_, PyAny>, mode: Mode) -> MethodResult<'_> {
    match mode {
        Mode::Sync => Ok(opened),
        Mode::Async => opened.py().import("townsquare._opening")?.getattr("AsyncResponseOpening")?.call1((opened,)),
    }
}

impl<'py> IntoPyObject<'py> for NewStream {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        let NewStream { response, runner } = self;
        let (status, headers, body) = (response.status, response.headers, response.body);
        let (closer, mode) = (body.closer(), runner.mode());
        let body = Arc::new(Mutex::new(StreamBody::new(ProcessOwned::new(body))));
        let methods = PyClassInitializer::from(StreamMethods { status, headers, body, closer, runner });
        Ok(match mode {
            Mode::Sync => Bound::new(py, methods.add_subclass(HttpStream))?.into_any(),
            Mode::Async => Bound::new(py, methods.add_subclass(AsyncHttpStream))?.into_any(),
        })
    }
}

/// A body, and a chunk that was not delivered.
type StreamBody = WithUndelivered<ProcessOwned<ResponseBody>, Bytes>;

/// The next chunk of a body; `None` raises the exception that ends an iteration.
struct PyChunk(Undelivered<ProcessOwned<ResponseBody>, Bytes>, Mode);

impl<'py> IntoPyObject<'py> for PyChunk {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match (self.0.deliver(), self.1) {
            (Some(chunk), _) => Ok(PyBytes::new(py, &chunk)),
            (None, Mode::Sync) => Err(PyStopIteration::new_err(())),
            (None, Mode::Async) => Err(PyStopAsyncIteration::new_err(())),
        }
    }
}

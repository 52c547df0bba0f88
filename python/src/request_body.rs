//! The body of a request: bytes, a source, or chunks that a server receives one by one.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, ready},
};

use bytes::Bytes;
use futures_util::stream;
use parking_lot::Mutex;
use pyo3::{prelude::*, types::PyTuple};
use tokio::sync::{
    mpsc::{Receiver, Sender, channel},
    oneshot,
};
use townsquare::{
    Client, ErrorKind, Operation,
    blocking::wait,
    http::{HttpResponse, RequestBody, ResponseBody},
};

use crate::{
    argument::{BytesArg, TextArg},
    errors::Failure,
    headers::HeadersArg,
    http::{NewStream, opening},
    method::Method,
    process,
    run::{MethodResult, Mode, NoValue, Runner, into_result},
    upload_options::UploadArg,
};

/// The chunks that wait to be stored.
const WAITING: usize = 2;

/// The body of a request, which a server receives in chunks. `handle_file` and `handle_request` take it as `body`.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct RequestChunks {
    sender: Mutex<Option<Sender<Bytes>>>,
    receiver: Mutex<Option<Receiver<Bytes>>>,
    is_complete: Arc<AtomicBool>,
    /// The response of a request that [`answer`](RequestChunks::answer) has started.
    response: Mutex<Option<oneshot::Receiver<townsquare::Result<HttpResponse<ResponseBody>>>>>,
    handler: Handler,
    runner: Runner,
}

/// The method that answers a request.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// `Storage.handle_file`.
    File,
    /// `Client.handle_request`.
    Request,
}

impl Handler {
    async fn answer(
        self,
        client: &Client,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: RequestBody,
    ) -> townsquare::Result<HttpResponse<ResponseBody>> {
        match self {
            Handler::File => client.storage().handle_file(method, target, headers, body).await,
            Handler::Request => client.handle_request(method, target, headers, body).await,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Handler::File => "handle_file",
            Handler::Request => "handle_request",
        }
    }
}

impl From<Handler> for Method {
    fn from(handler: Handler) -> Method {
        match handler {
            Handler::File => Operation::HandleFile.into(),
            Handler::Request => handler.name().into(),
        }
    }
}

#[pymethods]
impl RequestChunks {
    /// Starts to answer a request on a thread of its own: the calling thread pushes the chunks meanwhile. (A thread of Python may be
    /// a greenlet, and would wait for the calling one.)
    fn start(&self, py: Python<'_>, method: TextArg, target: TextArg, headers: HeadersArg) -> PyResult<()> {
        let start = || {
            let method = method.value("method")?;
            let (target, headers) = (target.value("target")?, headers.value("headers")?);
            self.answer(None, method, target, headers)?;
            Ok(NoValue)
        };
        into_result(py, self.handler.into(), start()).map(drop)
    }

    /// Waits for the response of the request that was started.
    fn response<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let (receiver, runner) = (self.response.lock().take(), self.runner.clone());
        self.runner.run_without_gil(py, self.handler, |_| async move {
            let ended = || Failure::new(ErrorKind::Internal, "no request is being answered");
            let response = receiver.ok_or_else(ended)?.await.map_err(|_| ended())?;
            Ok(NewStream::new(response?, runner))
        })
    }

    /// Adds a chunk. Waits while others wait to be stored. False if the request has been answered: it reads no more chunks.
    fn push<'py>(&self, py: Python<'py>, chunk: BytesArg) -> MethodResult<'py> {
        let (sender, chunk) = (self.sender.lock().clone(), chunk.shared());
        self.runner.run_without_gil(py, "push", |_| async move {
            Ok(match sender {
                Some(sender) => sender.send(chunk).await.is_ok(),
                None => false,
            })
        })
    }

    /// Ends the body. Without this call, as when the server's client disconnects, the request stores nothing.
    fn finish(&self) {
        self.is_complete.store(true, Ordering::Release);
        self.cut();
    }

    /// Ends a body that is not complete.
    fn cut(&self) {
        drop(self.sender.lock().take());
    }
}

impl RequestChunks {
    /// The body of a request that the client of this runner answers.
    pub(crate) fn of(runner: Runner, handler: Handler) -> RequestChunks {
        let (sender, receiver) = channel(WAITING);
        RequestChunks {
            sender: Mutex::new(Some(sender)),
            receiver: Mutex::new(Some(receiver)),
            is_complete: Arc::default(),
            response: Mutex::default(),
            handler,
            runner,
        }
    }

    /// Starts to answer a request with this body on a thread of its own.
    pub(crate) fn answer(
        &self,
        client_key: Option<&str>,
        method: String,
        target: String,
        headers: Vec<(String, String)>,
    ) -> Result<(), Failure> {
        let client = with_key(self.runner.client().get()?, client_key);
        let (body, handler, (sender, receiver)) = (self.body(), self.handler, oneshot::channel());
        townsquare::threads::spawn("townsquare-request", move || {
            drop(sender.send(wait(handler.answer(&client, &method, &target, &headers, body))));
        })?;
        *self.response.lock() = Some(receiver);
        Ok(())
    }

    /// The body, for the first request that asks for it; later ones get an empty one.
    pub(crate) fn body(&self) -> RequestBody {
        let Some(mut receiver) = self.receiver.lock().take() else { return Bytes::new().into() };
        let is_complete = Arc::clone(&self.is_complete);
        let mut has_failed = false;
        RequestBody::from_chunks(stream::poll_fn(move |context| {
            let chunk = ready!(receiver.poll_recv(context));
            Poll::Ready(match chunk {
                Some(chunk) => Some(Ok(chunk)),
                None if has_failed || is_complete.load(Ordering::Acquire) => None,
                None => {
                    has_failed = true;
                    Some(Err(io::ErrorKind::UnexpectedEof.into()))
                }
            })
        }))
    }
}

/// Answers a request by `handler`, for the method of `object` with that name.
pub(crate) fn answer_request<'py>(
    object: &Bound<'py, PyAny>,
    runner: &Runner,
    handler: Handler,
    (method, target, headers): (TextArg, TextArg, Option<HeadersArg>),
    body: BodyArg,
) -> MethodResult<'py> {
    let py = object.py();
    let request = || {
        let (method, target) = (method.value("method")?, target.value("target")?);
        Ok((method, target, headers.map_or(Ok(Vec::new()), |headers| headers.value("headers"))?))
    };
    let body = match body.body() {
        Ok(body) => body,
        Err(source) => {
            let (method, target, headers) =
                request().map_err(|failure: Failure| failure.into_exception(py, Method::from(handler).operation()))?;
            let function = match runner.mode() {
                Mode::Sync => "handle_chunks",
                Mode::Async => "handle_chunks_async",
            };
            let chunks = RequestChunks::of(runner.clone(), handler);
            let answer = object.getattr(handler.name())?;
            return opening(
                read_source(py, function, (answer, chunks, method, target, source, headers))?,
                runner.mode(),
            );
        }
    };
    let of_response = runner.clone();
    let opened = runner.run_detached(py, handler, |client| async move {
        let (method, target, headers) = request()?;
        Ok(NewStream::new(handler.answer(client.get()?, &method, &target, &headers, body).await?, of_response))
    });
    opening(opened?, runner.mode())
}

/// Calls a function of `townsquare._files` that reads a file object or an iterable of the program.
pub(crate) fn read_source<'py>(
    py: Python<'py>,
    function: &str,
    arguments: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
) -> MethodResult<'py> {
    let (function, arguments) = (py.import("townsquare._files")?.getattr(function)?, arguments.into_pyobject(py)?);
    process::call_python(|| function.call1(&arguments)).unwrap_or_else(|| Ok(py.None().into_bound(py)))
}

/// A handle with the limits of one client of a server.
pub(crate) fn with_key(client: &Client, client_key: Option<&str>) -> Client {
    client_key.map_or_else(|| client.clone(), |key| client.with_client_key(key))
}

/// The body of a request: bytes, chunks that a server receives, or a source that `townsquare._files` reads.
pub(crate) enum BodyArg {
    Bytes(BytesArg),
    Chunks(Py<RequestChunks>),
    Source(Py<PyAny>),
}

impl BodyArg {
    pub(crate) const EMPTY: BodyArg = BodyArg::Bytes(BytesArg::EMPTY);

    /// The body, or the source of it.
    pub(crate) fn body(self) -> Result<RequestBody, Py<PyAny>> {
        match self {
            BodyArg::Bytes(bytes) => Ok(bytes.shared().into()),
            BodyArg::Chunks(chunks) => Ok(chunks.get().body()),
            BodyArg::Source(source) => Err(source),
        }
    }
}

impl<'py> FromPyObject<'_, 'py> for BodyArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<BodyArg> {
        if let Ok(chunks) = value.cast::<RequestChunks>() {
            return Ok(BodyArg::Chunks(chunks.to_owned().unbind()));
        }
        Ok(match value.extract()? {
            UploadArg::Bytes(bytes) => BodyArg::Bytes(bytes),
            UploadArg::Chunks(source) => BodyArg::Source(source),
        })
    }
}

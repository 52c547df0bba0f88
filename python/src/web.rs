//! The parts of `asgi` and `wsgi` that Python cannot write: a handle for the requests of one client of a server, and the body of
//! a request in chunks.

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
use pyo3::prelude::*;
use tokio::sync::{
    mpsc::{Receiver, Sender, channel},
    oneshot,
};
use townsquare::{
    ErrorKind, Operation,
    blocking::wait,
    storage::{FileResponse, RequestBody},
};

use crate::{
    argument::{BytesArg, TextArg},
    client::{Methods, NewClient},
    client_share::ProcessClient,
    errors::Failure,
    headers::HeadersArg,
    http::NewStream,
    run::{MethodResult, Mode, NoValue, Runner, into_result},
    upload_options::UploadArg,
};

/// The chunks that wait to be stored.
const WAITING: usize = 2;

/// Returns a handle of `client` with limits for one client of a server: an `AsyncClient` or a `Client`.
#[pyfunction]
pub(crate) fn request_handle<'py>(
    client: &Bound<'py, Methods>,
    client_key: Option<&str>,
    is_async: bool,
) -> MethodResult<'py> {
    let share = client.get().runner().client();
    let mode = if is_async { Mode::Async } else { Mode::Sync };
    let handle = share.get().map(|client| client_key.map_or_else(|| client.clone(), |key| client.with_client_key(key)));
    let client_object =
        handle.map(|handle| NewClient { client: ProcessClient::new(handle, Arc::clone(share.waker())), mode });
    into_result(client.py(), "with_client_key".into(), client_object)
}

/// The body of a request, which a server receives in chunks. `handle_file` takes it as `body`.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct RequestChunks {
    sender: Mutex<Option<Sender<Bytes>>>,
    receiver: Mutex<Option<Receiver<Bytes>>>,
    is_complete: Arc<AtomicBool>,
    /// The response of a PUT that [`start`](RequestChunks::start) has started.
    response: Mutex<Option<oneshot::Receiver<townsquare::Result<FileResponse>>>>,
    runner: Runner,
}

#[pymethods]
impl RequestChunks {
    /// The body of a request that `client` answers.
    #[new]
    fn new(client: &Bound<'_, Methods>) -> RequestChunks {
        RequestChunks::of(client.get().runner().clone())
    }

    /// Starts to answer a PUT on a thread of its own: the calling thread pushes the chunks meanwhile. (A thread of Python may be a
    /// greenlet, and would wait for the calling one.)
    fn start(&self, py: Python<'_>, target: TextArg, headers: HeadersArg) -> PyResult<()> {
        let start = || {
            let (target, headers) = (target.value("target")?, headers.value("headers")?);
            let storage = self.runner.client().get()?.clone();
            let (body, (sender, receiver)) = (self.body(), oneshot::channel());
            townsquare::threads::spawn("townsquare-put", move || {
                let storage = storage.storage();
                let _ = sender.send(wait(storage.handle_file("PUT", &target, &headers, body)));
            })?;
            *self.response.lock() = Some(receiver);
            Ok(NoValue)
        };
        into_result(py, Operation::HandleFile.into(), start()).map(drop)
    }

    /// Waits for the response of the PUT that was started.
    fn response<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        let (receiver, runner) = (self.response.lock().take(), self.runner.clone());
        self.runner.run_without_gil(py, Operation::HandleFile, |_| async move {
            let ended = || Failure::new(ErrorKind::Internal, "no PUT is being answered");
            let response = receiver.ok_or_else(ended)?.await.map_err(|_| ended())?;
            Ok(NewStream::of_file(response?, runner))
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
    pub(crate) fn of(runner: Runner) -> RequestChunks {
        let (sender, receiver) = channel(WAITING);
        RequestChunks {
            sender: Mutex::new(Some(sender)),
            receiver: Mutex::new(Some(receiver)),
            is_complete: Arc::default(),
            response: Mutex::default(),
            runner,
        }
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

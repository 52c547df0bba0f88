//! Requests to the applications `asgi` and `wsgi`: reading them from a server's arguments, and answering them.
//!
//! Invariant: the core decides which endpoint answers, for ASGI and WSGI as for axum.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict, PyList, PyString, PyTuple},
};
use townsquare::http::{EVENTS_PATH, FILES_PATH, HttpResponse, ResponseBody};

use crate::{
    client::{Methods, NewClient},
    client_share::ProcessClient,
    errors::Failure,
    headers::HeadersArg,
    http::NewStream,
    request_body::{BodyArg, Handler, RequestChunks, with_key},
    request_path::{below, normal, query, quoted},
    run::{MethodResult, Mode, NoValue, Runner, into_result},
};

/// A smaller body is sent in one piece.
const PIECE: u64 = 64 << 10;

/// Returns an `AsyncClient` with limits for one client of a server.
#[pyfunction]
pub(crate) fn request_handle<'py>(client: &Bound<'py, Methods>, client_key: Option<&str>) -> MethodResult<'py> {
    let share = client.get().runner().client();
    let client_object = share.get().map(|core| NewClient {
        client: ProcessClient::new(with_key(core, client_key), Arc::clone(share.waker())),
        mode: Mode::Async,
    });
    into_result(client.py(), "with_client_key".into(), client_object)
}

/// A request to an application of a web server.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct WebRequest {
    runner: Runner,
    method: String,
    /// The path below the application's prefix and the query, escaped as RFC 3986 needs it.
    target: String,
    headers: Vec<(String, String)>,
    client_key: Option<String>,
}

#[pymethods]
impl WebRequest {
    /// The request of an ASGI scope. `client` answers it with `answer`.
    #[staticmethod]
    fn of_scope(client: &Bound<'_, Methods>, prefix: &str, scope: &Bound<'_, PyAny>) -> PyResult<WebRequest> {
        let get = |name: &str| {
            let value = match scope.cast::<PyDict>() {
                Ok(scope) => scope.get_item(name)?,
                Err(_) => Some(scope.call_method1("get", (name,))?),
            };
            Ok::<_, PyErr>(value.filter(|value| !value.is_none()))
        };
        let text =
            |name| Ok::<_, PyErr>(get(name)?.map(|value| value.extract::<String>()).transpose()?.unwrap_or_default());
        let path = match get("raw_path")? {
            // Some servers add the query.
            Some(raw) => {
                normal(raw.cast::<PyBytes>()?.as_bytes().split(|byte| *byte == b'?').next().unwrap_or_default())
            }
            None => quoted(text("path")?.as_bytes()),
        };
        let (root, proxy) = (text("root_path")?, text("app_root_path")?);
        let root = quoted(root.trim_end_matches('/').as_bytes());
        let mut rest = below(&path, &root);
        if rest.is_none() && !proxy.is_empty() {
            // A proxy has removed its part from the path: of `root_path` the path has what Starlette's mounts have added.
            let proxy = quoted(proxy.trim_end_matches('/').as_bytes());
            rest = below(&path, root.strip_prefix(&proxy).unwrap_or(&root));
        }
        let query = match get("query_string")? {
            Some(text) => query(text.cast::<PyBytes>()?.as_bytes()),
            None => String::new(),
        };
        let headers = match get("headers")? {
            Some(headers) => headers.extract::<HeadersArg>()?,
            None => HeadersArg::default(),
        };
        let peer = get("client")?.map(|peer| peer.get_item(0)?.extract::<Option<String>>()).transpose()?.flatten();
        let runner = client.get().runner().in_mode(Mode::Async);
        WebRequest::new(runner, text("method")?, below(rest.unwrap_or(&path), prefix), &query, headers, peer)
    }

    /// The request of a WSGI environment. `client` answers it with `answer` or `answer_chunks`.
    #[staticmethod]
    fn of_environ(client: &Bound<'_, Methods>, prefix: &str, environ: &Bound<'_, PyDict>) -> PyResult<WebRequest> {
        let text = |name| {
            let value = environ.get_item(name)?;
            Ok::<_, PyErr>(value.map(|value| value.extract::<String>()).transpose()?.unwrap_or_default())
        };
        // WSGI has decoded the path.
        let (path, query) = (quoted(&latin_1(&text("PATH_INFO")?)?), query(&latin_1(&text("QUERY_STRING")?)?));
        let mut headers = Vec::new();
        for (name, value) in environ {
            let Ok(name) = name.extract::<String>() else { continue };
            let header = match name.strip_prefix("HTTP_") {
                // WSGI has these without the prefix.
                Some("CONTENT_TYPE" | "CONTENT_LENGTH") => continue,
                Some(header) => header,
                None if matches!(name.as_str(), "CONTENT_TYPE" | "CONTENT_LENGTH") && value.is_truthy()? => &name,
                None => continue,
            };
            headers.push((header.replace('_', "-").to_ascii_lowercase(), value.extract::<String>()?));
        }
        let peer = Some(text("REMOTE_ADDR")?).filter(|peer| !peer.is_empty());
        let runner = client.get().runner().in_mode(Mode::Sync);
        WebRequest::new(runner, text("REQUEST_METHOD")?, below(&path, prefix), &query, headers.into(), peer)
    }

    #[getter]
    fn method(&self) -> &str {
        &self.method
    }

    /// Whether the endpoint may read a body.
    #[getter]
    fn reads_body(&self) -> bool {
        matches!(self.method.as_str(), "PUT" | "POST")
    }

    /// An empty body, which takes chunks.
    fn chunks(&self) -> RequestChunks {
        RequestChunks::of(self.runner.clone(), Handler::Request)
    }

    /// Returns the status, the pairs of headers and the body: bytes, or a stream of a large body or of events.
    #[pyo3(signature = (body = BodyArg::EMPTY))]
    fn answer<'py>(&self, py: Python<'py>, body: BodyArg) -> MethodResult<'py> {
        let Ok(body) = body.body() else { return into_result(py, METHOD.into(), Err::<NoValue, _>(no_source())) };
        let (method, target, headers) = (self.method.clone(), self.target.clone(), self.headers.clone());
        let (client_key, runner) = (self.client_key.clone(), self.runner.clone());
        let answer = |client: Arc<ProcessClient>| async move {
            let client = with_key(client.get()?, client_key.as_deref());
            Answer::of(client.handle_request(&method, &target, &headers, body).await?, runner).await
        };
        if self.target.starts_with(FILES_PATH) {
            // A file is read from the database or the disk, which may take long.
            self.runner.run_detached(py, METHOD, answer)
        } else if self.target.starts_with(EVENTS_PATH) {
            self.runner.run_without_gil(py, METHOD, answer)
        } else {
            self.runner.run(py, METHOD, answer)
        }
    }

    /// Starts to answer a request whose body comes in chunks, on another thread. `chunks.response()` waits for the answer.
    fn answer_chunks(&self, py: Python<'_>, chunks: &Bound<'_, RequestChunks>) -> PyResult<()> {
        let (method, target, headers) = (self.method.clone(), self.target.clone(), self.headers.clone());
        let started = chunks.get().answer(self.client_key.as_deref(), method, target, headers);
        into_result(py, METHOD.into(), started.map(|()| NoValue)).map(drop)
    }
}

/// The bytes of a text of WSGI, which has a character for each.
fn latin_1(text: &str) -> PyResult<Vec<u8>> {
    let bytes = text.chars().map(|character| u8::try_from(u32::from(character)));
    bytes.collect::<Result<_, _>>().map_err(|_| PyValueError::new_err("a text of the environment is not Latin-1"))
}

/// The name of the call in errors.
const METHOD: &str = "handle_request";

fn no_source() -> Failure {
    Failure::invalid_input("body is bytes or chunks".to_owned())
}

impl WebRequest {
    fn new(
        runner: Runner,
        method: String,
        path: Option<&str>,
        query: &str,
        headers: HeadersArg,
        client_key: Option<String>,
    ) -> PyResult<WebRequest> {
        // Nothing is at the empty path.
        let target = path.map(|path| format!("{path}{query}")).unwrap_or_default();
        let headers = headers.value("headers").map_err(|_| PyValueError::new_err("a header is not Unicode"))?;
        Ok(WebRequest { runner, method, target, headers, client_key })
    }
}

/// A response as `asgi` and `wsgi` send it.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: AnswerBody,
    mode: Mode,
}

enum AnswerBody {
    Whole(Bytes),
    Stream(NewStream),
}

impl Answer {
    /// Reads a small body, so that the event loop waits once.
    async fn of(mut response: HttpResponse<ResponseBody>, runner: Runner) -> Result<Answer, Failure> {
        let mode = runner.mode();
        let (status, headers) = (response.status, response.headers.clone());
        let body = if response.body.size() < PIECE {
            let mut whole = BytesMut::new();
            while let Some(chunk) = response.body.next_chunk().await? {
                if whole.is_empty() && chunk.len() as u64 == response.body.size() {
                    return Ok(Answer { status, headers, body: AnswerBody::Whole(chunk), mode });
                }
                whole.extend_from_slice(&chunk);
            }
            AnswerBody::Whole(whole.freeze())
        } else {
            AnswerBody::Stream(NewStream::new(response, runner))
        };
        Ok(Answer { status, headers, body, mode })
    }
}

impl<'py> IntoPyObject<'py> for Answer {
    type Target = PyTuple;
    type Output = Bound<'py, PyTuple>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let text = |text: &str| match self.mode {
            // Header values are bytes of Latin-1 in ASGI. The core's are ASCII or, in what a user has stored, UTF-8.
            Mode::Async => PyBytes::new(py, text.as_bytes()).into_any(),
            Mode::Sync => PyString::new(py, text).into_any(),
        };
        let pairs = self.headers.iter().map(|(name, value)| (text(name), text(value)));
        let headers = PyList::new(py, pairs.collect::<Vec<_>>())?;
        let body = match self.body {
            AnswerBody::Whole(bytes) => PyBytes::new(py, &bytes).into_any(),
            AnswerBody::Stream(stream) => stream.into_pyobject(py)?,
        };
        (self.status, headers, body).into_pyobject(py)
    }
}

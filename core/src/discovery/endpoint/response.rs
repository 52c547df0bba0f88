//! Responses of the endpoint: bodies, errors, and the headers of caches, compression and CORS.

use std::{io::Write, time::Duration};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;
use serde_json::json;

use super::{EndpointOptions, request::EndpointRequest};
use crate::error::{Error, ErrorKind};

/// A response of the endpoint, for any HTTP server.
///
/// ```
/// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
/// let response = client.discovery().handle("GET", "/api/miniapp-discovery?limit=5", b"", &[])?;
/// for (name, value) in &response.headers {
///     println!("{name}: {value}");
/// }
/// println!("{} {}", response.status, String::from_utf8_lossy(&response.body));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers with lower-case names; `content-length` only for HEAD, whose body is empty.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, or empty. Compressed if the header `content-encoding` says so.
    pub body: Bytes,
}

impl HttpResponse {
    /// The response 400 with this message, for a host whose request is no text that `handle` could read.
    ///
    /// ```
    /// use townsquare::discovery::HttpResponse;
    ///
    /// assert_eq!(HttpResponse::bad_request("The target is not UTF-8").status, 400);
    /// ```
    pub fn bad_request(message: &str) -> HttpResponse {
        bad_request(message).into_answer().into_response()
    }
}

/// An error response.
pub(super) struct EndpointError {
    pub(super) status: u16,
    pub(super) message: String,
    /// When the caller may try again.
    pub(super) retry_after: Option<Duration>,
}

impl From<Error> for EndpointError {
    fn from(error: Error) -> EndpointError {
        let (status, message) = match error.kind() {
            ErrorKind::InvalidInput => (400, error.message().to_owned()),
            ErrorKind::NotFound => (404, error.message().to_owned()),
            ErrorKind::RateLimited => (429, error.message().to_owned()),
            ErrorKind::Unavailable => (503, error.message().to_owned()),
            ErrorKind::Closed => (503, "Service closed".to_owned()),
            _ => {
                tracing::error!(%error, "the discovery endpoint failed");
                (500, INTERNAL_ERROR.to_owned())
            }
        };
        EndpointError { status, message, retry_after: error.retry_after() }
    }
}

const INTERNAL_ERROR: &str = "Internal server error";

impl EndpointError {
    pub(super) fn new(status: u16, message: impl Into<String>) -> EndpointError {
        EndpointError { status, message: message.into(), retry_after: None }
    }

    pub(super) fn into_answer(self) -> Answer {
        let body = json!({"success": false, "error": self.message}).to_string();
        let mut answer = Answer::new(self.status, "application/json", body.into());
        if matches!(self.status, 429 | 503) {
            let wait = self.retry_after.unwrap_or_default().as_secs_f64().ceil().max(1.0);
            answer.headers.push(("retry-after", format!("{wait}")));
        }
        answer
    }
}

pub(super) fn bad_request(message: impl Into<String>) -> EndpointError {
    EndpointError::new(400, message)
}

/// A response before the headers that depend on the request.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    body: Bytes,
}

/// The smallest body that is compressed: below it, the headers are the larger part.
const MIN_COMPRESSED: usize = 1024;

impl Answer {
    pub(super) fn new(status: u16, content_type: &str, body: Bytes) -> Answer {
        let headers = vec![("content-type", content_type.to_owned()), ("x-content-type-options", "nosniff".to_owned())];
        Answer { status, headers, body }
    }

    pub(super) fn json(body: &impl Serialize) -> Result<Answer, EndpointError> {
        match serde_json::to_vec(body) {
            Ok(body) => Ok(Answer::new(200, "application/json", body.into())),
            Err(error) => {
                tracing::error!(%error, "a response of the discovery endpoint cannot be serialized");
                Err(EndpointError::new(500, INTERNAL_ERROR))
            }
        }
    }

    pub(super) fn empty(status: u16) -> Answer {
        Answer { status, headers: Vec::new(), body: Bytes::new() }
    }

    /// Adds a header.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Answer {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds the headers that depend on the request, and removes a body that the method forbids.
    pub(super) fn finish(mut self, request: &EndpointRequest<'_>, options: &EndpointOptions) -> HttpResponse {
        if !self.headers.iter().any(|(name, _)| *name == "cache-control") {
            self.headers.push(("cache-control", "no-store".to_owned()));
        }
        let mut vary = vec!["accept-encoding"];
        if self.body.len() >= MIN_COMPRESSED
            && request.accepts_gzip()
            && let Ok(compressed) = compress(&self.body)
        {
            self.body = compressed;
            self.headers.push(("content-encoding", "gzip".to_owned()));
        }
        if !options.allowed_origins.is_empty() {
            vary.push("origin");
            self.allow_origin(request, options);
        }
        self.headers.push(("vary", vary.join(", ")));
        if request.method == "HEAD" {
            if self.status != 304 {
                self.headers.push(("content-length", self.body.len().to_string()));
            }
            self.body = Bytes::new();
        }
        self.into_response()
    }

    /// The headers of CORS, if the origin of the request is allowed.
    fn allow_origin(&mut self, request: &EndpointRequest<'_>, options: &EndpointOptions) {
        let Some(origin) = request.header("origin") else { return };
        let is_listed = options.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin));
        let allowed = if is_listed {
            origin
        } else if options.allowed_origins.iter().any(|allowed| allowed == "*") {
            "*"
        } else {
            return;
        };
        self.headers.push(("access-control-allow-origin", allowed.to_owned()));
        if request.method == "OPTIONS" && request.header("access-control-request-method").is_some() {
            self.headers.push(("access-control-allow-methods", "GET, HEAD, POST".to_owned()));
            self.headers.push(("access-control-allow-headers", "content-type, if-none-match".to_owned()));
            self.headers.push(("access-control-max-age", "600".to_owned()));
        } else {
            self.headers.push(("access-control-expose-headers", "etag, retry-after, x-total-count".to_owned()));
        }
    }

    fn into_response(self) -> HttpResponse {
        HttpResponse { status: self.status, headers: self.headers, body: self.body }
    }
}

fn compress(body: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    encoder.write_all(body)?;
    encoder.finish().map(Bytes::from)
}

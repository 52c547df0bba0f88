//! What the responses of every endpoint have in common: lengths, compression, caches, and other origins (CORS).

use std::io::Write as _;

use ::http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{self, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY, X_CONTENT_TYPE_OPTIONS},
};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use serde::Serialize;

use super::headers::{accepts_gzip, is_preflight};
use crate::http_message::{HttpResponse, ResponseBody};

pub(super) type Response = ::http::Response<ResponseBody>;

/// The smallest body that is compressed: below it, the headers are the larger part.
const MIN_COMPRESSED: usize = 1024;

/// The headers of a request that pages of other origins may set.
const ALLOWED_HEADERS: &str = "authorization, content-type, if-match, if-none-match, if-range, last-event-id, range";

/// The headers of a response that pages of other origins may read, besides the ones that every page may.
const EXPOSED_HEADERS: &str = "content-disposition, content-range, etag, retry-after, x-total-count";

/// A response without a body.
pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Bytes::new().into());
    *response.status_mut() = status;
    response
}

/// A response with a value as JSON.
pub(super) fn json(body: &impl Serialize) -> Response {
    json_text(Bytes::from(serde_json::to_vec(body).expect("the keys of a body are text")))
}

/// A response with JSON.
pub(super) fn json_text(body: Bytes) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The response with a header. A value that no header can have leaves the header out.
pub(super) fn with_header(mut response: Response, name: HeaderName, value: impl Into<String>) -> Response {
    set(response.headers_mut(), name, value);
    response
}

/// Sets a header. A value that no header can have is left out.
pub(super) fn set(headers: &mut HeaderMap, name: HeaderName, value: impl Into<String>) {
    match HeaderValue::try_from(value.into()) {
        Ok(value) => drop(headers.insert(name, value)),
        Err(_) => tracing::error!(%name, "the value of a header cannot be sent"),
    }
}

/// Adds the headers that every response has, compresses the body, and removes it from a response to HEAD.
///
/// `method` and `request` are the method and the headers of the request. `methods` and `origins` are the ones that the endpoint
/// allows.
pub(super) fn finish(
    mut response: Response,
    method: &str,
    request: &HeaderMap,
    methods: &str,
    origins: &[String],
) -> Response {
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if !origins.is_empty() {
        add_vary(headers, "origin");
        if let Some(origin) = allowed_origin(request, origins) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            if is_preflight(method, request) {
                set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, methods);
                set(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
                set(headers, header::ACCESS_CONTROL_MAX_AGE, "600");
            } else {
                set(headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
            }
        }
    }
    compress(&mut response, request);
    let size = response.body().size();
    let has_no_length = matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    if !has_no_length && size != ResponseBody::UNKNOWN_SIZE {
        response.headers_mut().insert(CONTENT_LENGTH, size.into());
    }
    if method == "HEAD" {
        *response.body_mut() = Bytes::new().into();
    }
    response
}

/// Compresses a body in memory, which is JSON or a page of this library. A file is sent as it is stored: its strong etag and the parts that
/// a client asks for are of these bytes. Events are sent as they come.
fn compress(response: &mut Response, request: &HeaderMap) {
    let body = response.body().in_memory();
    if body.is_empty() {
        return;
    }
    add_vary(response.headers_mut(), "accept-encoding");
    if body.len() >= MIN_COMPRESSED && accepts_gzip(request) {
        let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
        if let Ok(compressed) = encoder.write_all(&body).and_then(|()| encoder.finish()) {
            *response.body_mut() = Bytes::from(compressed).into();
            response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
    }
}

/// Adds a name to the header `Vary`.
pub(super) fn add_vary(headers: &mut HeaderMap, name: &'static str) {
    let value = match headers.get(VARY).and_then(|known| known.to_str().ok()) {
        Some(known) if known.split(", ").any(|known| known == name) => return,
        Some(known) => format!("{known}, {name}"),
        None => name.to_owned(),
    };
    set(headers, VARY, value);
}

/// Returns the value of `Access-Control-Allow-Origin`: the origin of the request or `*`. `None` if its pages may not call.
fn allowed_origin(request: &HeaderMap, origins: &[String]) -> Option<HeaderValue> {
    let origin = request.get(header::ORIGIN)?;
    if origins.iter().any(|allowed| allowed.as_bytes().eq_ignore_ascii_case(origin.as_bytes())) {
        return Some(origin.clone());
    }
    origins.iter().any(|allowed| allowed == "*").then(|| HeaderValue::from_static("*"))
}

impl From<Response> for HttpResponse<ResponseBody> {
    fn from(response: Response) -> HttpResponse<ResponseBody> {
        let (head, body) = response.into_parts();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        HttpResponse { status: head.status.as_u16(), headers, body }
    }
}

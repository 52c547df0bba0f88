//! A request to an endpoint, from any server.

use ::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::{
    headers::is_preflight,
    refusal::HttpRefusal,
    response::{self, Response},
};

/// A request without its body.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) headers: HeaderMap,
    /// Whether the host passed a header that HTTP does not allow.
    is_malformed: bool,
}

impl<'a> Request<'a> {
    #[cfg(feature = "http")]
    pub(super) fn new(method: &'a str, target: &'a str, headers: HeaderMap) -> Request<'a> {
        Request { method, target, headers, is_malformed: false }
    }

    /// The request with these headers. Their names are in any case.
    pub(super) fn of_text(method: &'a str, target: &'a str, headers: &[(String, String)]) -> Request<'a> {
        let mut request = Request { method, target, headers: HeaderMap::new(), is_malformed: false };
        for (name, value) in headers {
            match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                (Ok(name), Ok(value)) => drop(request.headers.append(name, value)),
                _ => request.is_malformed = true,
            }
        }
        request
    }

    /// Returns the response: `answer`, a refusal, or the response to a browser's preflight request. The endpoint answers `methods`;
    /// pages of `origins` may call it.
    pub(super) async fn respond(
        &self,
        methods: &str,
        origins: &[String],
        answer: impl Future<Output = Result<Response, HttpRefusal>>,
    ) -> Response {
        let answer = if self.is_malformed {
            Err(HttpRefusal::new(400, "A header is malformed"))
        } else if is_preflight(self.method, &self.headers) && !origins.is_empty() {
            let allow = format!("{methods}, OPTIONS");
            Ok(response::with_header(response::empty(StatusCode::NO_CONTENT), header::ALLOW, allow))
        } else {
            answer.await
        };
        let response = answer.unwrap_or_else(HttpRefusal::into_response);
        response::finish(response, self.method, &self.headers, methods, origins)
    }
}

//! The responses of requests that fail.
//!
//! Invariant: a failure of the library or of an outside system is logged and not described, because its message may
//! name what no HTTP caller should know.

use std::time::Duration;

use ::http::{
    HeaderName, StatusCode,
    header::{RETRY_AFTER, WWW_AUTHENTICATE},
};
use serde_json::json;

use super::response::{Response, json as json_response, with_header};
use crate::error::{Error, FILE_ERRORS};

/// The status and the message of a refused request.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: u16,
    message: String,
    /// What the error says beside its sentence. A response has it only if the request is malformed.
    reason: Option<String>,
    retry_after: Option<Duration>,
    headers: Vec<(HeaderName, String)>,
}

impl HttpRefusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, message: message.into(), reason: None, retry_after: None, headers: Vec::new() }
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> HttpRefusal {
        self.headers.push((name, value.into()));
        self
    }

    /// When the request may be repeated.
    pub(super) fn retry_in(self, retry_after: Option<Duration>) -> HttpRefusal {
        HttpRefusal { retry_after, ..self }
    }

    /// The refusal of a method that the endpoint does not answer.
    pub(super) fn method_not_allowed(allow: &str) -> HttpRefusal {
        HttpRefusal::new(405, "Method not allowed").with_header(::http::header::ALLOW, allow)
    }

    /// The refusal of a request with a token or a signature that is not valid (RFC 6750, 3.1).
    pub(super) fn invalid_token(reason: &'static str) -> HttpRefusal {
        let mut refusal = HttpRefusal::from(Error::file(401, reason));
        refusal.headers = vec![(WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"".to_owned())];
        refusal
    }

    /// The refusal by an endpoint that answers no files. The reason takes the place of a sentence about files.
    pub(super) fn of_no_file(mut self) -> HttpRefusal {
        if FILE_ERRORS.iter().any(|row| row.2 == self.message) {
            self.message = self.reason.take().unwrap_or(self.message);
        }
        self
    }

    /// The parts of an event that says why a response ends.
    pub(super) fn status_and_message(self) -> (u16, String) {
        (self.status, self.message)
    }

    /// The response, with JSON.
    pub(super) fn into_response(self) -> Response {
        let mut content = json!({"success": false, "error": self.message});
        if let Some(reason) = self.reason.as_ref().filter(|_| self.status == 400) {
            content["reason"] = reason.as_str().into();
        }
        self.respond_with(json_response(&content))
    }

    /// The response with the status and the headers of the refusal. `body` makes it of the status and the message.
    pub(super) fn into_response_of(self, body: impl FnOnce(u16, &str) -> Response) -> Response {
        let response = body(self.status, &self.message);
        self.respond_with(response)
    }

    fn respond_with(self, mut response: Response) -> Response {
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if matches!(self.status, 429 | 503) || self.retry_after.is_some() {
            let wait = self.retry_after.unwrap_or_default().as_secs_f64().ceil().max(1.0);
            response = with_header(response, RETRY_AFTER, format!("{wait}"));
        }
        self.headers.into_iter().fold(response, |response, (name, value)| with_header(response, name, value))
    }
}

impl From<Error> for HttpRefusal {
    fn from(error: Error) -> HttpRefusal {
        let status = error.status();
        if status >= 500 {
            tracing::error!(%error, status, "a request failed");
        }
        let message = match status {
            503 | 507 => "Service unavailable".to_owned(),
            500.. => "Internal server error".to_owned(),
            _ => error.sentence().to_owned(),
        };
        let mut refusal = HttpRefusal::new(status, message).retry_in(error.retry_after());
        refusal.reason = error.reason().filter(|_| status < 500).map(str::to_owned);
        if status == 401 { refusal.with_header(WWW_AUTHENTICATE, "Bearer") } else { refusal }
    }
}

#[cfg(test)]
mod tests {
    use ::http::HeaderMap;

    use super::*;
    use crate::error::ErrorKind;

    fn answer(error: Error) -> (u16, HeaderMap, serde_json::Value) {
        let (head, body) = HttpRefusal::from(error).into_response().into_parts();
        (head.status.as_u16(), head.headers, serde_json::from_slice(&body.in_memory()).expect("JSON"))
    }

    #[test]
    fn each_status_of_spec_7_answers_with_its_message() {
        for (status, _, message) in FILE_ERRORS {
            let (answered, headers, body) = answer(Error::file(status, "the reason"));
            assert_eq!(answered, status);
            let credentials = headers.get(WWW_AUTHENTICATE).map(|value| value.to_str().expect("text"));
            assert_eq!(credentials, (status == 401).then_some("Bearer"));
            let reason = (status == 400).then_some("the reason");
            assert_eq!((&body["success"], &body["error"]), (&json!(false), &json!(message)));
            assert_eq!(body.get("reason").and_then(|reason| reason.as_str()), reason);
        }
        for status in [409, 412, 416] {
            let (answered, _, body) = answer(Error::file(status, "the reason"));
            assert_eq!((answered, &body["error"]), (status, &json!("Storage error: the reason")));
        }
    }

    #[test]
    fn failures_of_the_host_are_not_described() {
        for (error, status, message) in [
            (Error::file(500, "/var/lib/town"), 500, "Internal server error"),
            (Error::file(507, "/var/lib/town"), 507, "Service unavailable"),
            (Error::file(None, "/var/lib/town"), 500, "Internal server error"),
            (Error::unavailable("/var/lib/town"), 503, "Service unavailable"),
            (Error::closed(), 503, "Service unavailable"),
            (Error::new(ErrorKind::Internal, "/var/lib/town"), 500, "Internal server error"),
        ] {
            let (answered, _, body) = answer(error);
            assert_eq!(answered, status);
            assert_eq!(body, json!({"success": false, "error": message}));
        }
    }

    #[test]
    fn an_endpoint_without_files_speaks_of_none() {
        for (refusal, message) in [
            (HttpRefusal::invalid_token("the access token is not valid"), "the access token is not valid"),
            (Error::file(400, "the request has two headers x").into(), "the request has two headers x"),
            (Error::permission_denied("users", true).into(), "Database error: permission denied for table users"),
        ] {
            assert_eq!(refusal.of_no_file().status_and_message().1, message);
        }
    }

    #[test]
    fn errors_of_other_modules_have_a_status_by_their_kind() {
        for (kind, status) in [
            (ErrorKind::Unauthorized, 401),
            (ErrorKind::Forbidden, 403),
            (ErrorKind::NotFound, 404),
            (ErrorKind::CursorExpired, 410),
            (ErrorKind::Conflict, 412),
            (ErrorKind::TooLarge, 413),
            (ErrorKind::RateLimited, 429),
        ] {
            assert_eq!(answer(Error::new(kind, "message")).0, status);
        }
    }

    #[test]
    fn a_request_that_may_be_repeated_says_when() {
        let wait_of = |error| answer(error).1.get(RETRY_AFTER).map(|wait| wait.to_str().expect("text").to_owned());
        let limited = |wait| Error::new(ErrorKind::RateLimited, "message").retry_in(Duration::from_millis(wait));
        assert_eq!(wait_of(limited(0)).as_deref(), Some("1"));
        assert_eq!(wait_of(limited(1_500)).as_deref(), Some("2"));
        assert_eq!(wait_of(Error::unavailable("message")).as_deref(), Some("1"));
        assert_eq!(wait_of(Error::file(404, "message")), None);
    }
}

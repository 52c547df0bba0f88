//! The responses of requests that fail.
//!
//! Invariant: a failure of the library or of an outside system is logged and not described, because its message may
//! name what no HTTP caller should know.

use serde_json::json;

use super::{FileResponse, ResponseBody, sized_response};
use crate::error::{Error, ErrorKind};

/// The status and the message of a refused request.
#[derive(Debug)]
pub(in crate::storage) struct Refusal {
    status: u16,
    message: String,
    /// Why the request is malformed.
    reason: Option<String>,
    headers: Vec<(&'static str, String)>,
}

impl Refusal {
    pub(super) fn new(status: u16, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into(), reason: None, headers: Vec::new() }
    }

    pub(super) fn with_header(mut self, name: &'static str, value: String) -> Refusal {
        self.headers.push((name, value));
        self
    }

    /// The refusal of a request whose token is not valid (RFC 6750, 3.1).
    pub(in crate::storage) fn invalid_token() -> Refusal {
        let mut refusal = Refusal::from(Error::file(401, "the access token or the signature is not valid"));
        refusal.headers = vec![("www-authenticate", "Bearer error=\"invalid_token\"".to_owned())];
        refusal
    }

    /// A response with JSON, or to HEAD with its length alone.
    pub(super) fn into_response(self, is_head: bool) -> FileResponse {
        let mut content = json!({"success": false, "error": self.message});
        if let Some(reason) = self.reason {
            content["reason"] = reason.into();
        }
        let content = content.to_string();
        let mut headers = self.headers;
        headers.extend([
            ("content-type", "application/json".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
            ("cache-control", "no-store".to_owned()),
        ]);
        let length = content.len() as u64;
        let body = if is_head { ResponseBody::empty() } else { ResponseBody::bytes(content.into()) };
        sized_response(self.status, headers, length, body)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let status = error.status().unwrap_or_else(|| status_of(error.kind()));
        if status >= 500 {
            tracing::error!(%error, status, "a request for a file failed");
        }
        let message = match status {
            503 | 507 => "Service unavailable".to_owned(),
            500.. => "Internal server error".to_owned(),
            _ => error.message().to_owned(),
        };
        let mut refusal = Refusal::new(status, message);
        if status == 400 {
            refusal.reason = std::error::Error::source(&error).map(ToString::to_string);
        }
        if status == 401 {
            refusal = refusal.with_header("www-authenticate", "Bearer".to_owned());
        }
        if let Some(wait) = error.retry_after() {
            refusal = refusal.with_header("retry-after", wait.as_secs().max(1).to_string());
        }
        refusal
    }
}

/// The status of an error that is not of the file store.
fn status_of(kind: ErrorKind) -> u16 {
    match kind {
        ErrorKind::InvalidInput | ErrorKind::FieldMissing => 400,
        ErrorKind::Unauthorized => 401,
        ErrorKind::Forbidden => 403,
        ErrorKind::NotFound => 404,
        ErrorKind::AlreadyExists | ErrorKind::ReferenceMissing => 409,
        ErrorKind::Conflict => 412,
        ErrorKind::TooLarge => 413,
        ErrorKind::RateLimited => 429,
        ErrorKind::Unavailable | ErrorKind::Closed => 503,
        _ => 500,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FILE_ERRORS;

    fn body(response: FileResponse) -> serde_json::Value {
        let mut body = response.body;
        let chunk = crate::blocking::wait(body.next_chunk()).expect("bytes").expect("a chunk");
        serde_json::from_slice(&chunk).expect("JSON")
    }

    fn header<'a>(response: &'a FileResponse, name: &str) -> Option<&'a str> {
        response.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn each_status_of_spec_7_answers_with_its_message() {
        for (status, _, message) in FILE_ERRORS {
            let response = Refusal::from(Error::file(status, "the reason")).into_response(false);
            assert_eq!(response.status, status);
            assert_eq!(header(&response, "www-authenticate"), (status == 401).then_some("Bearer"));
            assert_eq!(header(&response, "cache-control"), Some("no-store"));
            let reason = (status == 400).then_some("the reason");
            let body = body(response);
            assert_eq!((&body["success"], &body["error"]), (&json!(false), &json!(message)));
            assert_eq!(body.get("reason").and_then(|reason| reason.as_str()), reason);
        }
        for status in [409, 412, 416] {
            let response = Refusal::from(Error::file(status, "the reason")).into_response(false);
            assert_eq!((response.status, &body(response)["error"]), (status, &json!("Storage error: the reason")));
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
            let response = Refusal::from(error).into_response(false);
            assert_eq!(response.status, status);
            assert_eq!(body(response), json!({"success": false, "error": message}));
        }
    }

    #[test]
    fn errors_of_other_modules_have_a_status_by_their_kind() {
        for (kind, status) in [
            (ErrorKind::Unauthorized, 401),
            (ErrorKind::Forbidden, 403),
            (ErrorKind::NotFound, 404),
            (ErrorKind::Conflict, 412),
            (ErrorKind::TooLarge, 413),
            (ErrorKind::RateLimited, 429),
        ] {
            assert_eq!(Refusal::from(Error::new(kind, "message")).into_response(false).status, status);
        }
    }

    #[test]
    fn a_refused_head_has_the_length_and_no_body() {
        let response = Refusal::new(404, "File not found").into_response(true);
        assert_eq!(header(&response, "content-length"), Some("42"));
        assert_eq!(response.body.size(), 0);
    }
}

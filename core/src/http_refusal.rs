//! The responses of requests that fail.
//!
//! Invariant: a failure of the library or of an outside system is logged and not described, because its message may
//! name what no HTTP caller should know.

use serde_json::json;

use crate::error::{Error, ErrorKind};

/// The status and the message of a refused request.
#[derive(Debug)]
pub(crate) struct HttpRefusal {
    status: u16,
    message: String,
    /// Why the request is malformed.
    reason: Option<String>,
    headers: Vec<(&'static str, String)>,
}

impl HttpRefusal {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> HttpRefusal {
        HttpRefusal { status, message: message.into(), reason: None, headers: Vec::new() }
    }

    pub(crate) fn with_header(mut self, name: &'static str, value: String) -> HttpRefusal {
        self.headers.push((name, value));
        self
    }

    /// The refusal of a request whose token is not valid (RFC 6750, 3.1).
    pub(crate) fn invalid_token() -> HttpRefusal {
        let mut refusal = HttpRefusal::from(Error::file(401, "the access token or the signature is not valid"));
        refusal.headers = vec![("www-authenticate", "Bearer error=\"invalid_token\"".to_owned())];
        refusal
    }

    /// The parts of an event that says why a response ends.
    pub(crate) fn status_and_message(self) -> (u16, String) {
        (self.status, self.message)
    }

    /// The response: its status, its headers without the length, and JSON.
    pub(crate) fn into_parts(self) -> (u16, Vec<(&'static str, String)>, String) {
        let mut content = json!({"success": false, "error": self.message});
        if let Some(reason) = self.reason {
            content["reason"] = reason.into();
        }
        let mut headers = self.headers;
        headers.extend([
            ("content-type", "application/json".to_owned()),
            ("x-content-type-options", "nosniff".to_owned()),
            ("cache-control", "no-store".to_owned()),
        ]);
        (self.status, headers, content.to_string())
    }
}

impl From<Error> for HttpRefusal {
    fn from(error: Error) -> HttpRefusal {
        let status = error.status().unwrap_or_else(|| status_of(error.kind()));
        if status >= 500 {
            tracing::error!(%error, status, "a request failed");
        }
        let message = match status {
            503 | 507 => "Service unavailable".to_owned(),
            500.. => "Internal server error".to_owned(),
            _ => error.message().to_owned(),
        };
        let mut refusal = HttpRefusal::new(status, message);
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
        ErrorKind::CursorExpired => 410,
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

    fn answer(error: Error) -> (u16, Vec<(&'static str, String)>, serde_json::Value) {
        let (status, headers, content) = HttpRefusal::from(error).into_parts();
        (status, headers, serde_json::from_str(&content).expect("JSON"))
    }

    fn header<'a>(headers: &'a [(&'static str, String)], name: &str) -> Option<&'a str> {
        headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn each_status_of_spec_7_answers_with_its_message() {
        for (status, _, message) in FILE_ERRORS {
            let (answered, headers, body) = answer(Error::file(status, "the reason"));
            assert_eq!(answered, status);
            assert_eq!(header(&headers, "www-authenticate"), (status == 401).then_some("Bearer"));
            assert_eq!(header(&headers, "cache-control"), Some("no-store"));
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
}

//! Why a store denies the access: the clock, the credentials, or their rights.
//!
//! Invariant: the text comes from this file, never from the answer, which may name an access key.

#[cfg(feature = "s3")]
use object_store::client::{HttpResponse, HttpResponseBody};

#[cfg(feature = "s3")]
use crate::clock::Clock;

/// The code of S3 for a request whose time differs by more than 15 minutes from the clock of the store.
const SKEWED: &str = "RequestTimeTooSkewed";

/// The codes of S3 for credentials that are unknown, wrong or expired.
const INVALID_CREDENTIALS: [&str; 6] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
    "InvalidTokenId",
];

/// The largest difference of clocks that S3 accepts.
#[cfg(feature = "s3")]
const MAX_SKEW: std::time::Duration = std::time::Duration::from_secs(900);

/// The reason of an error of a denied call.
pub(super) fn reason(error: &object_store::Error) -> &'static str {
    if is_of_clock(error) {
        "The object store denies the access: the clock of this host, or that of the store, is wrong"
    } else if INVALID_CREDENTIALS.into_iter().any(|code| has(error, code)) {
        "The object store denies the access: the credentials are wrong or have expired"
    } else {
        "The object store denies the access"
    }
}

/// Whether a call was denied because a clock is wrong.
pub(super) fn is_of_clock(error: &object_store::Error) -> bool {
    has(error, SKEWED)
}

fn has(error: &object_store::Error, code: &str) -> bool {
    error.to_string().contains(&format!("<Code>{code}</Code>"))
}

/// Gives a denial without a body, as of a HEAD request, the code for a wrong clock if its date shows one.
#[cfg(feature = "s3")]
pub(super) fn with_code(response: HttpResponse) -> HttpResponse {
    let date = response.headers().get(http::header::DATE).and_then(|date| date.to_str().ok());
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    let Some(of_store) = date.and_then(|date| parser.parse_timestamp(date).ok()) else { return response };
    if Clock::default().now().duration_since(of_store).unsigned_abs() <= MAX_SKEW {
        return response;
    }
    response.map(|_| HttpResponseBody::from(format!("<Error><Code>{SKEWED}</Code></Error>")))
}

//! Why there is no page: a status and a sentence.

use axum::http::StatusCode;
use townsquare::{Error, ErrorKind};

use crate::failure::Failure;

/// Why there is no page.
#[derive(Debug)]
pub(super) struct PageError {
    pub(super) status: StatusCode,
    pub(super) sentence: String,
}

impl PageError {
    pub(super) fn bad_request(sentence: impl Into<String>) -> PageError {
        PageError { status: StatusCode::BAD_REQUEST, sentence: sentence.into() }
    }

    pub(super) fn not_found(sentence: impl Into<String>) -> PageError {
        PageError { status: StatusCode::NOT_FOUND, sentence: sentence.into() }
    }
}

impl From<Error> for PageError {
    fn from(error: Error) -> PageError {
        let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let is_missing = error.kind() == ErrorKind::NotFound;
        // The advice of the command: the explanation of the library speaks of its calls.
        let Failure { sentence, advice, .. } = error.into();
        let sentence = sentence.unwrap_or_default();
        // The command's advice names its list commands; the pages show the lists themselves.
        let sentence = if is_missing { format!("{sentence}.") } else { format!("{sentence}. {advice}") };
        PageError { status, sentence }
    }
}

//! The endpoint's answers, for the host's own HTTP server to send.
//!
//! Invariant: complete when it is handed out; header names are in lower case as HTTP/2 wants them, each value is text.

use townsquare::HttpResponse;

use crate::{
    boundary::{free, read},
    handle::Handle,
    text::{self, tsq_bytes, tsq_str},
};

/// Status, headers and body of an answer. Owned, ended with `tsq_http_response_free`; what is read from it lives as
/// long.
pub struct tsq_http_response {
    _opaque: [u8; 0],
}

impl Handle for tsq_http_response {
    type Value = HttpResponse;
}

/// The HTTP status: 200, 204, 400, 404, 405, 413, 500, 503; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_status(response: *const tsq_http_response) -> u16 {
    // SAFETY: `response` is NULL or live, by the manual.
    unsafe { read(response, |response| response.status) }
}

/// How many headers there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_headers_len(response: *const tsq_http_response) -> usize {
    // SAFETY: `response` is NULL or live, by the manual.
    unsafe { read(response, |response| response.headers.len()) }
}

/// The name of the header at `index`, counted from 0; absent beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_header_name_at(response: *const tsq_http_response, index: usize) -> tsq_str {
    // SAFETY: `response` is NULL or live, by the manual.
    unsafe { read(response, |response| text::optional_view(response.headers.get(index).map(|header| header.0))) }
}

/// The value of the header at `index`, counted from 0; absent beyond the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_header_value_at(
    response: *const tsq_http_response,
    index: usize,
) -> tsq_str {
    // SAFETY: `response` is NULL or live, by the manual.
    unsafe { read(response, |response| text::optional_view(response.headers.get(index).map(|header| &*header.1))) }
}

/// The body: JSON, or empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_body(response: *const tsq_http_response) -> tsq_bytes {
    // SAFETY: `response` is NULL or live, by the manual.
    unsafe { read(response, |response| text::bytes_view(&response.body)) }
}

/// Ends an answer. Takes `response`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_free(response: *mut tsq_http_response) {
    // SAFETY: `response` is NULL or owned by the caller, by the manual.
    unsafe { free(response) }
}

//! Responses of the HTTP endpoint, for the host's own server to send.

use townsquare::discovery::HttpResponse;

use crate::{
    guard::free,
    record::{Memory, Record},
    text::{self, tsq_bytes, tsq_str},
};

/// A header of a response. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_http_header {
    /// Name, in lower case.
    pub name: tsq_str,
    /// Value.
    pub value: tsq_str,
}

/// A response of the HTTP endpoint. A record (manual, RECORDS); freed with `tsq_http_response_free`.
#[repr(C)]
pub struct tsq_http_response {
    /// The HTTP status: 200, 204, 400, 404, 405, 413, 500, 503.
    pub status: u16,
    /// The headers: an array.
    pub headers: *const tsq_http_header,
    /// Number of headers.
    pub headers_len: usize,
    /// The body: JSON, or empty.
    pub body: tsq_bytes,
}

impl Record for tsq_http_response {
    type Source = HttpResponse;

    fn new(response: &HttpResponse, memory: &mut Memory) -> tsq_http_response {
        let header = |(name, value): &(&'static str, String)| tsq_http_header {
            name: text::view(name),
            value: text::view(value),
        };
        let headers: Vec<_> = response.headers.iter().map(header).collect();
        tsq_http_response {
            status: response.status,
            headers_len: headers.len(),
            headers: memory.array(headers),
            body: text::bytes_view(&response.body),
        }
    }
}

/// Frees a response. Takes `response`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_http_response_free(response: *mut tsq_http_response) {
    // SAFETY: `response` is NULL or owned by the caller, by the manual.
    unsafe { free(response) }
}

//! Requests to the HTTP endpoint, and the responses for the host's own server to send.

use townsquare::discovery::HttpResponse;

use crate::boundary::{Failure, Memory, Record, argument, free, inputs, text, tsq_bytes, tsq_str};

/// A header of a request or a response. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_http_header {
    /// Name, in lower case.
    pub name: tsq_str,
    /// Value.
    pub value: tsq_str,
}

/// An HTTP request to the endpoint. Zero it, then fill it in: `tsq_http_request request = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_http_request {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// The method: `GET`, `HEAD`, `POST`, `OPTIONS`.
    pub method: tsq_str,
    /// The request target: path and query (`/api/miniapp-discovery?category=games&limit=20`).
    pub target: tsq_str,
    /// The headers: an array. Names in any case.
    pub headers: *const tsq_http_header,
    /// Number of headers.
    pub headers_len: usize,
    /// The body of a POST.
    pub body: tsq_bytes,
}

inputs!(tsq_http_request: body);

/// A request as the core takes it.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: &'a [u8],
}

impl tsq_http_request {
    /// # Safety
    /// All members are initialised; texts, arrays and bytes are readable for `'a`.
    pub(crate) unsafe fn read<'a>(&self) -> Result<Request<'a>, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            Ok(Request {
                method: argument::text(self.method, "method")?,
                target: argument::text(self.target, "target")?,
                headers: argument::structures(self.headers, self.headers_len, "headers", |header| header.read())?,
                body: argument::bytes(self.body, "body")?,
            })
        }
    }
}

impl tsq_http_header {
    /// The headers of a response, owned by `memory`.
    pub(crate) fn array(headers: &[(String, String)], memory: &mut Memory) -> *const tsq_http_header {
        let header =
            |(name, value): &(String, String)| tsq_http_header { name: text::view(name), value: text::view(value) };
        memory.array(headers.iter().map(header).collect())
    }

    /// # Safety
    /// Both texts are initialised and readable.
    pub(crate) unsafe fn read(&self) -> Result<(String, String), Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            let (name, value) = (argument::text(self.name, "name")?, argument::text(self.value, "value")?);
            Ok((name.to_owned(), value.to_owned()))
        }
    }
}

/// A response of the HTTP endpoint. A record (manual, RECORDS); freed with `tsq_http_response_free`.
#[repr(C)]
pub struct tsq_http_response {
    /// The HTTP status: 200, 204, 304, 400, 403, 404, 405, 413, 429, 500, 503.
    pub status: u16,
    /// The headers: an array.
    pub headers: *const tsq_http_header,
    /// Number of headers.
    pub headers_len: usize,
    /// The body: JSON, or empty; compressed if the header `content-encoding` says so.
    pub body: tsq_bytes,
}

impl Record for tsq_http_response {
    type Source = HttpResponse;

    fn new(response: &HttpResponse, memory: &mut Memory) -> tsq_http_response {
        tsq_http_response {
            status: response.status,
            headers_len: response.headers.len(),
            headers: tsq_http_header::array(&response.headers, memory),
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

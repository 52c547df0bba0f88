//! Requests for `tsq_storage_handle_file`, for the host's own HTTP server, and their responses.
//!
//! Invariant: a body callback does not run, and no byte of a body is read, after the call that received it has returned.

use std::{
    ffi::c_void,
    io, mem,
    pin::Pin,
    slice,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, ReadBuf};
use townsquare::{
    Operation,
    blocking::wait,
    http::{HttpResponse, RequestBody, ResponseBody},
};

use crate::{
    boundary::{
        Failure, Memory, OwnedRecord, ProcessOwned, ReadCallback, Record, argument, call_count, call_handle, free,
        handle, input::input, inputs, record, tsq_bytes, tsq_error, tsq_read_callback, tsq_status, tsq_str,
    },
    client::{tsq_client, usable},
    discovery::http_response::tsq_http_header,
    storage::file_reader::fill,
    storage::storage,
};

/// An HTTP request, for `tsq_storage_handle_file` or `tsq_client_handle_request`. Zero it, then fill it in: `tsq_file_request request = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_file_request {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// The method: `GET`, `HEAD`, `PUT`, `DELETE`.
    pub method: tsq_str,
    /// The request target: for a file `/BUCKET/PATH`, with a query for a signed URL.
    pub target: tsq_str,
    /// The headers: an array. `authorization` names the caller.
    pub headers: *const tsq_http_header,
    /// Number of headers.
    pub headers_len: usize,
    /// The body of a PUT or POST; read when `body_source` is NULL.
    pub body: tsq_bytes,
    /// Gives the body in pieces, so that memory does not grow with it.
    pub body_source: tsq_read_callback,
    /// The data of `body_source`.
    pub body_user_data: *mut c_void,
}

inputs!(tsq_file_request: body_user_data);

/// The response of `tsq_storage_handle_file`, `tsq_realtime_handle_events` and `tsq_client_handle_request`. A record (manual, RECORDS) with a body that
/// `tsq_file_response_read` reads; freed with `tsq_file_response_free`.
#[repr(C)]
pub struct tsq_file_response {
    /// The HTTP status: 200, 201, 204, 206, 304, 400, 401, 403, 404, 405, 409, 410, 412, 413, 415, 416, 429, 500, 503, 507.
    pub status: u16,
    /// The headers: an array.
    pub headers: *const tsq_http_header,
    /// Number of headers.
    pub headers_len: usize,
    /// Number of bytes of the body; UINT64_MAX for events, which come until the stream ends.
    pub body_size: u64,
}

/// The core's response, and the part of its body that was received and not yet read.
pub(crate) struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    size: u64,
    body: ProcessOwned<Mutex<(ResponseBody, Bytes)>>,
}

impl<B: Into<ResponseBody>> From<HttpResponse<B>> for Response {
    fn from(response: HttpResponse<B>) -> Response {
        let (status, headers, body) = (response.status, response.headers, response.body.into());
        let size = body.size();
        Response { status, headers, size, body: ProcessOwned::new(Mutex::new((body, Bytes::new()))) }
    }
}

impl Record for tsq_file_response {
    type Source = Response;

    fn new(response: &Response, memory: &mut Memory) -> tsq_file_response {
        tsq_file_response {
            status: response.status,
            headers_len: response.headers.len(),
            headers: tsq_http_header::array(&response.headers, memory),
            body_size: response.size,
        }
    }
}

/// Answers an HTTP request for a file, under the policies: GET, HEAD, PUT and DELETE with `If-Match`, `If-None-Match` and
/// `Range`. The header `Authorization: Bearer TOKEN` names the caller, never the session of `client`; without it and
/// without a signed URL the caller is anonymous.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too (`TSQ_OK` with status 400, 404, …). Fails with
/// `TSQ_CANCELLED` when `body_source` cancels, which leaves nothing; `TSQ_CLOSED`; and `TSQ_INVALID_INPUT` for NULL or
/// text that is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_storage_handle_file(
    client: *const tsq_client,
    request: *const tsq_file_request,
    out: *mut *mut tsq_file_response,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::HandleFile), out, err, || {
            let storage = storage(client)?;
            answer(request, |Request { method, target, headers, body, .. }| {
                storage.handle_file(method, target, &headers, body)
            })
        })
    }
}

/// Answers an HTTP request for any endpoint: `/api/miniapp-discovery` and below, `/directory` and below (the directory as a page
/// for people), `/files/BUCKET/PATH`, `/events`, and `/health`, which is 200 while the database answers, else 503. Other paths get 404. `request.target` is the target as the client sent it.
/// The header `Authorization: Bearer TOKEN` names the caller, never the session of `client`; without it and without a signed URL
/// the caller is anonymous. The body of GET `/events` has no end: `tsq_file_response_read` waits for the next event.
///
/// Borrows all; returns owned in `out`. A bad request gets a response too (`TSQ_OK` with status 400, 404, …). Fails with
/// `TSQ_CANCELLED` when `body_source` cancels, which leaves nothing; `TSQ_CLOSED`; and `TSQ_INVALID_INPUT` for NULL or
/// text that is not UTF-8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_handle_request(
    client: *const tsq_client,
    request: *const tsq_file_request,
    out: *mut *mut tsq_file_response,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let client = usable(client)?;
            answer(request, |Request { method, target, headers, body, .. }| {
                client.handle_request(method, target, &headers, body)
            })
        })
    }
}

/// Answers a request by `handle`. No callback of its body runs afterwards.
///
/// # Safety
/// As [`tsq_file_request::read`], while this runs.
unsafe fn answer(
    request: *const tsq_file_request,
    handle: impl FnOnce(Request<'_>) -> townsquare::Result<HttpResponse<ResponseBody>>,
) -> Result<OwnedRecord<tsq_file_response>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let request = unsafe { input(request, "request", |request: &tsq_file_request| request.read())? };
    let mut source = EndAtDrop(request.source.clone());
    let answer = handle(request);
    source.end()?;
    Ok(record(answer?))
}

/// Reads the next bytes of the body, up to `len`, into `buffer` and moves on. Writes their number to `out`; 0 is the end. A
/// call may give fewer bytes than `len` before the end.
///
/// Borrows all. Fails with `TSQ_UNAVAILABLE` or `TSQ_INTERNAL` when the file store fails, `TSQ_INVALID_INPUT`,
/// `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_response_read(
    response: *mut tsq_file_response,
    buffer: *mut u8,
    len: usize,
    out: *mut usize,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::HandleFile), out, err, || {
            let response = handle::required(response.cast_const(), "response")?.source();
            let destination = argument::destination(buffer, len, "buffer")?;
            let mut body = response.body.get()?.lock().unwrap_or_else(PoisonError::into_inner);
            let (body, chunk) = &mut *body;
            fill(chunk, &destination, || Ok(wait(body.next_chunk())?))
        })
    }
}

/// Frees a response. Takes `response`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_file_response_free(response: *mut tsq_file_response) {
    // SAFETY: `response` is NULL or owned by the caller, by the manual.
    unsafe { free(response) }
}

/// The core's arguments.
struct Request<'a> {
    method: &'a str,
    target: &'a str,
    headers: Vec<(String, String)>,
    body: RequestBody,
    /// What `body` reads, if it is a callback or large.
    source: Option<BodySource>,
}

impl tsq_file_request {
    /// # Safety
    /// All members are initialised; texts, arrays and bytes are readable for `'a`; until [`BodySource::end`], the body is readable and
    /// `body_source` may be called with its data.
    unsafe fn read<'a>(&self) -> Result<Request<'a>, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe {
            let bytes = argument::bytes(self.body, "body")?;
            let source = if self.body_source.is_some() {
                Some(Source::Callback(ReadCallback::new(self.body_source, self.body_user_data)?))
            } else {
                // Copied piece by piece, after the request has been judged.
                (bytes.len() > COPIED_AT_ONCE).then(|| Source::Bytes(BorrowedBytes::new(bytes)))
            };
            let source = source.map(BodySource::new);
            let body = match &source {
                Some(source) => RequestBody::from_reader(source.clone()),
                None => Bytes::copy_from_slice(bytes).into(),
            };
            Ok(Request {
                method: argument::text(self.method, "method")?,
                target: argument::text(self.target, "target")?,
                headers: argument::structures(self.headers, self.headers_len, "headers", |header| header.read())?,
                body,
                source,
            })
        }
    }
}

/// A body up to this size is copied as a whole.
const COPIED_AT_ONCE: usize = 64 * 1024;

/// The body of a request as the core reads it, from a callback or from the memory of the caller.
#[derive(Clone)]
struct BodySource(Arc<Mutex<BodyState>>);

enum BodyState {
    Open(Source),
    /// The callback cancelled the call or broke its promise.
    Failed(Failure),
    /// The call has returned.
    Ended,
}

enum Source {
    Callback(ReadCallback),
    Bytes(BorrowedBytes),
}

/// Bytes of the caller that were not read yet.
struct BorrowedBytes {
    next: *const u8,
    left: usize,
}

// SAFETY: the bytes are only read, and any thread may read them.
unsafe impl Send for BorrowedBytes {}

impl BorrowedBytes {
    /// # Safety
    /// The bytes are readable until the value is dropped.
    unsafe fn new(bytes: &[u8]) -> BorrowedBytes {
        BorrowedBytes { next: bytes.as_ptr(), left: bytes.len() }
    }

    fn read(&mut self, buffer: &mut [u8]) -> usize {
        let length = self.left.min(buffer.len());
        // SAFETY: by the promise of `new`, `left` bytes are readable from `next` on.
        let read = unsafe { slice::from_raw_parts(self.next, length) };
        buffer[..length].copy_from_slice(read);
        // SAFETY: `length` is at most `left`.
        self.next = unsafe { self.next.add(length) };
        self.left -= length;
        length
    }
}

impl Source {
    /// Reads into `buffer` and returns the number of bytes; 0 is the end.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        match self {
            Source::Callback(callback) => callback.read(buffer),
            Source::Bytes(bytes) => Ok(bytes.read(buffer)),
        }
    }
}

impl BodySource {
    fn new(source: Source) -> BodySource {
        BodySource(Arc::new(Mutex::new(BodyState::Open(source))))
    }

    /// Waits for a read that runs; none begins again. Returns the failure of the callback.
    fn end(&self) -> Result<(), Failure> {
        match mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), BodyState::Ended) {
            BodyState::Failed(failure) => Err(failure),
            BodyState::Open(_) | BodyState::Ended => Ok(()),
        }
    }
}

/// Ends a source also when the call panics.
struct EndAtDrop(Option<BodySource>);

impl EndAtDrop {
    fn end(&mut self) -> Result<(), Failure> {
        self.0.take().map_or(Ok(()), |source| source.end())
    }
}

impl Drop for EndAtDrop {
    fn drop(&mut self) {
        // Its failure was returned, or the call has panicked.
        let _ = self.end();
    }
}

impl AsyncRead for BodySource {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let BodyState::Open(source) = &mut *state else {
            return Poll::Ready(Err(io::Error::other("the callback gives no more bytes")));
        };
        match source.read(buffer.initialize_unfilled()) {
            Ok(read) => {
                buffer.advance(read);
                Poll::Ready(Ok(()))
            }
            Err(failure) => {
                *state = BodyState::Failed(failure);
                Poll::Ready(Err(io::Error::other("the callback cancelled the request")))
            }
        }
    }
}

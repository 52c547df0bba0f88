//! `handle_file`: files over HTTP (RFC 9110).
//!
//! Invariant: a request acts for the bearer of its `Authorization` header or for the signer of its URL, and for nobody else. The
//! caller of the handle is ignored. Memory does not grow with a file.

mod caller;
mod headers;
mod requested_file;

use std::ops::Range;

use ::http::{
    HeaderMap, StatusCode,
    header::{ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG},
};
use bytes::Bytes;
use futures_util::stream;

pub(crate) use self::requested_file::requested_file;
use self::{caller::FileCaller, headers::file_headers};
use super::{
    conditions::{Conditions, Outcome},
    headers::single,
    range::{RangeRequest, Selected},
    refusal::HttpRefusal,
    request::Request,
    response::{self, Response, with_header},
};
use crate::{
    database::call,
    error::{Error, ErrorKind, Operation, Result},
    http_message::{FileResponse, RequestBody, ResponseBody},
    model::FileInfo,
    storage::{FileReader, RequestedFile, Storage, UploadOptions},
    threads::BoxedFuture,
};

/// The methods that are answered.
const METHODS: &str = "GET, HEAD, PUT, DELETE";

/// The bytes of a part of a file that are read at a time.
const CHUNK: u64 = 64 << 10;

/// The bytes of a whole file that are read at a time. The connection keeps them until a slow client has taken them.
const WHOLE_CHUNK: u64 = 256 << 10;

/// A request for a file, decoded.
struct FileRequest<'a> {
    file: RequestedFile,
    conditions: Conditions,
    headers: &'a HeaderMap,
}

impl Storage {
    /// Answers an HTTP request for `/BUCKET/PATH`: GET, HEAD, PUT and DELETE. `target` is the request target; the header
    /// `Authorization: Bearer` names the caller, never the session of this handle. Failures of a request are responses.
    ///
    /// # Errors
    /// `Closed` if the client is closed.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let response = client.storage().handle_file("GET", "/assets/images/cat.png", &[], "").await?;
    /// assert_eq!(response.status, 404);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn handle_file(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: impl Into<RequestBody>,
    ) -> Result<FileResponse> {
        let request = Request::of_text(method, target, headers);
        self.respond(&request, body.into()).await.map(FileResponse::from)
    }

    /// # Errors
    /// `Closed` if the client is closed.
    pub(super) fn respond<'a>(
        &'a self,
        request: &'a Request<'a>,
        body: RequestBody,
    ) -> BoxedFuture<'a, Result<Response>> {
        Box::pin(async move {
            let answer = answer(self, request, body);
            let respond = async { Ok(request.respond(METHODS, &self.requests.shared.allowed_origins, answer).await) };
            call(self.principal(), Operation::HandleFile, respond).await
        })
    }
}

async fn answer(storage: &Storage, request: &Request<'_>, body: RequestBody) -> Result<Response, HttpRefusal> {
    let is_put = match request.method {
        "GET" | "HEAD" | "DELETE" => false,
        "PUT" => true,
        _ => return Err(HttpRefusal::method_not_allowed(METHODS)),
    };
    let conditions = Conditions::parse(&request.headers)?;
    let decoded = FileRequest { file: requested_file(request.target)?, conditions, headers: &request.headers };
    let _slot = if is_put { storage.requests.take_upload()? } else { None };
    let caller = FileCaller::of(storage, request, &decoded.file).await?;
    match request.method {
        "PUT" => put(&caller, &decoded, body).await,
        "DELETE" => delete(&caller, &decoded).await,
        method => read(&caller, &decoded, method == "HEAD").await,
    }
}

/// Answers GET, and HEAD, which reads no bytes.
async fn read(caller: &FileCaller, request: &FileRequest<'_>, is_head: bool) -> Result<Response, HttpRefusal> {
    let RequestedFile { bucket, path, .. } = &request.file;
    let ranges = if is_head { RangeRequest::default() } else { RangeRequest::of(request.headers) };
    let (info, reader) = if is_head {
        (caller.storage.stat(bucket, path).await?, None)
    } else {
        let (conditions, ranges) = (request.conditions.clone(), ranges.clone());
        // The bytes that the response has, so that a remote store needs one request.
        let sent_part = move |info: &FileInfo| match (conditions.of_read(info), ranges.select(info)) {
            (Outcome::Proceed, Selected::Whole) => Ok(0..info.size),
            (Outcome::Proceed, Selected::Part(range)) => Ok(range),
            _ => Ok(0..0),
        };
        let reader =
            call(caller.storage.principal(), Operation::OpenReader, caller.storage.open_part(bucket, path, sent_part))
                .await?;
        (reader.info().clone(), Some(reader))
    };
    let body = |range: Range<u64>| match reader {
        None => ResponseBody::unread(range.end - range.start),
        Some(reader) if range == (0..info.size) => {
            ResponseBody::from_chunks(info.size, reader.in_chunks_of(WHOLE_CHUNK))
        }
        Some(reader) => part_of(reader, range),
    };
    let mut headers = file_headers(&info, caller.cache_access(bucket));
    let (status, body) = match (request.conditions.of_read(&info), ranges.select(&info)) {
        (Outcome::Failed, _) => return Err(changed().into()),
        (Outcome::NotModified, _) => (StatusCode::NOT_MODIFIED, Bytes::new().into()),
        (Outcome::Proceed, Selected::Whole) => (StatusCode::OK, body(0..info.size)),
        (Outcome::Proceed, Selected::Part(range)) => {
            let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, info.size);
            response::set(&mut headers, CONTENT_RANGE, content_range);
            (StatusCode::PARTIAL_CONTENT, body(range))
        }
        (Outcome::Proceed, Selected::Unsatisfiable) => {
            let refusal = HttpRefusal::from(Error::file(416, "The range starts beyond the end of the file"));
            let refusal = refusal.with_header(CONTENT_RANGE, format!("bytes */{}", info.size));
            return Err(refusal.with_header(ACCEPT_RANGES, "bytes"));
        }
    };
    let mut response = Response::new(body);
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    Ok(response)
}

/// The body with a part of a file.
fn part_of(reader: FileReader, range: Range<u64>) -> ResponseBody {
    let chunks = stream::try_unfold((reader, range.clone()), async |(reader, rest)| {
        if rest.is_empty() {
            return Ok(None);
        }
        let end = rest.end.min(rest.start.saturating_add(CHUNK));
        let chunk = reader.read_at(rest.start..end).await?;
        Ok(Some((chunk, (reader, end..rest.end))))
    });
    ResponseBody::from_chunks(range.end - range.start, chunks)
}

async fn put(caller: &FileCaller, request: &FileRequest<'_>, body: RequestBody) -> Result<Response, HttpRefusal> {
    if single(request.headers, &CONTENT_RANGE)?.is_some() {
        return Err(Error::file(400, "a PUT with Content-Range is not supported").into());
    }
    if single(request.headers, &CONTENT_ENCODING)?.is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(HttpRefusal::new(415, "Unsupported content encoding"));
    }
    let mut options = UploadOptions::new();
    if let Some(content_type) = caller.content_type(single(request.headers, &CONTENT_TYPE)?)? {
        options = options.content_type(content_type);
    }
    let old = stored_file(caller, request).await?;
    if !request.conditions.is_empty() {
        // The version that the conditions were compared with, so that no other write comes between.
        options = options.if_match(old.as_ref().map_or("", |old| &old.etag));
    }
    let info = store(caller, request, options, body).await?;
    let status = if old.is_some() { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
    Ok(with_header(response::empty(status), ETAG, format!("\"{}\"", info.etag)))
}

async fn store(
    caller: &FileCaller,
    request: &FileRequest<'_>,
    options: UploadOptions,
    body: RequestBody,
) -> Result<FileInfo> {
    let RequestedFile { bucket, path, .. } = &request.file;
    let length = content_length(request.headers)?;
    caller.check_size(length.unwrap_or_default())?;
    let mut body = match body.into_bytes() {
        Ok(bytes) => {
            check_length(length, bytes.len() as u64)?;
            caller.check_size(bytes.len() as u64)?;
            return caller.storage.upload(bucket, path, bytes, options).await;
        }
        Err(body) => body,
    };
    let mut writer = caller.storage.writer(bucket, path, options).await?;
    let (mut received, mut closing) = (0, caller.storage.closing());
    loop {
        match closing.wait_for(body.next_chunk()).await? {
            Ok(Some(chunk)) => {
                received += chunk.len() as u64;
                if let Err(error) = caller.check_size(received) {
                    writer.abort().await;
                    return Err(error);
                }
                writer.write(chunk).await?;
            }
            Ok(None) => {
                check_length(length, received)?;
                return writer.finish().await;
            }
            Err(error) => {
                writer.abort().await;
                return Err(Error::file(400, "the body of the request ended early").caused_by(error));
            }
        }
    }
}

async fn delete(caller: &FileCaller, request: &FileRequest<'_>) -> Result<Response, HttpRefusal> {
    let version = match request.conditions.is_empty() {
        true => None,
        // The version that the conditions were compared with, so that no other write comes between.
        false => match stored_file(caller, request).await? {
            Some(old) => Some(old.etag),
            None => return Err(Error::file(404, "").into()),
        },
    };
    caller.storage.delete_version(&request.file.bucket, &request.file.path, version.as_deref()).await?;
    Ok(response::empty(StatusCode::NO_CONTENT))
}

/// The file that a write replaces or deletes, as far as the caller may see it. The conditions hold for it.
async fn stored_file(caller: &FileCaller, request: &FileRequest<'_>) -> Result<Option<FileInfo>, HttpRefusal> {
    let old = match caller.storage.stat(&request.file.bucket, &request.file.path).await {
        Ok(info) => Some(info),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    match request.conditions.of_write(old.as_ref()) {
        Outcome::Proceed | Outcome::NotModified => Ok(old),
        Outcome::Failed => Err(changed().into()),
    }
}

/// The number of bytes that the request says its body has.
///
/// # Errors
/// `InvalidInput` (400) if the header `content-length` is no number.
fn content_length(headers: &HeaderMap) -> Result<Option<u64>> {
    let Some(text) = single(headers, &CONTENT_LENGTH)? else { return Ok(None) };
    let length = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    length.map(Some).ok_or_else(|| Error::file(400, "the header content-length is no number"))
}

/// Refuses a body of another length than the request says (RFC 9112, 6.3): a part of it is missing or foreign.
fn check_length(expected: Option<u64>, received: u64) -> Result<()> {
    match expected {
        Some(expected) if expected != received => {
            Err(Error::file(400, format!("the body has {received} bytes, but content-length is {expected}")))
        }
        _ => Ok(()),
    }
}

/// The error of a condition that does not hold.
fn changed() -> Error {
    Error::file(412, "The file is not of the version that the request names")
}

//! `handle_file`: files over HTTP, without a server (RFC 9110).
//!
//! Invariant: every request gets a response. It acts for the bearer of its `Authorization` header or for the signer of its
//! URL, and for nobody else: the caller of the handle has no part in it. No response contains a path of the host.

mod body;
mod caller;

use std::{fmt, ops::Range};

pub use self::body::{RequestBody, ResponseBody};
use self::caller::RequestCaller;
use super::{FileReader, Storage, UploadOptions};
use crate::{
    error::{Error, ErrorKind, Operation, Result, operation},
    http_file::{
        Conditions, Outcome, RequestTarget, Selected, Stored, etag_header, file_headers, header, select_range,
    },
    http_refusal::HttpRefusal,
    model::FileInfo,
};

/// The methods that are answered.
const ALLOW: &str = "GET, HEAD, PUT, DELETE";

/// The response of [`Storage::handle_file`](super::Storage::handle_file), for any HTTP server.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// let mut response = client.storage().handle_file("GET", "/assets/images/cat.png", &[], "").await?;
/// for (name, value) in &response.headers {
///     println!("{name}: {value}");
/// }
/// while let Some(bytes) = response.body.next_chunk().await? {
///     println!("{} bytes", bytes.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct FileResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers; their names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body: the bytes of the file, JSON that describes a failure, or nothing.
    pub body: ResponseBody,
}

/// A method that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Put,
    Delete,
}

impl Method {
    fn parse(method: &str) -> Option<Method> {
        Some(match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            _ => return None,
        })
    }
}

/// A request, as far as it is decoded before its credentials are looked at.
struct Request<'a> {
    target: RequestTarget,
    headers: &'a [(String, String)],
    conditions: Conditions,
}

impl Request<'_> {
    /// The value of a header.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the request has the header twice.
    fn header(&self, name: &str) -> Result<Option<&str>> {
        header(self.headers, name).map_err(|()| Error::file(400, format!("the request has two headers {name}")))
    }

    /// The number of bytes that the request says its body has.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the header `content-length` is no number.
    fn content_length(&self) -> Result<Option<u64>> {
        let Some(text) = self.header("content-length")? else { return Ok(None) };
        let length = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        length.map(Some).ok_or_else(|| Error::file(400, "the header content-length is no number"))
    }
}

impl Storage {
    /// Answers a request.
    pub(super) async fn respond(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: RequestBody,
    ) -> FileResponse {
        let answer = self.answer(method, target, headers, body).await;
        answer.unwrap_or_else(|refusal| refused(refusal, method == "HEAD"))
    }

    async fn answer(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: RequestBody,
    ) -> Result<FileResponse, HttpRefusal> {
        let Some(method) = Method::parse(method) else {
            let refusal = HttpRefusal::new(405, "Method not allowed");
            return Err(refusal.with_header("allow", ALLOW.to_owned()));
        };
        let conditions = Conditions::parse(headers)?;
        let request = Request { target: RequestTarget::parse(target)?, headers, conditions };
        let _slot = if method == Method::Put { self.uploads.take()? } else { None };
        let caller = self.request_caller(method, &request.target, headers).await?;
        match method {
            Method::Get | Method::Head => caller.get(&request, method == Method::Head).await,
            Method::Put => caller.put(&request, body).await,
            Method::Delete => caller.delete(&request).await,
        }
    }
}

impl RequestCaller {
    async fn get(&self, request: &Request<'_>, is_head: bool) -> Result<FileResponse, HttpRefusal> {
        let RequestTarget { bucket, path, .. } = &request.target;
        if is_head {
            let info = self.storage.stat(bucket, path).await?;
            return self.send(request, &info, None);
        }
        let open = async {
            let target = self.storage.core.buckets.target(bucket, path)?;
            self.storage.open_part(target, sent_part(request)).await
        };
        let reader = operation(Operation::OpenReader, open).await?;
        let info = reader.info().clone();
        self.send(request, &info, Some(reader))
    }

    /// The response with a file, or to HEAD without a reader.
    fn send(
        &self,
        request: &Request<'_>,
        info: &FileInfo,
        reader: Option<FileReader>,
    ) -> Result<FileResponse, HttpRefusal> {
        let headers = file_headers(info, self.cache_access(&info.bucket));
        match request.conditions.of_read(stored(info)) {
            Outcome::Proceed => {}
            Outcome::NotModified => return Ok(response(304, headers, ResponseBody::empty())),
            Outcome::Failed => return Err(changed().into()),
        }
        let Some(reader) = reader else {
            return Ok(sized_response(200, headers, info.size, ResponseBody::empty()));
        };
        match select_range(request.headers, info.size, &info.etag) {
            Selected::Whole => Ok(sized_response(200, headers, info.size, ResponseBody::whole(reader))),
            Selected::Part(range) => {
                let mut headers = headers;
                let content_range = format!("bytes {}-{}/{}", range.start, range.end - 1, info.size);
                headers.push(("content-range", content_range));
                let length = range.end - range.start;
                Ok(sized_response(206, headers, length, ResponseBody::part(reader, range)))
            }
            Selected::Unsatisfiable => {
                let refusal = HttpRefusal::from(Error::file(416, "The range starts beyond the end of the file"));
                let refusal = refusal.with_header("content-range", format!("bytes */{}", info.size));
                Err(refusal.with_header("accept-ranges", "bytes".to_owned()))
            }
        }
    }

    async fn put(&self, request: &Request<'_>, body: RequestBody) -> Result<FileResponse, HttpRefusal> {
        if request.header("content-range")?.is_some() {
            return Err(Error::file(400, "a PUT with Content-Range is not supported").into());
        }
        if request.header("content-encoding")?.is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(HttpRefusal::new(415, "Unsupported content encoding"));
        }
        let mut options = UploadOptions::new();
        if let Some(content_type) = self.content_type(request.header("content-type")?)? {
            options = options.content_type(content_type);
        }
        let old = self.stored_file(request).await?;
        if !request.conditions.is_empty() {
            // The version that the conditions were compared with, so that no other write comes between.
            options = options.if_match(old.as_ref().map_or("", |old| &old.etag));
        }
        let info = self.store(request, options, body).await?;
        let headers = vec![("etag", etag_header(&info.etag)), ("x-content-type-options", "nosniff".to_owned())];
        Ok(match old {
            Some(_) => response(204, headers, ResponseBody::empty()),
            None => sized_response(201, headers, 0, ResponseBody::empty()),
        })
    }

    async fn store(&self, request: &Request<'_>, options: UploadOptions, body: RequestBody) -> Result<FileInfo> {
        let RequestTarget { bucket, path, .. } = &request.target;
        let length = request.content_length()?;
        self.check_size(length.unwrap_or_default())?;
        let mut body = match body.into_bytes() {
            Ok(bytes) => {
                check_length(length, bytes.len() as u64)?;
                self.check_size(bytes.len() as u64)?;
                return self.storage.upload(bucket, path, bytes, options).await;
            }
            Err(body) => body,
        };
        let mut writer = self.storage.writer(bucket, path, options).await?;
        let mut received = 0;
        loop {
            match body.next_chunk().await {
                Ok(Some(chunk)) => {
                    received += chunk.len() as u64;
                    if let Err(error) = self.check_size(received) {
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

    async fn delete(&self, request: &Request<'_>) -> Result<FileResponse, HttpRefusal> {
        let RequestTarget { bucket, path, .. } = &request.target;
        // The version that the conditions were compared with, so that no other write comes between.
        let version = match request.conditions.is_empty() {
            true => None,
            false => self.stored_file(request).await?.map(|old| old.etag),
        };
        self.storage.delete_version(bucket, path, version.as_deref()).await?;
        Ok(response(204, Vec::new(), ResponseBody::empty()))
    }

    /// The file that a write replaces or deletes, as far as the caller may see it. The conditions hold for it.
    async fn stored_file(&self, request: &Request<'_>) -> Result<Option<FileInfo>, HttpRefusal> {
        let old = match self.storage.stat(&request.target.bucket, &request.target.path).await {
            Ok(info) => Some(info),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        match request.conditions.of_write(old.as_ref().map(stored)) {
            Outcome::Proceed | Outcome::NotModified => Ok(old),
            Outcome::Failed => Err(changed().into()),
        }
    }
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

/// The part of a file whose bytes the response to a GET has.
fn sent_part(request: &Request<'_>) -> impl Fn(&FileInfo) -> Result<Range<u64>> + Send + Sync + use<> {
    let (conditions, headers) = (request.conditions.clone(), request.headers.to_vec());
    move |info| {
        Ok(match (conditions.of_read(stored(info)), select_range(&headers, info.size, &info.etag)) {
            (Outcome::Proceed, Selected::Whole) => 0..info.size,
            (Outcome::Proceed, Selected::Part(range)) => range,
            _ => 0..0,
        })
    }
}

fn stored(info: &FileInfo) -> Stored<'_> {
    Stored { etag: &info.etag, updated_at: info.updated_at }
}

/// The error of a condition that does not hold.
fn changed() -> Error {
    Error::file(412, "The file is not of the version that the request names")
}

/// A response with JSON, or to HEAD with its length alone.
fn refused(refusal: HttpRefusal, is_head: bool) -> FileResponse {
    let (status, headers, content) = refusal.into_parts();
    let length = content.len() as u64;
    let body = if is_head { ResponseBody::empty() } else { ResponseBody::bytes(content.into()) };
    sized_response(status, headers, length, body)
}

fn response(status: u16, headers: Vec<(&'static str, String)>, body: ResponseBody) -> FileResponse {
    let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    FileResponse { status, headers, body }
}

/// A response with the header `content-length`, which HEAD has as well.
fn sized_response(
    status: u16,
    mut headers: Vec<(&'static str, String)>,
    length: u64,
    body: ResponseBody,
) -> FileResponse {
    headers.push(("content-length", length.to_string()));
    response(status, headers, body)
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Headers and query string contain credentials.
        f.debug_struct("Request").field("path", &self.target.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_head_has_the_length_and_no_body() {
        let response = refused(HttpRefusal::new(404, "File not found"), true);
        assert!(response.headers.contains(&("content-length".to_owned(), "42".to_owned())));
        assert_eq!(response.body.size(), 0);
    }
}

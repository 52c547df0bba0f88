//! `handle_file`: files over HTTP, without a server (RFC 9110).
//!
//! Invariant: every request gets a response. It acts for the bearer of its `Authorization` header or for the signer of its
//! URL, and for nobody else: the caller of the handle has no part in it. No response contains a path of the host.

mod body;
mod caller;

use std::fmt;

pub use self::body::{RequestBody, ResponseBody};
use self::caller::RequestCaller;
use super::{FileReader, Storage, UploadOptions};
use crate::{
    error::{Error, ErrorKind, Result},
    http_file::{Conditions, Outcome, Selected, Stored, Target, etag_header, file_headers, header, select_range},
    http_refusal::Refusal,
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
    target: Target,
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
    ) -> Result<FileResponse, Refusal> {
        let Some(method) = Method::parse(method) else {
            let refusal = Refusal::new(405, "Method not allowed");
            return Err(refusal.with_header("allow", ALLOW.to_owned()));
        };
        let conditions = Conditions::parse(headers)?;
        let request = Request { target: Target::parse(target)?, headers, conditions };
        let caller = self.request_caller(method, &request.target, headers).await?;
        match method {
            Method::Get | Method::Head => caller.get(&request, method == Method::Head).await,
            Method::Put => caller.put(&request, body).await,
            Method::Delete => caller.delete(&request).await,
        }
    }
}

impl RequestCaller {
    async fn get(&self, request: &Request<'_>, is_head: bool) -> Result<FileResponse, Refusal> {
        let Target { bucket, path, .. } = &request.target;
        if is_head {
            let info = self.storage.stat(bucket, path).await?;
            return self.send(request, &info, None);
        }
        let reader = self.storage.reader(bucket, path).await?;
        let info = reader.info().clone();
        self.send(request, &info, Some(reader))
    }

    /// The response with a file, or to HEAD without a reader.
    fn send(
        &self,
        request: &Request<'_>,
        info: &FileInfo,
        reader: Option<FileReader>,
    ) -> Result<FileResponse, Refusal> {
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
                let refusal = Refusal::from(Error::file(416, "the range starts beyond the end of the file"));
                let refusal = refusal.with_header("content-range", format!("bytes */{}", info.size));
                Err(refusal.with_header("accept-ranges", "bytes".to_owned()))
            }
        }
    }

    async fn put(&self, request: &Request<'_>, body: RequestBody) -> Result<FileResponse, Refusal> {
        if request.header("content-range")?.is_some() {
            return Err(Error::file(400, "a PUT with Content-Range is not supported").into());
        }
        if request.header("content-encoding")?.is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
            return Err(Refusal::new(415, "Unsupported content encoding"));
        }
        let mut options = UploadOptions::new();
        if let Some(content_type) = request.header("content-type")?.filter(|value| !value.is_empty()) {
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
        let Target { bucket, path, .. } = &request.target;
        let mut body = match body.into_bytes() {
            Ok(bytes) => return self.storage.upload(bucket, path, bytes, options).await,
            Err(body) => body,
        };
        let length = request.header("content-length")?.and_then(|length| length.parse().ok());
        self.storage.core.check_size(length.unwrap_or_default())?;
        let mut writer = self.storage.writer(bucket, path, options).await?;
        loop {
            match body.next_chunk().await {
                Ok(Some(chunk)) => writer.write(chunk).await?,
                Ok(None) => return writer.finish().await,
                Err(error) => {
                    writer.abort().await;
                    return Err(Error::file(400, "the body of the request ended early").caused_by(error));
                }
            }
        }
    }

    async fn delete(&self, request: &Request<'_>) -> Result<FileResponse, Refusal> {
        let Target { bucket, path, .. } = &request.target;
        // The version that the conditions were compared with, so that no other write comes between.
        let version = match request.conditions.is_empty() {
            true => None,
            false => self.stored_file(request).await?.map(|old| old.etag),
        };
        self.storage.delete_version(bucket, path, version.as_deref()).await?;
        Ok(response(204, Vec::new(), ResponseBody::empty()))
    }

    /// The file that a write replaces or deletes, as far as the caller may see it. The conditions hold for it.
    async fn stored_file(&self, request: &Request<'_>) -> Result<Option<FileInfo>, Refusal> {
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

fn stored(info: &FileInfo) -> Stored<'_> {
    Stored { etag: &info.etag, updated_at: info.updated_at }
}

/// The error of a condition that does not hold.
fn changed() -> Error {
    Error::file(412, "the file is not of the version that the request names")
}

/// A response with JSON, or to HEAD with its length alone.
fn refused(refusal: Refusal, is_head: bool) -> FileResponse {
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
        let response = refused(Refusal::new(404, "File not found"), true);
        assert!(response.headers.contains(&("content-length".to_owned(), "42".to_owned())));
        assert_eq!(response.body.size(), 0);
    }
}

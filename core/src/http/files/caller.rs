//! The caller of a request for a file: the bearer of an access token, the signer of its URL, or nobody.
//!
//! Invariant: a request with a token that is not valid is refused. It never acts as anonymous instead.

use super::headers::Access;
use crate::{
    error::{Error, Result},
    http::{bearer, refusal::HttpRefusal, request::Request},
    model::UrlMethod,
    storage::{PutLimits, RequestedFile, Storage},
};

const NOT_VALID: &str = "the signature of the URL is not valid";

/// The storage of the caller of a request.
pub(super) struct FileCaller {
    pub(super) storage: Storage,
    /// Whether the request has a credential in its URL. Shared caches must not keep the response.
    is_signed: bool,
    /// What the URL says about the file that a PUT stores.
    limits: PutLimits,
}

impl FileCaller {
    /// Finds the caller of a request. A signature in the URL decides alone, also beside a bearer.
    pub(super) async fn of(
        storage: &Storage,
        request: &Request<'_>,
        file: &RequestedFile,
    ) -> Result<FileCaller, HttpRefusal> {
        if file.parameter("signature").is_none() {
            let principal = bearer::principal(&storage.requests, &request.headers).await?;
            let storage = storage.for_principal(principal);
            return Ok(FileCaller { storage, is_signed: false, limits: PutLimits::default() });
        }
        let method = match request.method {
            "GET" | "HEAD" => UrlMethod::Get,
            "PUT" => UrlMethod::Put,
            _ => return Err(HttpRefusal::invalid_token(NOT_VALID)),
        };
        let signer = storage.of_signer(file, method).await?;
        let (storage, limits) = signer.ok_or_else(|| HttpRefusal::invalid_token(NOT_VALID))?;
        Ok(FileCaller { storage, is_signed: true, limits })
    }

    /// Who may cache a file of a bucket.
    pub(super) fn cache_access(&self, bucket: &str) -> Access {
        if self.storage.is_public(bucket) && !self.is_signed { Access::Public } else { Access::Private }
    }

    /// The media type of the file that a PUT stores; `sent` is its header `content-type`. `None` if the type is guessed.
    ///
    /// # Errors
    /// 415 if the signed URL is for another type.
    pub(super) fn content_type<'a>(&'a self, sent: Option<&'a str>) -> Result<Option<&'a str>, HttpRefusal> {
        let sent = sent.filter(|value| !value.is_empty());
        match (self.limits.content_type.as_deref(), sent) {
            (Some(bound), Some(sent)) if !sent.eq_ignore_ascii_case(bound) => {
                Err(HttpRefusal::new(415, "The signed URL is for another content type"))
            }
            (bound, sent) => Ok(bound.or(sent)),
        }
    }

    /// Checks the size of a body.
    ///
    /// # Errors
    /// `TooLarge` (413) for a body that is larger than the URL or the option `max_file_size` allows; `QuotaExceeded` (413) over
    /// `max_owner_bytes`.
    pub(super) fn check_size(&self, size: u64) -> Result<()> {
        match self.limits.max_size {
            Some(limit) if size > limit => Err(Error::file(413, format!("the limit is {limit} bytes (max_size)"))),
            _ => self.storage.check_size(size),
        }
    }
}

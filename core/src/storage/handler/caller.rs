//! Whom a request acts for: the bearer of an access token, the signer of its URL, or nobody.
//!
//! Invariant: a request with a token that is not valid is refused. It never acts as anonymous instead.

use super::Method;
use crate::{
    database::Principal,
    error::{Error, Result},
    http_file::{Access, PutLimits, RequestTarget},
    http_refusal::HttpRefusal,
    model::UrlMethod,
    storage::{Storage, buckets::BucketAccess},
};

/// The storage of the party that a request acts for.
pub(super) struct RequestCaller {
    pub(super) storage: Storage,
    /// Whether the request has a credential in its URL, which shared caches must not keep the response of.
    is_signed: bool,
    /// What the URL says about the file that a PUT stores.
    pub(super) limits: PutLimits,
}

impl Storage {
    /// Finds whom a request acts for. A signature in the URL decides alone, also beside a bearer.
    pub(super) async fn request_caller(
        &self,
        method: Method,
        target: &RequestTarget,
        headers: &[(String, String)],
    ) -> Result<RequestCaller, HttpRefusal> {
        let is_signed = target.is_signed();
        let mut limits = PutLimits::default();
        let principal = if is_signed {
            let permitted = match method {
                Method::Get | Method::Head => Some(UrlMethod::Get),
                Method::Put => Some(UrlMethod::Put),
                Method::Delete => None,
            };
            match permitted {
                Some(permitted) => {
                    let (principal, token) = self.signer(target, permitted).await?;
                    limits = token.limits;
                    principal
                }
                None => return Err(HttpRefusal::invalid_token()),
            }
        } else {
            let bearer = self.bearer.principal(headers).await?;
            bearer.unwrap_or_else(|| self.scope.handle_of(Principal::Anonymous))
        };
        Ok(RequestCaller { storage: self.for_principal(principal), is_signed, limits })
    }
}

impl RequestCaller {
    /// Who may cache a file of a bucket.
    pub(super) fn cache_access(&self, bucket: &str) -> Access {
        let is_public = match self.storage.core.buckets.access(bucket) {
            Ok(BucketAccess::Spaces | BucketAccess::Public) => true,
            Ok(BucketAccess::Private) | Err(_) => false,
        };
        if is_public && !self.is_signed { Access::Public } else { Access::Private }
    }

    /// The media type of the file that a PUT stores; `sent` is its header `content-type`. `None` if the type is guessed.
    ///
    /// # Errors
    /// 415 if the signed URL is for another type.
    pub(super) fn content_type<'a>(&'a self, sent: Option<&'a str>) -> Result<Option<&'a str>, HttpRefusal> {
        let sent = sent.filter(|value| !value.is_empty());
        match (self.limits.content_type.as_deref(), sent) {
            (Some(bound), Some(sent)) if !sent.trim().eq_ignore_ascii_case(bound) => {
                Err(HttpRefusal::new(415, "The signed URL is for another content type"))
            }
            (bound, sent) => Ok(bound.or(sent)),
        }
    }

    /// Checks the size of a body.
    ///
    /// # Errors
    /// `TooLarge` (413) for a body that is larger than the URL or the option `max_file_size` allows.
    pub(super) fn check_size(&self, size: u64) -> Result<()> {
        match self.limits.max_size {
            Some(limit) if size > limit => Err(Error::file(413, format!("the limit is {limit} bytes (max_size)"))),
            _ => self.storage.core.check_size(size),
        }
    }
}

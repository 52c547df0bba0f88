//! Whom a request acts for: the bearer of an access token, the signer of its URL, or nobody.
//!
//! Invariant: a request with a token that is not valid is refused. It never acts as anonymous instead.

use super::Method;
use crate::{
    database::Principal,
    http_file::{Access, Target},
    http_refusal::Refusal,
    model::UrlMethod,
    storage::{Storage, buckets::BucketAccess},
};

/// The storage of the party that a request acts for.
pub(super) struct RequestCaller {
    pub(super) storage: Storage,
    /// Whether the request has a credential in its URL, which shared caches must not keep the response of.
    is_signed: bool,
}

impl Storage {
    /// Finds whom a request acts for. A signature in the URL decides alone, also beside a bearer.
    pub(super) async fn request_caller(
        &self,
        method: Method,
        target: &Target,
        headers: &[(String, String)],
    ) -> Result<RequestCaller, Refusal> {
        let is_signed = target.is_signed();
        let principal = if is_signed {
            let permitted = match method {
                Method::Get | Method::Head => Some(UrlMethod::Get),
                Method::Put => Some(UrlMethod::Put),
                Method::Delete => None,
            };
            match permitted {
                Some(permitted) => self.signer(target, permitted).await?,
                None => return Err(Refusal::invalid_token()),
            }
        } else {
            let bearer = self.bearer.principal(headers).await?;
            bearer.unwrap_or_else(|| self.scope.handle_of(Principal::Anonymous))
        };
        Ok(RequestCaller { storage: self.for_principal(principal), is_signed })
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
}

//! Whom a request acts for: the bearer of an access token, the signer of its URL, or nobody.
//!
//! Invariant: a request with a token that is not valid is refused. It never acts as anonymous instead.

use std::{fmt, pin::Pin, sync::Arc};

use super::{Method, refusal::Refusal};
use crate::{
    database::{CurrentPrincipal, Principal},
    error::{Error, ErrorKind, Result},
    http_file::{Access, Target, header},
    model::UrlMethod,
    storage::{Storage, buckets::BucketAccess},
};

/// Finds the principal of an access token. The client provides it, because sessions belong to another service.
#[derive(Clone)]
pub(crate) struct BearerResolver(Arc<Resolve>);

type Resolve = dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<CurrentPrincipal>> + Send>> + Send + Sync;

/// The storage of the party that a request acts for.
pub(super) struct RequestCaller {
    pub(super) storage: Storage,
    /// Whether the request has a credential in its URL, which shared caches must not keep the response of.
    is_signed: bool,
}

impl BearerResolver {
    pub(crate) fn new<F>(resolve: impl Fn(String) -> F + Send + Sync + 'static) -> BearerResolver
    where
        F: Future<Output = Result<CurrentPrincipal>> + Send + 'static,
    {
        BearerResolver(Arc::new(move |token| Box::pin(resolve(token))))
    }
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
            self.bearer(headers).await?
        };
        Ok(RequestCaller { storage: self.for_principal(principal), is_signed })
    }

    async fn bearer(&self, headers: &[(String, String)]) -> Result<CurrentPrincipal, Refusal> {
        let two = |()| Error::file(400, "the request has two headers authorization");
        let Some(credentials) = header(headers, "authorization").map_err(two)? else {
            return Ok(CurrentPrincipal::new(Principal::Anonymous));
        };
        let token = credentials.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else { return Err(Refusal::invalid_token()) };
        let BearerResolver(resolve) = &self.bearer;
        resolve(token.trim().to_owned()).await.map_err(|error| match error.kind() {
            ErrorKind::Unauthorized => Refusal::invalid_token(),
            _ => error.into(),
        })
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

impl fmt::Debug for BearerResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerResolver")
    }
}

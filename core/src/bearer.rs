//! Whom an HTTP request acts for: the bearer of the access token in its header `Authorization`.
//!
//! Invariant: a request with a token that is not valid is refused. It never acts as anonymous instead.

use std::{fmt, pin::Pin, sync::Arc};

use crate::{
    database::CurrentPrincipal,
    error::{Error, ErrorKind, Result},
    http_file::header,
    http_refusal::HttpRefusal,
};

/// Finds the principal of an access token. The client provides it, because sessions belong to a service.
#[derive(Clone)]
pub(crate) struct BearerResolver(Arc<Resolve>);

type Resolve = dyn Fn(String) -> Pin<Box<dyn Future<Output = Result<CurrentPrincipal>> + Send>> + Send + Sync;

impl BearerResolver {
    pub(crate) fn new<F>(resolve: impl Fn(String) -> F + Send + Sync + 'static) -> BearerResolver
    where
        F: Future<Output = Result<CurrentPrincipal>> + Send + 'static,
    {
        BearerResolver(Arc::new(move |token| Box::pin(resolve(token))))
    }

    /// The principal of a request with these headers; `None` without credentials.
    ///
    /// # Errors
    /// The refusal of a request with two headers `Authorization` (400), with credentials of another kind and with a token that is
    /// not valid (401).
    pub(crate) async fn principal(
        &self,
        headers: &[(String, String)],
    ) -> Result<Option<CurrentPrincipal>, HttpRefusal> {
        let two = |()| Error::file(400, "the request has two headers authorization");
        let Some(credentials) = header(headers, "authorization").map_err(two)? else { return Ok(None) };
        let token = credentials.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, token)) = token else { return Err(HttpRefusal::invalid_token()) };
        self.0(token.trim().to_owned()).await.map(Some).map_err(|error| match error.kind() {
            ErrorKind::Unauthorized => HttpRefusal::invalid_token(),
            _ => error.into(),
        })
    }
}

impl fmt::Debug for BearerResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerResolver")
    }
}

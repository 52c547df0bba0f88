//! The caller of an HTTP request: the bearer of the access token in its header `Authorization`.
//!
//! Invariant: a request with a token that is not valid is refused. It never acts as anonymous instead.

use ::http::{HeaderMap, header::AUTHORIZATION};

use super::{headers::single, refusal::HttpRefusal};
use crate::{
    database::CurrentPrincipal,
    error::{Error, ErrorKind},
    request_context::RequestContext,
};

const NOT_VALID: &str = "the access token is not valid";

/// Returns the principal of a request with these headers: the anonymous one without credentials.
///
/// # Errors
/// The refusal of a request with two headers `Authorization` (400), with credentials of another kind and with a token that is
/// not valid (401).
pub(super) async fn principal(context: &RequestContext, headers: &HeaderMap) -> Result<CurrentPrincipal, HttpRefusal> {
    (context.shared.resolve_caller)(access_token(headers)?).await.map_err(refusal)
}

/// Returns the access token in these headers.
///
/// # Errors
/// As [`principal`], except for a token that is not valid.
pub(super) fn access_token(headers: &HeaderMap) -> Result<Option<String>, HttpRefusal> {
    match single(headers, &AUTHORIZATION)?.map(|credentials| credentials.split_once(' ')) {
        None => Ok(None),
        Some(Some((scheme, token))) if scheme.eq_ignore_ascii_case("bearer") => Ok(Some(token.trim().to_owned())),
        Some(_) => Err(HttpRefusal::invalid_token(NOT_VALID)),
    }
}

/// The refusal of a request with a token for which nobody can be found.
pub(super) fn refusal(error: Error) -> HttpRefusal {
    match error.kind() {
        ErrorKind::Unauthorized => HttpRefusal::invalid_token(NOT_VALID),
        _ => error.into(),
    }
}

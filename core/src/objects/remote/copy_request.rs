//! Adds the headers of the task, [`HEADERS`], to the request of a copy in S3, and signs the request again.
//!
//! Invariant: every other request stays as it is, also one for credentials that a copy needs first. The new signature has the region
//! and the service of the old one; a request without a signature gets none.

use std::sync::{Arc, OnceLock, Weak};

use http::{HeaderMap, header::AUTHORIZATION};
use object_store::{
    CredentialProvider,
    aws::{AwsAuthorizer, AwsCredential, AwsCredentialProvider},
    client::{HttpError, HttpErrorKind, HttpRequest},
};

use super::copy::HEADERS;
use crate::error::Error;

const UNSIGNED_PAYLOAD: &str = "UNSIGNED-PAYLOAD";

type Credentials = dyn CredentialProvider<Credential = AwsCredential>;

/// Signs requests with the credentials of a store, which are known once the store is set up. The store owns them: their requests may go
/// through a client that owns this signer.
#[derive(Debug, Clone, Default)]
pub(super) struct Signer(Arc<OnceLock<Weak<Credentials>>>);

/// The headers of the current task, for a request that is a copy. `None` for other requests, and if the task has no headers. The caller
/// must run in the task that sends the request.
pub(super) fn added_headers(request: &HttpRequest) -> Option<HeaderMap> {
    let is_copy = request.headers().contains_key("x-amz-copy-source");
    if is_copy { HEADERS.try_with(Clone::clone).ok() } else { None }
}

impl Signer {
    pub(super) fn use_credentials(&self, credentials: &AwsCredentialProvider) {
        // There is one store for each signer.
        let _ = self.0.set(Arc::downgrade(credentials));
    }

    /// Adds headers to a request and signs it again.
    ///
    /// # Errors
    /// `Unknown`, with which `object_store` does not repeat the request, if the store gets no credentials.
    pub(super) async fn add_headers(&self, request: &mut HttpRequest, headers: HeaderMap) -> Result<(), HttpError> {
        request.headers_mut().extend(headers);
        let Some(signature) = request.headers_mut().remove(AUTHORIZATION) else { return Ok(()) };
        let failed = |error: object_store::Error| HttpError::new(HttpErrorKind::Unknown, error);
        let unknown = || HttpError::new(HttpErrorKind::Unknown, Error::file(500, "The request has another signature"));
        let (service, region) = signature.to_str().ok().and_then(scope_of).ok_or_else(unknown)?;
        let credential =
            self.0.get().and_then(Weak::upgrade).ok_or_else(unknown)?.get_credential().await.map_err(failed)?;
        // Other credentials may have no token.
        request.headers_mut().remove("x-amz-security-token");
        let payload = request.headers().get("x-amz-content-sha256");
        let signs_payload = payload.is_none_or(|digest| digest != UNSIGNED_PAYLOAD);
        let authorizer = AwsAuthorizer::new(&credential, service, region).with_sign_payload(signs_payload);
        authorizer.try_authorize(request, None).map_err(failed)
    }
}

/// The service and the region of a signature: `AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, …`.
fn scope_of(signature: &str) -> Option<(&str, &str)> {
    let (_, credential) = signature.split_once("Credential=")?;
    let mut parts = credential.split(',').next()?.rsplit('/').skip(1);
    Some((parts.next()?, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_names_its_region_and_service() {
        let signature =
            "AWS4-HMAC-SHA256 Credential=A/K/20261129/eu-north-1/s3/aws4_request, SignedHeaders=host, Signature=0";
        assert_eq!(scope_of(signature), Some(("s3", "eu-north-1")));
        assert_eq!(scope_of("Basic QTpC"), None);
    }
}

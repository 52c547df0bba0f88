//! The TLS configuration of the HTTP clients: the library's own cryptography, and the system's root certificates.
//!
//! Invariant: the library installs no process default, because the host program chooses the default.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::error::{Error, Result};

/// Returns a configuration. With `is_used` false, for a client that calls `http://` only, it reads no certificate and trusts
/// no server.
pub(crate) fn client_config(is_used: bool) -> Result<ClientConfig> {
    let failed = |error: rustls::Error| Error::config("Cannot set up TLS").caused_by(error);
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(failed)?;
    let builder = if is_used {
        builder.with_platform_verifier().map_err(failed)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

//! The directory page: one file that calls the discovery endpoint of its own server.

use axum::{
    http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    response::{AppendHeaders, IntoResponse},
};
use townsquare::{Uuid, discovery::ENDPOINT_PATH};

const PAGE: &str = include_str!("../../../../core/examples/serve.html");

/// The page may run its own script and call its own server, and nothing else: a hostile text of the catalog cannot load
/// anything.
pub(super) fn respond(prefix: &str) -> impl IntoResponse + use<> {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    let headers = AppendHeaders([
        (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (CONTENT_SECURITY_POLICY, policy),
        (REFERRER_POLICY, "no-referrer".to_owned()),
        (X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (CACHE_CONTROL, "no-store".to_owned()),
    ]);
    (headers, with_endpoint(prefix).replace("NONCE", &nonce))
}

/// The page with the endpoint behind a prefix, which is a plain path.
fn with_endpoint(prefix: &str) -> String {
    PAGE.replace(&format!("\"{ENDPOINT_PATH}\""), &format!("\"{prefix}{ENDPOINT_PATH}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_calls_the_endpoint_behind_the_prefix() {
        assert!(with_endpoint("/town").contains("API = \"/town/api/miniapp-discovery\""));
        assert!(with_endpoint("").contains("API = \"/api/miniapp-discovery\""));
    }
}

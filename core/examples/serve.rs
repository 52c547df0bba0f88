//! Serves a directory page at `/`, and the discovery endpoint that it uses, over HTTP with axum.
//!
//! Start it with `cargo run --release --features http --example serve`, then open `http://127.0.0.1:3000/`. Options come from
//! environment variables (`TOWNSQUARE_DATA_DIR`, …). Without `CATALOG_API_KEY` the catalog is the sample file
//! `samples/catalog.json`. The page is the one file `serve.html`.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use axum::{
    Router,
    http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS},
    response::{AppendHeaders, IntoResponse},
    routing::get,
};
use townsquare::{Client, Config, Uuid, discovery::ENDPOINT_PATH, http};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::from_env()?;
    #[allow(clippy::disallowed_methods, reason = "an example reads its own environment")]
    if std::env::var_os("CATALOG_API_KEY").is_none() {
        config = config.catalog_url("sample:");
    }
    let client = Client::open(config).await?;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let address = listener.local_addr()?;
    println!("Open http://{address}/ or try: curl 'http://{address}{ENDPOINT_PATH}?category=games&limit=2'");
    axum::serve(listener, router(client)).await?;
    Ok(())
}

/// The page and the endpoint.
pub(crate) fn router(client: Client) -> Router {
    Router::new().route("/", get(page)).merge(http::discovery_router(client))
}

/// The page may run its own script and call its own server, and nothing else: a hostile text of the catalog cannot load
/// anything.
async fn page() -> impl IntoResponse {
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
    ]);
    (headers, include_str!("serve.html").replace("NONCE", &nonce))
}

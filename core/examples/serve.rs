//! Serves the discovery endpoint over HTTP with axum.
//!
//! Start it with `cargo run --release --features http --example serve`, then request
//! `curl 'http://127.0.0.1:3000/api/miniapp-discovery?category=games&limit=2'`. Options come from environment variables
//! (`TOWNSQUARE_DATA_DIR`, …). Without `CATALOG_API_KEY` the catalog is the sample file `samples/catalog.json`.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use townsquare::{Client, Config, discovery::ENDPOINT_PATH, http};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::from_env()?;
    #[allow(clippy::disallowed_methods, reason = "an example reads its own environment")]
    if std::env::var_os("CATALOG_API_KEY").is_none() {
        config = config.catalog_url(concat!("file://", env!("CARGO_MANIFEST_DIR"), "/samples/catalog.json"));
    }
    let client = Client::open(config).await?;

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("Try: curl 'http://{}{ENDPOINT_PATH}?category=games&limit=2'", listener.local_addr()?);
    axum::serve(listener, http::router(client)).await?;
    Ok(())
}

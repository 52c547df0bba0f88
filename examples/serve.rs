//! Serves the directory page, and the discovery endpoint, over HTTP with axum.
//!
//! Start it with `cargo run --release --example serve`, then open `http://127.0.0.1:3000/`. Options come from
//! environment variables (`TOWNSQUARE_DATA_DIR`, …). Without a catalog there, it shows the invented apps of `sample:`.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

use axum::{Router, response::Redirect, routing::get};
use townsquare::{Client, Config, discovery::ENDPOINT_PATH, http};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    #[allow(clippy::disallowed_methods, reason = "an example reads its own environment")]
    let is_set = |name| std::env::var_os(name).is_some();
    let names =
        ["CATALOG_API_KEY", "TOWNSQUARE_CATALOG_API_KEY", "TOWNSQUARE_CATALOG_URL", "TOWNSQUARE_CATALOG_FORMAT"];
    let mut config = Config::from_env()?;
    if !names.into_iter().any(is_set) {
        config = config.catalog_url("sample:");
    }
    let client = Client::open(config).await?;

    let app = Router::new()
        .route("/", get(Redirect::to(http::DIRECTORY_PATH)))
        .merge(http::directory_router(client.clone()))
        .merge(http::discovery_router(client));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    let address = listener.local_addr()?;
    println!("Open http://{address}/ or try: curl 'http://{address}{ENDPOINT_PATH}?category=games&limit=2'");
    axum::serve(listener, app).await?;
    Ok(())
}

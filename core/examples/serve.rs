//! The discovery endpoint behind a real server: `cargo run --release --features http --example serve`, then
//! `curl 'http://127.0.0.1:3000/api/miniapp-discovery?category=games&limit=2'`.
#![allow(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use townsquare::{Client, Config};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = Config::from_env()?;
    #[allow(clippy::disallowed_methods, reason = "an example reads its own environment")]
    if std::env::var_os("CATALOG_API_KEY").is_none() {
        config = config.catalog_url(concat!("file://", env!("CARGO_MANIFEST_DIR"), "/samples/catalog.json"));
    }
    let client = Client::open(config).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    println!("http://{}{}", listener.local_addr()?, townsquare::ENDPOINT_PATH);
    axum::serve(listener, townsquare::http::router(client)).await?;
    Ok(())
}

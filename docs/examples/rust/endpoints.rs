//! HTTP: one function answers every endpoint, for whatever server the program has.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use townsquare::{Client, Config, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::open(Config::new().data_dir(":memory:").catalog_url("sample:")).await?;
    client.auth().sign_up("ann@town.example", "correct horse").await?;
    let token = client.auth().create_session("ann@town.example", "correct horse").await?.access_token;
    let bearer = [("authorization".to_owned(), format!("Bearer {token}"))];
    let wrong = [("authorization".to_owned(), "Bearer guess".to_owned())];

    // A server answers each peer on a handle of its own, so that the limits count for that peer.
    let peer = client.with_client_key("203.0.113.7");

    let mut response = peer.handle_request("GET", "/health", &[], "").await?;
    let body = response.body.next_chunk().await?.unwrap_or_default();
    println!("{} {}", response.status, String::from_utf8_lossy(&body));

    let response = peer.handle_request("GET", "/api/miniapp-discovery?category=games&limit=1", &[], "").await?;
    let media_type = response.headers.iter().find(|(name, _)| name == "content-type");
    println!("{} {}", response.status, media_type.map_or("", |(_, value)| value.as_str()));

    let file = "/files/assets/notes/a.txt";
    println!("{}", peer.handle_request("PUT", file, &bearer, "hello").await?.status);
    let mut response = peer.handle_request("GET", file, &[], "").await?;
    let body = response.body.next_chunk().await?.unwrap_or_default();
    println!("{} {}", response.status, String::from_utf8_lossy(&body));
    println!("{} without a token", peer.handle_request("PUT", file, &[], "mine").await?.status);
    println!("{} with a wrong token", peer.handle_request("GET", file, &wrong, "").await?.status);

    let events = "/events?table=spaces";
    println!("{} while the change log is off", peer.handle_request("GET", events, &[], "").await?.status);
    client.realtime().start().await?;
    println!("{} afterwards", peer.handle_request("GET", events, &[], "").await?.status);
    client.close().await;
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<()> {
    main()
}

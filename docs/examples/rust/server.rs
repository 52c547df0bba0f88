//! A server with axum: every endpoint of the library, and a route of its own.
#![allow(clippy::print_stdout, reason = "an example prints its results")]

// ANCHOR: program
use std::net::SocketAddr;

use axum::{Router, routing::get};
use townsquare::{Client, Config, Error, http};

/// The spaces of the user who sends the request. An error of the library becomes a response with its status.
async fn my_spaces(http::Caller(caller): http::Caller) -> Result<String, Error> {
    let Some(session) = caller.auth().get_session().await? else { return Ok("Please sign in.\n".to_owned()) };
    let spaces = caller.spaces().get_user_spaces(session.user.id).await?;
    Ok(spaces.iter().map(|space| format!("{}\n", space.space.name)).collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::open(Config::new().data_dir(":memory:").catalog_url("sample:")).await?;
    client.realtime().start().await?; // `/events` answers 503 without it
    let own = Router::new().route("/mine", get(my_spaces)).with_state(client.clone());
    let app = own.merge(http::router(client.clone()));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    // With the address of the peer, so that each peer has limits of its own.
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    // The server ends when its responses have ended, and only `close` ends those of `/events`.
    let stop = async move {
        let _ = tokio::signal::ctrl_c().await;
        client.close().await;
    };
    axum::serve(listener, service).with_graceful_shutdown(stop).await?;
    Ok(())
}
// ANCHOR_END: program

/// Runs the program in the test of the book.
pub(super) fn run() -> Result<(), Box<dyn std::error::Error>> {
    main()
}

//! `serve`: the HTTP endpoints of the library, with `/ready` and `/metrics`.
//!
//! Invariant: after a signal no new connection is accepted, event streams get a last event, and requests that run have `GRACE` to
//! finish.

mod admin;

use std::{
    future,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE},
    },
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use clap::Args;
use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream,
};
use serde_json::json;
use tokio::{net::TcpListener, runtime, sync::watch, time::timeout};
use townsquare::{
    Client,
    http::{self, RequestClient},
};

use self::admin::Admin;
use crate::{context::Context, exit_code, failure::Failure, interrupt, output::note};

/// The time that requests have to finish after a signal.
const GRACE: Duration = Duration::from_secs(10);

/// The last event of a stream when the server ends.
const LAST_EVENT: &[u8] = b"event: end\ndata: {\"error\":\"The server ends\",\"status\":503}\n\n";

/// Serve the directory, files and changes over HTTP. Ends cleanly on SIGTERM and SIGINT.
///
/// Paths: /directory (a page with the apps; / leads to it), /api/miniapp-discovery, /files/BUCKET/PATH, /events, /health (the database
/// answers), /ready (the server takes requests), /metrics (Prometheus). A request acts for the bearer of its access token. The address
/// is the first line of the output; JSON: `url`.
///
/// With --admin there is also /admin, a read-only page for the developer and the operator: users, spaces, files, sessions, changes as
/// they come, the catalog, findings of a check, metrics. The second line of the output is its address with a token; JSON: `admin_url`.
///
/// For the internet, put a proxy before it: the command limits neither connections nor the time of a request's headers, and
/// /metrics and /admin are for the operator, so let no proxy pass them on. Name the header in which the proxy writes the address of a
/// visitor by --client-address-header: without it all visitors share the limits of one client, such as 64 event streams.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The IP address and the port to listen at; localhost means 127.0.0.1. Port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:3000", value_name = "ADDRESS:PORT", value_parser = address)]
    listen: SocketAddr,
    /// A path before all others, such as /town.
    #[arg(long, default_value = "", value_name = "PATH", value_parser = prefix)]
    prefix: String,
    /// The header in which the proxy before the server writes the address of a visitor, such as X-Forwarded-For. Its last address
    /// counts. Only behind a proxy that always writes it: otherwise visitors choose their address themselves.
    #[arg(long, value_name = "HEADER")]
    client_address_header: Option<HeaderName>,
    /// Serve the page /admin to browsers on this machine. --listen must be an address of the loopback, such as 127.0.0.1.
    #[arg(long)]
    admin: bool,
}

/// An IP address with a port.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let ip = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = ip.as_deref().unwrap_or(text).parse();
    address.map_err(|_| "give an IP address with a port, such as 127.0.0.1:3000, [::1]:3000 or 0.0.0.0:3000")
}

/// A path that begins with a slash and does not end with one.
pub(super) fn prefix(text: &str) -> Result<String, &'static str> {
    let path = text.trim_end_matches('/');
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "/-_.~".contains(character);
    if !path.is_empty() && (!path.starts_with('/') || path.contains("//") || !path.chars().all(is_plain)) {
        return Err("a prefix is a path such as /town, of letters, digits, -, _, . and ~");
    }
    Ok(path.to_owned())
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    interrupt::defer();
    let runtime = runtime::Builder::new_multi_thread().enable_all().build().map_err(|error| {
        Failure::new(exit_code::FAILURE, format!("Cannot start threads: {error}"), "Check the limits of this process.")
    })?;
    let result = runtime.block_on(serve(arguments, context));
    // A request that did not finish in time is dropped.
    runtime.shutdown_background();
    result
}

async fn serve(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if arguments.admin && !arguments.listen.ip().to_canonical().is_loopback() {
        let sentence = format!("The admin page is for this machine alone, and others reach {}", arguments.listen.ip());
        return Err(Failure::usage(sentence, "Give --listen an address of the loopback, such as 127.0.0.1:3000."));
    }
    let listener = TcpListener::bind(arguments.listen).await.map_err(|error| {
        let sentence = format!("Cannot listen at {}: {error}", arguments.listen);
        Failure::new(
            exit_code::of_io(&error),
            sentence,
            "End the program that uses the port, or give another --listen.",
        )
    })?;
    let client = Client::open(context.settings()?.config()?).await?;
    let result = serve_client(&client, listener, arguments, context).await;
    client.close().await;
    result
}

async fn serve_client(
    client: &Client,
    listener: TcpListener,
    arguments: &Arguments,
    context: &Context,
) -> Result<(), Failure> {
    let prefix = &arguments.prefix;
    // Requests for changes never switch the log on.
    let events_off = client.realtime().start().await.err().map(|error| format!("Events are off: {error}"));
    if let Some(sentence) = &events_off {
        note(sentence);
    }
    let failed =
        |error| Failure::new(exit_code::FAILURE, format!("Cannot serve: {error}"), "Check the limits of this process.");
    let address = listener.local_addr().map_err(failed)?;
    let url = format!("http://{address}{prefix}");
    let (ending, is_ending) = watch::channel(false);
    let mut router = router(client.clone(), is_ending.clone(), prefix);
    let mut admin_url = None;
    if arguments.admin {
        let admin = Admin::new(client, address, prefix, is_ending.clone(), context)?;
        admin_url = Some(format!("{url}{}", admin.path_with_token()));
        admin.watch(events_off);
        router = router.merge(admin::router(admin));
    }
    write_addresses(&url, admin_url.as_deref(), context)?;

    let router = prefixed(router, prefix);
    let router = match &arguments.client_address_header {
        Some(header) => with_clients_of_proxy(router, header.clone()),
        None => router,
    };
    let serving = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>());
    let serving = serving.with_graceful_shutdown(shutdown_requested(is_ending)).into_future();
    let mut serving = tokio::spawn(serving);
    let result = match select(&mut serving, pin!(interrupt::requested())).await {
        Either::Left((ended, _)) => Ok(ended),
        Either::Right(_) => {
            note("Ending: requests that run have 10 seconds.");
            let _ = ending.send(true);
            timeout(GRACE, serving).await
        }
    };
    match result {
        Ok(Ok(result)) => result.map_err(failed),
        Ok(Err(panic)) => {
            let sentence = format!("The server failed: {panic}");
            Err(Failure::new(exit_code::FAILURE, sentence, "Start it again, and report the messages above."))
        }
        Err(_elapsed) => {
            note("Requests that still run are ended.");
            Ok(())
        }
    }
}

/// Writes the address, and that of the admin page. A server without a reader of its address is no success: its caller waits for
/// the line.
fn write_addresses(url: &str, admin_url: Option<&str>, context: &Context) -> Result<(), Failure> {
    let output = &context.output;
    let written = match (output.is_json, admin_url) {
        (true, None) => output.json_line(&json!({ "url": url })),
        (true, Some(admin_url)) => output.json_line(&json!({ "url": url, "admin_url": admin_url })),
        (false, _) => {
            let mut lines = [Some(url), admin_url].into_iter().flatten();
            lines.try_for_each(|line| output.line(line)).and_then(|()| output.flush())
        }
    };
    written.map_err(|failure| match failure.sentence {
        Some(_) => failure,
        None => Failure::new(
            exit_code::FAILURE,
            "Cannot write the address: the standard output is closed",
            "Send the output to a file, or to /dev/null.",
        ),
    })
}

/// The router behind a proxy that writes the address of each visitor into a header. A request without an address counts for the
/// proxy.
fn with_clients_of_proxy(router: Router, header: HeaderName) -> Router {
    let name_client = move |mut request: Request| {
        if let Some(address) = last_address(request.headers(), &header) {
            request.extensions_mut().insert(RequestClient(address.to_string()));
        }
        future::ready(request)
    };
    router.layer(middleware::map_request(name_client))
}

/// The last address in the values of a header: the proxy adds it after those that its peer sent.
fn last_address(headers: &HeaderMap, name: &HeaderName) -> Option<IpAddr> {
    let text = headers.get_all(name).iter().next_back()?.to_str().ok()?.rsplit(',').next()?.trim();
    text.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// The router behind a prefix. The prefix leads to the page with and without a slash at its end.
fn prefixed(router: Router, prefix: &str) -> Router {
    if prefix.is_empty() {
        return router;
    }
    Router::new().route(&format!("{prefix}/"), get(to_page(""))).nest(prefix, router)
}

/// A redirect from a prefix, without a slash at its end, to the page. It is relative, because a proxy may add a prefix of its own.
fn to_page(prefix: &str) -> Redirect {
    match prefix.rsplit_once('/') {
        Some((_, last)) => Redirect::temporary(&format!("{last}{}", http::DIRECTORY_PATH)),
        None => Redirect::temporary(http::DIRECTORY_PATH.trim_start_matches('/')),
    }
}

/// Waits until the server ends.
async fn shutdown_requested(mut is_ending: watch::Receiver<bool>) {
    // The sender is gone when the server has ended.
    let _ = is_ending.wait_for(|is_ending| *is_ending).await;
}

/// What the routes of the command need.
#[derive(Debug, Clone)]
struct ServerState {
    client: Client,
    is_ending: watch::Receiver<bool>,
}

fn router(client: Client, is_ending: watch::Receiver<bool>, prefix: &str) -> Router {
    let state = Arc::new(ServerState { client: client.clone(), is_ending: is_ending.clone() });
    let end_events = move |request: Request, next: Next| {
        let is_ending = is_ending.clone();
        async move {
            // A file may have the content type of a stream, and has no last event.
            let is_events = request.uri().path() == http::EVENTS_PATH;
            let response = next.run(request).await;
            if is_events { end_stream(response, is_ending) } else { response }
        }
    };
    Router::new()
        .route("/", get(to_page(prefix)))
        .route("/ready", get(ready))
        .route("/metrics", get(metrics))
        .with_state(state)
        .merge(http::router(client))
        .layer(middleware::from_fn(end_events))
}

/// Adds a last event to the stream of a response when the server ends.
fn end_stream(response: Response, is_ending: watch::Receiver<bool>) -> Response {
    let kind = response.headers().get(CONTENT_TYPE);
    if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
        return response;
    }
    response.map(|body| {
        let events = body.into_data_stream().take_until(shutdown_requested(is_ending.clone()));
        // A stream that has ended by itself has a last event of its own.
        let last = stream::once(async move { is_ending.borrow().then_some(Ok(Bytes::from_static(LAST_EVENT))) });
        Body::from_stream(events.chain(last.filter_map(future::ready)))
    })
}

/// 200 while the database answers and the server takes requests.
async fn ready(State(state): State<Arc<ServerState>>) -> Response {
    let is_ending = *state.is_ending.borrow();
    let answers = async {
        let health = state.client.handle_request("GET", http::HEALTH_PATH, &[], Bytes::new()).await;
        health.is_ok_and(|response| response.status == StatusCode::OK.as_u16())
    };
    let (status, text) = match is_ending {
        true => (StatusCode::SERVICE_UNAVAILABLE, "ending"),
        false if answers.await => (StatusCode::OK, "ready"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
    };
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
    (status, headers, json!({ "status": text }).to_string()).into_response()
}

/// The metrics of the client in the text format of Prometheus.
async fn metrics(State(state): State<Arc<ServerState>>) -> townsquare::Result<Response> {
    let metrics = state.client.metrics().await?;
    let headers = [(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8"), (CACHE_CONTROL, "no-store")];
    Ok((headers, metrics.to_prometheus()).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_a_plain_path() {
        for (text, path) in [("", ""), ("/", ""), ("/town", "/town"), ("/a/b/", "/a/b")] {
            assert_eq!(prefix(text), Ok(path.to_owned()), "{text}");
        }
        for text in ["town", "/a//b", "/{x}", "/a b", "/ä"] {
            assert!(prefix(text).is_err(), "{text}");
        }
    }
}

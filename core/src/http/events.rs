//! Server-sent events as an axum router.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{Response, StatusCode},
    routing::get,
};

use super::{empty_response, of_request, streamed_response, text_headers};
use crate::client::Client;

/// The path at which [`events_router`] serves events.
///
/// ```
/// assert_eq!(townsquare::http::EVENTS_PATH, "/events");
/// ```
pub const EVENTS_PATH: &str = "/events";

/// Returns a router that serves changes of rows as server-sent events at `/events?table=spaces&filter=id=eq.…`. Merge it into
/// the router of your server. See [`handle_events`](crate::realtime::Realtime::handle_events).
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::events_router(client))
/// # }
/// ```
pub fn events_router(client: Client) -> Router {
    Router::new().route(EVENTS_PATH, get(handle)).with_state(client)
}

async fn handle(State(client): State<Client>, request: Request) -> Response<Body> {
    let Some(headers) = text_headers(request.headers()) else { return empty_response(StatusCode::BAD_REQUEST) };
    let target = request.uri().path_and_query().map_or_else(String::new, ToString::to_string);
    let client = of_request(client, request.extensions());
    let Ok(answer) = client.realtime().handle_events(&target, &headers).await else {
        return empty_response(StatusCode::SERVICE_UNAVAILABLE);
    };
    streamed_response(answer.status, answer.headers, Body::from_stream(answer.body))
}

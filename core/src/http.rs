//! The discovery endpoint, the files and server-sent events as axum routers (feature `http`).
//!
//! Invariant: this module only converts requests and responses;
//! [`Discovery::handle`](crate::discovery::Discovery::handle),
//! [`Storage::handle_file`](crate::storage::Storage::handle_file) and
//! [`Realtime::handle_events`](crate::realtime::Realtime::handle_events) decide the answers.

mod events;
mod files;

pub use self::{
    events::{EVENTS_PATH, events_router},
    files::{FILES_PATH, files_router},
};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode},
    routing::any,
};

use crate::{
    client::Client,
    discovery::{ENDPOINT_PATH, MAX_BODY},
};

/// Returns a router that answers at `/api/miniapp-discovery` (SPEC 4.1). Merge it into the router of your server.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::router(client))
/// # }
/// ```
pub fn router(client: Client) -> Router {
    Router::new().route(ENDPOINT_PATH, any(handle)).with_state(client)
}

async fn handle(State(client): State<Client>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    // Stops reading beyond the limit. An oversized body is replaced by one that the endpoint refuses as too large.
    let body = axum::body::to_bytes(body, MAX_BODY).await;
    let oversized;
    let body: &[u8] = match &body {
        Ok(body) => body,
        Err(_) => {
            oversized = vec![0; MAX_BODY + 1];
            &oversized
        }
    };
    let target = head.uri.query().map_or_else(|| ENDPOINT_PATH.to_owned(), |query| format!("{ENDPOINT_PATH}?{query}"));
    let Ok(answer) = client.discovery().handle(head.method.as_str(), &target, body).await else {
        return empty_response(StatusCode::SERVICE_UNAVAILABLE);
    };
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        match HeaderValue::from_str(&value) {
            Ok(value) => drop(response.headers_mut().insert(name, value)),
            Err(_) => return empty_response(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
    response
}

/// The headers of a request as text; `None` if one is not.
fn text_headers(headers: &HeaderMap) -> Option<Vec<(String, String)>> {
    headers.iter().map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))).collect()
}

/// A response with a streamed body.
fn streamed_response(status: u16, headers: Vec<(String, String)>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return empty_response(StatusCode::INTERNAL_SERVER_ERROR);
        };
        response.headers_mut().insert(name, value);
    }
    response
}

fn empty_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

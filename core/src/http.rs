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
use std::net::SocketAddr;

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, StatusCode},
    routing::any,
};

use crate::{
    client::Client,
    discovery::{ENDPOINT_PATH, EndpointRoute, MAX_BODY},
};

/// Returns a router that answers at `/api/miniapp-discovery` (SPEC 4.1) and at the routes below it. Merge it into the router
/// of your server.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::router(client))
/// # }
/// ```
pub fn router(client: Client) -> Router {
    let below = format!("{ENDPOINT_PATH}/{{*route}}");
    endpoint_router(client.clone(), EndpointRoute::List)
        .merge(Router::new().route(&below, any(handle)).with_state(client))
}

/// Returns a router that answers at one route of the endpoint, for a server that does not mount them all.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// use townsquare::{discovery::EndpointRoute, http::endpoint_router};
///
/// let list = endpoint_router(client.clone(), EndpointRoute::List);
/// list.merge(endpoint_router(client, EndpointRoute::Suggest))
/// # }
/// ```
pub fn endpoint_router(client: Client, route: EndpointRoute) -> Router {
    let path = route.path().replace("{id}", "{*id}");
    let router = Router::new().route(&path, any(handle));
    // A wildcard takes the slash at the end too.
    let router = if path.ends_with('}') { router } else { router.route(&format!("{path}/"), any(handle)) };
    router.with_state(client)
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
    // The endpoint reads no header that is not text.
    let headers =
        head.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    let headers: Vec<_> = headers.collect();
    let path = head.uri.path();
    let target = head.uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let Ok(answer) = client.discovery().handle(head.method.as_str(), &target, body, &headers).await else {
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

/// The client of a request, for the limits of [`with_client_key`](Client::with_client_key): a layer of the host puts it into
/// the request's extensions. Without it, the address of the peer is the client, if the server has it
/// (`into_make_service_with_connect_info::<SocketAddr>`). Behind a proxy, which is the peer of every request, the host needs
/// this layer.
///
/// ```
/// use townsquare::http::RequestClient;
///
/// let mut request = axum::extract::Request::new(axum::body::Body::empty());
/// // From the header that the proxy sets.
/// request.extensions_mut().insert(RequestClient("203.0.113.7".to_owned()));
/// ```
#[derive(Debug, Clone)]
pub struct RequestClient(pub String);

/// The handle for the client of a request.
fn of_request(client: Client, extensions: &Extensions) -> Client {
    match (extensions.get::<RequestClient>(), extensions.get::<ConnectInfo<SocketAddr>>()) {
        (Some(RequestClient(key)), _) => client.with_client_key(key),
        (None, Some(ConnectInfo(peer))) => client.with_client_key(&peer.ip().to_string()),
        (None, None) => client,
    }
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

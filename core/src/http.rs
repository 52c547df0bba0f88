//! The discovery endpoint and the files as axum routers (feature `http`).
//!
//! Invariant: this module only converts requests and responses;
//! [`Discovery::handle`](crate::discovery::Discovery::handle) and
//! [`Storage::handle_file`](crate::storage::Storage::handle_file) decide the answers.

mod files;

pub use self::files::{FILES_PATH, files_router};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Response, StatusCode},
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

fn empty_response(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

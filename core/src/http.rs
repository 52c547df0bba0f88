//! The discovery endpoint as an axum router, for programs that have a server (feature `http`).
//!
//! Invariant: it only carries requests to [`Discovery::handle`](crate::Discovery::handle) and responses back; what an
//! answer is, is decided there.

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, Response, StatusCode},
    routing::any,
};

use crate::{client::Client, discovery::ENDPOINT_PATH, discovery::MAX_BODY};

/// A router that answers at `/api/miniapp-discovery` (SPEC 4.1): mount it where the base URL of your API is.
pub fn router(client: Client) -> Router {
    Router::new().route(ENDPOINT_PATH, any(answer)).with_state(client)
}

async fn answer(State(client): State<Client>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    // Reads one byte more than is allowed at the most; what is larger is refused as the endpoint refuses it.
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
        return status(StatusCode::SERVICE_UNAVAILABLE);
    };
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in answer.headers {
        match HeaderValue::from_str(&value) {
            Ok(value) => drop(response.headers_mut().insert(name, value)),
            Err(_) => return status(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
    response
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

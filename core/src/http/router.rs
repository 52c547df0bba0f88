//! The endpoints as axum routers (feature `http`).
//!
//! Invariant: this module only converts requests and responses. Bodies are streamed both ways, so that memory does not grow with a
//! file.

use std::io;

use axum::{Router, body::Body, extract::State, routing::any};
use futures_util::TryStreamExt as _;

use super::{
    caller::for_peer,
    endpoints::{EVENTS_PATH, Endpoint, HEALTH_PATH},
    page::DIRECTORY_PATH,
    refusal::HttpRefusal,
    request::Request,
    response::Response,
};
use crate::{
    client::Client,
    discovery::{ENDPOINT_PATH, EndpointRoute},
    error::Result,
    http_message::RequestBody,
};

/// Returns a router with every endpoint. Merge it into the router of your server; [`Caller`](super::Caller) has an example.
///
/// | path | what answers |
/// |---|---|
/// | `/api/miniapp-discovery` and below | the directory: [`discovery_router`] |
/// | `/directory` and below | the directory as a page for people: [`directory_router`] |
/// | `/files/BUCKET/PATH` | files: [`files_router`] |
/// | `/events` | changes of rows: [`events_router`]. A host that serves them calls [`start`](crate::realtime::Realtime::start) |
/// | `/health` | 200 and `{"status":"ok"}` while the database answers, else 503 |
///
/// A request acts for the bearer of its header `Authorization` or the signer of its URL, and for nobody else.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::router(client))
/// # }
/// ```
pub fn router(client: Client) -> Router {
    let health = serve(client.clone(), Endpoint::Health, &[HEALTH_PATH]);
    let events = health.merge(events_router(client.clone()));
    let directory = directory_router(client.clone()).merge(discovery_router(client.clone()));
    events.merge(files_router(client)).merge(directory)
}

/// Returns a router that serves the directory as a page for people: the list with search and filters at `/directory`, the details of
/// an app at `/directory/apps/{id}`.
///
/// The page needs no other route, works without JavaScript, and loads nothing from other servers unless its visitor chooses to see
/// the apps' pictures. All its links are relative: it may be nested under any path. A server that shows it first redirects `/` to
/// [`DIRECTORY_PATH`].
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// use axum::{Router, response::Redirect, routing::get};
/// use townsquare::http::{DIRECTORY_PATH, directory_router};
///
/// Router::new().route("/", get(Redirect::to(DIRECTORY_PATH))).merge(directory_router(client))
/// # }
/// ```
pub fn directory_router(client: Client) -> Router {
    let below = format!("{DIRECTORY_PATH}/{{*path}}");
    serve(client, Endpoint::Page, &[DIRECTORY_PATH, &format!("{DIRECTORY_PATH}/"), &below])
}

/// Returns a router that answers at `/api/miniapp-discovery` and at the routes below it.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::discovery_router(client))
/// # }
/// ```
pub fn discovery_router(client: Client) -> Router {
    let below = format!("{ENDPOINT_PATH}/{{*route}}");
    endpoint_router(client.clone(), EndpointRoute::List).merge(serve(client, Endpoint::Discovery, &[&below]))
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
    let with_slash = format!("{path}/");
    // A wildcard takes the slash at the end too.
    let paths = [path.as_str(), &with_slash];
    serve(client, Endpoint::Discovery, if path.ends_with('}') { &paths[..1] } else { &paths })
}

/// Returns a router that serves files at `/files/BUCKET/PATH`: GET, HEAD, PUT and DELETE.
///
/// A request acts for the bearer of its `Authorization` header, or for the signer of its URL, and for nobody else: the
/// caller of `client` has no part in it. Put `/files` in front of a URL of
/// [`signed_url`](crate::storage::Storage::signed_url). Bodies are streamed; the option
/// [`max_file_size`](crate::Config::max_file_size) limits them, and not axum's own limit.
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::files_router(client))
/// # }
/// ```
pub fn files_router(client: Client) -> Router {
    serve(client, Endpoint::Files, &["/files/{*target}"])
}

/// Returns a router that serves changes of rows as server-sent events at `/events?table=spaces&filter=id=eq.…`. See [`handle_events`](crate::realtime::Realtime::handle_events).
///
/// ```
/// # fn example(client: townsquare::Client) -> axum::Router {
/// axum::Router::new().merge(townsquare::http::events_router(client))
/// # }
/// ```
pub fn events_router(client: Client) -> Router {
    serve(client, Endpoint::Events, &[EVENTS_PATH])
}

/// A router that answers at these paths.
fn serve(client: Client, endpoint: Endpoint, paths: &[&str]) -> Router {
    let handler = move |State(client): State<Client>, request: axum::extract::Request| async move {
        let response = answer(client, endpoint, request).await;
        response.unwrap_or_else(|error| HttpRefusal::from(error).into_response()).map(Body::from_stream)
    };
    paths.iter().fold(Router::new(), |router, path| router.route(path, any(handler))).with_state(client)
}

/// # Errors
/// `Closed` after the client was closed.
async fn answer(client: Client, endpoint: Endpoint, request: axum::extract::Request) -> Result<Response> {
    let (head, body) = request.into_parts();
    let client = for_peer(client, &head.extensions);
    // The path is still escaped: the endpoints decode it.
    let target = head.uri.path_and_query().map_or("/", |target| target.as_str());
    let request = Request::new(head.method.as_str(), target, head.headers);
    let body = RequestBody::from_chunks(body.into_data_stream().map_err(io::Error::other));
    client.respond(endpoint, request, body).await
}

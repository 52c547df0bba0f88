//! The caller of a request in a handler of the host: an axum extractor, and errors as responses (feature `http`).
//!
//! Invariant: a handler runs for the bearer of its request or as anonymous, never with the caller of the client.

use std::net::SocketAddr;

use ::http::{Extensions, HeaderMap, request::Parts};
use axum::{
    body::Body,
    extract::{ConnectInfo, FromRef, FromRequestParts},
    response::IntoResponse,
};

use super::{bearer, refusal::HttpRefusal, response::finish};
use crate::{client::Client, error::Error};

/// The client of a request, for the limits of [`with_client_key`](Client::with_client_key): a layer of the host puts it into
/// the request's extensions. The port of an address does not count. Without it, the address of the peer is the client, if the
/// server has it (`into_make_service_with_connect_info::<SocketAddr>`). Behind a proxy, which is the peer of every request, the
/// host needs this layer.
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

/// The header in which a browser returns a position of [`Client::read_position`]: `townsquare-position`. The host sends it with its
/// response to a write; [`Caller`] reads it from the next request.
pub const POSITION_HEADER: &str = "townsquare-position";

/// An axum extractor: a handle of the client for the caller of the request. The caller is the bearer of the access token in the
/// header `Authorization`, or anonymous without the header. The caller of the client itself has no part in it.
///
/// The state of the router is the [`Client`], or a type from which axum gets one (`FromRef`). The handle has the client key of
/// the request, see [`RequestClient`]. A handler returns [`townsquare::Result`](crate::Result): an [`Error`] is a response with
/// its [status](Error::status) and `{"success": false, "error": "…"}`.
///
/// A request with a token that is not valid, or with credentials of another kind, is refused with 401 before the handler runs; a
/// request with two headers `Authorization` with 400.
///
/// A request with the header [`POSITION_HEADER`] sees what was written before that position, also where a replica answers
/// ([`Client::read_after`]); 400 if the header is no position.
///
/// # Examples
///
/// A server with a route of its own beside those of [`router`](super::router):
///
/// ```
/// # use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
/// use axum::{Router, routing::post};
/// use townsquare::{Client, Config, http::{Caller, router}, spaces::NewSpace};
///
/// /// Creates a space of the user who sends the request. The body is its name.
/// async fn create(Caller(client): Caller, name: String) -> townsquare::Result<String> {
///     let space = client.spaces().create_space(NewSpace::named(name)).await?;
///     Ok(space.id.to_string())
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let client = Client::open(Config::new().data_dir(":memory:")).await?;
/// #   client.auth().sign_up("ann@town.example", "correct horse").await?;
/// #   let token = client.auth().create_session("ann@town.example", "correct horse").await?.access_token;
///     let app = Router::new().route("/spaces", post(create)).with_state(client.clone()).merge(router(client));
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// #   let address = listener.local_addr()?;
/// #   let requests = async move {
/// #       for (caller, status) in [(String::new(), "403"), (format!("Authorization: Bearer {token}\r\n"), "200")] {
/// #           let request = format!("POST /spaces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{caller}Content-Length: 6\r\n\r\nHarbor");
/// #           let mut peer = tokio::net::TcpStream::connect(address).await.unwrap();
/// #           peer.write_all(request.as_bytes()).await.unwrap();
/// #           let mut response = String::new();
/// #           peer.read_to_string(&mut response).await.unwrap();
/// #           assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
/// #       }
/// #   };
///     // With the address of the peer, so that each peer has limits of its own.
///     axum::serve(listener, app.into_make_service_with_connect_info::<std::net::SocketAddr>())
/// #       .with_graceful_shutdown(requests)
///         .await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Caller(pub Client);

impl<S> FromRequestParts<S> for Caller
where
    Client: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = axum::response::Response;

    async fn from_request_parts(head: &mut Parts, state: &S) -> Result<Caller, Self::Rejection> {
        let client = for_peer(Client::from_ref(state), &head.extensions);
        let caller = of_request(&client, &head.headers).await;
        let caller = match caller {
            Ok(caller) => read_after(&caller, &head.headers).await.map(|()| Caller(caller)),
            Err(refusal) => Err(refusal),
        };
        caller.map_err(|refusal| response_of(refusal.of_no_file()))
    }
}

/// The handle for the caller of a request with these headers.
async fn of_request(client: &Client, headers: &HeaderMap) -> Result<Client, HttpRefusal> {
    match bearer::access_token(headers)? {
        Some(token) => client.as_user(&token).await.map_err(bearer::refusal),
        None => Ok(client.as_anonymous()),
    }
}

/// Has the handle read what was written before the position in the header, if the request has one.
async fn read_after(client: &Client, headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let Some(position) = headers.get(POSITION_HEADER) else { return Ok(()) };
    // A header that is no text is no position either.
    client.read_after(position.to_str().unwrap_or("?")).await.map_err(HttpRefusal::from)
}

/// The handle with the client key of a request.
pub(super) fn for_peer(client: Client, request: &Extensions) -> Client {
    match (request.get::<RequestClient>(), request.get::<ConnectInfo<SocketAddr>>()) {
        (Some(RequestClient(key)), _) => client.with_client_key(key),
        (None, Some(ConnectInfo(peer))) => client.with_client_key(&peer.ip().to_string()),
        (None, None) => client,
    }
}

/// The response to a request outside of the endpoints.
fn response_of(refusal: HttpRefusal) -> axum::response::Response {
    finish(refusal.into_response(), "", &HeaderMap::new(), "", &[]).map(Body::from_stream)
}

/// The status of the error, and `{"success": false, "error": "…"}` with its sentence. The response to a failure of the library or of
/// an outside system does not describe it: the error is logged.
impl IntoResponse for Error {
    fn into_response(self) -> axum::response::Response {
        response_of(self.into())
    }
}

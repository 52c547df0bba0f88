//! `handle_request`: every endpoint at its path, for a server that has one handler for all of them.
//!
//! Invariant: the body of a request is read only where the request stores it, or up to a limit.

use super::{
    discovery::MAX_BODY, health, page::DIRECTORY_PATH, refusal::HttpRefusal, request::Request, response::Response,
    target::origin_form,
};
use crate::{
    client::Client,
    discovery::ENDPOINT_PATH,
    error::Result,
    http_message::{HttpResponse, RequestBody, ResponseBody},
    threads::BoxedFuture,
};

/// The path under which files are served: `/files/BUCKET/PATH`.
///
/// ```
/// assert_eq!(townsquare::http::FILES_PATH, "/files");
/// ```
pub const FILES_PATH: &str = "/files";

/// The path at which events are served.
///
/// ```
/// assert_eq!(townsquare::http::EVENTS_PATH, "/events");
/// ```
pub const EVENTS_PATH: &str = "/events";

/// The path that tells whether the client is healthy.
///
/// ```
/// assert_eq!(townsquare::http::HEALTH_PATH, "/health");
/// ```
pub const HEALTH_PATH: &str = "/health";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Discovery,
    Page,
    Files,
    Events,
    Health,
}

impl Endpoint {
    /// The endpoint at the path of a request target.
    fn at(target: &str) -> Option<Endpoint> {
        let path = target.split_once('?').map_or(target, |(path, _)| path);
        let below = |start| path.strip_prefix(start).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match path {
            EVENTS_PATH => Some(Endpoint::Events),
            HEALTH_PATH => Some(Endpoint::Health),
            _ if below(FILES_PATH).is_some_and(|rest| !rest.is_empty()) => Some(Endpoint::Files),
            _ if below(DIRECTORY_PATH).is_some() => Some(Endpoint::Page),
            _ => below(ENDPOINT_PATH).map(|_| Endpoint::Discovery),
        }
    }
}

impl Client {
    /// Answers a request for any endpoint; call it from any HTTP server.
    ///
    /// | path | what answers |
    /// |---|---|
    /// | `/api/miniapp-discovery` and below | the directory: [`handle`](crate::discovery::Discovery::handle) |
    /// | `/directory` and below | the directory as a page for people, also without JavaScript |
    /// | `/files/BUCKET/PATH` | files: [`handle_file`](crate::storage::Storage::handle_file) |
    /// | `/events` | changes of rows: [`handle_events`](crate::realtime::Realtime::handle_events). A host that serves them calls [`start`](crate::realtime::Realtime::start) |
    /// | `/health` | 200 and `{"status":"ok"}` while the database answers, else 503 |
    ///
    /// Other paths get 404. `target` is the request target, path and query, as the client sent it. The names of `headers` are in any
    /// case. A request acts for the bearer of its header `Authorization` or the signer of its URL, and for nobody else: the caller of
    /// this handle is ignored. Give requests the limits of one client with [`with_client_key`](Client::with_client_key).
    ///
    /// The body of the response is streamed: read it to its end, or drop it when the client disconnects.
    ///
    /// # Errors
    /// `Closed` from an endpoint of a closed client, except `/health`, which is 503; every other failure is a response.
    ///
    /// # Examples
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let headers = [("Accept".to_owned(), "application/json".to_owned())];
    /// let mut response = client.handle_request("GET", "/api/miniapp-discovery?limit=5", &headers, "").await?;
    /// while let Some(bytes) = response.body.next_chunk().await? {
    ///     println!("{}", String::from_utf8_lossy(&bytes));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn handle_request(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
        body: impl Into<RequestBody>,
    ) -> Result<HttpResponse<ResponseBody>> {
        let target = origin_form(target);
        let request = Request::of_text(method, target, headers);
        let response = match Endpoint::at(target) {
            Some(endpoint) => self.respond(endpoint, request, body.into()).await?,
            None => request.respond("", &[], async { Err(HttpRefusal::new(404, "Not found")) }).await,
        };
        Ok(response.into())
    }

    /// # Errors
    /// `Closed` after the client was closed.
    pub(super) fn respond<'a>(
        &'a self,
        endpoint: Endpoint,
        mut request: Request<'a>,
        body: RequestBody,
    ) -> BoxedFuture<'a, Result<Response>> {
        Box::pin(async move {
            match endpoint {
                Endpoint::Discovery => {
                    let body = match request.method {
                        "POST" => self.storage().closing().wait_for(body_within_limit(body)).await?,
                        _ => Vec::new(),
                    };
                    self.discovery().respond(&request, &body).await
                }
                Endpoint::Page => self.discovery().respond_page(&request).await,
                Endpoint::Files => {
                    request.target = request.target.strip_prefix(FILES_PATH).unwrap_or(request.target);
                    self.storage().respond(&request, body).await
                }
                Endpoint::Events => self.realtime().respond(&request).await,
                Endpoint::Health => Ok(health::respond(self, &request).await),
            }
        })
    }
}

/// Reads a body. Stops beyond the limit of a request to the directory, which is refused then. A body that ends early is returned as far
/// as it came.
async fn body_within_limit(mut body: RequestBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() <= MAX_BODY
        && let Ok(Some(chunk)) = body.next_chunk().await
    {
        bytes.extend_from_slice(&chunk[..chunk.len().min(MAX_BODY + 1 - bytes.len())]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_endpoint_or_none() {
        for (target, endpoint) in [
            ("/api/miniapp-discovery", Some(Endpoint::Discovery)),
            ("/api/miniapp-discovery/?limit=5", Some(Endpoint::Discovery)),
            ("/api/miniapp-discovery/apps/x?y=/files/", Some(Endpoint::Discovery)),
            ("/directory?q=x", Some(Endpoint::Page)),
            ("/directory/apps/a.example/b", Some(Endpoint::Page)),
            ("/directoryx", None),
            ("/files/assets/x", Some(Endpoint::Files)),
            (origin_form("https://town.example/files/assets/x"), Some(Endpoint::Files)),
            (origin_form("https://town.example"), None),
            ("/files/", Some(Endpoint::Files)),
            ("/events?table=spaces", Some(Endpoint::Events)),
            ("/health", Some(Endpoint::Health)),
            ("/health?x", Some(Endpoint::Health)),
            ("/api/miniapp-discoveryx", None),
            ("/api", None),
            ("/files", None),
            ("/filesx/y", None),
            ("/events/", None),
            ("/healthy", None),
            ("/", None),
            ("", None),
            ("?/health", None),
        ] {
            assert_eq!(Endpoint::at(target), endpoint, "{target}");
        }
    }
}

//! The discovery endpoint without a server: a request in, a response out (SPEC 4.1, UPSTREAM 2).
//!
//! Invariant: every request gets a response with a status and body of UPSTREAM 2; no input panics, and an internal
//! error is reported without details. GET and POST describe an app alike.

mod query_string;

use std::str::FromStr;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use self::query_string::QueryString;
use super::{Discovery, Selection};
use crate::{
    catalog::Timeframe,
    error::{Error, ErrorKind, Result},
};

/// The path of the endpoint.
///
/// ```
/// assert_eq!(townsquare::discovery::ENDPOINT_PATH, "/api/miniapp-discovery");
/// ```
pub const ENDPOINT_PATH: &str = "/api/miniapp-discovery";

/// The largest request body in bytes.
pub(crate) const MAX_BODY: usize = 64 << 10;

const ALLOW: &str = "GET, HEAD, POST, OPTIONS";
const DEFAULT_LIMIT: u32 = 50;

/// A response of the endpoint, for any HTTP server.
///
/// ```
/// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
/// let response = client.discovery().handle("GET", "/api/miniapp-discovery?limit=5", b"")?;
/// for (name, value) in &response.headers {
///     println!("{name}: {value}");
/// }
/// println!("{} {}", response.status, String::from_utf8_lossy(&response.body));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse {
    /// The HTTP status.
    pub status: u16,
    /// Headers with lower-case names; `content-length` only for HEAD, whose body is empty.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, or empty.
    pub body: Bytes,
}

impl HttpResponse {
    /// The response 400 with this message, for a host whose request is no text that `handle` could read.
    ///
    /// ```
    /// use townsquare::discovery::HttpResponse;
    ///
    /// assert_eq!(HttpResponse::bad_request("The target is not UTF-8").status, 400);
    /// ```
    pub fn bad_request(message: &str) -> HttpResponse {
        error_response(bad_request(message))
    }
}

/// An error response.
struct EndpointError {
    status: u16,
    message: String,
}

impl From<Error> for EndpointError {
    fn from(error: Error) -> EndpointError {
        let (status, message) = match error.kind() {
            ErrorKind::InvalidInput => (400, error.message().to_owned()),
            ErrorKind::Unavailable | ErrorKind::RateLimited => (503, error.message().to_owned()),
            ErrorKind::Closed => (503, "Service closed".to_owned()),
            _ => {
                tracing::error!(%error, "the discovery endpoint failed");
                (500, "Internal server error".to_owned())
            }
        };
        EndpointError { status, message }
    }
}

fn bad_request(message: impl Into<String>) -> EndpointError {
    EndpointError { status: 400, message: message.into() }
}

type EndpointResult = std::result::Result<Bytes, EndpointError>;

impl Discovery {
    /// Answers a request to the discovery endpoint; call it from any HTTP server.
    ///
    /// `target` is the request target, path and query (`/api/miniapp-discovery?category=games`). Statuses and bodies
    /// are those of UPSTREAM 2.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let body = br#"{"action": "search", "query": "chess"}"#;
    /// let response = client.discovery().handle("POST", "/api/miniapp-discovery", body)?;
    /// assert_eq!(response.status, 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed` after the client was closed; every other failure is a response.
    pub async fn handle(&self, method: &str, target: &str, body: &[u8]) -> Result<HttpResponse> {
        self.stats()?;
        Ok(self.respond(method, target, body).await)
    }

    async fn respond(&self, method: &str, target: &str, body: &[u8]) -> HttpResponse {
        let (path, query) = split_target(target);
        if path != ENDPOINT_PATH {
            return error_response(EndpointError { status: 404, message: "Not found".to_owned() });
        }
        if body.len() > MAX_BODY {
            return error_response(EndpointError { status: 413, message: "Request body too large".to_owned() });
        }
        let answer = match method {
            "GET" | "HEAD" => self.get(query).await,
            "POST" => self.post(body).await,
            "OPTIONS" => {
                return HttpResponse { status: 204, headers: vec![("allow", ALLOW.to_owned())], body: Bytes::new() };
            }
            _ => {
                let mut response =
                    error_response(EndpointError { status: 405, message: "Method not allowed".to_owned() });
                response.headers.push(("allow", ALLOW.to_owned()));
                return response;
            }
        };
        let mut response = answer.map_or_else(error_response, |body| response(200, body));
        if method == "HEAD" {
            response.headers.push(("content-length", response.body.len().to_string()));
            response.body = Bytes::new();
        }
        response
    }

    async fn get(&self, query: &str) -> EndpointResult {
        let query = QueryString::parse(query).map_err(bad_request)?;
        let timeframe = query.timeframe()?;
        let limit = query.limit(DEFAULT_LIMIT)?;
        let (categories, networks) = (query.list("category"), query.list("networks"));
        let trending = query.get("trending") == Some("true");
        let selection = Selection::first(limit).in_categories(categories.clone()).on_networks(networks.clone());
        let apps = self.get_trending_mini_apps(timeframe, selection).await?;
        let stats = self.stats()?;
        encode(&json!({
            "success": true,
            "stats": {
                "totalDiscovered": stats.received,
                "validApps": stats.total,
                "isCrawling": stats.is_refreshing,
                "cacheSize": stats.total,
                "hasApiKey": stats.has_api_key,
            },
            "validApps": apps.len(),
            "apps": apps,
            "filters": {
                "categories": categories,
                "networks": networks,
                "timeWindow": timeframe.as_str(),
                "trending": trending,
                "limit": limit,
            },
        }))
    }

    async fn post(&self, body: &[u8]) -> EndpointResult {
        let body: Value = serde_json::from_slice(body).map_err(|_| bad_request("Request body is not JSON"))?;
        match body.get("action").and_then(Value::as_str) {
            Some("search") => {
                let query = match body.get("query") {
                    None | Some(Value::Null) => "",
                    Some(Value::String(query)) => query.trim(),
                    Some(_) => return Err(bad_request("query is a string")),
                };
                if query.is_empty() {
                    return Err(bad_request("Search query required"));
                }
                let results = self.search_mini_apps(query, body_limit(&body)?).await?;
                encode(&json!({"success": true, "count": results.len(), "results": results}))
            }
            Some("refresh") => {
                let stats = self.refresh().await?;
                encode(&json!({"success": true, "message": "Cache refreshed", "count": stats.total}))
            }
            Some("trending") => {
                let timeframe = match body.get("timeWindow") {
                    None | Some(Value::Null) => Timeframe::default(),
                    Some(Value::String(text)) => Timeframe::from_str(text)?,
                    Some(_) => return Err(bad_request("timeWindow is a string")),
                };
                let apps = self.get_trending_mini_apps(timeframe, body_limit(&body)?).await?;
                encode(&json!({"success": true, "count": apps.len(), "apps": apps}))
            }
            _ => Err(bad_request("Unknown action; the actions are search, refresh, trending")),
        }
    }
}

/// Splits a request target in origin form or absolute form into path and query (RFC 9112, 3.2).
fn split_target(target: &str) -> (&str, &str) {
    let origin_form = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?']) => rest.find('/').map_or("/", |slash| &rest[slash..]),
        _ => target,
    };
    let without_fragment = origin_form.split('#').next().unwrap_or_default();
    without_fragment.split_once('?').unwrap_or((without_fragment, ""))
}

fn body_limit(body: &Value) -> std::result::Result<u32, EndpointError> {
    match body.get("limit") {
        None | Some(Value::Null) => Ok(DEFAULT_LIMIT),
        Some(limit) => limit
            .as_u64()
            .and_then(|limit| u32::try_from(limit).ok())
            .ok_or_else(|| bad_request("limit is a whole number from 1 to 1000")),
    }
}

fn encode(body: &impl Serialize) -> EndpointResult {
    serde_json::to_vec(body).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "a response of the discovery endpoint cannot be serialized");
        EndpointError { status: 500, message: "Internal server error".to_owned() }
    })
}

fn error_response(EndpointError { status, message }: EndpointError) -> HttpResponse {
    let body = json!({"success": false, "error": message}).to_string();
    response(status, body.into())
}

fn response(status: u16, body: Bytes) -> HttpResponse {
    let headers =
        vec![("content-type", "application/json".to_owned()), ("x-content-type-options", "nosniff".to_owned())];
    HttpResponse { status, headers, body }
}

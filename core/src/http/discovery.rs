//! `handle`: the discovery endpoint (SPEC 4.1, UPSTREAM 2).
//!
//! Invariant: every request gets a response with a status and body of UPSTREAM 2. GET and POST describe an app alike. A list and
//! its stats come from one snapshot.

mod openapi;
mod parameters;
mod routes;

use ::http::{
    HeaderMap, HeaderName, StatusCode,
    header::{ALLOW, CACHE_CONTROL, ETAG},
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use self::{
    parameters::Input,
    routes::{ACTIONS, Action, ActionName, Route},
};
use super::{
    conditions::if_none_match,
    refusal::HttpRefusal,
    request::Request,
    response::{self, Response, add_vary, with_header},
    target::{Target, decode},
};
use crate::{
    catalog::{MiniApps, Timeframe},
    discovery::{Discovery, EndpointRoute, PageText, RequestedCatalog, Selection},
    error::{Error, ErrorKind, Result},
    http_message::HttpResponse,
};

/// The methods that are answered.
const METHODS: &str = "GET, HEAD, POST";

/// The largest request body in bytes.
pub(super) const MAX_BODY: usize = 64 << 10;

/// The header with the number of apps that match, without limit and offset. The bodies have no place for it, because
/// UPSTREAM 2 sets their shape.
const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

/// Why a request is not answered.
enum Failure {
    Refused(HttpRefusal),
    Failed(Error),
}

type Answer = Result<Response, Failure>;

/// A request for one catalog.
struct CatalogRequest<'a> {
    headers: &'a HeaderMap,
    target: Target<'a>,
    route: EndpointRoute,
    /// The rest of the path of [`EndpointRoute::App`].
    id: &'a str,
}

impl Discovery {
    /// Answers a request to the discovery endpoint; call it from any HTTP server.
    ///
    /// `target` is the request target, path and query (`/api/miniapp-discovery?category=games`). The OpenAPI document
    /// at `/api/miniapp-discovery/openapi.json` lists the statuses and bodies. The names of `headers` are in any case;
    /// the endpoint reads `If-None-Match`, `Accept-Encoding`, `Origin` and `Access-Control-Request-Method`.
    ///
    /// Requests cost at most the fetches of the main list. An order or a network's list that the program has not read by a
    /// method of [`Discovery`] is fetched for a request only with the option
    /// [`endpoint_lists`](crate::Config::endpoint_lists). Without it, the default order stands in for the order, and a filter
    /// by the network is answered with 503.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let body = br#"{"action": "search", "query": "chess"}"#;
    /// let headers = [("Accept-Encoding".to_owned(), "gzip".to_owned())];
    /// let response = client.discovery().handle("POST", "/api/miniapp-discovery", body, &headers)?;
    /// assert_eq!(response.status, 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed` after the client was closed; every other failure is a response.
    pub async fn handle(
        &self,
        method: &str,
        target: &str,
        body: &[u8],
        headers: &[(String, String)],
    ) -> Result<HttpResponse> {
        let response = self.respond(&Request::of_text(method, target, headers), body).await?;
        Ok(HttpResponse::from(response).map(|body| body.in_memory()))
    }

    /// # Errors
    /// `Closed` after the client was closed.
    pub(super) async fn respond(&self, request: &Request<'_>, body: &[u8]) -> Result<Response> {
        self.stats()?;
        let answer = async {
            answer(&self.for_requests(), request, body).await.map_err(|failure| match failure {
                Failure::Refused(refusal) => refusal,
                Failure::Failed(error) => self.refusal(error),
            })
        };
        Ok(request.respond(METHODS, &self.endpoint.allowed_origins, answer).await)
    }

    /// The refusal of a request that needs the catalog. Why there is no catalog is no secret.
    pub(super) fn refusal(&self, error: Error) -> HttpRefusal {
        if error.kind() != ErrorKind::Unavailable {
            return error.into();
        }
        let wait = error.retry_after().or_else(|| self.retry_after());
        HttpRefusal::new(503, self.public_message(error.message())).retry_in(wait)
    }
}

impl HttpResponse {
    /// The response 400 with this message, for a host that received a request which is not text.
    ///
    /// ```
    /// use townsquare::discovery::HttpResponse;
    ///
    /// assert_eq!(HttpResponse::bad_request("The target is not UTF-8").status, 400);
    /// ```
    pub fn bad_request(message: &str) -> HttpResponse {
        HttpResponse::from(bad_request(message).into_response()).map(|body| body.in_memory())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Failed(error)
    }
}

impl From<HttpRefusal> for Failure {
    fn from(refusal: HttpRefusal) -> Failure {
        Failure::Refused(refusal)
    }
}

fn bad_request(message: impl Into<String>) -> HttpRefusal {
    HttpRefusal::new(400, message)
}

async fn answer(discovery: &Discovery, request: &Request<'_>, body: &[u8]) -> Answer {
    // Browsers send no fragment, other clients do.
    let target = request.target.split('#').next().unwrap_or_default();
    let found = Target::parse(target).ok().and_then(|target| Some((target, Route::of(target.path)?)));
    let Some((target, (route, id))) = found else { return Err(HttpRefusal::new(404, "Not found").into()) };
    if body.len() > MAX_BODY {
        return Err(HttpRefusal::new(413, "Request body too large").into());
    }
    let method = request.method;
    let request = CatalogRequest { headers: &request.headers, target, route: route.name, id };
    match method {
        "GET" | "HEAD" => match route.name {
            EndpointRoute::List => list(discovery, &request).await,
            EndpointRoute::App => one_app(discovery, &request).await,
            EndpointRoute::Categories | EndpointRoute::Networks => facets(discovery, &request).await,
            EndpointRoute::Suggest => suggest(discovery, &request).await,
            EndpointRoute::OpenApi => Ok(response::json_text(Bytes::from_static(openapi::DOCUMENT.as_bytes()))),
        },
        "POST" if route.has_actions => post(discovery, body).await,
        "OPTIONS" => Ok(with_header(response::empty(StatusCode::NO_CONTENT), ALLOW, route.allow())),
        _ => Err(HttpRefusal::method_not_allowed(route.allow()).into()),
    }
}

// The bodies with apps write them as they are: the macro `json` would make a `Value` of each of their fields first, which takes
// several times as long.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListBody<'a> {
    apps: &'a RawValue,
    filters: Value,
    stats: Value,
    success: bool,
    valid_apps: usize,
}

#[derive(Serialize)]
struct TrendingBody<'a> {
    apps: &'a MiniApps,
    count: usize,
    success: bool,
}

#[derive(Serialize)]
struct SearchBody<'a> {
    count: usize,
    results: &'a MiniApps,
    success: bool,
}

async fn list(discovery: &Discovery, request: &CatalogRequest<'_>) -> Answer {
    let input = Input::of_query(&request.target)?;
    let (timeframe, selection) = (input.timeframe()?, input.selection()?);
    let trending = input.flag(&parameters::TRENDING)?;
    let catalog = discovery.requested_catalog(timeframe, &selection).await?;
    let page = discovery.pages.get(&catalog.snapshot, request.target.query, || {
        let apps = catalog.snapshot.trending(timeframe, &selection)?;
        let text = serde_json::value::to_raw_value(&apps).expect("the keys of an app are text");
        Ok::<_, Error>(PageText { apps: text, count: apps.len(), total: apps.total() })
    })?;
    Ok(cacheable(request, &catalog, || {
        let body = ListBody {
            filters: json!({
                "categories": selection.categories,
                "networks": selection.networks,
                "timeWindow": timeframe.as_str(),
                "trending": trending,
                "limit": selection.limit,
            }),
            stats: stats_json(discovery, &catalog),
            success: true,
            valid_apps: page.count,
            apps: &page.apps,
        };
        with_header(response::json(&body), TOTAL, page.total.to_string())
    }))
}

async fn one_app(discovery: &Discovery, request: &CatalogRequest<'_>) -> Answer {
    let id = decode(request.id).map_err(bad_request)?;
    let catalog = discovery.requested_catalog(Timeframe::default(), &Selection::first(1)).await?;
    let app = catalog.snapshot.get(&id).ok_or_else(|| HttpRefusal::new(404, "Mini app not found"))?;
    Ok(cacheable(request, &catalog, || response::json(&json!({"success": true, "app": app}))))
}

async fn facets(discovery: &Discovery, request: &CatalogRequest<'_>) -> Answer {
    let input = Input::of_query(&request.target)?;
    let selection = Selection::first(1);
    let (name, selection) = match request.route {
        EndpointRoute::Categories => ("categories", selection.on_networks(input.list(&parameters::NETWORKS)?)),
        _ => ("networks", selection.in_categories(input.list(&parameters::CATEGORY)?)),
    };
    let catalog = discovery.requested_catalog(Timeframe::default(), &selection).await?;
    let facets = match request.route {
        EndpointRoute::Categories => catalog.snapshot.category_facets(&selection)?,
        _ => catalog.snapshot.network_facets(&selection)?,
    };
    Ok(cacheable(request, &catalog, || response::json(&json!({"success": true, name: facets}))))
}

async fn suggest(discovery: &Discovery, request: &CatalogRequest<'_>) -> Answer {
    let input = Input::of_query(&request.target)?;
    let text = input.text(&parameters::TYPED)?.unwrap_or_default();
    let limit = input.number(&parameters::SUGGESTIONS)?;
    let catalog = discovery.requested_catalog(Timeframe::default(), &Selection::first(limit)).await?;
    Ok(cacheable(request, &catalog, || {
        let suggestions = catalog.snapshot.suggest(text, limit as usize);
        let suggestions: Vec<_> = suggestions
            .iter()
            .map(|found| json!({"app": found.app, "text": found.text, "matches": found.matches}))
            .collect();
        response::json(&json!({"success": true, "suggestions": suggestions}))
    }))
}

/// The state of one catalog, as a part of a body.
fn stats_json(discovery: &Discovery, catalog: &RequestedCatalog) -> Value {
    let stats = &catalog.stats;
    json!({
        "totalDiscovered": stats.received,
        "validApps": stats.total,
        "isCrawling": stats.is_refreshing,
        "cacheSize": stats.total,
        "hasApiKey": stats.has_api_key,
        "source": stats.source.as_str(),
        "fetchedAt": stats.fetched_at.map(|at| at.to_string()),
        "ageSeconds": stats.fetched_at.map(|_| catalog.age.as_secs()),
        "isStale": stats.is_stale,
        "lastError": stats.last_error.as_deref().map(|error| discovery.public_message(error)),
        "staleLists": stats.stale_lists,
        "truncated": stats.truncated,
    })
}

/// Answers from one catalog, see [`of_catalog`].
fn cacheable(request: &CatalogRequest<'_>, catalog: &RequestedCatalog, body: impl FnOnce() -> Response) -> Response {
    let (route, id, query) = (request.route, request.id, request.target.query);
    of_catalog(request.headers, catalog, &format!("{route:?} {id:?} {query}"), body)
}

/// Answers from one catalog: 304 if the caller has this version, else `body`. Caches may keep the answer as long as the
/// catalog is fresh. The catalog and `key` determine the body.
pub(super) fn of_catalog(
    headers: &HeaderMap,
    catalog: &RequestedCatalog,
    key: &str,
    body: impl FnOnce() -> Response,
) -> Response {
    let etag = etag(catalog, key);
    let mut answer = if if_none_match(headers, &etag) { response::empty(StatusCode::NOT_MODIFIED) } else { body() };
    let fresh = catalog.remaining_freshness.as_secs();
    let cache = match catalog.stats.is_stale || fresh == 0 {
        true => "no-cache".to_owned(),
        false => format!("public, max-age={fresh}"),
    };
    add_vary(answer.headers_mut(), "accept-encoding");
    with_header(with_header(answer, ETAG, format!("W/\"{etag}\"")), CACHE_CONTROL, cache)
}

async fn post(discovery: &Discovery, body: &[u8]) -> Answer {
    let body: Value = serde_json::from_slice(body).map_err(|_| bad_request("Request body is not JSON"))?;
    let empty = serde_json::Map::new();
    let input = Input::Body(body.as_object().unwrap_or(&empty));
    let Some(action) = body.get("action").and_then(Value::as_str).and_then(Action::of) else {
        let known: Vec<_> = ACTIONS.iter().map(|action| action.word).collect();
        return Err(bad_request(format!("Unknown action; the actions are {}", known.join(", "))).into());
    };
    match action.name {
        ActionName::Search => {
            let query = input.text(&parameters::QUERY)?.unwrap_or_default().trim();
            if query.is_empty() {
                return Err(bad_request("Search query required").into());
            }
            let results = discovery.search_mini_apps(query, input.selection()?).await?;
            let answer = response::json(&SearchBody { count: results.len(), results: &results, success: true });
            Ok(with_header(answer, TOTAL, results.total().to_string()))
        }
        ActionName::Refresh => {
            if !discovery.endpoint.can_refresh {
                return Err(HttpRefusal::new(403, "Refresh is switched off").into());
            }
            discovery.refresh_for_request().await?;
            let count = discovery.stats()?.total;
            Ok(response::json(&json!({"success": true, "message": "Cache refreshed", "count": count})))
        }
        ActionName::Trending => {
            let apps = discovery.get_trending_mini_apps(input.timeframe()?, input.selection()?).await?;
            let answer = response::json(&TrendingBody { apps: &apps, count: apps.len(), success: true });
            Ok(with_header(answer, TOTAL, apps.total().to_string()))
        }
    }
}

/// The entity tag of an answer, without its quotes. The catalog and `key` determine the body, except for the age in it, so the tag is
/// weak.
fn etag(catalog: &RequestedCatalog, key: &str) -> String {
    let data = catalog.snapshot.data();
    let lists: Vec<_> = data.further_lists().iter().map(|key| (key.name(), data.list_fetched_at(key))).collect();
    let version = format!("{} {key} {:?} {lists:?}", env!("CARGO_PKG_VERSION"), catalog.stats);
    blake3::hash(version.as_bytes()).to_hex()[..32].to_owned()
}

//! The discovery endpoint without a server: a request in, a response out (SPEC 4.1, UPSTREAM 2).
//!
//! Invariant: every request gets a response with a status and body of UPSTREAM 2; no input panics, and an internal
//! error is reported without details. GET and POST describe an app alike. A list and its stats come from one snapshot.

mod openapi;
mod parameters;
mod query_string;
mod request;
mod response;
mod routes;

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};

use self::{
    parameters::Input,
    query_string::decode_path,
    request::EndpointRequest,
    response::{Answer, EndpointError, bad_request},
    routes::{ACTIONS, Action, ActionName, Route},
};
pub use self::{response::HttpResponse, routes::EndpointRoute};
use super::{CachedCatalog, Discovery, DiscoveryStats, Selection};
use crate::{catalog::Timeframe, error::Result};

/// The path of the endpoint.
///
/// ```
/// assert_eq!(townsquare::discovery::ENDPOINT_PATH, "/api/miniapp-discovery");
/// ```
pub const ENDPOINT_PATH: &str = "/api/miniapp-discovery";

/// The largest request body in bytes.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// The header with the number of apps that match, without limit and offset. The bodies have no place for it: their shape is
/// that of UPSTREAM 2.
const TOTAL: &str = "x-total-count";

/// What callers over HTTP may do.
#[derive(Debug, Clone)]
pub(crate) struct EndpointOptions {
    /// Whether they may refresh the catalog.
    pub(crate) can_refresh: bool,
    /// The age of the catalog below which their refresh fetches nothing.
    pub(crate) min_refresh_age: Duration,
    /// Whether they may have further lists fetched that the program has not read.
    pub(crate) can_fetch_lists: bool,
    /// The origins whose pages may call the endpoint, in lower case; `*` for all.
    pub(crate) allowed_origins: Arc<[String]>,
}

type EndpointResult = std::result::Result<Answer, EndpointError>;

impl Discovery {
    /// Answers a request to the discovery endpoint; call it from any HTTP server.
    ///
    /// `target` is the request target, path and query (`/api/miniapp-discovery?category=games`). Statuses and bodies
    /// are those of UPSTREAM 2. `headers` are those of the request, with names in any case; the endpoint reads
    /// `If-None-Match`, `Accept-Encoding`, `Origin` and `Access-Control-Request-Method`.
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
        self.stats()?;
        let request = EndpointRequest::new(method, target, body, headers);
        let requests = Discovery { is_for_requests: true, ..self.clone() };
        let answer = requests.respond(&request).await.unwrap_or_else(|mut error| {
            error.message = self.refresher.public_message(&error.message);
            error.retry_after = error.retry_after.or_else(|| self.refresher.retry_after());
            error.into_answer()
        });
        Ok(answer.finish(&request, &self.endpoint))
    }

    async fn respond(&self, request: &EndpointRequest<'_>) -> EndpointResult {
        let Some((route, id)) = request.route.and_then(Route::of) else {
            return Err(EndpointError::new(404, "Not found"));
        };
        if request.body.len() > MAX_BODY {
            return Err(EndpointError::new(413, "Request body too large"));
        }
        match request.method {
            "GET" | "HEAD" => match route.name {
                EndpointRoute::List => self.get(request).await,
                EndpointRoute::App => self.one_app(request, id).await,
                EndpointRoute::Categories | EndpointRoute::Networks => self.facets(request, route.name).await,
                EndpointRoute::Suggest => self.suggest(request).await,
                EndpointRoute::OpenApi => Answer::json(&openapi::document()),
            },
            "POST" if route.has_actions => self.post(request.body).await,
            "OPTIONS" => Ok(Answer::empty(204).with("allow", route.allow())),
            _ => Ok(EndpointError::new(405, "Method not allowed").into_answer().with("allow", route.allow())),
        }
    }

    async fn get(&self, request: &EndpointRequest<'_>) -> EndpointResult {
        let input = Input::of_query(request.query)?;
        let (timeframe, selection) = (input.timeframe()?, input.selection()?);
        let trending = input.flag(&parameters::TRENDING)?;
        let catalog = self.catalog_for(timeframe, &selection).await?;
        let apps = catalog.snapshot.trending(timeframe, &selection)?;
        let stats = self.refresher.stats_of(Some(&catalog));
        self.cacheable(request, &catalog, &stats, || {
            Answer::json(&json!({
                "success": true,
                "stats": self.stats_json(&catalog, &stats),
                "validApps": apps.len(),
                "apps": apps,
                "filters": {
                    "categories": selection.categories,
                    "networks": selection.networks,
                    "timeWindow": timeframe.as_str(),
                    "trending": trending,
                    "limit": selection.limit,
                },
            }))
            .map(|answer| answer.with(TOTAL, apps.total().to_string()))
        })
    }

    async fn one_app(&self, request: &EndpointRequest<'_>, id: &str) -> EndpointResult {
        let id = decode_path(id).map_err(bad_request)?;
        let catalog = self.catalog_for(Timeframe::default(), &Selection::first(1)).await?;
        let Some(app) = catalog.snapshot.get(&id) else {
            return Err(EndpointError::new(404, "Mini app not found"));
        };
        let stats = self.refresher.stats_of(Some(&catalog));
        self.cacheable(request, &catalog, &stats, || Answer::json(&json!({"success": true, "app": app})))
    }

    async fn facets(&self, request: &EndpointRequest<'_>, route: EndpointRoute) -> EndpointResult {
        let input = Input::of_query(request.query)?;
        let selection = Selection::first(1);
        let (name, selection) = match route {
            EndpointRoute::Categories => ("categories", selection.on_networks(input.list(&parameters::NETWORKS)?)),
            _ => ("networks", selection.in_categories(input.list(&parameters::CATEGORY)?)),
        };
        let catalog = self.catalog_for(Timeframe::default(), &selection).await?;
        let facets = match route {
            EndpointRoute::Categories => catalog.snapshot.category_facets(&selection)?,
            _ => catalog.snapshot.network_facets(&selection)?,
        };
        let stats = self.refresher.stats_of(Some(&catalog));
        self.cacheable(request, &catalog, &stats, || Answer::json(&json!({"success": true, name: facets})))
    }

    async fn suggest(&self, request: &EndpointRequest<'_>) -> EndpointResult {
        let input = Input::of_query(request.query)?;
        let text = input.text(&parameters::TYPED)?.unwrap_or_default();
        let limit = input.number(&parameters::SUGGESTIONS)?;
        let catalog = self.catalog_for(Timeframe::default(), &Selection::first(limit)).await?;
        let stats = self.refresher.stats_of(Some(&catalog));
        self.cacheable(request, &catalog, &stats, || {
            let suggestions = catalog.snapshot.suggest(text, limit as usize);
            let suggestions: Vec<_> = suggestions
                .iter()
                .map(|found| json!({"app": found.app, "text": found.text, "matches": found.matches}))
                .collect();
            Answer::json(&json!({"success": true, "suggestions": suggestions}))
        })
    }

    /// The state of one catalog, as a part of a body.
    fn stats_json(&self, catalog: &CachedCatalog, stats: &DiscoveryStats) -> Value {
        let age = catalog.age(self.refresher.moment()).as_secs();
        json!({
            "totalDiscovered": stats.received,
            "validApps": stats.total,
            "isCrawling": stats.is_refreshing,
            "cacheSize": stats.total,
            "hasApiKey": stats.has_api_key,
            "source": stats.source.as_str(),
            "fetchedAt": stats.fetched_at.map(|at| at.to_string()),
            "ageSeconds": stats.fetched_at.map(|_| age),
            "isStale": stats.is_stale,
            "lastError": stats.last_error.as_deref().map(|error| self.refresher.public_message(error)),
            "staleLists": stats.stale_lists,
            "truncated": stats.truncated,
        })
    }

    /// Answers from one catalog: 304 if the caller has this version, else `body`. Caches may keep the answer as long as the
    /// catalog is fresh.
    fn cacheable(
        &self,
        request: &EndpointRequest<'_>,
        catalog: &CachedCatalog,
        stats: &DiscoveryStats,
        body: impl FnOnce() -> EndpointResult,
    ) -> EndpointResult {
        let etag = etag(request, catalog, stats);
        let answer = if request.has_version(&etag) { Answer::empty(304) } else { body()? };
        let fresh = self.refresher.remaining_freshness(catalog).as_secs();
        let cache =
            if stats.is_stale || fresh == 0 { "no-cache".to_owned() } else { format!("public, max-age={fresh}") };
        Ok(answer.with("etag", etag).with("cache-control", cache))
    }

    async fn post(&self, body: &[u8]) -> EndpointResult {
        let body: Value = serde_json::from_slice(body).map_err(|_| bad_request("Request body is not JSON"))?;
        let empty = serde_json::Map::new();
        let input = Input::Body(body.as_object().unwrap_or(&empty));
        let Some(action) = body.get("action").and_then(Value::as_str).and_then(Action::of) else {
            let known: Vec<_> = ACTIONS.iter().map(|action| action.word).collect();
            return Err(bad_request(format!("Unknown action; the actions are {}", known.join(", "))));
        };
        match action.name {
            ActionName::Search => {
                let query = input.text(&parameters::QUERY)?.unwrap_or_default().trim();
                if query.is_empty() {
                    return Err(bad_request("Search query required"));
                }
                let results = self.search_mini_apps(query, input.selection()?).await?;
                let answer = Answer::json(&json!({"success": true, "count": results.len(), "results": results}))?;
                Ok(answer.with(TOTAL, results.total().to_string()))
            }
            ActionName::Refresh => {
                if !self.endpoint.can_refresh {
                    return Err(EndpointError::new(403, "Refresh is switched off"));
                }
                self.refresher.refresh_older_than(self.endpoint.min_refresh_age).await?;
                let count = self.stats()?.total;
                Answer::json(&json!({"success": true, "message": "Cache refreshed", "count": count}))
            }
            ActionName::Trending => {
                let apps = self.get_trending_mini_apps(input.timeframe()?, input.selection()?).await?;
                let answer = Answer::json(&json!({"success": true, "count": apps.len(), "apps": apps}))?;
                Ok(answer.with(TOTAL, apps.total().to_string()))
            }
        }
    }
}

/// The weak entity tag of an answer. The catalog and the request determine the body, except for the age in it.
fn etag(request: &EndpointRequest<'_>, catalog: &CachedCatalog, stats: &DiscoveryStats) -> String {
    let data = catalog.snapshot.data();
    let lists: Vec<_> = data.further_lists().iter().map(|key| (key.name(), data.list_fetched_at(key))).collect();
    let version = format!("{} {:?} {} {stats:?} {lists:?}", env!("CARGO_PKG_VERSION"), request.route, request.query,);
    format!("W/\"{}\"", &blake3::hash(version.as_bytes()).to_hex()[..32])
}

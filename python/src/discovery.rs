//! Discovery: trending, categories, search, refresh, and the endpoint without a server (SPEC 3.1, 4.1), and the record
//! `DiscoveryStats`.

use pyo3::prelude::*;
use townsquare::{
    Operation,
    discovery::{Selection, Timeframe},
};

use crate::{
    area::area,
    argument::{BytesArg, IntArg, LIMIT_RANGE, TextArg, TextListArg, TextMapArg},
    errors::Failure,
    http::HttpResponse,
    mini_app::PyMiniAppList,
    record::{PyTime, record},
    run::MethodResult,
};

area! {
    "DiscoveryMethods",
    /// The mini app directory: `Client.discovery`.
    Discovery,
    /// The mini app directory: `AsyncClient.discovery`.
    AsyncDiscovery
}

#[pymethods]
impl Methods {
    /// Lists the mini apps that trend in a timeframe, best first.
    #[pyo3(signature = (timeframe = None, limit = IntArg::of(50), *, categories = None, networks = None))]
    #[pyo3(text_signature = "($self, timeframe='24h', limit=50, *, categories=None, networks=None)")]
    fn get_trending_mini_apps<'py>(
        &self,
        py: Python<'py>,
        timeframe: Option<TextArg>,
        limit: IntArg<u32>,
        categories: Option<TextListArg>,
        networks: Option<TextListArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetTrendingMiniApps, |client| async move {
            let timeframe = match timeframe {
                Some(timeframe) => timeframe.value("timeframe")?.parse()?,
                None => Timeframe::default(),
            };
            let selection = selection(limit, categories, networks)?;
            Ok(PyMiniAppList(client.get()?.discovery().get_trending_mini_apps(timeframe, selection).await?))
        })
    }

    /// Lists the mini apps of any of these categories, in the trending order of 24 hours.
    #[pyo3(signature = (categories, limit = IntArg::of(50), *, networks = None))]
    #[pyo3(text_signature = "($self, categories, limit=50, *, networks=None)")]
    fn get_mini_apps_by_category<'py>(
        &self,
        py: Python<'py>,
        categories: TextListArg,
        limit: IntArg<u32>,
        networks: Option<TextListArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetMiniAppsByCategory, |client| async move {
            let selection = selection(limit, None, networks)?;
            let categories = categories.value("categories")?;
            Ok(PyMiniAppList(client.get()?.discovery().get_mini_apps_by_category(categories, selection).await?))
        })
    }

    /// Lists the mini apps that match a search query, best first.
    #[pyo3(signature = (query, limit = IntArg::of(50), *, categories = None, networks = None))]
    #[pyo3(text_signature = "($self, query, limit=50, *, categories=None, networks=None)")]
    fn search_mini_apps<'py>(
        &self,
        py: Python<'py>,
        query: TextArg,
        limit: IntArg<u32>,
        categories: Option<TextListArg>,
        networks: Option<TextListArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::SearchMiniApps, |client| async move {
            let (query, selection) = (query.value("query")?, selection(limit, categories, networks)?);
            Ok(PyMiniAppList(client.get()?.discovery().search_mini_apps(&query, selection).await?))
        })
    }

    /// Fetches the catalog, even if the one in memory is fresh.
    #[pyo3(signature = (*, force = false))]
    fn refresh<'py>(&self, py: Python<'py>, force: bool) -> MethodResult<'py> {
        self.runner.run(py, Operation::RefreshMiniApps, move |client| async move {
            let discovery = client.get()?.discovery();
            Ok(DiscoveryStats(if force { discovery.force_refresh().await? } else { discovery.refresh().await? }))
        })
    }

    /// Returns the size, age and state of the catalog.
    fn stats<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(py, "stats", |client| async move { Ok(DiscoveryStats(client.get()?.discovery().stats()?)) })
    }

    /// Answers a request to the discovery endpoint.
    #[pyo3(signature = (method, target, body = BytesArg::EMPTY, headers = None))]
    #[pyo3(text_signature = "($self, method, target, body=b'', headers=None)")]
    fn handle<'py>(
        &self,
        py: Python<'py>,
        method: TextArg,
        target: TextArg,
        body: BytesArg,
        headers: Option<TextMapArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, "handle", |client| async move {
            let discovery = client.get()?.discovery();
            let (Ok(method), Ok(target)) = (method.value("method"), target.value("target")) else {
                return Ok(HttpResponse(townsquare::discovery::HttpResponse::bad_request(
                    "The request is not Unicode",
                )));
            };
            let Ok(headers) = headers.map_or(Ok(Vec::new()), |headers| headers.value("headers")) else {
                return Ok(HttpResponse(townsquare::discovery::HttpResponse::bad_request(
                    "The headers are not Unicode",
                )));
            };
            Ok(HttpResponse(discovery.handle(&method, &target, body.as_ref(), &headers).await?))
        })
    }
}

fn selection(
    limit: IntArg<u32>,
    categories: Option<TextListArg>,
    networks: Option<TextListArg>,
) -> Result<Selection, Failure> {
    let mut selection = Selection::first(limit.value("limit", LIMIT_RANGE)?);
    if let Some(categories) = categories {
        selection = selection.in_categories(categories.value("categories")?);
    }
    if let Some(networks) = networks {
        selection = selection.on_networks(networks.value("networks")?);
    }
    Ok(selection)
}

record! {
    /// The size, age and state of the catalog.
    DiscoveryStats(townsquare::discovery::DiscoveryStats) [] as stats,
    hash (stats.total, stats.received, stats.fetched_at),
    repr [
        total, received, skipped, duplicates, has_api_key, source, fetched_at, is_stale, is_refreshing, last_error,
        stale_lists, truncated
    ] {
        /// How many apps the catalog has.
        total: stats.total,
        /// How many rows the last fetch received.
        received: stats.received,
        /// How many of those rows were left out: malformed, or marked `noindex`.
        skipped: stats.skipped,
        /// How many of those rows repeated an earlier one.
        duplicates: stats.duplicates,
        /// Whether the client has a key for the catalog.
        has_api_key: stats.has_api_key,
        /// Where the catalog came from: `upstream`, `file`, `database` or `none`.
        source: stats.source.as_str(),
        /// When the catalog was fetched, UTC.
        fetched_at: stats.fetched_at.map(PyTime),
        /// Whether the catalog is older than the refresh interval, or its last refresh failed.
        is_stale: stats.is_stale,
        /// Whether a refresh is running.
        is_refreshing: stats.is_refreshing,
        /// Why the last refresh failed, of the catalog or of a further list; None after a successful one.
        last_error: stats.last_error.as_deref(),
        /// The further lists (`7d`, `networks=base`) that are older than the catalog or could not be fetched.
        stale_lists: &stats.stale_lists,
        /// Whether the source has more apps: the fetch ended at the option `catalog_max_pages`.
        truncated: stats.truncated,
    }
}

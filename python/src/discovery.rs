//! Discovery: trending, categories, search, refresh, and the endpoint without a server (SPEC 3.1, 4.1).
//!
//! Invariant: every method names a future of the core and hands it to the door; the two classes differ in nothing but
//! the face of that door.

use pyo3::{prelude::*, types::PyBytes, types::PyDict};
use townsquare::{MAX_LIMIT, Operation, Selection, Timeframe};

use crate::{
    area::area,
    convert::{Body, Count, Names},
    errors::Failure,
    mini_app::Gallery,
    record::{attributes, record},
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
    /// The mini apps that trend in a window, best first.
    #[pyo3(signature = (timeframe = "24h", limit = Count::of(50), *, categories = None, networks = None))]
    #[pyo3(text_signature = "($self, timeframe='24h', limit=50, *, categories=None, networks=None)")]
    fn get_trending_mini_apps<'py>(
        &self,
        py: Python<'py>,
        timeframe: &str,
        limit: Count,
        categories: Option<Names>,
        networks: Option<Names>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let timeframe = timeframe.parse::<Timeframe>();
        self.door.enter(py, Operation::GetTrendingMiniApps, |handle| async move {
            let selection = selection(limit, categories, networks)?;
            let apps = handle.client()?.discovery().get_trending_mini_apps(timeframe?, selection).await?;
            Ok(Gallery(apps))
        })
    }

    /// The mini apps of these categories, in the order of the last 24 hours.
    #[pyo3(signature = (categories, limit = Count::of(50), *, networks = None))]
    #[pyo3(text_signature = "($self, categories, limit=50, *, networks=None)")]
    fn get_mini_apps_by_category<'py>(
        &self,
        py: Python<'py>,
        categories: Names,
        limit: Count,
        networks: Option<Names>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::GetMiniAppsByCategory, |handle| async move {
            let selection = selection(limit, None, networks)?;
            let apps = handle.client()?.discovery().get_mini_apps_by_category(categories.0, selection).await?;
            Ok(Gallery(apps))
        })
    }

    /// The mini apps that a search box would show for these words, best first.
    #[pyo3(signature = (query, limit = Count::of(50), *, categories = None, networks = None))]
    #[pyo3(text_signature = "($self, query, limit=50, *, categories=None, networks=None)")]
    fn search_mini_apps<'py>(
        &self,
        py: Python<'py>,
        query: String,
        limit: Count,
        categories: Option<Names>,
        networks: Option<Names>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::SearchMiniApps, |handle| async move {
            let selection = selection(limit, categories, networks)?;
            Ok(Gallery(handle.client()?.discovery().search_mini_apps(&query, selection).await?))
        })
    }

    /// Fetches the catalog now, whatever its age.
    #[pyo3(signature = (*, force = false))]
    fn refresh<'py>(&self, py: Python<'py>, force: bool) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, Operation::RefreshMiniApps, move |handle| async move {
            let discovery = handle.client()?.discovery();
            Ok(DiscoveryStats(if force { discovery.force_refresh().await? } else { discovery.refresh().await? }))
        })
    }

    /// What the catalog holds, how old it is, and why it is no newer.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, "stats", |handle| async move { Ok(DiscoveryStats(handle.client()?.discovery().stats()?)) })
    }

    /// The discovery endpoint without a server: a request in, a response out.
    #[pyo3(signature = (method, target, body = Body::EMPTY), text_signature = "($self, method, target, body=b'')")]
    fn handle<'py>(&self, py: Python<'py>, method: String, target: String, body: Body) -> PyResult<Bound<'py, PyAny>> {
        self.door.enter(py, "handle", |handle| async move {
            let response = handle.client()?.discovery().handle(&method, &target, body.as_ref()).await?;
            Ok(HttpResponse(response))
        })
    }
}

fn selection(limit: Count, categories: Option<Names>, networks: Option<Names>) -> Result<Selection, Failure> {
    let mut selection = Selection::first(limit.get("limit", MAX_LIMIT)?);
    if let Some(Names(categories)) = categories {
        selection = selection.in_categories(categories);
    }
    if let Some(Names(networks)) = networks {
        selection = selection.on_networks(networks);
    }
    Ok(selection)
}

record! {
    /// The state of the catalog.
    DiscoveryStats(townsquare::DiscoveryStats) as stats, hashed by (stats.total, stats.received, stats.fetched_at),
    shown by [
        total, received, skipped, duplicates, has_api_key, source, fetched_at, is_stale, is_refreshing, last_error
    ] {
        /// Apps of the catalog.
        total: stats.total,
        /// Rows received when it was fetched.
        received: stats.received,
        /// Rows of those left out: malformed, or marked `noindex`.
        skipped: stats.skipped,
        /// Rows of those that repeated an earlier one.
        duplicates: stats.duplicates,
        /// Whether a key for the catalog is set.
        has_api_key: stats.has_api_key,
        /// Where the catalog came from: `upstream`, `file`, `database` or `none`.
        source: stats.source.as_str(),
        /// When it was fetched, UTC.
        fetched_at: stats.fetched_at,
        /// Older than the refresh interval, or the last attempt to renew it failed.
        is_stale: stats.is_stale,
        /// Whether a refresh is under way.
        is_refreshing: stats.is_refreshing,
        /// Why the last refresh failed; None once one succeeds.
        last_error: stats.last_error.as_deref(),
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [
                total, received, skipped, duplicates, has_api_key, source, fetched_at, is_stale, is_refreshing, last_error
            ])
        }
    }
}

record! {
    /// An answer of the endpoint, for a web framework to send.
    HttpResponse(townsquare::HttpResponse) as response, hashed by (response.status, &response.body),
    shown by [status, headers, body] {
        /// The HTTP status.
        status: response.status,
        /// Header names, in lower case, with their values.
        headers: Headers(&response.headers),
        /// The body as sent: JSON, in UTF-8.
        body: Bytes(&response.body),
    }
    also {
        /// The attributes by name.
        fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            attributes!(self, py, [status, headers, body])
        }
    }
}

struct Headers<'a>(&'a [(&'static str, String)]);

impl<'py> IntoPyObject<'py> for Headers<'_> {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let headers = PyDict::new(py);
        for (name, value) in self.0 {
            headers.set_item(name, value)?;
        }
        Ok(headers)
    }
}

struct Bytes<'a>(&'a [u8]);

impl<'py> IntoPyObject<'py> for Bytes<'_> {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = std::convert::Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Self::Error> {
        Ok(PyBytes::new(py, self.0))
    }
}

//! Discovery: lists, search, facets, refresh, and the endpoint without a server (SPEC 3.1, 4.1), and the records `Facet`
//! and `DiscoveryStats`.

use pyo3::{prelude::*, sync::PyOnceLock};
use townsquare::{
    Operation,
    discovery::{Selection, Timeframe},
};

use crate::{
    area::area,
    argument::{BytesArg, FlagArg, IntArg, LIMIT_RANGE, OFFSET_RANGE, TextArg, TextListArg},
    callback::{Callback, Subscription},
    errors::Failure,
    headers::HeadersArg,
    http::HttpResponse,
    mini_app::{MiniApp, PyMiniApps, Suggestion},
    record::{PyTime, record},
    run::MethodResult,
};

area! {
    "Discovery",
    #[doc = text_of!(Discovery)]
    Discovery,
    #[doc = text_of!(AsyncDiscovery)]
    AsyncDiscovery
}

#[pymethods]
impl Methods {
    #[doc = text_of!(Discovery.get_trending_mini_apps)]
    #[pyo3(signature = (timeframe = None, limit = IntArg::of(50), *, offset = IntArg::of(0), categories = None, networks = None, collapse = FlagArg(false)))]
    #[pyo3(
        text_signature = "($self, timeframe='24h', limit=50, *, offset=0, categories=None, networks=None, collapse=False)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the optional ones by keyword")]
    fn get_trending_mini_apps<'py>(
        &self,
        py: Python<'py>,
        timeframe: Option<TextArg>,
        limit: IntArg<u32>,
        offset: IntArg<u64>,
        categories: Option<TextListArg>,
        networks: Option<TextListArg>,
        collapse: FlagArg,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetTrendingMiniApps, move |client| async move {
            let timeframe = match timeframe {
                Some(timeframe) => timeframe.value("timeframe")?.parse()?,
                None => Timeframe::default(),
            };
            let selection = page(limit, offset, collapse)?.filtered(categories, networks)?;
            Ok(PyMiniApps(client.get()?.discovery().get_trending_mini_apps(timeframe, selection).await?))
        })
    }

    #[doc = text_of!(Discovery.get_mini_apps_by_category)]
    #[pyo3(signature = (categories, limit = IntArg::of(50), *, offset = IntArg::of(0), networks = None, collapse = FlagArg(false)))]
    #[pyo3(text_signature = "($self, categories, limit=50, *, offset=0, networks=None, collapse=False)")]
    fn get_mini_apps_by_category<'py>(
        &self,
        py: Python<'py>,
        categories: TextListArg,
        limit: IntArg<u32>,
        offset: IntArg<u64>,
        networks: Option<TextListArg>,
        collapse: FlagArg,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetMiniAppsByCategory, move |client| async move {
            let selection = page(limit, offset, collapse)?.filtered(None, networks)?;
            let categories = categories.value("categories")?;
            Ok(PyMiniApps(client.get()?.discovery().get_mini_apps_by_category(categories, selection).await?))
        })
    }

    #[doc = text_of!(Discovery.search_mini_apps)]
    #[pyo3(signature = (query, limit = IntArg::of(50), *, offset = IntArg::of(0), categories = None, networks = None, collapse = FlagArg(false)))]
    #[pyo3(text_signature = "($self, query, limit=50, *, offset=0, categories=None, networks=None, collapse=False)")]
    #[expect(clippy::too_many_arguments, reason = "the optional ones by keyword")]
    fn search_mini_apps<'py>(
        &self,
        py: Python<'py>,
        query: TextArg,
        limit: IntArg<u32>,
        offset: IntArg<u64>,
        categories: Option<TextListArg>,
        networks: Option<TextListArg>,
        collapse: FlagArg,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::SearchMiniApps, move |client| async move {
            let (query, selection) =
                (query.value("query")?, page(limit, offset, collapse)?.filtered(categories, networks)?);
            Ok(PyMiniApps(client.get()?.discovery().search_mini_apps(&query, selection).await?))
        })
    }

    #[doc = text_of!(Discovery.get_new_mini_apps)]
    #[pyo3(signature = (limit = IntArg::of(50), *, offset = IntArg::of(0), categories = None, networks = None, collapse = FlagArg(false)))]
    #[pyo3(text_signature = "($self, limit=50, *, offset=0, categories=None, networks=None, collapse=False)")]
    fn get_new_mini_apps<'py>(
        &self,
        py: Python<'py>,
        limit: IntArg<u32>,
        offset: IntArg<u64>,
        categories: Option<TextListArg>,
        networks: Option<TextListArg>,
        collapse: FlagArg,
    ) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetNewMiniApps, move |client| async move {
            let selection = page(limit, offset, collapse)?.filtered(categories, networks)?;
            Ok(PyMiniApps(client.get()?.discovery().get_new_mini_apps(selection).await?))
        })
    }

    #[doc = text_of!(Discovery.get_similar_mini_apps)]
    #[pyo3(signature = (id, limit = IntArg::of(10)), text_signature = "($self, id, limit=10)")]
    fn get_similar_mini_apps<'py>(&self, py: Python<'py>, id: TextArg, limit: IntArg<u32>) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetSimilarMiniApps, |client| async move {
            let (id, limit) = (id.value("id")?, limit.value("limit", LIMIT_RANGE)?);
            Ok(PyMiniApps(client.get()?.discovery().get_similar_mini_apps(&id, limit).await?))
        })
    }

    #[doc = text_of!(Discovery.get_mini_app)]
    fn get_mini_app<'py>(&self, py: Python<'py>, id: TextArg) -> MethodResult<'py> {
        self.runner.run(py, Operation::GetMiniApp, |client| async move {
            let id = id.value("id")?;
            Ok(client.get()?.discovery().get_mini_app(&id).await?.map(MiniApp::from))
        })
    }

    #[doc = text_of!(Discovery.suggest_mini_apps)]
    #[pyo3(signature = (text, limit = IntArg::of(8)), text_signature = "($self, text, limit=8)")]
    fn suggest_mini_apps<'py>(&self, py: Python<'py>, text: TextArg, limit: IntArg<u32>) -> MethodResult<'py> {
        self.runner.run(py, Operation::SuggestMiniApps, |client| async move {
            let (text, limit) = (text.value("text")?, limit.value("limit", LIMIT_RANGE)?);
            let suggestions = client.get()?.discovery().suggest_mini_apps(&text, limit).await?;
            Ok(suggestions.into_iter().map(Suggestion::from).collect::<Vec<_>>())
        })
    }

    #[doc = text_of!(Discovery.categories)]
    #[pyo3(signature = (*, networks = None))]
    fn categories<'py>(&self, py: Python<'py>, networks: Option<TextListArg>) -> MethodResult<'py> {
        self.runner.run(py, Operation::Categories, |client| async move {
            let selection = Selection::default().filtered(None, networks)?;
            let facets = client.get()?.discovery().categories(selection).await?;
            Ok(PyFacetList(facets.into_iter().map(Facet::from).collect()))
        })
    }

    #[doc = text_of!(Discovery.networks)]
    #[pyo3(signature = (*, categories = None))]
    fn networks<'py>(&self, py: Python<'py>, categories: Option<TextListArg>) -> MethodResult<'py> {
        self.runner.run(py, Operation::Networks, |client| async move {
            let selection = Selection::default().filtered(categories, None)?;
            let facets = client.get()?.discovery().networks(selection).await?;
            Ok(PyFacetList(facets.into_iter().map(Facet::from).collect()))
        })
    }

    #[doc = text_of!(Discovery.on_catalog_change)]
    fn on_catalog_change<'py>(&self, py: Python<'py>, callback: Callback) -> MethodResult<'py> {
        self.runner.run(py, "on_catalog_change", |client| async move {
            let discovery = client.get()?.discovery();
            // Fails on a closed client.
            discovery.stats()?;
            let subscription = discovery.on_catalog_change(move |stats| {
                callback.call("on_catalog_change", (DiscoveryStats::from(stats),));
            });
            Ok(Subscription::from(subscription))
        })
    }

    #[doc = text_of!(Discovery.refresh)]
    #[pyo3(signature = (*, force = false))]
    fn refresh<'py>(&self, py: Python<'py>, force: bool) -> MethodResult<'py> {
        self.runner.run(py, Operation::RefreshMiniApps, move |client| async move {
            let discovery = client.get()?.discovery();
            Ok(DiscoveryStats::from(if force { discovery.force_refresh().await? } else { discovery.refresh().await? }))
        })
    }

    #[doc = text_of!(Discovery.stats)]
    fn stats<'py>(&self, py: Python<'py>) -> MethodResult<'py> {
        self.runner.run(
            py,
            "stats",
            |client| async move { Ok(DiscoveryStats::from(client.get()?.discovery().stats()?)) },
        )
    }

    #[doc = text_of!(Discovery.handle)]
    #[pyo3(signature = (method, target, body = BytesArg::EMPTY, headers = None))]
    #[pyo3(text_signature = "($self, method, target, body=b'', headers=None)")]
    fn handle<'py>(
        &self,
        py: Python<'py>,
        method: TextArg,
        target: TextArg,
        body: BytesArg,
        headers: Option<HeadersArg>,
    ) -> MethodResult<'py> {
        self.runner.run(py, "handle", |client| async move {
            let discovery = client.get()?.discovery();
            let (Ok(method), Ok(target)) = (method.value("method"), target.value("target")) else {
                return Ok(HttpResponse::from(townsquare::discovery::HttpResponse::bad_request(
                    "The request is not Unicode",
                )));
            };
            let Ok(headers) = headers.map_or(Ok(Vec::new()), |headers| headers.value("headers")) else {
                return Ok(HttpResponse::from(townsquare::discovery::HttpResponse::bad_request(
                    "The headers are not Unicode",
                )));
            };
            Ok(HttpResponse::from(discovery.handle(&method, &target, body.as_ref(), &headers).await?))
        })
    }
}

/// The limit and the offset of a page.
fn page(limit: IntArg<u32>, offset: IntArg<u64>, FlagArg(is_collapsed): FlagArg) -> Result<Selection, Failure> {
    let page = Selection::first(limit.value("limit", LIMIT_RANGE)?).offset(offset.value("offset", OFFSET_RANGE)?);
    Ok(if is_collapsed { page.collapsed() } else { page })
}

/// Adds the filters of a call to its page.
trait Filtered {
    fn filtered(self, categories: Option<TextListArg>, networks: Option<TextListArg>) -> Result<Selection, Failure>;
}

impl Filtered for Selection {
    fn filtered(
        mut self,
        categories: Option<TextListArg>,
        networks: Option<TextListArg>,
    ) -> Result<Selection, Failure> {
        if let Some(categories) = categories {
            self = self.in_categories(categories.value("categories")?);
        }
        if let Some(networks) = networks {
            self = self.on_networks(networks.value("networks")?);
        }
        Ok(self)
    }
}

/// Converts to a `FacetList`, which a notebook shows as a table.
struct PyFacetList(Vec<Facet>);

impl<'py> IntoPyObject<'py> for PyFacetList {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> MethodResult<'py> {
        static LIST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        LIST.import(py, "townsquare.notebook", "FacetList")?.call1((self.0,))
    }
}

record! {
    #[doc = text_of!(Facet)]
    Facet(townsquare::discovery::Facet) [] as facet, hash [name, count] => {
        /// The name, as a filter takes it.
        name: "str" = facet.name.as_str(),
        /// How many apps have it.
        count: "int" = facet.count,
    }
}

record! {
    #[doc = text_of!(DiscoveryStats)]
    DiscoveryStats(townsquare::discovery::DiscoveryStats) [] as stats,
    hash [total, received, fetched_at] => {
        /// How many apps the catalog has.
        total: "int" = stats.total,
        /// How many rows the last fetch received.
        received: "int" = stats.received,
        /// How many of those rows were left out: malformed, or marked `noindex`.
        skipped: "int" = stats.skipped,
        /// How many of those rows repeated an earlier one.
        duplicates: "int" = stats.duplicates,
        /// Whether the client has a key for the catalog.
        has_api_key: "bool" = stats.has_api_key,
        /// Where the catalog came from: `upstream`, `file`, `database` or `none`.
        source: "Literal['upstream', 'file', 'database', 'none']" = stats.source.as_str(),
        /// When the catalog was fetched, UTC.
        fetched_at: "Optional[datetime]" = stats.fetched_at.map(PyTime),
        /// Whether the catalog is older than the refresh interval, or its last refresh failed.
        is_stale: "bool" = stats.is_stale,
        /// Whether a refresh is running.
        is_refreshing: "bool" = stats.is_refreshing,
        /// Why the last refresh failed, of the catalog or of a further list; None after a successful one.
        last_error: "Optional[str]" = stats.last_error.as_deref(),
        /// The further lists (`7d`, `networks=base`) that are older than the catalog or could not be fetched.
        stale_lists: "list[str]" = &stats.stale_lists,
        /// Whether the source has more apps: the fetch ended at the option `catalog_max_pages`.
        truncated: "bool" = stats.truncated,
    }
}

//! The discovery service: the mini app directory, answered from memory (SPEC 4.1, 4.2; DESIGN 6).
//!
//! Invariant: a read waits only if no catalog is loaded, or if it needs a list that was never fetched. Every other
//! read is answered from the snapshot in memory, also while it is stale and one refresh runs in the background
//! (stale-while-revalidate). A failed refresh keeps the old snapshot, and [`Discovery::stats`] reports it.

mod backoff;
mod cache;
mod collapse;
mod endpoint;
mod refresh;
mod store;

use std::{fmt, sync::Arc, time::Duration};

use tokio::runtime::Handle;

pub(crate) use self::endpoint::EndpointOptions;
#[cfg(feature = "http")]
pub(crate) use self::endpoint::MAX_BODY;
pub use self::endpoint::{ENDPOINT_PATH, HttpResponse};
use self::{
    cache::{CachedCatalog, CatalogCache},
    refresh::{FetchMode, Refresher},
};
pub use crate::catalog::{
    Author, CATEGORIES, CatalogSource, DiscoveryStats, Engagement, MiniApp, MiniAppRecord, MiniApps, Selection, Texts,
    Timeframe,
};
use crate::{
    clock::Clock,
    database::{CurrentPrincipal, Scope},
    error::{Operation, Result, operation},
    upstream::Upstream,
    validate,
};

/// The options of discovery.
#[derive(Debug, Clone)]
pub(crate) struct DiscoveryOptions {
    /// How long a catalog is fresh.
    pub(crate) interval: Duration,
    /// How long one process may hold the lease on a fetch without renewing it.
    pub(crate) lease: Duration,
    /// The age from which a read waits for a refresh.
    pub(crate) max_staleness: Option<Duration>,
    /// The largest number of further lists in the catalog.
    pub(crate) max_lists: usize,
    pub(crate) endpoint: EndpointOptions,
}

/// The mini app directory of a client.
///
/// It has one catalog, fetched from the upstream API or a `file:` catalog. The catalog is kept in memory, fresh for 15
/// minutes, and stored in the database in case the upstream fails. Without an upstream key every result is empty
/// (SPEC 1.5).
///
/// ```no_run
/// use townsquare::{Config, blocking::Client, discovery::Timeframe};
///
/// let client = Client::open(Config::new().catalog_api_key("key"))?;
/// for app in &client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20)? {
///     println!("{} at {}", app.name(), app.home_url());
/// }
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Discovery {
    cache: Arc<CatalogCache>,
    refresher: Arc<Refresher>,
    endpoint: Arc<EndpointOptions>,
    /// The handle that this value belongs to; `None` for the client's own.
    handle: Option<CurrentPrincipal>,
}

impl Discovery {
    pub(crate) fn new(
        upstream: Upstream,
        options: DiscoveryOptions,
        database: Scope,
        clock: Clock,
        runtime: Handle,
    ) -> Result<Discovery> {
        let endpoint = Arc::new(options.endpoint.clone());
        let refresher = Refresher::new(upstream, options, database, clock, runtime)?;
        Ok(Discovery { cache: refresher.cache(), refresher: Arc::new(refresher), endpoint, handle: None })
    }

    /// The same directory for a handle of the client, whose calls fail once the handle is closed.
    pub(crate) fn for_handle(&self, handle: CurrentPrincipal) -> Discovery {
        Discovery { handle: Some(handle), ..self.clone() }
    }

    /// # Errors
    /// `Closed` if the handle is closed.
    fn check_handle(&self) -> Result<()> {
        self.handle.as_ref().map_or(Ok(()), CurrentPrincipal::check_open)
    }

    /// Returns the mini apps of a timeframe in trending order, best first (SPEC 4.2).
    ///
    /// The filters of the selection combine with the order and with each other. `trending_rank` is an app's rank in
    /// the whole order of the timeframe. The first read of a timeframe fetches its order; if that fails, the default
    /// order is used.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::discovery::{Selection, Timeframe};
    ///
    /// let games = Selection::first(20).in_categories(["games"]);
    /// for app in &client.discovery().get_trending_mini_apps(Timeframe::Days7, games)? {
    ///     println!("{}. {}", app.engagement().trending_rank.unwrap_or(0), app.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a limit outside 1 to 1,000, and for a category or network that is neither known nor in the
    /// catalog. `Unavailable` if there is no catalog.
    pub async fn get_trending_mini_apps(
        &self,
        timeframe: Timeframe,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        let selection = selection.into();
        operation(Operation::GetTrendingMiniApps, async {
            self.catalog_for(timeframe, &selection).await?.get_trending_mini_apps(timeframe, &selection)
        })
        .await
    }

    /// Returns the mini apps of any of the categories, in the default trending order (SPEC 4.2).
    ///
    /// `categories` are added to those of the selection. Without any category, apps of all categories are returned.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let apps = client.discovery().get_mini_apps_by_category(["games", "social"], 20)?;
    /// # let _ = apps;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn get_mini_apps_by_category<S: Into<String>>(
        &self,
        categories: impl IntoIterator<Item = S>,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        let selection = selection.into().in_categories(categories);
        let timeframe = Timeframe::default();
        operation(Operation::GetMiniAppsByCategory, async {
            self.catalog_for(timeframe, &selection).await?.get_trending_mini_apps(timeframe, &selection)
        })
        .await
    }

    /// Returns the mini apps that match a query, best first (SPEC 4.2).
    ///
    /// Case and accents are ignored. The last word also matches as a prefix. One typing error is accepted from five
    /// letters on, two from nine. Words match in any order. A match in the name ranks before one in a tag, the
    /// tagline, the author or the description; equal matches are in trending order. A blank query has no matches.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for app in &client.discovery().search_mini_apps("ches", 10)? {
    ///     println!("{}", app.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn search_mini_apps(&self, query: &str, selection: impl Into<Selection>) -> Result<MiniApps> {
        let selection = selection.into();
        operation(Operation::SearchMiniApps, async {
            self.catalog_for(Timeframe::default(), &selection).await?.search_mini_apps(query, &selection)
        })
        .await
    }

    /// Fetches the catalog now, whatever its age, and returns the stats (SPEC 1.4).
    ///
    /// Reads are answered from the old catalog meanwhile. Returns after a fetch of the main list that began after the call,
    /// or that was running. The further lists that were read within the refresh interval are fetched too; one that fails
    /// keeps its old order, and the stats name it in `stale_lists`.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let stats = client.discovery().refresh()?;
    /// println!("{} apps", stats.total);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unavailable` if the upstream fails, or if the new catalog lost most of its apps; the old catalog stays.
    /// Without an upstream key nothing is fetched and the call succeeds.
    pub async fn refresh(&self) -> Result<DiscoveryStats> {
        self.refresh_catalog(FetchMode::Now).await
    }

    /// Fetches the catalog like [`refresh`](Discovery::refresh), and accepts one that lost most of its apps.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let discovery = client.discovery();
    /// if let Err(error) = discovery.refresh() {
    ///     eprintln!("{error}");
    ///     discovery.force_refresh()?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unavailable` if the upstream fails.
    pub async fn force_refresh(&self) -> Result<DiscoveryStats> {
        self.refresh_catalog(FetchMode::Force).await
    }

    /// Returns the size and age of the catalog and the last error. It fetches nothing and does not wait.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// let stats = client.discovery().stats()?;
    /// if stats.is_stale {
    ///     println!("fetched at {:?}: {}", stats.fetched_at, stats.last_error.unwrap_or_default());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Closed` after the client was closed.
    pub fn stats(&self) -> Result<DiscoveryStats> {
        self.check_handle()?;
        self.refresher.stats()
    }

    async fn refresh_catalog(&self, mode: FetchMode) -> Result<DiscoveryStats> {
        operation(Operation::RefreshMiniApps, async {
            self.check_handle()?;
            self.refresher.refresh(mode).await
        })
        .await?;
        self.stats()
    }

    pub(crate) fn close(&self) {
        self.refresher.close();
    }

    /// Returns the catalog for a read, loading or fetching what the read needs.
    async fn catalog_for(&self, timeframe: Timeframe, selection: &Selection) -> Result<Arc<CachedCatalog>> {
        self.check_handle()?;
        validate::limit(selection.limit)?;
        let mut has_waited = false;
        loop {
            self.cache.check_open()?;
            let Some(catalog) = self.cache.current() else {
                Box::pin(self.refresher.load()).await?;
                continue;
            };
            let (now, lists) = (self.refresher.moment(), catalog.lists_of(timeframe, selection));
            self.cache.record_reads(&lists, now);
            if !has_waited && self.refresher.is_too_stale(&catalog, now) {
                Box::pin(self.refresher.wait_for_refresh()).await;
                has_waited = true;
                continue;
            }
            self.refresher.refresh_if_stale(&catalog, &lists, now);
            let missing = catalog.snapshot.missing_lists(timeframe, selection);
            if missing.is_empty() {
                return Ok(catalog);
            }
            // Refuses unknown names before a fetch, which costs money.
            catalog.snapshot.filter(selection)?;
            let present = catalog.snapshot.data().further_lists().len();
            if let Err(error) = Box::pin(self.refresher.fetch_lists(missing, present)).await {
                // A missing order is replaced by the default one. Without a network's list the filter cannot be
                // answered.
                let is_answerable = catalog.snapshot.missing_lists(Timeframe::default(), selection).is_empty();
                return if is_answerable { Ok(catalog) } else { Err(error) };
            }
        }
    }
}

impl fmt::Debug for Discovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Discovery").finish_non_exhaustive()
    }
}

//! The discovery service: the mini app directory, answered from memory.
//!
//! Invariant: a read waits only if no catalog is loaded, or if it needs a list that was never fetched. Every other
//! read is answered from the snapshot in memory, also while it is stale and one refresh runs in the background
//! (stale-while-revalidate). A failed refresh keeps the old snapshot, and [`Discovery::stats`] reports it.

mod backoff;
mod cache;
mod collapse;
mod endpoint;
mod listeners;
mod page_texts;
mod refresh;
mod store;

use std::{sync::Arc, time::Duration};

pub use self::endpoint::{ENDPOINT_PATH, EndpointRoute};
use self::{
    cache::{CachedCatalog, CatalogCache},
    refresh::{FetchMode, Refresher},
};
pub(crate) use self::{
    endpoint::{EndpointOptions, RequestedCatalog},
    page_texts::{PageText, PageTexts},
};
pub use crate::catalog::{
    Author, CATEGORIES, CatalogSource, DiscoveryStats, Engagement, Facet, Highlight, MiniApp, MiniAppRecord, MiniApps,
    Selection, Suggestion, Texts, Timeframe,
};
pub use crate::http_message::HttpResponse;
use crate::{
    callbacks::Subscription,
    clock::Clock,
    database::{CurrentPrincipal, Scope, call},
    error::{Error, ErrorKind, Operation, Result},
    threads::{BlockingPool, RuntimeHandle},
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
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
///
/// It has one catalog, fetched from the upstream API, from a file, or from the sample. The catalog is kept in memory, fresh for 15
/// minutes, and stored in the database in case the upstream fails. Reads are answered from memory: an old catalog is
/// returned at once while a refresh runs in the background.
///
/// Without an upstream key every result is empty, and no call fails. A warning in the log says so once, unless the
/// program gives an empty key. [`stats`](Discovery::stats) tells whether there is a key.
///
/// # Examples
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
///
/// A catalog file needs no key, and neither do the 40 invented apps of `sample:`, for first steps and tests:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let data_dir = folder.path();
/// use townsquare::{Config, blocking::Client};
///
/// let client = Client::open(Config::new().data_dir(data_dir).catalog_url("sample:"))?;
/// assert_eq!(client.discovery().refresh()?.total, 40);
/// # Ok::<(), townsquare::Error>(())
/// ```
///
/// # A catalog file
///
/// [`catalog_url`](crate::Config::catalog_url) may name a JSON file, by its path or as a `file:` URL. The file has the form of a
/// page of the upstream API: an object with a list `frames`, in trending order. An app needs a `home_url` and a `name`.
/// Everything else may be left out, and unknown members are ignored. `primary_category` is one of
/// `CATEGORIES`, and `required_chains` are CAIP-2 ids. A malformed row is skipped and counted
/// ([`DiscoveryStats::skipped`](crate::discovery::DiscoveryStats)). A row of Farcaster's list, in camelCase and without the frame,
/// is read too. A change of the file is seen at the next refresh.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let file = folder.path().join("apps.json");
/// use townsquare::{Config, blocking::Client, discovery::Timeframe};
///
/// std::fs::write(&file, r#"{"frames": [
///     {
///         "manifest": {"miniapp": {
///             "name": "Harbor Chess", "home_url": "https://chess.harbor.example",
///             "icon_url": "https://chess.harbor.example/icon.png", "tagline": "One move a day", "description": "Slow chess.",
///             "primary_category": "games", "tags": ["chess", "slow"], "required_chains": ["eip155:8453"],
///             "screenshot_urls": ["https://chess.harbor.example/1.png"], "hero_image_url": "https://chess.harbor.example/hero.png"
///         }},
///         "author": {"fid": 1, "username": "mirela", "display_name": "Mirela", "follower_count": 18250, "score": 0.9}
///     },
///     {"manifest": {"miniapp": {"name": "Tidepool", "home_url": "https://tidepool.example"}}}
/// ]}"#).unwrap();
/// let client = Client::open(Config::new().data_dir(":memory:").catalog_url(file.to_str().unwrap()))?;
/// let apps = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20)?;
/// assert_eq!((apps[0].category(), apps[1].name()), (Some("games"), "Tidepool"));
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Discovery {
    cache: Arc<CatalogCache>,
    refresher: Arc<Refresher>,
    pub(crate) endpoint: Arc<EndpointOptions>,
    /// The pages that requests asked for last.
    pub(crate) pages: Arc<PageTexts>,
    /// True if this value answers requests to the endpoint and not calls of the program: the operator pays for the fetches.
    is_for_requests: bool,
    /// The handle that this value belongs to.
    handle: CurrentPrincipal,
}

impl Discovery {
    pub(crate) fn new(
        upstream: Upstream,
        options: DiscoveryOptions,
        database: Scope,
        clock: Clock,
        runtime: RuntimeHandle,
        callbacks: BlockingPool,
    ) -> Result<Discovery> {
        let endpoint = Arc::new(options.endpoint.clone());
        let handle = database.current_principal().clone();
        let refresher = Refresher::new(upstream, options, database, clock, runtime, callbacks)?;
        Ok(Discovery {
            cache: Arc::clone(&refresher.cache),
            refresher: Arc::new(refresher),
            endpoint,
            pages: Arc::default(),
            is_for_requests: false,
            handle,
        })
    }

    /// The same directory for a handle of the client. Its calls fail once the handle is closed.
    pub(crate) fn for_handle(&self, handle: CurrentPrincipal) -> Discovery {
        Discovery { handle, ..self.clone() }
    }

    /// Returns the mini apps of a timeframe in trending order, best first.
    ///
    /// The filters of the selection combine with the order and with each other. `trending_rank` is an app's rank in
    /// the whole order of the timeframe. The first read of a timeframe fetches its order and waits for it; if that fails, the
    /// default order is used.
    ///
    /// # Errors
    /// - `InvalidInput` for a limit outside 1 to 1,000, and for a category or network that is neither known nor in the
    ///   catalog; the message lists the known ones.
    /// - `Unavailable` if there is no catalog.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
    /// # let client = townsquare::blocking::Client::open(config)?;
    /// use townsquare::discovery::{Selection, Timeframe};
    ///
    /// let apps = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 3)?;
    /// assert_eq!((apps.len(), apps.total()), (3, 40));
    ///
    /// let games = Selection::first(20).in_categories(["games"]);
    /// for app in &client.discovery().get_trending_mini_apps(Timeframe::Days7, games)? {
    ///     println!("{}. {}", app.engagement().trending_rank.unwrap_or(0), app.name());
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// A misspelled category is an error, not an empty list:
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
    /// # let client = townsquare::blocking::Client::open(config)?;
    /// use townsquare::{ErrorKind, discovery::{Selection, Timeframe}};
    ///
    /// let chess = Selection::first(20).in_categories(["gamse"]);
    /// let error = client.discovery().get_trending_mini_apps(Timeframe::Hours24, chess).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_trending_mini_apps(
        &self,
        timeframe: Timeframe,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        let selection = selection.into();
        call(&self.handle, Operation::GetTrendingMiniApps, async {
            self.catalog_for(timeframe, &selection).await?.snapshot.trending(timeframe, &selection)
        })
        .await
    }

    /// Returns the mini apps of any of the categories, in the default trending order.
    ///
    /// The call looks for `categories` and for the categories of the selection. Without any category, it returns apps of all
    /// categories.
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
    /// # let client = townsquare::blocking::Client::open(config)?;
    /// let apps = client.discovery().get_mini_apps_by_category(["games", "social"], 20)?;
    /// assert!(apps.iter().all(|app| matches!(app.category(), Some("games" | "social"))));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn get_mini_apps_by_category<S: Into<String>>(
        &self,
        categories: impl IntoIterator<Item = S>,
        selection: impl Into<Selection>,
    ) -> Result<MiniApps> {
        let selection = selection.into().in_categories(categories);
        let timeframe = Timeframe::default();
        call(&self.handle, Operation::GetMiniAppsByCategory, async {
            self.catalog_for(timeframe, &selection).await?.snapshot.trending(timeframe, &selection)
        })
        .await
    }

    /// Returns the mini apps that match a query, best first.
    ///
    /// Case and accents are ignored. The last word also matches as a prefix, a word also as its English plural or
    /// singular, and two words also written as one (`mini app`, `miniapp`). One typing error is accepted from five
    /// letters on, two from nine, also in the prefix; such matches come after exact ones. Words match in any order. A match
    /// in the name ranks before one in a tag, the tagline, the author or the description; equal matches are in trending
    /// order. An app needs no function word of the query (`to`, `is`, `the`, `my`) beside other words. An address
    /// (`https://www.rodeo.club`) finds the apps of its host, followed by at most four others. Apps that match much worse
    /// than the best one are left out. A blank query has no matches.
    ///
    /// [`highlights`](MiniAppRecord::highlights) tells which words of an app match. For a search box, see
    /// [`suggest_mini_apps`](Discovery::suggest_mini_apps).
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
    /// # let client = townsquare::blocking::Client::open(config)?;
    /// for query in ["Harbor Chess", "ches", "harbr chess"] {
    ///     let apps = client.discovery().search_mini_apps(query, 10)?;
    ///     assert_eq!(apps[0].name(), "Harbor Chess", "{query}");
    /// }
    /// assert!(client.discovery().search_mini_apps("  ", 10)?.is_empty());
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// The filters of a [`Selection`] apply to a search, too:
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
    /// # let client = townsquare::blocking::Client::open(config)?;
    /// use townsquare::discovery::Selection;
    ///
    /// let finance = Selection::first(10).in_categories(["finance"]);
    /// for app in &client.discovery().search_mini_apps("orchard", finance)? {
    ///     println!("{}", app.name());
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn search_mini_apps(&self, query: &str, selection: impl Into<Selection>) -> Result<MiniApps> {
        let selection = selection.into();
        call(&self.handle, Operation::SearchMiniApps, async {
            self.catalog_for(Timeframe::default(), &selection).await?.snapshot.search(query, &selection)
        })
        .await
    }

    /// Returns the mini apps that were first seen last, latest first; apps first seen at the same time are in trending
    /// order. The database keeps the times, also for other processes.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for app in &client.discovery().get_new_mini_apps(10)? {
    ///     println!("{} since {}", app.name(), app.first_seen());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn get_new_mini_apps(&self, selection: impl Into<Selection>) -> Result<MiniApps> {
        let selection = selection.into();
        call(&self.handle, Operation::GetNewMiniApps, async {
            self.catalog_for(Timeframe::default(), &selection).await?.snapshot.newest(&selection)
        })
        .await
    }

    /// Returns the mini apps that are like another one, best first: by shared words, author and category. The app itself
    /// and its near-copies are not among them.
    ///
    /// `id` is an id, a home URL or a domain, as [`get_mini_app`](Discovery::get_mini_app) takes it.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for app in &client.discovery().get_similar_mini_apps("rodeo.club", 5)? {
    ///     println!("{}", app.name());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an unknown id, `InvalidInput` for a limit outside 1 to 1,000, `Unavailable` if there is no catalog.
    pub async fn get_similar_mini_apps(&self, id: &str, limit: u32) -> Result<MiniApps> {
        call(&self.handle, Operation::GetSimilarMiniApps, async {
            self.default_catalog(limit).await?.snapshot.similar(id, limit as usize)
        })
        .await
    }

    /// Returns the mini app of an id, of a home URL in any spelling, or of a domain (its best ranked app); `None` if there
    /// is none.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// if let Some(app) = client.discovery().get_mini_app("HTTPS://Rodeo.Club/")? {
    ///     println!("{}", app.id()); // rodeo.club
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Unavailable` if there is no catalog.
    pub async fn get_mini_app(&self, id: &str) -> Result<Option<MiniApp>> {
        call(&self.handle, Operation::GetMiniApp, async { Ok(self.default_catalog(1).await?.snapshot.get(id)) }).await
    }

    /// Returns suggestions for a search box while the user types: the best matches of
    /// [`search_mini_apps`](Discovery::search_mini_apps), near-copies once, each with the matched parts of its name.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// for suggestion in client.discovery().suggest_mini_apps("harb", 8)? {
    ///     println!("{} {:?}", suggestion.text, suggestion.matches); // Harbour Chess [(0, 4)]
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a limit outside 1 to 1,000, `Unavailable` if there is no catalog.
    pub async fn suggest_mini_apps(&self, text: &str, limit: u32) -> Result<Vec<Suggestion>> {
        call(&self.handle, Operation::SuggestMiniApps, async {
            Ok(self.default_catalog(limit).await?.snapshot.suggest(text, limit as usize))
        })
        .await
    }

    /// Returns the categories with their numbers of apps, most first. Only the networks of the selection count, so
    /// the selection of a list can be passed to get the facets beside it.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::discovery::Selection;
    ///
    /// for facet in client.discovery().categories(Selection::default().on_networks(["base"]))? {
    ///     println!("{} ({})", facet.name, facet.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn categories(&self, selection: impl Into<Selection>) -> Result<Vec<Facet>> {
        let selection = selection.into();
        call(&self.handle, Operation::Categories, async {
            self.catalog_for(Timeframe::default(), &selection).await?.snapshot.category_facets(&selection)
        })
        .await
    }

    /// Returns the networks with their numbers of apps, most first. Only the categories of the selection count.
    ///
    /// An app that names no network counts for every network. If the records of the catalog name no networks, the result
    /// has the networks that a read has filtered by, because only their lists were fetched.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
    /// use townsquare::discovery::Selection;
    ///
    /// for facet in client.discovery().networks(Selection::default().in_categories(["games"]))? {
    ///     println!("{} ({})", facet.name, facet.count);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`get_trending_mini_apps`](Discovery::get_trending_mini_apps).
    pub async fn networks(&self, selection: impl Into<Selection>) -> Result<Vec<Facet>> {
        let selection = Selection { networks: Vec::new(), ..selection.into() };
        call(&self.handle, Operation::Networks, async {
            self.catalog_for(Timeframe::default(), &selection).await?.snapshot.network_facets(&selection)
        })
        .await
    }

    /// Calls `callback` after each refresh that changed the apps, their texts or an order, until the subscription or the
    /// client ends. The callback runs on a thread of the library and may call the library.
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client) {
    /// let subscription = client.discovery().on_catalog_change(|stats| println!("{} apps", stats.total));
    /// subscription.unsubscribe();
    /// # }
    /// ```
    pub fn on_catalog_change(&self, callback: impl FnMut(DiscoveryStats) + Send + 'static) -> Subscription {
        self.refresher.listeners.subscribe(self.handle.clone(), callback)
    }

    /// Fetches the catalog now, at any age, and returns the stats. A program rarely needs it: reads refresh an old
    /// catalog in the background.
    ///
    /// Reads are answered from the old catalog meanwhile. Returns after a fetch of the main list that began after the call:
    /// the result has what the upstream had at the time of the call. The further lists that were read within the refresh interval
    /// are fetched too; one that fails keeps its old order, and the stats name it in `stale_lists`.
    ///
    /// # Errors
    /// `Unavailable` if the upstream fails, or if the new catalog lost most of its apps; the old catalog stays.
    /// Without an upstream key nothing is fetched and the call succeeds.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let config = townsquare::Config::new().data_dir(folder.path()).catalog_url("sample:");
    /// # let client = townsquare::blocking::Client::open(config)?;
    /// let stats = client.discovery().refresh()?;
    /// assert_eq!((stats.total, stats.is_stale), (40, false));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn refresh(&self) -> Result<DiscoveryStats> {
        self.refresh_catalog(FetchMode::Now).await
    }

    /// Fetches the catalog like [`refresh`](Discovery::refresh), and accepts one that lost most of its apps. The orders of
    /// other timeframes and the lists of networks are fetched too, also those that failed a moment ago, and are accepted
    /// as they come.
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
        self.handle.check_open()?;
        self.refresher.stats()
    }

    async fn refresh_catalog(&self, mode: FetchMode) -> Result<DiscoveryStats> {
        call(&self.handle, Operation::RefreshMiniApps, async {
            self.handle.check_open()?;
            self.refresher.refresh(mode).await
        })
        .await?;
        self.stats()
    }

    pub(crate) fn close(&self) {
        self.refresher.close();
    }

    /// Returns the catalog for a read without filters.
    async fn default_catalog(&self, limit: u32) -> Result<Arc<CachedCatalog>> {
        self.catalog_for(Timeframe::default(), &Selection::first(limit)).await
    }

    /// Returns the catalog for a read, after loading or fetching the lists that it needs.
    async fn catalog_for(&self, timeframe: Timeframe, selection: &Selection) -> Result<Arc<CachedCatalog>> {
        self.handle.check_open()?;
        validate::limit(selection.limit)?;
        let mut has_waited = false;
        loop {
            self.cache.check_open()?;
            let Some(catalog) = self.cache.current() else {
                Box::pin(self.refresher.load()).await?;
                continue;
            };
            let (now, mut lists) = (self.refresher.moment(), catalog.lists_of(timeframe, selection));
            let mut missing = catalog.snapshot.missing_lists(timeframe, selection);
            if self.is_for_requests && !self.endpoint.can_fetch_lists {
                self.cache.retain_lists_of_program(&mut lists);
            } else if !self.is_for_requests {
                self.cache.record_program([&lists, &missing]);
            }
            self.cache.record_reads(&lists, now);
            if !has_waited && self.refresher.is_too_stale(&catalog, now) {
                Box::pin(self.refresher.wait_for_refresh()).await;
                has_waited = true;
                continue;
            }
            self.refresher.refresh_if_stale(&catalog, &lists, now);
            if missing.is_empty() {
                return Ok(catalog);
            }
            // Refuses unknown names before a fetch, which costs money.
            catalog.snapshot.check_filters(selection)?;
            if self.is_for_requests && !self.endpoint.can_fetch_lists {
                self.cache.retain_lists_of_program(&mut missing);
            }
            let present = catalog.snapshot.data().further_lists().len();
            let fetched = match missing.is_empty() {
                true => Err(not_fetched_for_requests()),
                false => Box::pin(self.refresher.fetch_lists(missing, present)).await,
            };
            if let Err(error) = fetched {
                // A missing order is replaced by the default one. Without a network's list the filter cannot be
                // answered.
                let is_answerable = catalog.snapshot.missing_lists(Timeframe::default(), selection).is_empty();
                return if is_answerable { Ok(catalog) } else { Err(error) };
            }
        }
    }
}

/// The error for a request that needs a list which the program has not read.
fn not_fetched_for_requests() -> Error {
    Error::new(ErrorKind::Unavailable, "The list is not available: requests fetch no further lists")
}

crate::model::opaque!(Discovery);

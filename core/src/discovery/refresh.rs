//! Refreshing the catalog: when a refresh starts, and which callers wait for it.
//!
//! Invariant: at most one [`RefreshTask`] runs per client (single flight). However it ends (success, error, panic,
//! shutdown), `RefreshState::running` becomes `None` and every waiting caller wakes up. A task replaces the cached
//! catalog as a whole or leaves it unchanged. The main list and each further list succeed or fail on their own, and each
//! has its own failures and backoff.

mod further_lists;
mod main_list;
mod task;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    task::{JoinError, spawn},
};

pub(super) use self::task::FetchMode;
use self::task::{Demand, RefreshRequest, RefreshTask};
use super::{
    DiscoveryOptions,
    backoff::{Backoff, Failures},
    cache::{CachedCatalog, CatalogCache},
    listeners::CatalogListeners,
    store::CatalogStore,
};
use crate::{
    catalog::{CatalogData, CatalogSource, DiscoveryStats, FetchedList, ListContent, ListKey, Snapshot},
    clock::{Clock, Moment},
    database::Scope,
    error::{Error, ErrorKind, Result},
    threads::{BlockingPool, RuntimeHandle},
    upstream::Upstream,
};

/// Refreshes the [`CatalogCache`] from the upstream and the database.
pub(super) struct Refresher {
    pub(super) cache: Arc<CatalogCache>,
    upstream: Upstream,
    store: Arc<CatalogStore>,
    options: DiscoveryOptions,
    clock: Clock,
    /// Its blocking pool parses, builds and serializes catalogs.
    runtime: RuntimeHandle,
    state: Mutex<RefreshState>,
    pub(super) listeners: CatalogListeners,
    /// Whether the running refresh has changed the catalog.
    has_changed: AtomicBool,
}

#[derive(Default)]
struct RefreshState {
    running: Option<RefreshTask>,
    /// The number of the last fetch of the main list that began.
    last_fetch: u64,
    /// The lists with a failed last fetch, and their failures; `None` is the main list.
    failures: HashMap<Option<ListKey>, Failures>,
}

/// Why a list was not fetched.
enum FetchFailure {
    /// The fetch failed.
    Own(Error),
    /// The fetch of another process failed, and its backoff has not ended.
    Shared(Failures),
}

impl From<Error> for FetchFailure {
    fn from(error: Error) -> FetchFailure {
        FetchFailure::Own(error)
    }
}

/// The calls of readers. A call starts a refresh or joins the running one.
impl Refresher {
    /// How often a process looks whether a lease is free.
    const LEASE_POLL: Duration = Duration::from_millis(100);

    pub(super) fn new(
        upstream: Upstream,
        options: DiscoveryOptions,
        database: Scope,
        clock: Clock,
        runtime: RuntimeHandle,
        callbacks: BlockingPool,
    ) -> Result<Refresher> {
        let store = CatalogStore::new(database, upstream.name(), clock.clone(), runtime.blocking.clone());
        // Without a key the catalog is empty for good: no fetch and no error (SPEC 1.5).
        let empty = if upstream.is_configured() {
            None
        } else {
            let data = CatalogData::new(FetchedList::default(), clock.now(), true);
            Some(CachedCatalog::new(Snapshot::build(data, CatalogSource::None), Duration::ZERO, clock.moment()))
        };
        let cache = Arc::new(CatalogCache::new(empty));
        Ok(Refresher {
            cache,
            upstream,
            store: Arc::new(store),
            options,
            clock,
            runtime,
            state: Mutex::default(),
            listeners: CatalogListeners::new(callbacks),
            has_changed: AtomicBool::new(false),
        })
    }

    /// The time now, for ages and backoffs.
    pub(super) fn moment(&self) -> Moment {
        self.clock.moment()
    }

    /// Loads the first catalog, from the database or its source, and waits for it.
    pub(super) async fn load(self: &Arc<Self>) -> Result<()> {
        let task = {
            let mut state = self.state.lock();
            match &state.running {
                Some(task) => task.clone(),
                None => match state.refusal(&None, self.moment()) {
                    Some(error) => return Err(error),
                    None => self.start(&mut state, RefreshRequest::default()),
                },
            }
        };
        task.wait().await
    }

    /// Starts a refresh in the background if none is running and no backoff forbids it. It refreshes the whole catalog if the
    /// catalog is stale, else the stale lists among `lists`.
    pub(super) fn refresh_if_stale(self: &Arc<Self>, current: &CachedCatalog, lists: &[ListKey], now: Moment) {
        let is_stale = current.age(now) >= self.options.interval;
        let has_stale_list = lists.iter().any(|list| current.stale_lists.contains(list));
        if !self.upstream.is_configured() {
            return self.upstream.explain_absence();
        }
        if !(is_stale || has_stale_list) {
            return;
        }
        let mut state = self.state.lock();
        if state.running.is_some() {
            return;
        }
        if is_stale && state.refusal(&None, now).is_none() {
            self.start(&mut state, RefreshRequest::default());
            return;
        }
        let due = |list: &&ListKey| {
            current.stale_lists.contains(list) && state.refusal(&Some((*list).clone()), now).is_none()
        };
        let lists: Vec<ListKey> = lists.iter().filter(due).cloned().collect();
        if !lists.is_empty() {
            self.start(&mut state, RefreshRequest::of_lists(lists));
        }
    }

    /// Whether the catalog is older than the maximum staleness.
    pub(super) fn is_too_stale(&self, current: &CachedCatalog, now: Moment) -> bool {
        self.upstream.is_configured() && self.options.max_staleness.is_some_and(|limit| current.age(now) >= limit)
    }

    /// Waits for a refresh of the main list, unless its backoff forbids one. A failure is recorded but not returned.
    pub(super) async fn wait_for_refresh(self: &Arc<Self>) {
        loop {
            let (task, is_main) = {
                let mut state = self.state.lock();
                match &state.running {
                    Some(task) => (task.clone(), task.request.is_main()),
                    None if state.refusal(&None, self.moment()).is_some() => return,
                    None => (self.start(&mut state, RefreshRequest::default()), true),
                }
            };
            // The error is in the stats, and the reader uses the catalog that it has.
            let outcome = task.wait().await;
            if is_main || outcome.is_err() {
                return;
            }
        }
    }

    /// Adds further lists to the catalog in use and waits for them. If another refresh is running, waits for that
    /// refresh instead. Then the caller must check again whether the catalog has the lists.
    ///
    /// # Errors
    /// The last error of a list while its backoff lasts; `Unavailable` if the catalog has too many further lists.
    pub(super) async fn fetch_lists(self: &Arc<Self>, lists: Vec<ListKey>, present: usize) -> Result<()> {
        let task = {
            let mut state = self.state.lock();
            let now = self.moment();
            if let Some(error) = lists.iter().find_map(|list| state.refusal(&Some(list.clone()), now)) {
                return Err(error);
            }
            if present + lists.len() > self.options.max_lists {
                let max = self.options.max_lists;
                return Err(Error::unavailable(format!("The catalog already has its {max} further lists")));
            }
            self.cache.record_reads(&lists, now);
            match &state.running {
                Some(task) => task.clone(),
                None => self.start(&mut state, RefreshRequest::of_lists(lists)),
            }
        };
        let is_main = task.request.is_main();
        match task.wait().await {
            Err(error) if !is_main => Err(error),
            // The failure of a list is recorded: the caller meets its backoff.
            _ => self.cache.check_open(),
        }
    }

    /// Fetches the main list and waits for it: returns after a fetch that began after the call. A `Polite` caller also
    /// joins a fetch that began before.
    pub(super) async fn refresh(self: &Arc<Self>, mode: FetchMode) -> Result<()> {
        if !self.upstream.is_configured() {
            self.upstream.explain_absence();
            return self.cache.check_open();
        }
        let last_fetch = self.state.lock().last_fetch;
        let since = self.store.now().await;
        loop {
            self.cache.check_open()?;
            let (task, is_joined) = {
                let mut state = self.state.lock();
                match &state.running {
                    Some(task) => (task.clone(), task.request.join(since, last_fetch, mode)),
                    None => {
                        let request = RefreshRequest::default();
                        let is_joined = request.join(since, last_fetch, mode);
                        (self.start(&mut state, request), is_joined)
                    }
                }
            };
            let result = task.wait().await;
            if is_joined {
                return result;
            }
        }
    }

    /// Fetches the main list for a caller over HTTP, unless it is younger than `min_age`.
    ///
    /// # Errors
    /// The error of the last failure until its backoff ends; else the errors of [`refresh`](Refresher::refresh).
    pub(super) async fn refresh_older_than(self: &Arc<Self>, min_age: Duration) -> Result<()> {
        let now = self.moment();
        if self.cache.current().is_some_and(|current| current.age(now) < min_age) {
            return Ok(());
        }
        if let Some(error) = self.state.lock().refusal(&None, now) {
            return Err(error);
        }
        self.refresh(FetchMode::Polite).await
    }

    /// How long a catalog stays fresh.
    pub(super) fn remaining_freshness(&self, catalog: &CachedCatalog) -> Duration {
        self.options.interval.saturating_sub(catalog.age(self.moment()))
    }

    /// A message for callers over HTTP: without a path of the host.
    pub(super) fn public_message(&self, message: &str) -> String {
        self.upstream.public_message(message)
    }

    /// The time until a reader may fetch the main list again, if its last fetch failed.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        let state = self.state.lock();
        state.failures.get(&None).map(|failures| failures.backoff.remaining(self.moment()))
    }

    pub(super) fn stats(&self) -> Result<DiscoveryStats> {
        self.cache.check_open()?;
        Ok(self.stats_of(self.cache.current().as_deref()))
    }

    /// The state of one catalog, which another one may have replaced.
    pub(super) fn stats_of(&self, catalog: Option<&CachedCatalog>) -> DiscoveryStats {
        let state = self.state.lock();
        let main_error = state.failures.get(&None).map(|failures| failures.error.message().to_owned());
        let mut failed_lists: Vec<_> = state
            .failures
            .iter()
            .filter_map(|(key, failures)| Some((key.as_ref()?.name(), failures.error.message())))
            .collect();
        failed_lists.sort_unstable();
        let list_error = failed_lists.first().map(|(name, message)| format!("{name}: {message}"));
        let mut stats = DiscoveryStats {
            total: 0,
            received: 0,
            skipped: 0,
            duplicates: 0,
            has_api_key: self.upstream.has_key(),
            source: CatalogSource::None,
            fetched_at: None,
            is_stale: main_error.is_some(),
            is_refreshing: state.running.is_some(),
            last_error: main_error.or(list_error),
            stale_lists: failed_lists.into_iter().map(|(name, _)| name).collect(),
            truncated: false,
        };
        if let Some(catalog) = catalog
            && self.upstream.is_configured()
        {
            let header = &catalog.snapshot.data().header;
            stats.total = catalog.snapshot.len();
            stats.received = header.received;
            stats.skipped = header.skipped;
            stats.duplicates = header.duplicates;
            stats.source = catalog.snapshot.source();
            stats.fetched_at = Some(header.fetched_at);
            stats.is_stale |= catalog.age(self.moment()) >= self.options.interval;
            stats.stale_lists.extend(catalog.stale_lists.iter().map(ListKey::name));
            stats.stale_lists.sort_unstable();
            stats.stale_lists.dedup();
            stats.truncated = header.is_truncated;
        }
        stats
    }

    /// Closes the cache. A running task ends with the runtime, which wakes its callers.
    pub(super) fn close(&self) {
        self.cache.close();
        self.state.lock().running = None;
        self.cache.clear();
        self.listeners.clear();
    }
}

impl RefreshState {
    /// The error for a caller who may not fetch a list before its backoff ends.
    fn refusal(&self, list: &Option<ListKey>, now: Moment) -> Option<Error> {
        self.failures.get(list)?.refusal(now)
    }
}

/// A refresh, from its start to its outcome.
impl Refresher {
    fn start(self: &Arc<Self>, state: &mut RefreshState, request: RefreshRequest) -> RefreshTask {
        let (sender, outcome) = watch::channel(None);
        let task = RefreshTask { request: Arc::new(request), outcome };
        state.running = Some(task.clone());
        self.runtime.spawn(Arc::clone(self).run(Arc::clone(&task.request), sender));
        task
    }

    async fn run(self: Arc<Self>, request: Arc<RefreshRequest>, outcome: watch::Sender<Option<Result<()>>>) {
        let (refresher, shared_request) = (Arc::clone(&self), Arc::clone(&request));
        // A panic of the inner task becomes an error here.
        let work = spawn(async move { refresher.perform(&shared_request).await });
        let result = work.await.unwrap_or_else(|error| {
            let error = join_error(error);
            let lists: Vec<_> = request.lists.iter().cloned().map(Some).collect();
            for list in if request.is_main() { vec![None] } else { lists } {
                self.count_failure(list.as_ref(), FetchFailure::Own(error.clone()));
            }
            Err(error)
        });
        self.state.lock().running = None;
        if self.has_changed.swap(false, Ordering::AcqRel)
            && let Ok(stats) = self.stats()
        {
            self.listeners.post(&stats);
        }
        // Sent after `running` is `None`: a woken caller may start the next refresh.
        outcome.send_replace(Some(result));
    }

    async fn perform(&self, request: &RefreshRequest) -> Result<()> {
        if !request.is_main() {
            return self.add_lists(&request.lists, request).await;
        }
        let result = self.refresh_main(request).await;
        request.end_if(|_| true);
        self.refresh_lists_in_use(request).await;
        result
    }

    /// Begins a fetch of the main list. Callers from here on wait for a later one.
    fn begin_fetch(&self, request: &RefreshRequest) -> Demand {
        let mut state = self.state.lock();
        state.last_fetch += 1;
        request.begin_fetch(state.last_fetch)
    }

    /// Clears the failures of a list, `None` for the main one; also those in the database if `is_shared`.
    async fn record_success(&self, list: Option<&ListKey>, is_shared: bool) {
        self.state.lock().failures.remove(&list.cloned());
        if is_shared
            && self.upstream.is_remote()
            && let Err(error) = self.store.clear_failure(list).await
        {
            log_failure(&error, "the backoff of the catalog could not be cleared in the database");
        }
    }

    /// Records a failure, also in the database: no process fetches the list before the backoff ends.
    async fn record_failure(&self, list: Option<&ListKey>, failure: FetchFailure) -> Error {
        let is_own = matches!(failure, FetchFailure::Own(_));
        let Failures { backoff, error } = self.count_failure(list, failure);
        let is_closed = error.kind() == ErrorKind::Closed;
        if is_own && !is_closed && self.upstream.is_remote() {
            let wait = backoff.remaining(self.moment());
            if let Err(other) = self.store.save_failure(list, backoff.failures(), wait, &error).await {
                log_failure(&other, "the backoff of the catalog could not be saved in the database");
            }
        }
        error
    }

    fn count_failure(&self, list: Option<&ListKey>, failure: FetchFailure) -> Failures {
        let now = self.moment();
        let mut state = self.state.lock();
        let failures = match failure {
            FetchFailure::Shared(failures) => failures,
            FetchFailure::Own(error) => {
                // As `log_failure`, with the list.
                if error.kind() != ErrorKind::Closed {
                    tracing::warn!(%error, list = list.map(ListKey::name), "the catalog could not be refreshed");
                }
                Failures::after(state.failures.get(&list.cloned()), now, error)
            }
        };
        state.failures.insert(list.cloned(), failures.clone());
        failures
    }

    /// The failures that another process recorded for a list, if their backoff has not ended.
    async fn shared_failures(&self, list: Option<&ListKey>) -> Option<Failures> {
        let stored = self.store.list_state(list).await.ok()??.failure?;
        // A wrong clock wrote a time that is further away.
        (!stored.wait.is_zero() && stored.wait <= Backoff::LONGEST_RETRY_AFTER).then_some(())?;
        Some(Failures { backoff: Backoff::resume(self.moment(), stored.failures, stored.wait), error: stored.error })
    }

    /// Fetches a list; its unchanged records are shared with the catalog in use.
    async fn fetch_list(&self, key: &ListKey) -> Result<FetchedList> {
        let current = self.cache.current();
        let empty = move || {
            current.map_or_else(FetchedList::default, |current| FetchedList::sharing(&current.snapshot.data().records))
        };
        let list = self.runtime.blocking.run(empty).await?;
        self.upstream.fetch(key, list, &self.runtime.blocking).await
    }

    /// Builds a snapshot of a catalog with further lists and puts it into use. `age` is the age of the main list.
    async fn install(
        &self,
        mut data: CatalogData,
        lists: Vec<(ListKey, ListContent)>,
        source: CatalogSource,
        age: Duration,
    ) -> Result<Arc<CachedCatalog>> {
        let current = self.cache.current();
        let build = move || {
            data.add_lists(lists);
            if let Some(current) = &current {
                data.keep_first_seen(current.snapshot.data());
            }
            let is_same = current.is_some_and(|current| current.snapshot.data().is_same_content(&data));
            (Snapshot::build(data, source), is_same)
        };
        let (snapshot, is_same) = self.runtime.blocking.run(build).await?;
        self.has_changed.fetch_or(!is_same, Ordering::AcqRel);
        self.cache.install(CachedCatalog::new(snapshot, age, self.moment()))
    }
}

fn join_error(error: JoinError) -> Error {
    if error.is_cancelled() {
        Error::closed()
    } else {
        Error::new(ErrorKind::Internal, "The refresh of the catalog panicked").caused_by(error)
    }
}

/// Logs a failure that no call returns. That the client is closed is none: closing it ends a refresh.
fn log_failure(error: &Error, what: &str) {
    if error.kind() != ErrorKind::Closed {
        tracing::warn!(%error, "{what}");
    }
}

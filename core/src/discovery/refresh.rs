//! Refreshing the catalog: when a refresh starts, which callers wait for it, and its steps in order.
//!
//! Invariant: at most one [`RefreshTask`] runs per client (single flight). However it ends (success, error, panic,
//! shutdown), `RefreshState::running` becomes `None` and every waiting caller wakes up. A task replaces the cached
//! catalog as a whole or leaves it unchanged and records the error.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{JoinError, spawn},
};

use super::{
    backoff::Backoff,
    cache::{CachedCatalog, CatalogCache},
    collapse::refuse_collapse,
    listeners::CatalogListeners,
    store::{CatalogStore, Lease, StoredCatalog},
};
use crate::{
    catalog::{CatalogData, CatalogSource, DiscoveryStats, FetchedList, ListKey, Snapshot, Timeframe},
    catalog_thread::CatalogThread,
    clock::{Clock, Moment},
    database::Scope,
    error::{Error, ErrorKind, Result},
    threads::BlockingPool,
    upstream::Upstream,
};

/// Refreshes the [`CatalogCache`] from the upstream and the database.
pub(super) struct Refresher {
    cache: Arc<CatalogCache>,
    upstream: Upstream,
    store: CatalogStore,
    /// Parses, builds and serializes catalogs.
    catalog_thread: Arc<CatalogThread>,
    /// How long a fetched catalog stays fresh.
    interval: Duration,
    /// How long other processes leave the fetch to the holder of the lease.
    lease: Duration,
    clock: Clock,
    runtime: Handle,
    state: Mutex<RefreshState>,
    listeners: CatalogListeners,
    /// Whether the running refresh has changed the catalog.
    has_changed: AtomicBool,
}

#[derive(Default)]
struct RefreshState {
    running: Option<RefreshTask>,
    /// The error of the last refresh.
    last_error: Option<Error>,
    /// The wait until a read may start the next refresh.
    backoff: Backoff,
    /// The backoff and the error of each further list whose last fetch failed.
    list_failures: HashMap<ListKey, (Backoff, Error)>,
}

/// A handle to the running refresh, shared by all callers that wait for it.
#[derive(Clone)]
struct RefreshTask {
    request: Arc<RefreshRequest>,
    outcome: watch::Receiver<Option<Result<RefreshOutcome>>>,
}

/// What a refresh is for. Callers that join a running refresh may set its flags.
#[derive(Default)]
struct RefreshRequest {
    /// Further lists to add to the catalog in use; empty for a refresh of the whole catalog.
    lists: Vec<ListKey>,
    /// Fetch from the source, even if the database has a fresh catalog.
    from_source: AtomicBool,
    /// Accept a collapsed catalog.
    force: AtomicBool,
}

#[derive(Clone)]
struct RefreshOutcome {
    /// Whether the catalog was fetched from its source, not loaded from the database.
    is_fetched: bool,
    /// The error after which an old catalog was loaded from the database.
    fallback_error: Option<Error>,
}

impl RefreshRequest {
    fn fetch_from_source(&self, force: bool) {
        self.from_source.store(true, Ordering::Release);
        self.force.fetch_or(force, Ordering::AcqRel);
    }
}

impl RefreshTask {
    /// Waits until the refresh ends.
    ///
    /// # Errors
    /// The error of the refresh; `Closed` if the client is closed first.
    async fn wait(mut self) -> Result<RefreshOutcome> {
        match self.outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or_else(|| Err(Error::closed())),
            Err(_) => Err(Error::closed()),
        }
    }
}

/// The calls of readers: each starts a refresh or joins the running one.
impl Refresher {
    pub(super) fn new(
        upstream: Upstream,
        interval: Duration,
        lease: Duration,
        database: Scope,
        clock: Clock,
        runtime: Handle,
        callbacks: BlockingPool,
    ) -> Result<Refresher> {
        let catalog_thread = Arc::new(CatalogThread::default());
        let store = CatalogStore::new(database, upstream.name(), clock.clone(), Arc::clone(&catalog_thread));
        // Without a key the catalog is empty for good: no fetch and no error (SPEC 1.5).
        let empty = if upstream.is_configured() {
            None
        } else {
            let data = CatalogData::new(FetchedList::default(), clock.now(), true);
            Some(CachedCatalog::new(Snapshot::build(data, CatalogSource::None)?, clock.moment()))
        };
        let cache = Arc::new(CatalogCache::new(empty));
        let (state, listeners, has_changed) =
            (Mutex::default(), CatalogListeners::new(callbacks), AtomicBool::new(false));
        Ok(Refresher {
            cache,
            upstream,
            store,
            catalog_thread,
            interval,
            lease,
            clock,
            runtime,
            state,
            listeners,
            has_changed,
        })
    }

    pub(super) fn listeners(&self) -> &CatalogListeners {
        &self.listeners
    }

    pub(super) fn cache(&self) -> Arc<CatalogCache> {
        Arc::clone(&self.cache)
    }

    /// Loads the first catalog, from the database or its source, and waits for it.
    pub(super) async fn load(self: &Arc<Self>) -> Result<()> {
        let task = {
            let mut state = self.state.lock();
            match (&state.running, &state.last_error) {
                (Some(task), _) => task.clone(),
                (None, Some(error)) if state.backoff.is_active(self.clock.moment()) => return Err(error.clone()),
                (None, _) => self.start(&mut state, RefreshRequest::default()),
            }
        };
        task.wait().await.map(drop)
    }

    /// Starts a refresh in the background if the catalog is stale, none is running and no backoff is active.
    pub(super) fn refresh_if_stale(self: &Arc<Self>, current: &CachedCatalog) {
        if !self.upstream.is_configured() || self.clock.moment() < current.fresh_until {
            return;
        }
        let mut state = self.state.lock();
        if state.running.is_none() && !state.backoff.is_active(self.clock.moment()) {
            self.start(&mut state, RefreshRequest::default());
        }
    }

    /// Adds further lists to the catalog in use and waits for them. If another refresh is running, waits for that
    /// refresh instead. Then the caller must check again whether the catalog has the lists.
    pub(super) async fn fetch_lists(self: &Arc<Self>, lists: Vec<ListKey>) -> Result<()> {
        let (task, has_all) = {
            let mut state = self.state.lock();
            let now = self.clock.moment();
            let mut failures = lists.iter().filter_map(|list| state.list_failures.get(list));
            if let Some((_, error)) = failures.find(|(backoff, _)| backoff.is_active(now)) {
                return Err(error.clone());
            }
            match &state.running {
                Some(task) => (task.clone(), lists.iter().all(|list| task.request.lists.contains(list))),
                None => (self.start(&mut state, RefreshRequest { lists, ..RefreshRequest::default() }), true),
            }
        };
        match task.wait().await {
            _ if !has_all => self.cache.check_open(),
            outcome => outcome.map(drop),
        }
    }

    /// Fetches the catalog from its source and waits for it; joins a fetch that is running.
    pub(super) async fn refresh(self: &Arc<Self>, force: bool) -> Result<()> {
        loop {
            self.cache.check_open()?;
            if !self.upstream.is_configured() {
                return Ok(());
            }
            let (task, is_own) = {
                let mut state = self.state.lock();
                match &state.running {
                    Some(task) => {
                        task.request.fetch_from_source(force);
                        (task.clone(), false)
                    }
                    None => {
                        let request = RefreshRequest::default();
                        request.fetch_from_source(force);
                        (self.start(&mut state, request), true)
                    }
                }
            };
            match task.wait().await {
                Ok(outcome) if outcome.is_fetched || is_own => return Ok(()),
                // The joined task may have passed the point where it reads the flags: refresh again.
                Err(_) if force && !is_own => {}
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn stats(&self) -> Result<DiscoveryStats> {
        self.cache.check_open()?;
        let current = self.cache.current();
        let state = self.state.lock();
        let list_error = || state.list_failures.values().map(|(_, error)| error).next();
        let last_error = state.last_error.as_ref().or_else(list_error);
        let mut stats = DiscoveryStats {
            total: 0,
            received: 0,
            skipped: 0,
            duplicates: 0,
            has_api_key: self.upstream.is_remote(),
            source: CatalogSource::None,
            fetched_at: None,
            is_stale: last_error.is_some(),
            is_refreshing: state.running.is_some(),
            last_error: last_error.map(|error| error.message().to_owned()),
        };
        if let Some(current) = current
            && self.upstream.is_configured()
        {
            let header = &current.snapshot.data().header;
            stats.total = current.snapshot.len();
            stats.received = header.received;
            stats.skipped = header.skipped;
            stats.duplicates = header.duplicates;
            stats.source = current.snapshot.source();
            stats.fetched_at = Some(header.fetched_at);
            stats.is_stale |= self.clock.moment() >= current.fresh_until;
        }
        Ok(stats)
    }

    /// Closes the cache and ends the catalog thread. A running task ends with the runtime, which wakes its callers.
    pub(super) fn close(&self) {
        self.cache.close();
        self.state.lock().running = None;
        self.cache.clear();
        self.listeners.clear();
        self.catalog_thread.close();
    }
}

/// The life of a task.
impl Refresher {
    fn start(self: &Arc<Self>, state: &mut RefreshState, request: RefreshRequest) -> RefreshTask {
        let (sender, outcome) = watch::channel(None);
        let task = RefreshTask { request: Arc::new(request), outcome };
        state.running = Some(task.clone());
        self.runtime.spawn(Arc::clone(self).run(Arc::clone(&task.request), sender));
        task
    }

    async fn run(
        self: Arc<Self>,
        request: Arc<RefreshRequest>,
        outcome: watch::Sender<Option<Result<RefreshOutcome>>>,
    ) {
        let (refresher, shared_request) = (Arc::clone(&self), Arc::clone(&request));
        // A panic of the inner task becomes an error here.
        let work = spawn(async move {
            if shared_request.lists.is_empty() {
                refresher.refresh_with_fallback(&shared_request).await
            } else {
                refresher.add_lists(&shared_request.lists).await
            }
        });
        let result = work.await.unwrap_or_else(|error| Err(join_error(error)));
        self.finish(&request.lists, &result);
        if self.has_changed.swap(false, Ordering::AcqRel)
            && let Ok(stats) = self.stats()
        {
            self.listeners.post(&stats);
        }
        // Sent after `running` is `None`: a woken caller may start the next refresh.
        outcome.send_replace(Some(result));
    }

    /// Sets `running` to `None`, and records or clears errors and backoffs.
    fn finish(&self, lists: &[ListKey], result: &Result<RefreshOutcome>) {
        let now = self.clock.moment();
        let mut state = self.state.lock();
        state.running = None;
        match result {
            Ok(_) if !lists.is_empty() => lists.iter().for_each(|list| drop(state.list_failures.remove(list))),
            Err(error) if !lists.is_empty() => {
                for list in lists {
                    let mut backoff = state.list_failures.get(list).map(|(backoff, _)| *backoff).unwrap_or_default();
                    backoff.fail(now, error);
                    state.list_failures.insert(list.clone(), (backoff, error.clone()));
                }
            }
            Ok(RefreshOutcome { fallback_error: None, .. }) => {
                state.last_error = None;
                state.backoff = Backoff::default();
                state.list_failures.clear();
            }
            Err(error) | Ok(RefreshOutcome { fallback_error: Some(error), .. }) => {
                tracing::warn!(%error, "the catalog could not be refreshed");
                state.backoff.fail(now, error);
                state.last_error = Some(error.clone());
            }
        }
    }
}

/// The steps of a refresh, in order.
impl Refresher {
    /// Refreshes the catalog. If that fails and there is no catalog yet, loads the last one from the database.
    async fn refresh_with_fallback(&self, request: &RefreshRequest) -> Result<RefreshOutcome> {
        let error = match self.refresh_as_leaseholder(request).await {
            Ok(outcome) => return Ok(outcome),
            Err(error) => error,
        };
        if self.cache.current().is_none() {
            match self.store.load().await {
                Ok(Some(data)) => {
                    self.install(data, CatalogSource::Database, self.clock.moment()).await?;
                    // Readers can be answered. Callers of `refresh` still get the error.
                    if !request.from_source.load(Ordering::Acquire) {
                        return Ok(RefreshOutcome { is_fetched: false, fallback_error: Some(error) });
                    }
                }
                Ok(None) => {}
                Err(other) => tracing::warn!(error = %other, "the catalog stored in the database cannot be read"),
            }
        }
        Err(error)
    }

    /// Takes a fresh catalog that another process stored, or acquires the lease and fetches one from the source.
    async fn refresh_as_leaseholder(&self, request: &RefreshRequest) -> Result<RefreshOutcome> {
        if !self.upstream.is_remote() {
            return self.fetch_catalog(request, None).await;
        }
        let mut lease = None;
        while !request.from_source.load(Ordering::Acquire) {
            // Looks again after it took the lease: the holder before may have stored a catalog in between.
            if let Some(data) = self.newer_stored_catalog().await {
                self.release(lease).await;
                let fresh_until = self.clock.moment().after(self.remaining_freshness(data.header.fetched_at));
                self.install(data, CatalogSource::Database, fresh_until).await?;
                return Ok(RefreshOutcome { is_fetched: false, fallback_error: None });
            }
            if lease.is_some() {
                break;
            }
            match self.store.take_lease(self.lease).await {
                Ok(Some(taken)) => lease = Some(taken),
                Ok(None) => tokio::time::sleep(Duration::from_millis(100)).await,
                // If the database cannot be written, every process fetches for itself.
                Err(_) => break,
            }
        }
        let result = self.fetch_catalog(request, lease).await;
        self.release(lease).await;
        result
    }

    async fn release(&self, lease: Option<Lease>) {
        if let Some(lease) = lease
            && let Err(error) = self.store.end_lease(lease).await
        {
            tracing::warn!(%error, "the catalog lease could not be released");
        }
    }

    /// The stored catalog, if it is newer than the one in use and still fresh.
    async fn newer_stored_catalog(&self) -> Option<CatalogData> {
        let stored = self.store.find().await.ok()??;
        let current = self.cache.current().map(|current| current.snapshot.data().header.fetched_at);
        let is_newer = current.is_none_or(|current| stored.fetched_at > current);
        (is_newer && self.remaining_freshness(stored.fetched_at) > Duration::ZERO).then_some(())?;
        self.store.load().await.ok()?
    }

    /// How long a catalog fetched at `fetched_at` stays fresh; zero for a time in the future, which a wrong clock
    /// wrote.
    fn remaining_freshness(&self, fetched_at: Timestamp) -> Duration {
        let age = self.clock.now().duration_since(fetched_at);
        Duration::try_from(age).map_or(Duration::ZERO, |age| self.interval.saturating_sub(age))
    }

    /// Fetches the default order and every further list in use, installs the catalog and saves it.
    async fn fetch_catalog(&self, request: &RefreshRequest, lease: Option<Lease>) -> Result<RefreshOutcome> {
        let (started, fetched_at) = (self.clock.moment(), self.clock.now());
        let list = self.fetch_list(&ListKey::Timeframe(Timeframe::default())).await?;
        let before = match self.cache.current() {
            Some(current) => current.snapshot.data().header.ranked,
            None => self.store.find().await.ok().flatten().as_ref().map_or(0, StoredCatalog::ranked),
        };
        let after = list.records.len();
        let force = request.force.load(Ordering::Acquire);
        if !force {
            refuse_collapse("catalog", before, after)?;
        }
        let mut data = CatalogData::new(list, fetched_at, !self.upstream.is_remote());
        let further = self.fetch_each(self.lists_in_use(&data)).await?;
        if !force {
            self.refuse_collapsed_lists(&further, after)?;
        }
        data.add_lists(further);
        self.inherit_first_seen(&mut data).await;
        let fresh_until = started.after(self.interval);
        let catalog = self.install(data, self.upstream.source(), fresh_until).await?;
        self.save(catalog.snapshot.data(), lease).await;
        Ok(RefreshOutcome { is_fetched: true, fallback_error: None })
    }

    /// Adds further lists to the catalog in use and saves it.
    async fn add_lists(&self, lists: &[ListKey]) -> Result<RefreshOutcome> {
        let Some(current) = self.cache.current() else { return Err(Error::closed()) };
        let present = current.snapshot.data().further_lists();
        let missing = lists.iter().filter(|list| !present.contains(list)).cloned().collect();
        let mut data = current.snapshot.data().clone();
        let further = self.fetch_each(missing).await?;
        self.refuse_collapsed_lists(&further, data.header.ranked)?;
        data.add_lists(further);
        data.inherit_first_seen(current.snapshot.data());
        let catalog = self.install(data, current.snapshot.source(), current.fresh_until).await?;
        catalog.inherit_reads(&current);
        self.save(catalog.snapshot.data(), None).await;
        Ok(RefreshOutcome { is_fetched: true, fallback_error: None })
    }

    /// The further lists that were read since the last refresh.
    fn lists_in_use(&self, next: &CatalogData) -> Vec<ListKey> {
        let mut lists = self.cache.current().map(|current| current.read_lists()).unwrap_or_default();
        // If the records name their networks, network filters need no list of the upstream.
        lists.retain(|list| !(next.header.has_chains && matches!(list, ListKey::Network(_))));
        lists
    }

    async fn fetch_each(&self, keys: Vec<ListKey>) -> Result<Vec<(ListKey, FetchedList)>> {
        let mut lists = Vec::with_capacity(keys.len());
        for key in keys {
            let list = self.fetch_list(&key).await?;
            lists.push((key, list));
        }
        Ok(lists)
    }

    /// Fetches a list; its unchanged records are shared with the catalog in use.
    async fn fetch_list(&self, key: &ListKey) -> Result<FetchedList> {
        let current = self.cache.current();
        let empty = move || {
            current.map_or_else(FetchedList::default, |current| FetchedList::sharing(&current.snapshot.data().records))
        };
        let list = self.catalog_thread.run(empty).await?;
        self.upstream.fetch(key, list, &self.catalog_thread).await
    }

    /// Refuses collapsed lists. An order is compared with the default order, which has `ranked` apps. A network's list
    /// is compared with its previous length.
    fn refuse_collapsed_lists(&self, lists: &[(ListKey, FetchedList)], ranked: usize) -> Result<()> {
        let current = self.cache.current();
        for (key, list) in lists {
            let after = list.records.len();
            match key {
                ListKey::Timeframe(timeframe) => refuse_collapse(&format!("{timeframe} order"), ranked, after)?,
                ListKey::Network(network) => {
                    let members = current.as_ref().map(|current| &current.snapshot.data().header.members);
                    let before = members.and_then(|members| members.get(network)).map_or(0, Vec::len);
                    refuse_collapse(&format!("list of {network}"), before, after)?;
                }
            }
        }
        Ok(())
    }

    /// Takes over when each app was first seen, from the catalog in use and from a stored one that is newer.
    async fn inherit_first_seen(&self, data: &mut CatalogData) {
        let current = self.cache.current();
        if let Some(current) = &current {
            data.inherit_first_seen(current.snapshot.data());
        }
        let known_at = current.map(|current| current.snapshot.data().header.fetched_at);
        let stored = self.store.find().await.ok().flatten();
        if stored.is_some_and(|stored| known_at.is_none_or(|known_at| stored.fetched_at > known_at))
            && let Ok(Some(stored)) = self.store.load().await
        {
            data.inherit_first_seen(&stored);
        }
    }

    /// Builds a snapshot and puts it into use.
    async fn install(&self, data: CatalogData, source: CatalogSource, until: Moment) -> Result<Arc<CachedCatalog>> {
        let is_same = self.cache.current().is_some_and(|current| current.snapshot.data().is_same_content(&data));
        self.has_changed.fetch_or(!is_same, Ordering::AcqRel);
        let snapshot = self.catalog_thread.run(move || Snapshot::build(data, source)).await??;
        self.cache.install(CachedCatalog::new(snapshot, until))
    }

    /// Saves the catalog. A failure is only logged: the catalog in memory is in use.
    async fn save(&self, data: &CatalogData, lease: Option<Lease>) {
        if let Err(error) = self.store.save(data, lease).await {
            tracing::warn!(%error, "the catalog could not be saved in the database");
        }
    }
}

fn join_error(error: JoinError) -> Error {
    if error.is_cancelled() {
        Error::closed()
    } else {
        Error::new(ErrorKind::Internal, "The refresh of the catalog panicked").caused_by(error)
    }
}

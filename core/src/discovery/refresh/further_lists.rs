//! Refreshing the further lists: the orders of other timeframes, and the apps of a network.
//!
//! Invariant: a list fails alone. It keeps its old order, and no process fetches it again before its backoff ends. A forced
//! refresh ignores the backoff and takes each list in use as it comes, also a collapsed one.

use std::sync::Arc;

use super::{
    FetchFailure, Refresher, log_failure,
    main_list::{age, release},
    task::RefreshRequest,
};
use crate::{
    catalog::{CatalogData, ListContent, ListKey},
    database::HeldLease,
    discovery::{cache::CachedCatalog, collapse::refuse_collapse},
    error::{Error, Result},
};

impl Refresher {
    /// The further lists of readers of the last interval, as far as `next` needs them.
    fn lists_in_use(&self, next: &CatalogData) -> Vec<ListKey> {
        let mut lists = self.cache.lists_in_use(self.clock.moment(), self.options.interval);
        // If the records name their networks, network filters need no list of the upstream.
        lists.retain(|list| match list {
            ListKey::Network(_) => !next.header.has_chains && !next.header.has_one_order,
            ListKey::Timeframe(_) => !next.header.has_one_order,
        });
        lists
    }

    /// The lists in use, as they are in the catalog that `next` replaces.
    pub(super) fn kept_lists(&self, next: &CatalogData) -> Vec<(ListKey, ListContent)> {
        let Some(current) = self.cache.current() else { return Vec::new() };
        let kept = self.lists_in_use(next).into_iter();
        kept.filter_map(|key| current.snapshot.data().list(&key).map(|content| (key, content))).collect()
    }

    /// Fetches the lists in use that are missing, older than the main list, or older than the interval.
    pub(super) async fn refresh_lists_in_use(&self, request: &RefreshRequest) {
        let Some(current) = self.cache.current() else { return };
        let data = current.snapshot.data();
        let in_use = self.lists_in_use(data);
        let (now, time) = (self.clock.moment(), self.store.now().await);
        let due = in_use.iter().filter(|key| {
            data.list(key).is_none_or(|list| {
                list.fetched_at < data.header.fetched_at || age(list.fetched_at, time) >= self.options.interval
            })
        });
        let mut due: Vec<ListKey> = due.cloned().collect();
        {
            let mut state = self.state.lock();
            state.failures.retain(|key, failures| {
                key.as_ref().is_none_or(|key| in_use.contains(key) || failures.backoff.is_active(now))
            });
            due.retain(|key| request.demand().is_forced || state.refusal(&Some(key.clone()), now).is_none());
        }
        if let Err(error) = self.add_lists(&due, request).await {
            log_failure(&error, "the further lists of the catalog could not be refreshed");
        }
    }

    /// Adds further lists to the catalog in use, or renews them there. The failure of a list is recorded and no error.
    pub(super) async fn add_lists(&self, keys: &[ListKey], request: &RefreshRequest) -> Result<()> {
        let Some(current) = self.cache.current() else { return Err(Error::closed()) };
        let mut lists = Vec::new();
        for key in keys {
            match self.obtain_list(key, &current, request).await {
                Ok(content) => {
                    self.record_success(Some(key), false).await;
                    lists.push((key.clone(), content));
                }
                Err(failure) => {
                    self.record_failure(Some(key), failure).await;
                    // An old copy is better than none.
                    if current.snapshot.data().list(key).is_none()
                        && let Ok(Some(content)) = self.store.load_list(key).await
                    {
                        lists.push((key.clone(), content));
                    }
                }
            }
        }
        if lists.is_empty() {
            return self.cache.check_open();
        }
        let age = current.age(self.clock.moment());
        self.install(current.snapshot.data().clone(), lists, current.snapshot.source(), age).await.map(drop)
    }

    /// Takes the copy that another process stored, or acquires the list's lease and fetches one.
    async fn obtain_list(
        &self,
        key: &ListKey,
        current: &Arc<CachedCatalog>,
        request: &RefreshRequest,
    ) -> Result<ListContent, FetchFailure> {
        let mut lease: Option<HeldLease> = None;
        loop {
            if let Some(content) = self.stored_list(key, current).await {
                release(lease).await;
                return Ok(content);
            }
            if !request.demand().is_forced
                && let Some(failures) = self.shared_failures(Some(key)).await
            {
                release(lease).await;
                return Err(FetchFailure::Shared(failures));
            }
            if lease.is_some() {
                break;
            }
            match self.store.take_lease(Some(key), self.options.lease).await {
                Ok(Some(taken)) => lease = Some(taken),
                Ok(None) => tokio::time::sleep(Refresher::LEASE_POLL).await,
                Err(_) => break,
            }
        }
        let result = self.fetch_further_list(key, current, request, lease.as_ref()).await;
        release(lease).await;
        Ok(result?)
    }

    /// The stored copy of a list, if it is as new as the catalog in use.
    async fn stored_list(&self, key: &ListKey, current: &CachedCatalog) -> Option<ListContent> {
        let fetched_at = self.store.list_state(Some(key)).await.ok()??.fetched_at?;
        let is_new = fetched_at >= current.snapshot.data().header.fetched_at && fetched_at <= self.store.now().await;
        let is_newer = current.snapshot.data().list(key).is_none_or(|list| fetched_at > list.fetched_at);
        (is_new && is_newer).then_some(())?;
        self.store.load_list(key).await.ok()?
    }

    /// Fetches a list and saves it.
    async fn fetch_further_list(
        &self,
        key: &ListKey,
        current: &Arc<CachedCatalog>,
        request: &RefreshRequest,
        lease: Option<&HeldLease>,
    ) -> Result<ListContent> {
        // After the main list, also if the clock was set back in between: an older list would be fetched again by each read.
        let fetched_at = self.store.now().await.max(current.snapshot.data().header.fetched_at);
        let content = ListContent::new(self.fetch_list(key).await?, fetched_at);
        if !request.demand().is_forced {
            refuse_collapsed_list(key, &content, current.snapshot.data())?;
        }
        let (whole, catalog) = (content.clone(), Arc::clone(current));
        let stored = self.runtime.blocking.run(move || whole.without_ranked(catalog.snapshot.data())).await?;
        if let Err(error) = self.store.save_list(key, stored, lease).await {
            log_failure(&error, "a list of the catalog could not be saved in the database");
        }
        Ok(content)
    }
}

/// Refuses a collapsed list. An order is compared with the default order, a network's list with its previous length.
fn refuse_collapsed_list(key: &ListKey, list: &ListContent, data: &CatalogData) -> Result<()> {
    match key {
        ListKey::Timeframe(timeframe) => refuse_collapse(&format!("{timeframe} order"), data.header.ranked, list.len()),
        ListKey::Network(network) => {
            let before = data.header.members.get(network).map_or(0, Vec::len);
            refuse_collapse(&format!("list of {network}"), before, list.len())
        }
    }
}

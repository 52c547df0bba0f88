//! Refreshing the main list: from the database if another process fetched it, else from the source under a lease.

use std::time::Duration;

use jiff::Timestamp;

use super::{
    FetchFailure, Refresher, log_failure,
    task::{Demand, RefreshRequest},
};
use crate::{
    catalog::{CatalogData, CatalogSource, ListKey, Timeframe},
    database::HeldLease,
    discovery::{collapse::refuse_collapse, store::StoredCatalog},
    error::Result,
};

/// Where a main list comes from.
#[derive(PartialEq, Eq)]
enum ListOrigin {
    /// Another process has fetched and stored it.
    Stored,
    Fetched,
}

impl Refresher {
    /// Refreshes the main list. If that fails and there is no catalog yet, loads the last one from the database.
    pub(super) async fn refresh_main(&self, request: &RefreshRequest) -> Result<()> {
        let failure = match self.obtain_main(request).await {
            Ok(origin) => {
                self.record_success(None, origin == ListOrigin::Fetched).await;
                return Ok(());
            }
            Err(failure) => failure,
        };
        let error = self.record_failure(None, failure).await;
        if self.cache.current().is_none() {
            match self.store.load().await {
                Ok(Some(data)) => {
                    let age = self.age_of(data.header.fetched_at).await;
                    self.install(data, Vec::new(), CatalogSource::Database, age).await?;
                    // Readers can be answered. Callers of `refresh` still get the error.
                    if request.end_if(|demand| demand.since.is_none()) {
                        return Ok(());
                    }
                }
                Ok(None) => {}
                Err(other) => log_failure(&other, "the catalog stored in the database cannot be read"),
            }
        }
        Err(error)
    }

    /// Takes the catalog that another process stored, or acquires the lease and fetches one.
    async fn obtain_main(&self, request: &RefreshRequest) -> Result<ListOrigin, FetchFailure> {
        if !self.upstream.is_remote() {
            self.fetch_main(request, None).await?;
            return Ok(ListOrigin::Fetched);
        }
        let mut lease: Option<HeldLease> = None;
        let mut polls = 0;
        // Looks again after it took the lease: the previous holder may have stored a catalog or a failure in between.
        loop {
            if let Some(data) = self.stored_main(request).await {
                release(lease).await;
                let age = self.age_of(data.header.fetched_at).await;
                let kept = self.kept_lists(&data);
                self.install(data, kept, CatalogSource::Database, age).await?;
                return Ok(ListOrigin::Stored);
            }
            if !request.demand().ignores_backoff
                && let Some(failures) = self.shared_failures(None).await
                && request.end_if(|demand| !demand.ignores_backoff)
            {
                release(lease).await;
                return Err(FetchFailure::Shared(failures));
            }
            if lease.is_some() {
                break;
            }
            match self.store.take_lease(None, self.options.lease).await {
                Ok(Some(taken)) => lease = Some(taken),
                // Whoever called `refresh` does not wait for a process that hangs.
                Ok(None) if request.demand().since.is_some() && Refresher::LEASE_POLL * polls > self.options.lease => {
                    break;
                }
                Ok(None) => tokio::time::sleep(Refresher::LEASE_POLL).await,
                // If the database cannot be written, every process fetches for itself.
                Err(_) => break,
            }
            polls += 1;
        }
        let result = self.fetch_main(request, lease.as_ref()).await;
        release(lease).await;
        result?;
        Ok(ListOrigin::Fetched)
    }

    /// Returns the stored catalog and ends the request, if the stored catalog is newer than the one in use and satisfies the
    /// request.
    async fn stored_main(&self, request: &RefreshRequest) -> Option<CatalogData> {
        let stored = self.store.find().await.ok()??;
        let current = self.cache.current().map(|current| current.snapshot.data().header.fetched_at);
        let is_newer = current.is_none_or(|current| stored.fetched_at > current);
        let is_fresh = self.age_of(stored.fetched_at).await < self.options.interval;
        let is_recent = |demand: &Demand| demand.since.is_none_or(|since| stored.fetched_at > since);
        (is_newer && is_fresh && is_recent(&request.demand())).then_some(())?;
        let data = self.store.load().await.ok()??;
        // A caller may have joined since.
        request.end_if(is_recent).then_some(data)
    }

    /// The age of a list fetched at `fetched_at`.
    pub(super) async fn age_of(&self, fetched_at: Timestamp) -> Duration {
        age(fetched_at, self.store.now().await)
    }

    /// Fetches the main list, puts it into use with the old further lists, and saves it.
    async fn fetch_main(&self, request: &RefreshRequest, lease: Option<&HeldLease>) -> Result<()> {
        let demand = self.begin_fetch(request);
        let (started, fetched_at) = (self.clock.moment(), self.store.now().await);
        let list = self.fetch_list(&ListKey::Timeframe(Timeframe::default())).await?;
        if !demand.is_forced {
            let before = match self.cache.current() {
                Some(current) => current.snapshot.data().header.ranked,
                None => self.store.find().await.ok().flatten().as_ref().map_or(0, StoredCatalog::ranked),
            };
            refuse_collapse("catalog", before, list.records.len())?;
        }
        let mut data = CatalogData::new(list, fetched_at, !self.upstream.has_key());
        self.inherit_first_seen(&mut data).await;
        let kept = self.kept_lists(&data);
        let age = self.clock.moment().since(started);
        let catalog = self.install(data, kept, self.upstream.source(), age).await?;
        // A failure is only logged: the catalog in memory is in use.
        if let Err(error) = self.store.save(catalog.snapshot.data(), lease).await {
            log_failure(&error, "the catalog could not be saved in the database");
        }
        Ok(())
    }
}

impl Refresher {
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
}

/// The time since a fetch. A time in the future, which a wrong clock wrote, counts as very old.
pub(super) fn age(fetched_at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(fetched_at)).unwrap_or(Duration::MAX)
}

pub(super) async fn release(lease: Option<HeldLease>) {
    if let Some(lease) = lease {
        lease.release().await;
    }
}

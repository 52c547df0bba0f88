//! The catalog cache: the snapshot in use, its age, and when its further lists were last read.
//!
//! Invariant: readers share the current snapshot through an atomic pointer. A refresh replaces the pointer and never
//! changes a snapshot, so a read needs no lock and never waits for a refresh.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;

use crate::{
    catalog::{ListKey, Selection, Snapshot, Timeframe, canonical_network},
    clock::Moment,
    error::{Error, Result},
};

/// Holds the snapshot in use; empty until the first load.
pub(super) struct CatalogCache {
    current: ArcSwapOption<CachedCatalog>,
    is_closed: AtomicBool,
    /// When each further list was last read.
    reads: Mutex<HashMap<ListKey, Moment>>,
    /// The further lists that calls of the program have read. Requests to the endpoint add none.
    of_program: Mutex<HashSet<ListKey>>,
}

/// A snapshot and its age.
pub(super) struct CachedCatalog {
    pub(super) snapshot: Arc<Snapshot>,
    /// The further lists that are older than the rest of the snapshot.
    pub(super) stale_lists: Vec<ListKey>,
    installed: Moment,
    age_when_installed: Duration,
}

impl CatalogCache {
    pub(super) fn new(initial: Option<CachedCatalog>) -> CatalogCache {
        CatalogCache {
            current: ArcSwapOption::new(initial.map(Arc::new)),
            is_closed: AtomicBool::new(false),
            reads: Mutex::default(),
            of_program: Mutex::default(),
        }
    }

    /// The catalog in use, if any was loaded.
    pub(super) fn current(&self) -> Option<Arc<CachedCatalog>> {
        self.current.load_full()
    }

    /// Replaces the catalog in use.
    ///
    /// # Errors
    /// `Closed` after [`close`](CatalogCache::close).
    pub(super) fn install(&self, catalog: CachedCatalog) -> Result<Arc<CachedCatalog>> {
        let catalog = Arc::new(catalog);
        self.check_open()?;
        self.current.store(Some(Arc::clone(&catalog)));
        Ok(catalog)
    }

    /// Records that further lists are read at `now`.
    pub(super) fn record_reads(&self, lists: &[ListKey], now: Moment) {
        // The most frequent read uses the default order alone: it takes no lock.
        if lists.is_empty() {
            return;
        }
        let mut reads = self.reads.lock();
        for list in lists {
            match reads.get_mut(list) {
                Some(last) => *last = now,
                None => drop(reads.insert(list.clone(), now)),
            }
        }
    }

    /// Records that the program reads further lists.
    pub(super) fn record_program(&self, lists: [&[ListKey]; 2]) {
        for list in lists.into_iter().flatten() {
            let mut of_program = self.of_program.lock();
            if !of_program.contains(list) {
                of_program.insert(list.clone());
            }
        }
    }

    /// Removes the lists that the program has not read.
    pub(super) fn retain_lists_of_program(&self, lists: &mut Vec<ListKey>) {
        if !lists.is_empty() {
            let of_program = self.of_program.lock();
            lists.retain(|list| of_program.contains(list));
        }
    }

    /// The further lists that were read within `interval`. The others are forgotten.
    pub(super) fn lists_in_use(&self, now: Moment, interval: Duration) -> Vec<ListKey> {
        let mut reads = self.reads.lock();
        reads.retain(|_, last| now.since(*last) <= interval);
        let mut lists: Vec<ListKey> = reads.keys().cloned().collect();
        // The order of a hash map is random; a refresh fetches its lists in the same order every time.
        lists.sort_by_key(ListKey::name);
        lists
    }

    /// Forbids further use. [`clear`](CatalogCache::clear) frees the memory.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    pub(super) fn clear(&self) {
        self.current.store(None);
    }

    /// # Errors
    /// `Closed` after [`close`](CatalogCache::close).
    pub(super) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) { Err(Error::closed()) } else { Ok(()) }
    }
}

impl CachedCatalog {
    /// A snapshot with a main list that is `age` old at `now`.
    pub(super) fn new(snapshot: Snapshot, age: Duration, now: Moment) -> CachedCatalog {
        let stale_lists = snapshot.data().stale_lists();
        CachedCatalog { snapshot: Arc::new(snapshot), stale_lists, installed: now, age_when_installed: age }
    }

    /// The time since the main list was fetched.
    pub(super) fn age(&self, now: Moment) -> Duration {
        self.age_when_installed.saturating_add(now.since(self.installed))
    }

    /// The further lists of the snapshot that a read uses.
    pub(super) fn lists_of(&self, timeframe: Timeframe, selection: &Selection) -> Vec<ListKey> {
        let data = self.snapshot.data();
        let header = &data.header;
        if header.has_one_order || (timeframe == Timeframe::default() && selection.networks.is_empty()) {
            return Vec::new();
        }
        let order = data.order(timeframe).map(|_| ListKey::Timeframe(timeframe));
        let networks = selection.networks.iter().filter_map(|name| canonical_network(name.trim()));
        let networks = networks.filter(|name| header.members.contains_key(*name));
        order.into_iter().chain(networks.map(|name| ListKey::Network(name.into()))).collect()
    }
}

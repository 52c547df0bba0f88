//! The catalog cache: the snapshot in use, until when it is fresh, and which further lists were read from it.
//!
//! Invariant: readers share the current snapshot through an atomic pointer. A refresh replaces the pointer and never
//! changes a snapshot, so a read needs no lock and never waits for a refresh.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
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
}

/// A snapshot, the time until which it is fresh, and the further lists that were read from it.
pub(super) struct CachedCatalog {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) fresh_until: Moment,
    /// The further lists that were read since the snapshot was installed: the next refresh fetches these again.
    read_lists: Mutex<Vec<ListKey>>,
}

impl CatalogCache {
    pub(super) fn new(initial: Option<CachedCatalog>) -> CatalogCache {
        CatalogCache { current: ArcSwapOption::new(initial.map(Arc::new)), is_closed: AtomicBool::new(false) }
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
    pub(super) fn new(snapshot: Snapshot, fresh_until: Moment) -> CachedCatalog {
        CachedCatalog { snapshot: Arc::new(snapshot), fresh_until, read_lists: Mutex::default() }
    }

    /// Records which further lists a read uses.
    pub(super) fn record_read(&self, timeframe: Timeframe, selection: &Selection) {
        // The most frequent read uses the default order alone: it takes no lock.
        let header = &self.snapshot.data().header;
        if header.has_one_order || (timeframe == Timeframe::default() && selection.networks.is_empty()) {
            return;
        }
        let order = (timeframe != Timeframe::default()).then_some(ListKey::Timeframe(timeframe));
        let networks = selection.networks.iter().filter_map(|name| canonical_network(name.trim()));
        let networks = networks.filter(|name| header.members.contains_key(*name));
        let lists = order.into_iter().chain(networks.map(|name| ListKey::Network(name.into())));
        let mut read_lists = self.read_lists.lock();
        for list in lists {
            if !read_lists.contains(&list) {
                read_lists.push(list);
            }
        }
    }

    pub(super) fn read_lists(&self) -> Vec<ListKey> {
        self.read_lists.lock().clone()
    }

    /// Takes over the reads recorded by an earlier catalog.
    pub(super) fn inherit_reads(&self, earlier: &CachedCatalog) {
        self.read_lists.lock().clone_from(&earlier.read_lists.lock());
    }
}

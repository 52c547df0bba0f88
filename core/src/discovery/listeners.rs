//! The subscriptions to changes of the catalog.

use parking_lot::Mutex;

use crate::{
    callbacks::{Listener, Subscription},
    catalog::DiscoveryStats,
    database::CurrentPrincipal,
    threads::BlockingPool,
};

/// The callbacks of [`Discovery::on_catalog_change`](super::Discovery::on_catalog_change).
pub(super) struct CatalogListeners {
    pool: BlockingPool,
    listeners: Mutex<Vec<CatalogListener>>,
}

struct CatalogListener {
    listener: Listener<DiscoveryStats>,
    /// The handle that subscribed.
    handle: CurrentPrincipal,
}

impl CatalogListeners {
    pub(super) fn new(pool: BlockingPool) -> CatalogListeners {
        CatalogListeners { pool, listeners: Mutex::default() }
    }

    pub(super) fn subscribe(
        &self,
        handle: CurrentPrincipal,
        callback: impl FnMut(DiscoveryStats) + Send + 'static,
    ) -> Subscription {
        let listener = Listener::new(self.pool.clone(), callback);
        let subscription = listener.subscription();
        self.listeners.lock().push(CatalogListener { listener, handle });
        subscription
    }

    /// Calls every callback with `stats`, on threads of the pool.
    pub(super) fn post(&self, stats: &DiscoveryStats) {
        let mut ended = Vec::new();
        let mut listeners = self.listeners.lock();
        for entry in std::mem::take(&mut *listeners) {
            let is_closed = entry.handle.check_open().is_err();
            if is_closed || entry.listener.has_ended() {
                ended.push(entry);
            } else {
                entry.listener.notify(stats.clone());
                listeners.push(entry);
            }
        }
        // Dropped after the lock was released: dropping a callback runs code of the program.
        drop(listeners);
        drop(ended);
    }

    /// Drops every callback; a running one is dropped when it returns.
    pub(super) fn clear(&self) {
        let listeners = std::mem::take(&mut *self.listeners.lock());
        drop(listeners);
    }
}

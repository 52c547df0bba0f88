//! The subscriptions to changes of the catalog.

use parking_lot::Mutex;

use crate::{
    callbacks::{CallbackQueue, Subscription},
    catalog::DiscoveryStats,
    database::CurrentPrincipal,
    threads::BlockingPool,
};

/// The callbacks of [`Discovery::on_catalog_change`](super::Discovery::on_catalog_change).
pub(super) struct CatalogListeners {
    pool: BlockingPool,
    listeners: Mutex<Vec<Listener>>,
}

struct Listener {
    queue: CallbackQueue<DiscoveryStats>,
    /// The handle that subscribed; `None` for the client's own.
    handle: Option<CurrentPrincipal>,
}

impl CatalogListeners {
    pub(super) fn new(pool: BlockingPool) -> CatalogListeners {
        CatalogListeners { pool, listeners: Mutex::default() }
    }

    pub(super) fn subscribe(
        &self,
        handle: Option<CurrentPrincipal>,
        callback: impl FnMut(DiscoveryStats) + Send + 'static,
    ) -> Subscription {
        let queue = CallbackQueue::new(self.pool.clone(), callback);
        let subscription = queue.subscription();
        self.listeners.lock().push(Listener { queue, handle });
        subscription
    }

    /// Calls every callback with `stats`, on threads of the pool.
    pub(super) fn post(&self, stats: &DiscoveryStats) {
        let mut ended = Vec::new();
        let mut listeners = self.listeners.lock();
        for listener in std::mem::take(&mut *listeners) {
            let is_closed = listener.handle.as_ref().is_some_and(|handle| handle.check_open().is_err());
            if is_closed || listener.queue.is_unsubscribed() {
                ended.push(listener);
            } else {
                listener.queue.post(stats.clone());
                listeners.push(listener);
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

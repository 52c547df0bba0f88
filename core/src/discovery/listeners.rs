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

impl CatalogListener {
    fn has_ended(&self) -> bool {
        self.listener.has_ended() || self.handle.check_open().is_err()
    }
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
        let mut listeners = self.listeners.lock();
        // Not only in `post`: a catalog that never changes posts nothing.
        let ended: Vec<_> = listeners.extract_if(.., |entry| entry.has_ended()).collect();
        listeners.push(CatalogListener { listener, handle });
        // Dropped after the lock was released: dropping a callback runs code of the program.
        drop(listeners);
        drop(ended);
        subscription
    }

    /// Calls every callback with `stats`, on threads of the pool.
    pub(super) fn post(&self, stats: &DiscoveryStats) {
        let mut listeners = self.listeners.lock();
        let ended: Vec<_> = listeners.extract_if(.., |entry| entry.has_ended()).collect();
        for entry in &*listeners {
            entry.listener.notify(stats.clone());
        }
        drop(listeners);
        drop(ended);
    }

    /// Drops every callback; a running one is dropped when it returns.
    pub(super) fn clear(&self) {
        let listeners = std::mem::take(&mut *self.listeners.lock());
        drop(listeners);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;

    #[test]
    fn a_new_subscription_removes_those_that_have_ended() {
        let pool = BlockingPool::new("townsquare-test", 1);
        let listeners = CatalogListeners::new(pool.clone());
        for _ in 0..100 {
            let handle = CurrentPrincipal::signed_out(Arc::default());
            listeners.subscribe(handle.clone(), |_| {});
            handle.close();
            listeners.subscribe(CurrentPrincipal::signed_out(Arc::default()), |_| {}).unsubscribe();
        }
        assert_eq!(listeners.listeners.lock().len(), 1);
        pool.close(Duration::from_secs(10));
    }
}

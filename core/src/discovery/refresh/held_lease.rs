//! A lease that is renewed as long as its list is being fetched.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::discovery::store::{CatalogStore, Lease};

/// A lease and the task that renews it. Dropping it ends the task; the lease then ends by itself.
pub(super) struct HeldLease {
    lease: Lease,
    store: Arc<CatalogStore>,
    renewal: JoinHandle<()>,
}

impl HeldLease {
    /// Renewals per length of the lease: one may fail without the lease being lost.
    const RENEWALS: u32 = 3;

    pub(super) fn start(lease: Lease, store: Arc<CatalogStore>) -> HeldLease {
        let renewal = tokio::spawn(renew(lease.clone(), Arc::clone(&store)));
        HeldLease { lease, store, renewal }
    }

    /// The lease, for a write that must fail after another process has taken it.
    pub(super) fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Lets other processes fetch the list.
    pub(super) async fn release(self) {
        self.renewal.abort();
        if let Err(error) = self.store.end_lease(&self.lease).await {
            tracing::warn!(%error, "the catalog lease could not be released");
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

/// Renews the lease until another process has taken it.
async fn renew(lease: Lease, store: Arc<CatalogStore>) {
    loop {
        tokio::time::sleep(lease.length / HeldLease::RENEWALS).await;
        match store.renew_lease(&lease).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(%error, "the catalog lease could not be renewed"),
        }
    }
}

//! Leases of paths, for an object store without locks.
//!
//! Invariant: a lease is renewed while its holder works, and ends at most [`LENGTH`] after its holder died. Each lease has a
//! token of its own. A holder whose token is no longer in the database stops working: another writer has the path.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::task::JoinHandle;
use uuid::Uuid;

use super::statements as sql;
use crate::{
    clock::{Clock, Moment, later},
    database::Scope,
    error::{Error, Result},
    objects::ObjectKey,
    threads::RuntimeHandle,
};

/// For how long a lease is taken and renewed. A path is blocked for as long after its writer died.
const LENGTH: Duration = Duration::from_secs(15);

/// Renewals per length of a lease: one may fail without the lease being lost.
const RENEWALS: u32 = 3;

/// How often a waiter for a lease looks again.
const INTERVAL: Duration = Duration::from_millis(50);

/// A lease and the task that renews it. Dropping it ends the task; then the lease ends by itself.
pub(super) struct PathLease {
    lease: Arc<Lease>,
    renewal: JoinHandle<()>,
}

struct Lease {
    service: Scope,
    clock: Clock,
    name: String,
    token: String,
}

impl PathLease {
    /// Waits for the lease of a path.
    ///
    /// # Errors
    /// `Unavailable` (503) after `timeout`; the errors of the database.
    pub(super) async fn take(
        service: Scope,
        clock: Clock,
        runtime: &RuntimeHandle,
        key: &ObjectKey,
        timeout: Duration,
    ) -> Result<PathLease> {
        let name = format!("file:{}/{}", key.bucket, key.path);
        let lease = Arc::new(Lease { service, clock, name, token: Uuid::new_v4().to_string() });
        let deadline = lease.clock.moment().after(timeout);
        loop {
            let taken_at = lease.clock.moment();
            if lease.try_take().await? {
                let renewal = runtime.spawn(Arc::clone(&lease).renew(taken_at));
                return Ok(PathLease { lease, renewal });
            }
            if lease.clock.moment() >= deadline {
                return Err(Error::file(503, "Another writer holds the lock of this path"));
            }
            let pause = runtime.spawn(async { tokio::time::sleep(INTERVAL).await });
            pause.await.map_err(|_| Error::closed())?;
        }
    }

    /// Ready when the lease is lost.
    pub(super) fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<Error> {
        std::pin::Pin::new(&mut self.renewal).poll(context).map(|ended| match ended {
            Ok(()) => Error::file(503, "Another writer took the lock of this path over"),
            Err(_) => Error::closed(),
        })
    }

    /// Ends the lease.
    pub(super) async fn release(self) {
        self.renewal.abort();
        let values = vec![self.lease.name.clone().into(), self.lease.token.clone().into()];
        if let Err(error) = self.lease.service.execute(&sql::END_LEASE, values, |_| Ok(())).await {
            tracing::warn!(%error, "the lease of a file ends by its time");
        }
    }
}

impl Drop for PathLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl Lease {
    async fn try_take(&self) -> Result<bool> {
        let now = self.service.now().await?;
        // A clock was set back since a lease with a later end was taken. Twice the length, because another process may have
        // taken its lease after this one read the time.
        let values = vec![
            self.name.clone().into(),
            self.token.clone().into(),
            later(now, LENGTH).into(),
            now.into(),
            later(now, 2 * LENGTH).into(),
        ];
        Ok(self.service.execute(&sql::TAKE_LEASE, values, |_| Ok(())).await?.is_some())
    }

    /// Renews the lease from time to time. Returns when it is lost: another writer has it, or it may have ended because the
    /// database was out of reach.
    async fn renew(self: Arc<Self>, taken_at: Moment) {
        let mut renewed_at = taken_at;
        loop {
            tokio::time::sleep(LENGTH / RENEWALS).await;
            let now = self.clock.moment();
            let left = renewed_at.after(LENGTH).since(now);
            match tokio::time::timeout(left, self.try_renew()).await {
                Ok(Ok(true)) => renewed_at = now,
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => tracing::warn!(%error, "the lease of a file could not be renewed"),
            }
        }
    }

    async fn try_renew(&self) -> Result<bool> {
        let end = later(self.service.now().await?, LENGTH);
        let values = vec![self.name.clone().into(), self.token.clone().into(), end.into()];
        Ok(self.service.execute(&sql::RENEW_LEASE, values, |_| Ok(())).await?.is_some())
    }
}

//! Leases: rows of the database that give one holder a right until a time, or until another holder takes it.
//!
//! Invariant: a lease is renewed while its holder works, and ends at most its length after its holder died. Each holder of a
//! row gets a larger token. A write that names the token of an earlier holder fails.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use jiff::Timestamp;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::{Scope, Statement, Transaction, Value};
use crate::{
    clock::{Moment, later},
    error::{Error, Result},
};

/// Renewals per length of a lease: one may fail without the lease being lost.
const RENEWALS: u32 = 3;

/// Takes the lease `$1` for the holder `$2` until `$3`, if it is free at `$4`. A lease that ends after `$5` is free too: it
/// was taken before the clock was set back, and its holder may be dead.
static TAKE: Statement = Statement::new(
    "INSERT INTO townsquare.leases AS leases (name, holder, held_until, token) VALUES ($1, $2, $3, 1)
     ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until, token = leases.token + 1
     WHERE leases.held_until <= $4 OR leases.held_until > $5 OR leases.holder = excluded.holder
     RETURNING token",
);

/// Extends or ends a lease. The row stays, so that tokens never repeat.
static SET_END: Statement = Statement::new(
    "UPDATE townsquare.leases SET held_until = $4 WHERE name = $1 AND holder = $2 AND token = $3 RETURNING name",
);

static DELETE: Statement =
    Statement::new("DELETE FROM townsquare.leases WHERE name = $1 AND holder = $2 AND token = $3");

#[derive(Clone)]
struct Lease {
    /// Acts for the service.
    service: Scope,
    name: String,
    holder: String,
    /// The fencing token.
    token: i64,
    length: Duration,
}

/// A lease and the task that renews it. Dropping it ends the task; the lease then ends by itself.
pub(crate) struct HeldLease {
    lease: Lease,
    renewal: JoinHandle<()>,
}

/// Renews a lease in a transaction, which must change nothing if the lease was lost.
#[derive(Clone)]
pub(crate) struct LeaseRenewal([Value<'static>; 4]);

impl Scope {
    /// Takes the lease `name` and renews it from then on; `None` if another holder has it, or if taking it took as long as the
    /// lease lasts. A holder that has it gets it again. For the service. Requires a tokio runtime.
    pub(crate) async fn take_lease(&self, name: &str, holder: Uuid, length: Duration) -> Result<Option<HeldLease>> {
        let (taken_at, now) = (self.database.clock.moment(), self.now().await?);
        // Twice the length, because another process may have taken its lease after this one read the time.
        let (end, latest_end) = (later(now, length), later(now, 2 * length));
        let (name, holder) = (name.to_owned(), holder.to_string());
        let values = vec![name.clone().into(), holder.clone().into(), end.into(), now.into(), latest_end.into()];
        let token = self.execute(&TAKE, values, |row| row.get(0)).await?;
        // A process that stood still meanwhile may have taken a lease that has ended.
        let is_over = self.database.clock.moment().since(taken_at) >= length;
        Ok(token.filter(|_| !is_over).map(|token| {
            let lease = Lease { service: self.clone(), name, holder, token, length };
            HeldLease { renewal: tokio::spawn(lease.clone().renew_until_lost(taken_at)), lease }
        }))
    }
}

impl HeldLease {
    /// Ready when the lease is lost: another holder has it, or it may have ended because the database was out of reach.
    ///
    /// # Errors
    /// `Closed` if the client is closed.
    pub(crate) fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.renewal).poll(context).map(|ended| ended.map_err(|_| Error::closed()))
    }

    /// What a transaction needs to renew the lease.
    pub(crate) async fn renewal(&self) -> Result<LeaseRenewal> {
        let end = later(self.lease.service.now().await?, self.lease.length);
        Ok(self.lease.until(end))
    }

    /// Ends the lease.
    pub(crate) async fn release(self) {
        let LeaseRenewal(values) = self.lease.until(Timestamp::UNIX_EPOCH);
        self.end(&SET_END, values.to_vec()).await;
    }

    /// Ends the lease and removes its row, for names of which there are many. Tokens may repeat then, so each holder must be
    /// another one.
    pub(crate) async fn remove(self) {
        let LeaseRenewal([name, holder, token, _]) = self.lease.until(Timestamp::UNIX_EPOCH);
        self.end(&DELETE, vec![name, holder, token]).await;
    }

    async fn end(self, statement: &'static Statement, values: Vec<Value<'static>>) {
        self.renewal.abort();
        if let Err(error) = self.lease.service.execute(statement, values, |_| Ok(())).await {
            tracing::warn!(%error, name = self.lease.name, "a lease ends by its time");
        }
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        self.renewal.abort();
    }
}

impl LeaseRenewal {
    /// Renews the lease. Returns false if another holder has it.
    pub(crate) async fn renew(&self, transaction: &mut Transaction<'_>) -> Result<bool> {
        let LeaseRenewal(values) = self;
        Ok(transaction.fetch_optional(&SET_END, values, |_| Ok(())).await?.is_some())
    }
}

impl Lease {
    /// The values of [`SET_END`].
    fn until(&self, end: Timestamp) -> LeaseRenewal {
        LeaseRenewal([self.name.clone().into(), self.holder.clone().into(), self.token.into(), end.into()])
    }

    /// Renews the lease from time to time. Returns when it is lost.
    async fn renew_until_lost(self, taken_at: Moment) {
        let mut renewed_at = taken_at;
        let clock = &self.service.database.clock;
        // From the time that the lease counts from: it may have been taken long before.
        let mut wait = taken_at.after(self.length / RENEWALS).since(clock.moment());
        loop {
            tokio::time::sleep(wait).await;
            wait = self.length / RENEWALS;
            let now = clock.moment();
            match tokio::time::timeout(renewed_at.after(self.length).since(now), self.renew()).await {
                Ok(Ok(true)) => renewed_at = now,
                Ok(Ok(false)) | Err(_) => return,
                Ok(Err(error)) => tracing::warn!(%error, name = self.name, "a lease could not be renewed"),
            }
        }
    }

    async fn renew(&self) -> Result<bool> {
        let LeaseRenewal(values) = self.until(later(self.service.now().await?, self.length));
        Ok(self.service.execute(&SET_END, values.to_vec(), |_| Ok(())).await?.is_some())
    }
}

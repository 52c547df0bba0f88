//! Leases: which process fetches a list, and until when.
//!
//! Invariant: each holder of a lease gets a larger token. A write that names the token of an earlier holder fails.

use std::time::Duration;

use jiff::Timestamp;

use super::CatalogStore;
use crate::{
    catalog::ListKey,
    clock::later,
    database::{Statement, Transaction, Value},
    error::{Error, Result},
};

/// The right to fetch and save a list until it ends or another process takes it.
#[derive(Debug, Clone)]
pub(in crate::discovery) struct Lease {
    name: String,
    /// The fencing token.
    token: i64,
    pub(in crate::discovery) length: Duration,
}

/// Takes the lease `$1` for the holder `$2` until `$3`, if it is free at `$4`. A lease that ends after `$3` is free too: it
/// was taken before the clock was set back, and its holder may be dead.
static TAKE: Statement = Statement::new(
    "INSERT INTO townsquare.leases AS leases (name, holder, held_until, token) VALUES ($1, $2, $3, 1)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until, token = leases.token + 1
    WHERE leases.held_until <= $4 OR leases.held_until > excluded.held_until OR leases.holder = excluded.holder
    RETURNING token",
);
/// Extends or ends the lease of one token. The row stays, so that tokens never repeat.
static SET_END: Statement =
    Statement::new("UPDATE townsquare.leases SET held_until = $3 WHERE name = $1 AND token = $2 RETURNING name");

impl CatalogStore {
    /// Acquires the lease on the next fetch of a list, `None` for the main one; returns `None` if another process holds it.
    pub(in crate::discovery) async fn take_lease(
        &self,
        list: Option<&ListKey>,
        length: Duration,
    ) -> Result<Option<Lease>> {
        let now = self.database.now().await?;
        let name = match list {
            None => self.source.to_string(),
            Some(list) => format!("{}#{}", self.source, list.name()),
        };
        let values = vec![name.clone().into(), self.holder.to_string().into(), later(now, length).into(), now.into()];
        let token = self.database.execute(&TAKE, values, |row| row.get(0)).await?;
        Ok(token.map(|token| Lease { name, token, length }))
    }

    /// Extends a lease by its length. Returns false if another process has taken it.
    pub(in crate::discovery) async fn renew_lease(&self, lease: &Lease) -> Result<bool> {
        let values = lease.values(later(self.database.now().await?, lease.length));
        Ok(self.database.execute(&SET_END, values, |row| row.get::<String>(0)).await?.is_some())
    }

    /// Releases a lease. Does nothing if another process has taken it.
    pub(in crate::discovery) async fn end_lease(&self, lease: &Lease) -> Result<()> {
        let values = lease.values(Timestamp::UNIX_EPOCH);
        self.database.execute(&SET_END, values, |row| row.get::<String>(0)).await.map(drop)
    }

    /// The values of [`SET_END`] that renew a lease.
    pub(super) async fn renewal(&self, lease: Option<&Lease>) -> Result<Option<Vec<Value<'static>>>> {
        let Some(lease) = lease else { return Ok(None) };
        Ok(Some(lease.values(later(self.database.now().await?, lease.length))))
    }
}

impl Lease {
    /// The values of [`SET_END`].
    fn values(&self, end: Timestamp) -> Vec<Value<'static>> {
        vec![self.name.clone().into(), self.token.into(), end.into()]
    }
}

/// Renews a lease inside a transaction, which then changes nothing if the lease was lost.
///
/// # Errors
/// `Unavailable` if another process has taken the lease.
pub(super) async fn require(transaction: &mut Transaction<'_>, renewal: Option<&[Value<'static>]>) -> Result<()> {
    let Some(values) = renewal else { return Ok(()) };
    let renewed = transaction.fetch_optional(&SET_END, values, |row| row.get::<String>(0)).await?;
    renewed.map(drop).ok_or_else(|| Error::unavailable("Another process has taken over the refresh of the catalog"))
}

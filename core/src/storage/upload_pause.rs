//! The pause of uploads while a move closes its source. An upload replaces an object before the row of the file has the new version,
//! so during a pause of all writers the bytes of the old version could be gone.
//!
//! Invariant: while a move holds the lease [`UPLOADS`], no upload begins that was not past its check before. The move still counts
//! the uploads that have begun once nobody writes: the lease alone is no lock.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::{
    core::{LEASE, LOCK_TIMEOUT, StorageCore},
    statements as sql,
};
use crate::{
    clock::later,
    database::{HeldLease, Statement},
    error::{Error, ErrorKind, Result},
    objects::ObjectKey,
};

/// The lease of a move that lets no upload begin.
const UPLOADS: &str = "move:uploads";

/// How long a caller waits before it looks again.
const INTERVAL: Duration = Duration::from_millis(20);

/// `$2` is the time, `$3` the latest end of a lease that was taken before now: one that ends later was taken before the clock was set
/// back.
static IS_PAUSED: Statement =
    Statement::new("SELECT 1 FROM townsquare.leases WHERE name = $1 AND held_until > $2 AND held_until <= $3");

static COUNT_UNFINISHED: Statement = Statement::new("SELECT count(*) FROM townsquare.file_intents");

impl StorageCore {
    /// Waits while a move lets no upload begin.
    ///
    /// # Errors
    /// `Unavailable` (503) after [`LOCK_TIMEOUT`].
    pub(super) async fn wait_for_move(&self) -> Result<()> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            let now = self.clock.now();
            let values = [UPLOADS.into(), now.into(), later(now, 2 * LEASE).into()];
            if self.service.fetch_optional(&IS_PAUSED, &values, |_| Ok(())).await?.is_none() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::file(503, "The database is being moved to another place"));
            }
            sleep(INTERVAL).await;
        }
    }

    /// Lets no upload begin until the lease is released, and waits for those that have begun, at most `longest`.
    ///
    /// # Errors
    /// `Conflict` if an upload does not end, and if another move holds the lease for longer than a dead one would.
    pub(crate) async fn pause_uploads(self: &Arc<Self>, longest: Duration) -> Result<HeldLease> {
        let core = Arc::clone(self);
        let pause = async move {
            // The lease of a move whose process was killed ends by itself.
            let (holder, deadline) = (Uuid::new_v4(), Instant::now() + LEASE + INTERVAL);
            let lease = loop {
                match core.service.take_lease(UPLOADS, holder, LEASE).await? {
                    Some(lease) => break lease,
                    None if Instant::now() < deadline => sleep(INTERVAL).await,
                    None => return Err(Error::new(ErrorKind::Conflict, "Another move of this source is about to end")),
                }
            };
            let deadline = Instant::now() + longest;
            loop {
                match core.unfinished_uploads().await {
                    Ok(0) => return Ok(lease),
                    Ok(_) if Instant::now() < deadline => sleep(INTERVAL).await,
                    failed => {
                        lease.release().await;
                        let count = failed?;
                        return Err(Error::new(
                            ErrorKind::Conflict,
                            format!("{count} uploads to the source do not end"),
                        ));
                    }
                }
            }
        };
        self.run(pause).await
    }

    /// How many uploads have begun to change an object and have not ended.
    pub(crate) async fn unfinished_uploads(&self) -> Result<u64> {
        self.service.fetch_one(&COUNT_UNFINISHED, &[], |row| row.get::<i64>(0)).await.map(i64::unsigned_abs)
    }

    /// Whether an upload has begun to change the object of a path.
    pub(super) async fn is_being_written(&self, key: &ObjectKey) -> Result<bool> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        Ok(self.service.fetch_optional(&sql::FIND_UNFINISHED, &values, |_| Ok(())).await?.is_some())
    }
}

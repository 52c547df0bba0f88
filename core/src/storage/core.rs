//! What the handles of all callers share: the object store, the buckets, the limits, and the locks of paths.
//!
//! Invariant: an object is installed or removed only under the lock of its path, and a file that is moved only under the
//! locks of both paths. Whoever holds the lock and finds an intent knows that its writer is dead.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use uuid::Uuid;

use super::{buckets::Buckets, statements as sql};
use crate::{
    clock::{Clock, later},
    database::Scope,
    error::{Error, Result},
    objects::{ObjectKey, Objects, ObjectsLocation, PathLock},
    threads::{BoxedWork, RuntimeHandle},
};

/// How long a writer waits for another writer of its path.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How long `open` and the sweeper wait for a writer before they leave a path to that writer.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_millis(100);

/// The time for which a lease of a path is taken. It is longer than the time-out of a request to the object store.
const LEASE: Duration = Duration::from_secs(60);

/// How often a waiter for a lease looks again.
const LEASE_INTERVAL: Duration = Duration::from_millis(50);

/// The options of the storage.
pub(crate) struct StorageOptions {
    pub(crate) location: ObjectsLocation,
    /// Files of at most this size are kept in the database.
    pub(crate) inline_file_limit: u64,
    pub(crate) max_file_size: u64,
    /// The option `buckets`.
    pub(crate) buckets: String,
}

/// The files of a client, for all callers.
pub(crate) struct StorageCore {
    pub(super) objects: Objects,
    /// Acts for the service: it finishes what a caller has begun.
    pub(super) service: Scope,
    pub(super) runtime: RuntimeHandle,
    pub(super) clock: Clock,
    pub(super) buckets: Buckets,
    pub(super) inline_file_limit: u64,
    pub(super) max_file_size: u64,
    /// The id of the object store, once it was found to be that of the database.
    pub(super) store_id: Mutex<Option<String>>,
}

/// The lock of a path. [`PathGuard::release`] unlocks it.
pub(super) struct PathGuard {
    _lock: Option<PathLock>,
    /// Name and holder of the lease of a store without locks.
    lease: Option<(String, String)>,
}

impl StorageCore {
    /// Opens the object store, declares the buckets, and settles what a crash left.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(crate) async fn open(
        options: StorageOptions,
        service: Scope,
        clock: Clock,
        runtime: RuntimeHandle,
    ) -> Result<Arc<StorageCore>> {
        let StorageOptions { location, inline_file_limit, max_file_size, buckets } = options;
        let buckets = Buckets::parse(&buckets)?;
        let objects = Objects::open(location, &runtime)?;
        buckets.declare(&service).await?;
        let store_id = Mutex::default();
        let core =
            StorageCore { objects, service, runtime, clock, buckets, inline_file_limit, max_file_size, store_id };
        let core = Arc::new(core);
        core.check_store_at_open().await?;
        if let Err(error) = core.objects.join().await {
            tracing::warn!(%error, "the folder of the files cannot be used");
        }
        if let Err(error) = core.settle_pending(OPEN_TIMEOUT).await {
            tracing::warn!(%error, "unfinished writes of files stay until their paths are used");
        }
        core.start_sweeper();
        Ok(core)
    }

    /// Leaves the object store, so that the next client of a folder knows that it is alone.
    pub(crate) fn close(&self) {
        self.objects.leave();
    }

    /// Runs work to completion, also if the caller drops the future.
    ///
    /// # Errors
    /// Those of `work`; `Closed` if the client is closed first; `Internal` if `work` panicked.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> impl Future<Output = Result<T>> + Send {
        // In a box before any `async` block has it: each would keep a copy of it, which fills the stack.
        let work: BoxedWork<T> = Box::pin(work);
        // On PostgreSQL most of the work waits for answers, which the runtime gets without waking this thread for each.
        let is_embedded = self.service.is_embedded();
        async move { if is_embedded { self.runtime.complete_here(work).await } else { self.runtime.complete(work).await } }
    }

    /// Waits. The caller needs no runtime.
    pub(super) async fn pause(&self, time: Duration) -> Result<()> {
        let sleep = async move {
            tokio::time::sleep(time).await;
            Ok(())
        };
        self.runtime.complete(Box::pin(sleep)).await
    }

    /// Runs `work` under the locks of `keys`, against every other writer of the store. Requires that the caller holds no
    /// other lock.
    ///
    /// # Errors
    /// Those of `work`; `Unavailable` if another writer has a lock for longer than `timeout`; `Config` if the store is not
    /// that of the database.
    pub(super) async fn with_locks<T>(
        &self,
        keys: &[&ObjectKey],
        timeout: Duration,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.require_store().await?;
        let mut guards = Vec::with_capacity(keys.len());
        let mut locked = Ok(());
        for key in self.objects.lock_order(keys) {
            match self.lock(key, timeout).await {
                Ok(guard) => guards.push(guard),
                Err(error) => {
                    locked = Err(error);
                    break;
                }
            }
        }
        let result = match locked {
            Ok(()) => work.await,
            Err(error) => Err(error),
        };
        for guard in guards {
            guard.release(self).await;
        }
        result
    }

    pub(super) async fn lock(&self, key: &ObjectKey, timeout: Duration) -> Result<PathGuard> {
        if self.objects.has_locks() {
            return Ok(PathGuard { _lock: self.objects.lock(key, timeout).await?, lease: None });
        }
        let name = format!("file:{}/{}", key.bucket, key.path);
        let holder = Uuid::new_v4().to_string();
        let deadline = self.clock.moment().after(timeout);
        loop {
            let now = self.service.now().await?;
            let values = vec![name.clone().into(), holder.clone().into(), later(now, LEASE).into(), now.into()];
            if self.service.execute(&sql::TAKE_LEASE, values, |_| Ok(())).await?.is_some() {
                return Ok(PathGuard { _lock: None, lease: Some((name, holder)) });
            }
            if self.clock.moment() >= deadline {
                return Err(Error::file(503, "Another writer holds the lock of this path"));
            }
            self.pause(LEASE_INTERVAL).await?;
        }
    }
}

impl PathGuard {
    /// Unlocks the path.
    pub(super) async fn release(self, core: &StorageCore) {
        if let Some((name, holder)) = self.lease {
            let ended = core.service.execute(&sql::END_LEASE, vec![name.into(), holder.into()], |_| Ok(())).await;
            if let Err(error) = ended {
                tracing::warn!(%error, "the lease of a file ends by its time");
            }
        }
    }
}

impl std::fmt::Debug for StorageCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageCore").field("objects", &self.objects).finish_non_exhaustive()
    }
}

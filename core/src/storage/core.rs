//! What the handles of all callers share: the object store, the buckets, the limits, and the locks of paths.
//!
//! Invariant: an object is installed or removed only under the lock of its path, and a file that is moved only under the
//! locks of both paths. An intent that is found under the lock belongs to a dead writer.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::{buckets::Buckets, quota::FileQuota, url_token::MIN_KEY};
use crate::{
    clock::Clock,
    config::{FilesLocation, Secret},
    database::{HeldLease, Scope, StoredFiles},
    error::{Error, Result},
    objects::{ObjectKey, Objects, PathLock},
    policy::Caller,
    threads::{BoxedFuture, DetachedWork, RuntimeHandle},
};

/// How long a writer waits for another writer of its path.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// How long `open` and the sweeper wait for a writer before they leave a path to that writer.
pub(super) const OPEN_TIMEOUT: Duration = Duration::from_millis(100);

/// For how long `open` recovers paths. Many files may have been deleted just before.
const OPEN_RECOVERY: Duration = Duration::from_secs(2);

/// For how long the lease of a path is taken and renewed. A path is blocked for as long after its writer died.
pub(super) const LEASE: Duration = Duration::from_secs(15);

/// How often a waiter for a lease looks again.
const LEASE_INTERVAL: Duration = Duration::from_millis(50);

/// The options of the storage that hold for every call.
pub(crate) struct StorageOptions {
    /// Files of at most this size are kept in the database.
    pub(crate) inline_file_limit: u64,
    pub(crate) max_file_size: u64,
    /// The largest upload that is verified.
    pub(crate) max_verified_size: u64,
    pub(crate) quota: FileQuota,
    /// Whether `open` takes over a store of another database.
    pub(crate) claim_store: bool,
    /// Whether the store lies in the folder with the file of the database, so that who copies that folder copies both.
    pub(crate) is_beside_database: bool,
    pub(crate) url_signing_key: Option<Secret>,
}

/// The object store and the buckets of the options, before the database is opened.
pub(crate) struct PreparedStorage {
    pub(super) objects: Objects,
    pub(super) options: StorageOptions,
    pub(super) buckets: Buckets,
}

impl PreparedStorage {
    /// `buckets` is the option of this name.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(crate) fn new(
        location: FilesLocation,
        buckets: &str,
        options: StorageOptions,
        runtime: &RuntimeHandle,
    ) -> Result<PreparedStorage> {
        if options.url_signing_key.as_ref().is_some_and(|key| key.reveal().len() < MIN_KEY) {
            return Err(Error::config(format!("Option url_signing_key has fewer than {MIN_KEY} bytes")));
        }
        let buckets = Buckets::parse(buckets)?;
        let objects = Objects::open(location, runtime)?;
        Ok(PreparedStorage { objects, options, buckets })
    }

    /// Checks that a database with these files may be opened. Changes neither the store nor the database.
    ///
    /// # Errors
    /// `Config` if the store is not the one of the database, or if the database has a bucket with another access.
    pub(crate) async fn check(&self, stored: &StoredFiles) -> Result<()> {
        self.buckets.check(&stored.buckets)?;
        self.check_store(stored).await
    }
}

/// The files of a client, for all callers.
pub(crate) struct StorageCore {
    pub(super) objects: Objects,
    /// Acts for the service: it finishes what a caller has begun.
    pub(super) service: Scope,
    pub(super) runtime: RuntimeHandle,
    pub(super) clock: Clock,
    pub(super) buckets: Buckets,
    pub(super) options: StorageOptions,
    /// The id of the object store, once it was found to be the store of the database.
    pub(super) store_id: Mutex<Option<String>>,
    /// Changes of objects whose callers have dropped their futures, by caller and path.
    pub(super) detached: DetachedWork<(Caller, ObjectKey)>,
    /// The paths of uploads, copies and moves of this client whose outcome is unknown, and that nobody has recovered since. The last
    /// path of each has the intent.
    pub(super) unsettled: Mutex<Vec<Vec<ObjectKey>>>,
}

/// The lock of a path. [`PathGuard::release`] unlocks it.
pub(super) enum PathGuard {
    Lock {
        _lock: PathLock,
    },
    /// For a store without locks.
    Lease(HeldLease),
}

impl StorageCore {
    /// The bytes of large uploads that are not finished.
    pub(crate) fn staged_bytes(&self) -> u64 {
        self.objects.staged_bytes()
    }

    /// Declares the buckets, checks the object store, and recovers what a crash left. The target of a move gets the buckets of the
    /// source, and declares its own when it is opened later.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(crate) async fn open(
        prepared: PreparedStorage,
        service: Scope,
        clock: Clock,
        runtime: RuntimeHandle,
        is_move_target: bool,
    ) -> Result<Arc<StorageCore>> {
        let PreparedStorage { objects, options, buckets } = prepared;
        if !is_move_target {
            buckets.declare(&service).await?;
        }
        let core = Arc::new(StorageCore {
            objects,
            service,
            runtime,
            clock,
            buckets,
            options,
            store_id: Mutex::default(),
            detached: DetachedWork::default(),
            unsettled: Mutex::default(),
        });
        core.check_store_at_open().await?;
        if let Err(error) = core.objects.join().await {
            tracing::warn!(%error, "the folder of the files cannot be used");
        }
        // The sweeper recovers the rest.
        let until = Instant::now() + OPEN_RECOVERY;
        if let Err(error) = core.recover_pending(OPEN_TIMEOUT, Some(until)).await {
            tracing::warn!(%error, "unfinished writes of files stay until their paths are used");
        }
        core.start_sweeper();
        Ok(core)
    }

    /// Removes from a remote store what unfinished uploads have begun. Blocks the thread. Requires the runtime.
    pub(crate) fn end_uploads(&self) {
        self.objects.end_uploads();
    }

    /// Leaves the object store, so that the next client of a folder knows that it is alone.
    pub(crate) fn leave(&self) {
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
        self.runtime.complete(Box::pin(work))
    }

    /// Waits. The caller needs no runtime.
    pub(super) async fn pause(&self, time: Duration) -> Result<()> {
        let sleep = async move {
            tokio::time::sleep(time).await;
            Ok(())
        };
        self.runtime.complete(Box::pin(sleep)).await
    }

    /// Runs `work` under the locks of `keys`, to completion, also if the caller drops the future.
    ///
    /// # Errors
    /// Those of [`with_locks`](StorageCore::with_locks) and of [`run`](StorageCore::run).
    pub(super) async fn run_locked<T: Send + 'static>(
        self: &Arc<Self>,
        keys: Vec<ObjectKey>,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let core = Arc::clone(self);
        self.run(async move { core.with_locks(&keys, LOCK_TIMEOUT, work).await }).await
    }

    /// Runs `work` under the locks of `keys`, against every other writer of the store. Requires that the caller holds no
    /// other lock, and the runtime.
    ///
    /// # Errors
    /// Those of `work`; `Unavailable` if another writer has a lock for longer than `timeout`; `Config` if the store belongs
    /// to another database.
    pub(super) async fn with_locks<T>(
        &self,
        keys: &[ObjectKey],
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
            Ok(()) => while_locked(&mut guards, work).await,
            Err(error) => Err(error),
        };
        for guard in guards {
            guard.release().await;
        }
        result
    }

    /// Locks a path. Requires the runtime.
    ///
    /// # Errors
    /// `Unavailable` (503) after `timeout`; the errors of the store or of the database.
    pub(super) fn lock<'a>(&'a self, key: &'a ObjectKey, timeout: Duration) -> BoxedFuture<'a, Result<PathGuard>> {
        Box::pin(async move {
            if let Some(lock) = self.objects.lock(key, timeout).await? {
                return Ok(PathGuard::Lock { _lock: lock });
            }
            // A holder of its own for each lock, because the rows of released leases are removed.
            let (name, holder) = (format!("file:{key}"), Uuid::new_v4());
            let deadline = Instant::now() + timeout;
            loop {
                if let Some(lease) = self.service.take_lease(&name, holder, LEASE).await? {
                    return Ok(PathGuard::Lease(lease));
                }
                if Instant::now() >= deadline {
                    return Err(Error::file(503, "Another writer holds the lock of this path"));
                }
                tokio::time::sleep(LEASE_INTERVAL).await;
            }
        })
    }
}

/// Runs `work` while all of `guards` are held. A lease that is lost ends the work as a crash would: another writer may already
/// finish or undo it, so its outcome is unknown.
async fn while_locked<T>(guards: &mut [PathGuard], work: impl Future<Output = Result<T>>) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|context| {
        for guard in &mut *guards {
            if let PathGuard::Lease(lease) = guard
                && let Poll::Ready(lost) = lease.poll_lost(context)
            {
                let taken_over = |()| Error::file(503, "Another writer took the lock of this path over");
                return Poll::Ready(Err(lost.map_or_else(|error| error, taken_over).in_doubt()));
            }
        }
        work.as_mut().poll(context)
    })
    .await
}

impl PathGuard {
    /// Unlocks the path.
    pub(super) async fn release(self) {
        if let PathGuard::Lease(lease) = self {
            lease.remove().await;
        }
    }
}

impl std::fmt::Debug for StorageCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StorageCore").field("objects", &self.objects).finish_non_exhaustive()
    }
}

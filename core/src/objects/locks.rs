//! Locks of keys: a mutex inside the process, and a lock file against other processes.
//!
//! Invariant: at most one client holds a stripe. The system releases the lock files of a process that ends, so the holder of
//! the lock of a key knows that no other writer of the key is alive.

use std::{
    fs::{File, TryLockError},
    io,
    sync::Arc,
    time::Duration,
};

use tokio::sync::OwnedMutexGuard;

use super::key::ObjectKey;
use crate::error::{Error, Result};

/// The number of locks. Keys with equal hashes share one.
const STRIPES: usize = 256;
/// How often a waiter tries to take a file that another process has locked.
const INTERVAL: Duration = Duration::from_millis(1);

/// The lock files of a stripe. A waiter locks `turn` first and keeps it until it has `held`, so that two processes with many
/// writers take turns.
pub(super) struct LockFiles {
    turn: File,
    held: File,
}

/// The locks of a store.
#[derive(Debug)]
pub(super) struct Locks(Vec<Arc<tokio::sync::Mutex<()>>>);

/// The lock of a key. Dropping it unlocks.
#[derive(Debug)]
pub(crate) struct PathLock {
    /// `None` in a store that other processes do not share.
    _file: Option<LockedFile>,
    /// Dropped after the file.
    _stripe: OwnedMutexGuard<()>,
}

/// A locked file. Dropping it unlocks, even if a forked child has the file open too.
#[derive(Debug)]
struct LockedFile(File);

impl LockFiles {
    /// Opens the lock files of a stripe with `open`, which opens the file with a name.
    pub(super) fn open(stripe: usize, open: impl Fn(&str) -> io::Result<File>) -> io::Result<LockFiles> {
        Ok(LockFiles { turn: open(&format!("{stripe:02x}.turn"))?, held: open(&format!("{stripe:02x}"))? })
    }
}

impl Locks {
    pub(super) fn new() -> Locks {
        Locks((0..STRIPES).map(|_| Arc::default()).collect())
    }

    /// The number of the stripe of a key.
    pub(super) fn stripe_of(key: &ObjectKey) -> usize {
        let hash = blake3::hash(format!("{}/{}", key.bucket, key.path).as_bytes());
        usize::from(hash.as_bytes()[0]) % STRIPES
    }

    /// Waits for a stripe inside this process.
    pub(super) async fn lock(&self, key: &ObjectKey) -> PathLock {
        PathLock { _file: None, _stripe: Arc::clone(&self.0[Locks::stripe_of(key)]).lock_owned().await }
    }
}

impl PathLock {
    /// Waits for `files` too.
    pub(super) async fn with_files(self, files: LockFiles) -> Result<PathLock> {
        let _turn = LockedFile::wait_for(files.turn).await?;
        Ok(PathLock { _file: Some(LockedFile::wait_for(files.held).await?), ..self })
    }
}

/// Waits for a lock. Requires a tokio runtime.
///
/// # Errors
/// `Unavailable` (503) after `timeout`.
pub(super) async fn within(timeout: Duration, lock: impl Future<Output = Result<PathLock>>) -> Result<PathLock> {
    let busy = |_| Err(Error::file(503, "Another writer holds the lock of this path"));
    tokio::time::timeout(timeout, lock).await.unwrap_or_else(busy)
}

impl LockedFile {
    async fn wait_for(file: File) -> Result<LockedFile> {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(LockedFile(file)),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(INTERVAL).await,
                Err(TryLockError::Error(error)) => {
                    return Err(Error::file(500, format!("A file cannot be locked: {error}")).caused_by(error));
                }
            }
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a lock file cannot be unlocked");
        }
    }
}

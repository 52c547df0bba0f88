//! Locks of keys: a mutex inside the process, and a lock file against other processes.
//!
//! Invariant: at most one client holds a stripe. The system releases the lock files of a process that ends, so whoever
//! holds the lock of a key knows that no other writer of the key is alive.

use std::{
    fs::{File, TryLockError},
    io,
    sync::Arc,
    time::Duration,
};

use tokio::sync::{Mutex, OwnedMutexGuard};

use super::key::ObjectKey;
use crate::error::{Error, Result};

/// The number of locks. Keys whose hashes are equal share one.
const STRIPES: usize = 256;
/// How often a waiter tries to take a file that another process has locked.
const INTERVAL: Duration = Duration::from_millis(1);

/// The lock files of a stripe. A waiter takes `turn` first and keeps it until it has `held`, so that two processes with
/// many writers take turns.
#[derive(Debug)]
pub(super) struct LockFiles {
    pub(super) turn: File,
    pub(super) held: File,
}

/// The lock files are opened once.
#[derive(Debug, Default)]
struct Stripe(Option<LockFiles>);

/// The locks of a store.
#[derive(Debug)]
pub(super) struct Locks(Vec<Arc<Mutex<Stripe>>>);

/// The lock of a key. Dropping it unlocks.
#[derive(Debug)]
pub(crate) struct PathLock(OwnedMutexGuard<Stripe>);

impl Drop for PathLock {
    fn drop(&mut self) {
        if let Some(files) = &self.0.0
            && let Err(error) = files.held.unlock()
        {
            tracing::warn!(%error, "a lock file cannot be unlocked");
            // Closing the file unlocks it.
            self.0.0 = None;
        }
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

    /// Locks a stripe inside this process. `None` if another task holds it.
    pub(super) fn try_lock(&self, key: &ObjectKey) -> Option<PathLock> {
        Arc::clone(&self.0[Locks::stripe_of(key)]).try_lock_owned().ok().map(PathLock)
    }

    /// Waits for a stripe inside this process.
    pub(super) async fn lock(&self, key: &ObjectKey) -> PathLock {
        PathLock(Arc::clone(&self.0[Locks::stripe_of(key)]).lock_owned().await)
    }
}

impl PathLock {
    /// Whether the lock files are open.
    pub(super) fn has_files(&self) -> bool {
        self.0.0.is_some()
    }

    pub(super) fn set_files(&mut self, files: LockFiles) {
        self.0.0 = Some(files);
    }

    /// Takes the lock files. False if another process has them.
    pub(super) fn try_lock_files(&self) -> Result<bool> {
        let Some(files) = &self.0.0 else { return Err(closed()) };
        if !try_lock(&files.turn)? {
            return Ok(false);
        }
        let is_locked = try_lock(&files.held);
        files.turn.unlock().map_err(cannot_lock)?;
        is_locked
    }

    /// Waits for the lock files.
    pub(super) async fn lock_files(&self) -> Result<()> {
        let Some(files) = &self.0.0 else { return Err(closed()) };
        wait_for(&files.turn).await?;
        let _turn = Unlock(&files.turn);
        wait_for(&files.held).await
    }
}

/// Unlocks a file when it is dropped, also if the future that holds it is dropped.
struct Unlock<'a>(&'a File);

impl Drop for Unlock<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "a lock file cannot be unlocked");
        }
    }
}

async fn wait_for(file: &File) -> Result<()> {
    while !try_lock(file)? {
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(())
}

fn try_lock(file: &File) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(cannot_lock(error)),
    }
}

fn cannot_lock(error: io::Error) -> Error {
    Error::file(500, format!("A file cannot be locked: {error}")).caused_by(error)
}

fn closed() -> Error {
    Error::file(500, "The lock files are not open")
}

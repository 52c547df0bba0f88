//! Locks of keys: a mutex inside the process, and a lock file against other processes.
//!
//! Invariant: at most one client holds a stripe. The system releases the lock files of a process that ends, so whoever
//! holds the lock of a key knows that no other writer of the key is alive. At most [`MAX_IDLE`] stripes without a holder keep
//! their lock files open.

use std::{
    fs::{File, TryLockError},
    io,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

use super::key::ObjectKey;
use crate::error::{Error, Result};

/// The number of locks. Keys whose hashes are equal share one.
const STRIPES: usize = 256;
/// The most stripes without a holder whose lock files stay open.
const MAX_IDLE: usize = 8;
/// How often a waiter tries to take a file that another process has locked.
const INTERVAL: Duration = Duration::from_millis(1);

/// The open lock files of a stripe. A waiter takes `turn` first and keeps it until it has `held`, so that two processes with
/// many writers take turns.
#[derive(Debug)]
pub(super) struct LockFiles {
    stripe: usize,
    turn: File,
    held: File,
    /// Where the files stay open after the lock. Nowhere once the client has closed the folder.
    idle: Weak<IdleLockFiles>,
}

/// Open lock files that no lock uses, the one used last at the end. A folder keeps them while it is open.
#[derive(Debug, Default)]
pub(super) struct IdleLockFiles(Mutex<Vec<LockFiles>>);

/// The locks of a store.
#[derive(Debug)]
pub(super) struct Locks(Vec<Arc<tokio::sync::Mutex<()>>>);

/// The lock of a key. Dropping it unlocks.
#[derive(Debug)]
pub(crate) struct PathLock {
    files: Option<LockFiles>,
    /// Dropped after the files are unlocked.
    _stripe: OwnedMutexGuard<()>,
}

impl IdleLockFiles {
    /// Takes the lock files of a stripe, or opens them.
    ///
    /// # Errors
    /// Those of `open`, which opens the file with a name.
    pub(super) fn take_or_open(
        self: &Arc<Self>,
        stripe: usize,
        open: impl Fn(&str) -> io::Result<File>,
    ) -> io::Result<LockFiles> {
        let mut idle = self.0.lock();
        if let Some(place) = idle.iter().position(|files| files.stripe == stripe) {
            return Ok(idle.remove(place));
        }
        drop(idle);
        let (turn, held) = (open(&format!("{stripe:02x}.turn"))?, open(&format!("{stripe:02x}"))?);
        Ok(LockFiles { stripe, turn, held, idle: Arc::downgrade(self) })
    }

    fn keep(&self, files: LockFiles) {
        let mut idle = self.0.lock();
        let oldest = if idle.len() == MAX_IDLE { Some(idle.remove(0)) } else { None };
        idle.push(files);
        drop(idle);
        drop(oldest);
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        let Some(files) = self.files.take() else { return };
        match (files.held.unlock(), files.idle.upgrade()) {
            (Ok(()), Some(idle)) => idle.keep(files),
            (Ok(()), None) => {}
            // Closing the file unlocks it.
            (Err(error), _) => tracing::warn!(%error, "a lock file cannot be unlocked"),
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
        let stripe = Arc::clone(&self.0[Locks::stripe_of(key)]).try_lock_owned().ok()?;
        Some(PathLock { files: None, _stripe: stripe })
    }

    /// Waits for a stripe inside this process.
    pub(super) async fn lock(&self, key: &ObjectKey) -> PathLock {
        PathLock { files: None, _stripe: Arc::clone(&self.0[Locks::stripe_of(key)]).lock_owned().await }
    }
}

impl PathLock {
    /// Locks `files` too. `None` if another process has them.
    pub(super) fn try_with_files(mut self, files: LockFiles) -> Result<Option<PathLock>> {
        if !try_lock(&files.turn)? {
            return Ok(None);
        }
        let is_locked = try_lock(&files.held);
        files.turn.unlock().map_err(cannot_lock)?;
        if !is_locked? {
            return Ok(None);
        }
        self.files = Some(files);
        Ok(Some(self))
    }

    /// Waits for `files` too.
    pub(super) async fn with_files(mut self, files: LockFiles) -> Result<PathLock> {
        wait_for(&files.turn).await?;
        let turn = Unlock(&files.turn);
        wait_for(&files.held).await?;
        drop(turn);
        self.files = Some(files);
        Ok(self)
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

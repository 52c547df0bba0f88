//! Coordinates writes and pruning of the change log: a write wakes pruning, and waits while the log is far over its limits.
//!
//! Invariant: a write that did not succeed does not wake pruning. A write waits only while pruning makes progress.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::threads::ProcessOwned;

/// What the writes of a client and its pruning tell each other.
pub(crate) struct LogPressure {
    /// A write has succeeded since pruning last looked.
    written: Notify,
    /// Whether writes wait.
    holds_writes: AtomicBool,
    /// Lets the waiting writes go on.
    released: Notify,
    process: ProcessOwned<()>,
}

impl LogPressure {
    pub(in crate::database) fn new() -> LogPressure {
        LogPressure {
            written: Notify::new(),
            holds_writes: AtomicBool::new(false),
            released: Notify::new(),
            process: ProcessOwned::new(()),
        }
    }

    /// Waits while the log is far over its limits. Pruning bounds the wait.
    pub(in crate::database) async fn wait(&self) {
        // In a forked child nobody prunes. Its writes fail.
        if !self.holds_writes.load(Ordering::Acquire) || self.process.is_inherited() {
            return;
        }
        let mut released = std::pin::pin!(self.released.notified());
        released.as_mut().enable();
        // Afterwards: the release may have come in between.
        if self.holds_writes.load(Ordering::Acquire) {
            released.await;
        }
    }

    /// Calls for pruning after a write.
    pub(in crate::database) fn call(&self) {
        self.written.notify_one();
    }

    /// Waits for a write.
    pub(crate) async fn called(&self) {
        self.written.notified().await;
    }

    /// Makes later writes wait until the next release.
    pub(crate) fn hold(&self) {
        self.holds_writes.store(true, Ordering::Release);
    }

    /// Lets the waiting writes go on. Later writes wait again.
    pub(crate) fn let_through(&self) {
        self.released.notify_waiters();
    }

    /// Lets every write go on.
    pub(crate) fn release(&self) {
        self.holds_writes.store(false, Ordering::Release);
        self.released.notify_waiters();
    }
}

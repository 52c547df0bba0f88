//! How whoever writes and whoever prunes the change log meet: writes call for pruning, and wait while the log is far over its limits.
//!
//! Invariant: a write that did not succeed calls for nothing. A write waits only while pruning makes progress.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use super::RetentionLimits;
use crate::threads::ProcessOwned;

/// The size of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSize {
    /// The id of the last entry that was pruned.
    pub(crate) pruned: i64,
    pub(crate) rows: i64,
    /// The bytes that were counted, and those of the next [`LogSize::UNCOUNTED`] entries.
    pub(crate) bytes: i64,
    /// How many entries are not counted yet, at most [`LogSize::UNCOUNTED`].
    pub(crate) uncounted: i64,
}

impl LogSize {
    /// The most entries whose bytes are added up to know the size. If more are not counted, it is time to count them.
    pub(in crate::database) const UNCOUNTED: i64 = 1_000;

    /// Whether the log has more than `percent` of its limits.
    pub(crate) fn is_over(&self, limits: RetentionLimits, percent: u32) -> bool {
        let exceeds = |size: i64, limit: u64| i128::from(size) * 100 > i128::from(limit) * i128::from(percent);
        exceeds(self.rows, limits.rows) || exceeds(self.bytes, limits.bytes)
    }

    /// Whether the log has many entries that are not counted.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.uncounted >= LogSize::UNCOUNTED
    }
}

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

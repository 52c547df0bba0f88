//! When the change log is read: whether a thread reads it, and the pause between two reads while many entries are written.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};

/// A page with as many entries comes from several writers at once, or from one that does not wait for its changes.
const MANY: usize = 8;

/// Whether a thread reads the change log, and when it may read again.
pub(super) struct ChangeLogReader {
    state: AtomicU8,
    /// How long the log is not read after a page with many entries.
    pause: Duration,
    /// The end of a pause.
    next_read: Mutex<Option<Moment>>,
    clock: Clock,
}

impl ChangeLogReader {
    const IDLE: u8 = 0;
    const RUNNING: u8 = 1;
    /// A commit was signalled since the thread last began to read.
    const SIGNALLED: u8 = 2;

    /// `pause` comes from [`Database::pause_between_reads`](crate::database::Database::pause_between_reads).
    pub(super) fn new(pause: Duration) -> ChangeLogReader {
        ChangeLogReader {
            state: AtomicU8::new(ChangeLogReader::IDLE),
            pause,
            next_read: Mutex::default(),
            clock: Clock::default(),
        }
    }

    /// Notes a signal. Returns true if the caller is to start the log reader.
    pub(super) fn signal(&self) -> bool {
        self.state.swap(ChangeLogReader::SIGNALLED, Ordering::AcqRel) == ChangeLogReader::IDLE
    }

    /// The thread begins to read, after the pause if there is one.
    pub(super) fn begin(&self) {
        let next_read = self.next_read.lock().take();
        if let Some(next_read) = next_read {
            thread::sleep(next_read.since(self.clock.moment()));
        }
        self.state.store(ChangeLogReader::RUNNING, Ordering::Release);
    }

    /// The thread has read the last page of the log, which has as many entries.
    pub(super) fn has_read(&self, entries: usize) {
        if entries >= MANY && !self.pause.is_zero() {
            *self.next_read.lock() = Some(self.clock.moment().after(self.pause));
        }
    }

    /// The thread has read everything. Returns false if it is to read again.
    pub(super) fn finish(&self) -> bool {
        self.state
            .compare_exchange(ChangeLogReader::RUNNING, ChangeLogReader::IDLE, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The thread gives up, or there is none.
    pub(super) fn stop(&self) {
        self.state.store(ChangeLogReader::IDLE, Ordering::Release);
    }
}

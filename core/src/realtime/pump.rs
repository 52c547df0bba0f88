//! When the pump reads the log: whether a thread pumps, and the pause between two reads while many entries are written.

use std::{
    sync::atomic::{AtomicU8, Ordering},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use crate::clock::{Clock, Moment};

/// A page with as many entries comes from several writers at once, or from one that does not wait for its changes.
const MANY: usize = 8;

/// How long the log is not read after such a page: a read of PostgreSQL's log looks at the locks of all writers, which holds
/// them up.
const PAUSE: Duration = Duration::from_millis(2);

/// Whether a thread pumps.
#[derive(Default)]
pub(super) struct Pump {
    state: AtomicU8,
    /// The end of a pause.
    next_read: Mutex<Option<Moment>>,
    clock: Clock,
}

impl Pump {
    const IDLE: u8 = 0;
    const RUNNING: u8 = 1;
    /// A commit was signalled since the thread last began to read.
    const SIGNALLED: u8 = 2;

    /// Notes a signal. Returns true if the caller is to start the pump.
    pub(super) fn signal(&self) -> bool {
        self.state.swap(Pump::SIGNALLED, Ordering::AcqRel) == Pump::IDLE
    }

    /// The thread begins to read, after the pause if there is one.
    pub(super) fn begin(&self) {
        let next_read = self.next_read.lock().take();
        if let Some(next_read) = next_read {
            thread::sleep(next_read.since(self.clock.moment()));
        }
        self.state.store(Pump::RUNNING, Ordering::Release);
    }

    /// The thread has read the last page of the log, which has as many entries.
    pub(super) fn has_read(&self, entries: usize) {
        if entries >= MANY {
            *self.next_read.lock() = Some(self.clock.moment().after(PAUSE));
        }
    }

    /// The thread has read everything. Returns false if it is to read again.
    pub(super) fn finish(&self) -> bool {
        self.state.compare_exchange(Pump::RUNNING, Pump::IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The thread gives up, or there is none.
    pub(super) fn stop(&self) {
        self.state.store(Pump::IDLE, Ordering::Release);
    }
}

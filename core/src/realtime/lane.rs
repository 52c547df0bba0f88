//! The subscriptions that one reader of the log serves, and whether it reads.

use std::{
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    time::Duration,
};

use parking_lot::Mutex;

use super::registry::Registry;
use crate::{
    clock::{Clock, Moment},
    database::change_log::LogPoint,
    threads::BlockingPool,
};

/// A page with so many entries comes from several writers, or from one that does not wait for its events.
const MANY_ENTRIES: usize = 8;

/// Subscriptions with one log reader. A lane without subscriptions does not read the log.
pub(super) struct Lane {
    pub(super) registry: Mutex<Registry>,
    /// The threads that read the log for streams that have fallen behind. The other streams wait in line: a thousand requests that
    /// continue from an old cursor take no more threads than these.
    pub(super) replays: BlockingPool,
    /// Whether the registry has a head.
    is_active: AtomicBool,
    reading: AtomicU8,
    /// How long the log is not read after a page with many entries.
    pause: Duration,
    /// The end of a pause.
    next_read: Mutex<Option<Moment>>,
    clock: Clock,
}

impl Lane {
    /// No thread reads the log.
    const IDLE: u8 = 0;
    /// A thread reads the log.
    const RUNNING: u8 = 1;
    /// A commit was signalled since a thread last began to read.
    const SIGNALLED: u8 = 2;

    /// `pause` comes from [`Database::pause_between_reads`](crate::database::Database::pause_between_reads).
    pub(super) fn new(pause: Duration, replays: BlockingPool) -> Lane {
        Lane {
            registry: Mutex::default(),
            replays,
            is_active: AtomicBool::new(false),
            reading: AtomicU8::new(Lane::IDLE),
            pause,
            next_read: Mutex::default(),
            clock: Clock::default(),
        }
    }

    pub(super) fn set_head(&self, registry: &mut Registry, head: Option<LogPoint>) {
        registry.head = head;
        self.is_active.store(head.is_some(), Ordering::Release);
    }

    pub(super) fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Acquire)
    }

    /// Notes a commit. Returns true if the caller is to start the log reader.
    pub(super) fn signal(&self) -> bool {
        self.reading.swap(Lane::SIGNALLED, Ordering::AcqRel) == Lane::IDLE
    }

    /// The log reader begins to read a page.
    pub(super) fn begin_read(&self) {
        self.reading.store(Lane::RUNNING, Ordering::Release);
    }

    /// The log reader has read the last page of the log, with as many entries.
    pub(super) fn note_last_page(&self, entries: usize) {
        if entries >= MANY_ENTRIES && !self.pause.is_zero() {
            *self.next_read.lock() = Some(self.clock.moment().after(self.pause));
        }
    }

    /// How long the log reader is to wait before the next page.
    pub(super) fn remaining_pause(&self) -> Duration {
        self.next_read.lock().take().map_or(Duration::ZERO, |end| end.since(self.clock.moment()))
    }

    /// The log reader has read everything. Returns false if it is to read again, because of a commit since.
    pub(super) fn end_read(&self) -> bool {
        self.reading.compare_exchange(Lane::RUNNING, Lane::IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The log reader gives up, or there is none.
    pub(super) fn stop_reader(&self) {
        self.reading.store(Lane::IDLE, Ordering::Release);
    }
}

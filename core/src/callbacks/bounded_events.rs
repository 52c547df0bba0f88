//! A source of events that another thread appends, bounded in length.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::pull_queue::{EventSource, Pulled};

/// Events that wait for a callback, at most `limit` of them. A callback that falls further behind misses the oldest.
pub(crate) struct BoundedEvents<E> {
    waiting: Mutex<VecDeque<E>>,
    limit: usize,
}

impl<E> BoundedEvents<E> {
    pub(crate) fn new(limit: usize) -> BoundedEvents<E> {
        BoundedEvents { waiting: Mutex::default(), limit }
    }

    /// Appends an event. The caller then wakes the queue.
    pub(crate) fn push(&self, event: E) {
        let mut waiting = self.waiting.lock();
        let oldest = if waiting.len() >= self.limit { waiting.pop_front() } else { None };
        waiting.push_back(event);
        drop(waiting);
        if oldest.is_some() {
            tracing::warn!(limit = self.limit, "a callback is too slow and misses the oldest event that waits for it");
        }
    }
}

impl<E: Send> EventSource<E> for BoundedEvents<E> {
    fn pull(&self) -> Pulled<E> {
        self.waiting.lock().pop_front().map_or(Pulled::Empty, Pulled::Event)
    }
}

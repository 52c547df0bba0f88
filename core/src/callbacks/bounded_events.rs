//! A source of events that another thread appends, bounded in length.

use std::collections::VecDeque;

use super::pull_queue::{EventSource, Pulled};
use crate::threads::sync::Mutex;

/// Events that wait for a callback, at most `limit` of them. A callback that falls further behind misses the oldest. Once the
/// program has unsubscribed, no event is added; waiting events are still delivered.
pub(crate) struct BoundedEvents<E> {
    waiting: Mutex<Waiting<E>>,
    limit: usize,
}

struct Waiting<E> {
    events: VecDeque<E>,
    is_closed: bool,
}

impl<E> BoundedEvents<E> {
    pub(crate) fn new(limit: usize) -> BoundedEvents<E> {
        let waiting = Waiting { events: VecDeque::new(), is_closed: false };
        BoundedEvents { waiting: Mutex::new(waiting), limit }
    }

    /// Appends an event. The caller then wakes the queue.
    pub(crate) fn push(&self, event: E) {
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            return;
        }
        let oldest = if waiting.events.len() >= self.limit { waiting.events.pop_front() } else { None };
        waiting.events.push_back(event);
        drop(waiting);
        if oldest.is_some() {
            tracing::warn!(limit = self.limit, "a callback is too slow and misses the oldest event that waits for it");
        }
    }
}

impl<E: Send> EventSource<E> for BoundedEvents<E> {
    fn pull(&self) -> Pulled<E> {
        self.waiting.lock().events.pop_front().map_or(Pulled::Empty, Pulled::Event)
    }

    fn unsubscribed(&self) {
        self.waiting.lock().is_closed = true;
    }

    fn delivers_rest(&self) -> bool {
        true
    }
}

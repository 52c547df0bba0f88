//! A source of events that another thread appends, bounded in length.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;

use super::pull_queue::{EventSource, Pulled};

/// Events that wait for a callback, at most `limit` of them. A callback that falls further behind misses the oldest.
pub(crate) struct BoundedEvents<E> {
    waiting: Arc<Mutex<VecDeque<E>>>,
    limit: usize,
}

impl<E> BoundedEvents<E> {
    pub(crate) fn new(limit: usize) -> BoundedEvents<E> {
        BoundedEvents { waiting: Arc::default(), limit }
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

impl<E> Clone for BoundedEvents<E> {
    fn clone(&self) -> BoundedEvents<E> {
        BoundedEvents { waiting: Arc::clone(&self.waiting), limit: self.limit }
    }
}

impl<E: Send + 'static> EventSource for BoundedEvents<E> {
    type Event = E;

    fn next_batch(&mut self, batch: &mut Vec<E>) -> Pulled {
        // One at a time: the events that wait stay where the limit counts them.
        match self.waiting.lock().pop_front() {
            Some(event) => {
                batch.push(event);
                Pulled::Batch
            }
            None => Pulled::Nothing,
        }
    }
}

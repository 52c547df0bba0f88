//! A callback that gets the events of a session or of the catalog.
//!
//! Invariant: the callback gets the events in their order. It may fall [`MAX_WAITING`] events behind; then it misses the oldest
//! that wait, and still gets the last one, which has the state as it is.

use std::sync::Arc;

use super::{BoundedEvents, PullQueue, Subscription};
use crate::threads::BlockingPool;

/// The largest number of events that wait for one callback. Each of them is a sign-in, a refresh or the like.
const MAX_WAITING: usize = 1_024;

/// A listener. Dropping it ends its subscription; a call that runs is the last one.
pub(crate) struct Listener<E: Send + 'static> {
    events: Arc<BoundedEvents<E>>,
    queue: PullQueue<E>,
}

impl<E: Send + 'static> Listener<E> {
    pub(crate) fn new(pool: BlockingPool, callback: impl FnMut(E) + Send + 'static) -> Listener<E> {
        let events = Arc::new(BoundedEvents::new(MAX_WAITING));
        let queue = PullQueue::new(pool, Arc::clone(&events) as _, callback, None);
        Listener { events, queue }
    }

    /// Delivers an event to the callback, on another thread.
    pub(crate) fn notify(&self, event: E) {
        self.events.push(event);
        self.queue.wake();
    }

    /// Whether the program has unsubscribed.
    pub(crate) fn has_ended(&self) -> bool {
        self.queue.has_ended()
    }

    pub(crate) fn subscription(&self) -> Subscription {
        self.queue.subscription()
    }
}

impl<E: Send + 'static> Drop for Listener<E> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

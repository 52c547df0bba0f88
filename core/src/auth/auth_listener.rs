//! A callback that listens to the events of a handle's session.
//!
//! Invariant: the callback gets the events in their order. It may fall [`MAX_WAITING`] events behind; then it misses the oldest
//! that wait, and still gets the last one, which has the session as it is.

use std::sync::Arc;

use crate::{
    callbacks::{BoundedEvents, PullQueue, Subscription},
    model::{AuthEvent, Session},
    threads::BlockingPool,
};

/// The largest number of events that wait for one callback. Each of them is a sign-in, a sign-out or a refresh.
const MAX_WAITING: usize = 1_024;

type Event = (AuthEvent, Option<Session>);

/// A listener. Dropping it ends its subscription; a call that runs is the last one.
pub(super) struct AuthListener {
    events: Arc<BoundedEvents<Event>>,
    queue: PullQueue<Event>,
}

impl AuthListener {
    pub(super) fn new(pool: BlockingPool, callback: impl FnMut(Event) + Send + 'static) -> AuthListener {
        let events = Arc::new(BoundedEvents::new(MAX_WAITING));
        let queue = PullQueue::new(pool, Arc::clone(&events) as _, callback, None);
        AuthListener { events, queue }
    }

    /// Delivers an event to the callback, on another thread.
    pub(super) fn notify(&self, event: AuthEvent, session: Option<Session>) {
        self.events.push((event, session));
        self.queue.wake();
    }

    /// Whether the program has unsubscribed.
    pub(super) fn has_ended(&self) -> bool {
        self.queue.has_ended()
    }

    pub(super) fn subscription(&self) -> Subscription {
        self.queue.subscription()
    }
}

impl Drop for AuthListener {
    fn drop(&mut self) {
        self.queue.close();
    }
}

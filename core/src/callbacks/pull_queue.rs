//! Queues that pull: a queue asks its source for the next event when its callback is free, so it stores none.
//!
//! Invariant: as that of [`callbacks`](super). A source that ends, and [`PullQueue::end`], call `on_close` once, after the
//! last call of the callback.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    thread::{self, ThreadId},
};

use parking_lot::{Condvar, Mutex};

use super::{Subscription, Unsubscribe};
use crate::{error::Error, threads::BlockingPool};

/// What a source has.
pub(crate) enum Pulled<E> {
    Event(E),
    /// Nothing now. The source calls [`PullQueue::wake`] or [`PullQueue::run_here`] when that changes.
    Empty,
    /// Nothing any more, and why: `None` if the client was closed.
    Ended(Option<Error>),
}

/// Where a queue gets its events from.
pub(crate) trait EventSource<E>: Send + Sync {
    /// Returns the next event. Called on a thread of the callback pool, by one thread at a time and under no lock. It may
    /// block, for example to read from the database.
    fn pull(&self) -> Pulled<E>;

    /// Called once when the program has ended the subscription: the source needs to keep nothing for it any more. Called
    /// under no lock.
    fn unsubscribed(&self);
}

/// Is told why a subscription ended: `None` when it was unsubscribed or the client closed.
pub(crate) type OnClose = Box<dyn FnOnce(Option<Error>) + Send>;

/// The queue of one subscription. Clones are the same queue.
pub(crate) struct PullQueue<E>(Arc<PullShared<E>>);

impl<E> Clone for PullQueue<E> {
    fn clone(&self) -> PullQueue<E> {
        PullQueue(Arc::clone(&self.0))
    }
}

struct PullShared<E> {
    pool: BlockingPool,
    source: Arc<dyn EventSource<E>>,
    state: Mutex<State<E>>,
    returned: Condvar,
}

struct State<E> {
    callback: Option<Box<dyn FnMut(E) + Send>>,
    on_close: Option<OnClose>,
    is_delivering: bool,
    is_woken: bool,
    ended: Option<Option<Error>>,
    running_on: Option<ThreadId>,
}

impl<E: Send + 'static> PullQueue<E> {
    /// Makes a queue whose callback runs on threads of `pool`. It pulls at the first call of `wake` or `run_here`.
    pub(crate) fn new(
        pool: BlockingPool,
        source: Arc<dyn EventSource<E>>,
        callback: impl FnMut(E) + Send + 'static,
        on_close: Option<OnClose>,
    ) -> PullQueue<E> {
        let state = State {
            callback: Some(Box::new(callback)),
            on_close,
            is_delivering: false,
            is_woken: false,
            ended: None,
            running_on: None,
        };
        PullQueue(Arc::new(PullShared { pool, source, state: Mutex::new(state), returned: Condvar::new() }))
    }

    /// Tells the queue that its source may have events: delivers them on a thread of the pool.
    pub(crate) fn wake(&self) {
        let queue = self.clone();
        if let Err(error) = self.0.pool.submit(move || queue.run_here()) {
            tracing::debug!(%error, "an event waits, because its callback has no thread");
        }
    }

    /// Delivers the events of the source on this thread, until there is none or the subscription ends. Returns at once if
    /// another thread delivers: that thread pulls again.
    pub(crate) fn run_here(&self) {
        let mut state = self.0.state.lock();
        state.is_woken = true;
        if std::mem::replace(&mut state.is_delivering, true) {
            return;
        }
        while std::mem::take(&mut state.is_woken) && state.ended.is_none() {
            parking_lot::MutexGuard::unlocked(&mut state, || self.deliver());
        }
        state.is_delivering = false;
        drop(state);
    }

    fn deliver(&self) {
        loop {
            let event = match self.0.source.pull() {
                Pulled::Event(event) => event,
                Pulled::Empty => return,
                Pulled::Ended(reason) => return self.end(reason),
            };
            let mut state = self.0.state.lock();
            let Some(mut callback) = state.callback.take() else { return };
            state.running_on = Some(thread::current().id());
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
                tracing::error!("a callback panicked; its subscription goes on");
            }
            let mut state = self.0.state.lock();
            state.running_on = None;
            if let Some(reason) = state.ended.clone() {
                let on_close = state.on_close.take();
                drop(state);
                drop(callback);
                self.0.returned.notify_all();
                if let Some(on_close) = on_close {
                    on_close(reason);
                }
                return;
            }
            state.callback = Some(callback);
            drop(state);
            self.0.returned.notify_all();
        }
    }

    /// Ends the subscription: no further call starts. `on_close` gets `reason`, on this thread, or on the thread that runs the
    /// callback now. Does not wait. A second call does nothing.
    pub(crate) fn end(&self, reason: Option<Error>) {
        self.0.end(reason);
    }

    /// Makes the handle by which the program ends the subscription.
    pub(crate) fn subscription(&self) -> Subscription {
        Subscription(Arc::downgrade(&self.0) as Weak<dyn Unsubscribe>)
    }
}

impl<E> PullShared<E> {
    fn end(&self, reason: Option<Error>) -> bool {
        let mut state = self.state.lock();
        if state.ended.is_some() {
            return false;
        }
        state.ended = Some(reason.clone());
        let callback = state.callback.take();
        let on_close = if callback.is_some() { state.on_close.take() } else { None };
        drop(state);
        drop(callback);
        if let Some(on_close) = on_close {
            on_close(reason);
        }
        true
    }
}

impl<E: Send> Unsubscribe for PullShared<E> {
    fn unsubscribe(&self) {
        if self.end(None) {
            self.source.unsubscribed();
        }
        let mut state = self.state.lock();
        while state.running_on.is_some_and(|thread| thread != thread::current().id()) {
            self.returned.wait(&mut state);
        }
    }
}

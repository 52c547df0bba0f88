//! The queue of one subscription: pulls batches of events from a source and calls the callback with each event.
//!
//! Invariant: the thread that owns the [`Parts`] is the only one that calls into the source, the callback and `on_close`. So
//! calls of one subscription never overlap. The source is dropped, then `on_close` is called, then the callback is dropped,
//! each exactly once, after the last call of the callback.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::{Subscription, inside};
use crate::{
    error::{Error, ErrorKind},
    threads::BlockingPool,
};

/// Where a queue gets its events from.
pub(crate) trait EventSource: Send + 'static {
    /// What the callback is called with.
    type Event: Send + 'static;

    /// Appends the next few events to `batch`, which is empty. Called when the callback is free, under no lock. A source
    /// that has nothing now is asked again after [`PullQueue::wake`].
    fn next_batch(&mut self, batch: &mut Vec<Self::Event>) -> Pulled;
}

/// What a source answers.
pub(crate) enum Pulled {
    /// There are events in the batch, or there may be more.
    Batch,
    /// There is nothing until somebody wakes the queue.
    Nothing,
    /// The subscription ends after the events of the batch, for this reason.
    #[allow(dead_code, reason = "the change feed ends subscriptions that fall too far behind")]
    End(Error),
}

/// The queue of one subscription. Clones are the same queue.
pub(crate) struct PullQueue<S: EventSource>(Arc<QueueShared<S>>);

struct QueueShared<S: EventSource> {
    state: Mutex<QueueState<S>>,
    /// Notified when the subscription has finished.
    finished: Condvar,
    pool: BlockingPool,
}

struct QueueState<S: EventSource> {
    /// `None` while a thread owns them, and after the subscription has finished.
    parts: Option<Parts<S>>,
    delivery: Delivery,
    /// Why the subscription ends, once it was told to: `None` inside for `unsubscribe` and for a closed client.
    end: Option<Option<Error>>,
    is_finished: bool,
}

/// Whether events are being delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Idle,
    /// A job of the pool will deliver.
    Scheduled,
    /// A thread delivers; `true` if the queue was woken since the thread last asked the source.
    Running(bool),
}

/// What only one thread at a time may use.
struct Parts<S: EventSource> {
    source: S,
    callback: Box<dyn FnMut(S::Event) + Send>,
    on_close: Box<dyn FnOnce(Option<Error>) + Send>,
    batch: Vec<S::Event>,
}

impl<S: EventSource> PullQueue<S> {
    /// Makes a queue. It asks `source` after the first [`wake`](PullQueue::wake). `on_close` is called once, after the last
    /// call of `callback`, with the reason for the end: `None` after `unsubscribe` and when the client was closed.
    pub(crate) fn new(
        pool: BlockingPool,
        source: S,
        callback: impl FnMut(S::Event) + Send + 'static,
        on_close: impl FnOnce(Option<Error>) + Send + 'static,
    ) -> PullQueue<S> {
        let parts = Parts { source, callback: Box::new(callback), on_close: Box::new(on_close), batch: Vec::new() };
        let state = QueueState { parts: Some(parts), delivery: Delivery::Idle, end: None, is_finished: false };
        PullQueue(Arc::new(QueueShared { state: Mutex::new(state), finished: Condvar::new(), pool }))
    }

    /// Makes a thread of the pool ask the source, unless one is about to. Does not block. Does nothing after the end.
    pub(crate) fn wake(&self) {
        let mut state = self.0.state.lock();
        match state.delivery {
            Delivery::Running(_) => state.delivery = Delivery::Running(true),
            Delivery::Idle if state.end.is_none() => QueueShared::schedule(&self.0, &mut state),
            Delivery::Idle | Delivery::Scheduled => {}
        }
    }

    /// As [`wake`](PullQueue::wake), but the calling thread asks the source and runs the callback if no other thread does.
    /// The caller holds no lock and can wait as long as the callback runs.
    #[allow(dead_code, reason = "the change feed saves a change of threads by it")]
    pub(crate) fn deliver_here(&self) {
        self.0.deliver();
    }

    /// Ends the subscription without waiting: no further call starts. A thread of the pool finishes it.
    pub(crate) fn end(&self, reason: Option<Error>) {
        let mut state = self.0.state.lock();
        state.end.get_or_insert(reason);
        if let Some(parts) = state.parts.take() {
            QueueShared::finish_on_pool(&self.0, state, parts);
        }
    }

    /// Ends the subscription without waiting for a call that runs. Otherwise the calling thread finishes it, or, inside a
    /// callback, a thread of the pool. The caller holds no lock.
    pub(crate) fn close(&self) {
        QueueShared::close(&self.0);
    }

    /// Whether the subscription was told to end.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.state.lock().end.is_some()
    }

    /// Makes the handle by which the program ends the subscription.
    pub(crate) fn subscription(&self) -> Subscription {
        Subscription(Arc::downgrade(&self.0) as Weak<dyn Unsubscribe>)
    }
}

impl<S: EventSource> Clone for PullQueue<S> {
    fn clone(&self) -> PullQueue<S> {
        PullQueue(Arc::clone(&self.0))
    }
}

impl<S: EventSource> QueueShared<S> {
    /// Schedules a delivery on the pool.
    fn schedule(this: &Arc<Self>, state: &mut MutexGuard<'_, QueueState<S>>) {
        state.delivery = Delivery::Scheduled;
        let shared = Arc::clone(this);
        if let Err(error) = this.pool.submit(move || shared.deliver()) {
            // The next wake tries again.
            state.delivery = Delivery::Idle;
            if error.kind() != ErrorKind::Closed {
                tracing::error!(%error, "an event waits, because its callback has no thread");
            }
        }
    }

    /// Calls the callback with each event until the source has nothing or the subscription ends. Does nothing if another
    /// thread does so.
    fn deliver(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let Some(mut parts) = state.parts.take() else {
            if let Delivery::Running(woken) = &mut state.delivery {
                *woken = true;
            }
            return;
        };
        let reason = loop {
            if let Some(reason) = state.end.clone() {
                break reason;
            }
            state.delivery = Delivery::Running(false);
            drop(state);
            let pulled = catch_unwind(AssertUnwindSafe(|| parts.source.next_batch(&mut parts.batch)))
                .unwrap_or_else(|_| Pulled::End(Error::new(ErrorKind::Internal, "the subscription's feed panicked")));
            for event in parts.batch.drain(..) {
                if self.state.lock().end.is_some() {
                    break;
                }
                inside::run("a callback, whose subscription goes on,", || (parts.callback)(event));
            }
            // Other subscriptions wait for a thread: this one goes to the end of the line.
            let shares_thread = self.pool.is_busy();
            state = self.state.lock();
            match pulled {
                Pulled::End(reason) => drop(state.end.get_or_insert(Some(reason))),
                _ if state.end.is_some() => {}
                Pulled::Nothing if state.delivery == Delivery::Running(false) => {
                    state.parts = Some(parts);
                    state.delivery = Delivery::Idle;
                    return;
                }
                Pulled::Batch | Pulled::Nothing if shares_thread => {
                    state.parts = Some(parts);
                    QueueShared::schedule(self, &mut state);
                    return;
                }
                Pulled::Batch | Pulled::Nothing => {}
            }
        };
        drop(state);
        self.finish(parts, reason);
    }

    fn close(this: &Arc<Self>) {
        let mut state = this.state.lock();
        let reason = state.end.get_or_insert(None).clone();
        match state.parts.take() {
            Some(parts) if inside::is_inside() => QueueShared::finish_on_pool(this, state, parts),
            Some(parts) => {
                drop(state);
                this.finish(parts, reason);
            }
            // The thread that delivers finishes it.
            None => {}
        }
    }

    /// Takes the subscription apart after its last call. Code of the program runs, so the caller holds no lock.
    fn finish(&self, parts: Parts<S>, reason: Option<Error>) {
        let Parts { source, callback, on_close, batch } = parts;
        inside::run("the end of a subscription", || drop((batch, source)));
        inside::run("the callback on_close", || on_close(reason));
        inside::run("dropping a callback", || drop(callback));
        self.state.lock().is_finished = true;
        self.finished.notify_all();
    }

    /// Finishes the subscription on a thread of the pool; on this thread if the pool takes no job, or drops it.
    fn finish_on_pool(this: &Arc<Self>, state: MutexGuard<'_, QueueState<S>>, parts: Parts<S>) {
        drop(state);
        let job = FinishJob { shared: Arc::clone(this), parts: Some(parts) };
        // The pool drops a job that it refuses, which finishes the subscription too.
        if let Err(error) = this.pool.submit(move || drop(job)) {
            tracing::debug!(%error, "a subscription was finished on the thread that ended it");
        }
    }
}

/// Finishes a subscription when it is dropped.
struct FinishJob<S: EventSource> {
    shared: Arc<QueueShared<S>>,
    parts: Option<Parts<S>>,
}

impl<S: EventSource> Drop for FinishJob<S> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            let reason = self.shared.state.lock().end.clone().flatten();
            self.shared.finish(parts, reason);
        }
    }
}

impl<S: EventSource> Drop for QueueShared<S> {
    fn drop(&mut self) {
        // The last handle was dropped without an end.
        let state = self.state.get_mut();
        if let Some(parts) = state.parts.take() {
            let reason = state.end.take().flatten();
            self.finish(parts, reason);
        }
    }
}

/// A queue of any source, as [`Subscription`] needs it.
pub(super) trait Unsubscribe: Send + Sync {
    fn unsubscribe(self: Arc<Self>);
}

impl<S: EventSource> Unsubscribe for QueueShared<S> {
    fn unsubscribe(self: Arc<Self>) {
        QueueShared::close(&self);
        // To wait inside a callback could be to wait for the callback itself.
        if !inside::is_inside() {
            self.finished.wait_while(&mut self.state.lock(), |state| !state.is_finished);
        }
    }
}

//! The queue of one subscription: pulls events from a source and calls the callback with each of them. It stores none.
//!
//! Invariant: the thread that owns the [`QueueCallbacks`] is the only one that pulls from the source and that calls the callback and
//! `on_close`. So calls of one subscription never overlap. After the last call of the callback `on_close` is called, and then
//! the callback is dropped, each exactly once. `unsubscribe` outside of callbacks first delivers the events of a bounded source.

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

/// After how many calls a subscription lets others have its thread.
const CALLS_IN_TURN: u32 = 64;

/// Where a queue gets its events from.
pub(crate) trait EventSource<E>: Send + Sync {
    /// Returns the next event. Called on the thread that delivers, by one thread at a time and under no lock. It may block, for
    /// example to read from the database.
    fn pull(&self) -> Pulled<E>;

    /// Called once when the program has ended the subscription, or the client was closed: the source needs to keep nothing
    /// for it any more. Called under no lock, perhaps while another thread is in `pull`.
    fn unsubscribed(&self) {}

    /// Whether `unsubscribe` delivers the events that the source still has. Such a source is bounded, and adds no event after
    /// [`unsubscribed`](EventSource::unsubscribed).
    fn delivers_rest(&self) -> bool {
        false
    }
}

/// What a source has.
pub(crate) enum Pulled<E> {
    Event(E),
    /// Nothing now. The source's owner calls [`PullQueue::wake`] or [`PullQueue::run_here`] when that changes.
    Empty,
    /// Nothing any more, and why: `None` if the client was closed.
    Ended(Option<Error>),
}

/// Is told why a subscription ended: `None` when it was unsubscribed or the client closed.
pub(crate) type OnClose = Box<dyn FnOnce(Option<Error>) + Send>;

/// The queue of one subscription. Clones are the same queue.
pub(crate) struct PullQueue<E: Send + 'static>(Arc<QueueShared<E>>);

struct QueueShared<E: Send + 'static> {
    state: Mutex<QueueState<E>>,
    source: Arc<dyn EventSource<E>>,
    /// Notified when the subscription has finished.
    finished: Condvar,
    pool: BlockingPool,
    /// The process that made the queue. In a forked child, no thread delivers, and the locks may be held forever.
    process: u32,
}

struct QueueState<E> {
    /// `None` while a thread owns them, and after the subscription has finished.
    parts: Option<QueueCallbacks<E>>,
    delivery: DeliveryState,
    /// Why the subscription ends, once it was told to: `None` inside for `unsubscribe` and for a closed client.
    end: Option<Option<Error>>,
    /// Whether the events that the source has are delivered before the end.
    drains: bool,
    is_finished: bool,
}

/// Whether events are being delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DeliveryState {
    Idle,
    /// A job of the pool will deliver.
    Scheduled,
    /// A thread delivers; `true` if the queue was woken since the thread last asked the source.
    Running(bool),
}

/// What only one thread at a time may use.
struct QueueCallbacks<E> {
    callback: Box<dyn FnMut(E) + Send>,
    on_close: Option<OnClose>,
}

impl<E: Send + 'static> PullQueue<E> {
    /// Makes a queue. It pulls at the first call of [`wake`](PullQueue::wake) or [`run_here`](PullQueue::run_here). `on_close`
    /// is called once, after the last call of `callback`.
    pub(crate) fn new(
        pool: BlockingPool,
        source: Arc<dyn EventSource<E>>,
        callback: impl FnMut(E) + Send + 'static,
        on_close: Option<OnClose>,
    ) -> PullQueue<E> {
        let parts = QueueCallbacks { callback: Box::new(callback), on_close };
        let state = QueueState {
            parts: Some(parts),
            delivery: DeliveryState::Idle,
            end: None,
            drains: false,
            is_finished: false,
        };
        PullQueue(Arc::new(QueueShared {
            state: Mutex::new(state),
            source,
            finished: Condvar::new(),
            pool,
            process: std::process::id(),
        }))
    }

    /// Makes a thread of the pool ask the source, unless one is about to. Does not block. Does nothing after the end.
    pub(crate) fn wake(&self) {
        let mut state = self.0.state.lock();
        match state.delivery {
            DeliveryState::Running(_) => state.delivery = DeliveryState::Running(true),
            DeliveryState::Idle if state.end.is_none() => QueueShared::schedule(&self.0, &mut state),
            DeliveryState::Idle | DeliveryState::Scheduled => {}
        }
    }

    /// As [`wake`](PullQueue::wake), but the calling thread asks the source and runs the callback if no other thread does.
    /// The caller holds no lock and can wait as long as the callback runs.
    pub(crate) fn run_here(&self) {
        self.0.deliver();
    }

    /// Ends the subscription without waiting: no further call starts. A thread of the pool finishes it.
    #[cfg_attr(not(test), allow(dead_code, reason = "a source tells the end of the change feed"))]
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
        QueueShared::close(&self.0, false);
    }

    /// Whether the subscription was told to end.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Makes the handle by which the program ends the subscription.
    pub(crate) fn subscription(&self) -> Subscription {
        Subscription(Arc::downgrade(&self.0) as Weak<dyn Unsubscribe>)
    }
}

impl<E: Send + 'static> Clone for PullQueue<E> {
    fn clone(&self) -> PullQueue<E> {
        PullQueue(Arc::clone(&self.0))
    }
}

impl<E: Send + 'static> QueueShared<E> {
    fn has_ended(&self) -> bool {
        self.state.lock().end.is_some()
    }

    /// Whether no further call may start.
    fn is_over(&self) -> bool {
        let state = self.state.lock();
        state.end.is_some() && !state.drains
    }

    /// True in a forked child of the process that made the queue.
    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }

    /// Schedules a delivery on the pool.
    fn schedule(this: &Arc<Self>, state: &mut MutexGuard<'_, QueueState<E>>) {
        state.delivery = DeliveryState::Scheduled;
        let shared = Arc::clone(this);
        if let Err(error) = this.pool.submit(move || shared.deliver()) {
            // The next wake tries again.
            state.delivery = DeliveryState::Idle;
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
            if let DeliveryState::Running(woken) = &mut state.delivery {
                *woken = true;
            }
            return;
        };
        let mut calls: u32 = 0;
        let reason = loop {
            let end = state.end.clone();
            if let Some(reason) = end.clone().filter(|_| !state.drains) {
                break reason;
            }
            state.delivery = DeliveryState::Running(false);
            drop(state);
            let pulled = catch_unwind(AssertUnwindSafe(|| self.source.pull())).unwrap_or_else(|_| {
                Pulled::Ended(Some(Error::new(ErrorKind::Internal, "the feed of the subscription panicked")))
            });
            // The subscription may have ended while the source was asked.
            if let Pulled::Event(event) = pulled {
                if !self.is_over() {
                    inside::run("a callback, whose subscription goes on,", || (parts.callback)(event));
                }
                calls = calls.wrapping_add(1);
                // If others wait for a thread, this subscription goes to the end of the line.
                let shares_thread = calls.is_multiple_of(CALLS_IN_TURN) && self.pool.is_busy();
                state = self.state.lock();
                if shares_thread && state.end.is_none() {
                    state.parts = Some(parts);
                    QueueShared::schedule(self, &mut state);
                    return;
                }
                continue;
            }
            state = self.state.lock();
            if let Some(reason) = end {
                // The source had nothing after the end.
                break reason;
            }
            match pulled {
                Pulled::Ended(reason) => drop(state.end.get_or_insert(reason)),
                _ if state.end.is_none() && state.delivery == DeliveryState::Running(false) => {
                    state.parts = Some(parts);
                    state.delivery = DeliveryState::Idle;
                    return;
                }
                _ => {}
            }
        };
        drop(state);
        self.finish(parts, reason);
    }

    /// Ends the subscription. With `drains`, a thread of the library first delivers the events of a bounded source.
    fn close(this: &Arc<Self>, drains: bool) {
        if this.is_inherited() {
            return;
        }
        let mut state = this.state.lock();
        if state.end.is_none() {
            (state.end, state.drains) = (Some(None), drains && this.source.delivers_rest());
            MutexGuard::unlocked(&mut state, || this.source.unsubscribed());
        }
        let reason = state.end.clone().flatten();
        match state.parts.take() {
            Some(parts) if state.drains || inside::is_inside() => QueueShared::finish_on_pool(this, state, parts),
            Some(parts) => {
                drop(state);
                this.finish(parts, reason);
            }
            // The thread that delivers finishes it.
            None => {}
        }
    }

    /// Takes the subscription apart after its last call. Code of the program runs, so the caller holds no lock.
    fn finish(&self, parts: QueueCallbacks<E>, reason: Option<Error>) {
        let QueueCallbacks { callback, on_close } = parts;
        if let Some(on_close) = on_close {
            inside::run("the callback on_close", || on_close(reason));
        }
        inside::run("dropping a callback", || drop(callback));
        self.state.lock().is_finished = true;
        self.finished.notify_all();
    }

    /// Finishes the subscription on a thread of the pool, after the events that are delivered before the end. If the pool takes
    /// no job, or drops it, finishes on this thread and delivers no event.
    fn finish_on_pool(this: &Arc<Self>, state: MutexGuard<'_, QueueState<E>>, parts: QueueCallbacks<E>) {
        let drains = state.drains;
        drop(state);
        let mut job = FinishJob { shared: Arc::clone(this), parts: Some(parts) };
        let work = move || {
            if drains {
                job.deliver_rest();
            }
        };
        // The pool drops a job that it refuses, which finishes the subscription too.
        if let Err(error) = this.pool.submit(work) {
            tracing::debug!(%error, "a subscription was finished on the thread that ended it");
        }
    }
}

/// Finishes a subscription when it is dropped.
struct FinishJob<E: Send + 'static> {
    shared: Arc<QueueShared<E>>,
    parts: Option<QueueCallbacks<E>>,
}

impl<E: Send + 'static> FinishJob<E> {
    /// Calls the callback with each event that the source still has.
    fn deliver_rest(&mut self) {
        let Some(parts) = &mut self.parts else { return };
        while let Pulled::Event(event) = self.shared.source.pull() {
            inside::run("a callback of a subscription that ends", || (parts.callback)(event));
        }
    }
}

impl<E: Send + 'static> Drop for FinishJob<E> {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            let reason = self.shared.state.lock().end.clone().flatten();
            self.shared.finish(parts, reason);
        }
    }
}

impl<E: Send + 'static> Drop for QueueShared<E> {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
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

impl<E: Send + 'static> Unsubscribe for QueueShared<E> {
    fn unsubscribe(self: Arc<Self>) {
        QueueShared::close(&self, !inside::is_inside());
        // To wait inside a callback could be to wait for the callback itself.
        if !inside::is_inside() && !self.is_inherited() {
            self.finished.wait_while(&mut self.state.lock(), |state| !state.is_finished);
        }
    }
}

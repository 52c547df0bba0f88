//! The queue of one subscription: pulls events from a source and calls the callback with each of them. It stores none.
//!
//! Invariant: the thread that owns the [`QueueCallbacks`] is the only one that pulls from the source and that calls the callback and
//! `on_close`. So calls of one subscription never overlap. After the last call of the callback `on_close` is called, and then
//! the callback is dropped, each exactly once. `unsubscribe` outside of callbacks first delivers the events of a bounded source.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
};

use super::{Subscription, inside};
use crate::{
    clock::Clock,
    error::{Error, ErrorKind},
    metrics::measure_callback,
    threads::{
        BlockingPool, Job, ProcessOwned,
        sync::{Condvar, Mutex, MutexGuard},
    },
};

/// After so many calls a subscription queues again if other jobs wait.
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
    /// Nothing now. The source's owner wakes the queue when that changes.
    Empty,
    /// Nothing any more, and why: `None` if the client was closed.
    Ended(Option<Error>),
}

/// A callback that gets the reason why a subscription ended: `None` when it was unsubscribed or the client closed.
pub(crate) type OnClose = Box<dyn FnOnce(Option<Error>) + Send>;

/// The queue of one subscription. Clones are the same queue.
pub(crate) struct PullQueue<E: Send + 'static>(Arc<QueueShared<E>>);

struct QueueShared<E: Send + 'static> {
    /// In a forked child no thread delivers, and the lock may be held forever.
    state: ProcessOwned<Mutex<QueueState<E>>>,
    source: Arc<dyn EventSource<E>>,
    /// Notified when the subscription has finished.
    finished: Condvar,
    pool: BlockingPool,
}

struct QueueState<E> {
    /// `None` while a thread owns them, and after the subscription has finished.
    callbacks: Option<QueueCallbacks<E>>,
    delivery: DeliveryState,
    /// The reason of the end, once the subscription is to end: `None` inside for `unsubscribe` and for a closed client.
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
    /// Makes a queue, which pulls when it is woken. `on_close` is called once, after the last call of `callback`.
    pub(crate) fn new(
        pool: BlockingPool,
        source: Arc<dyn EventSource<E>>,
        callback: impl FnMut(E) + Send + 'static,
        on_close: Option<OnClose>,
    ) -> PullQueue<E> {
        let state = QueueState {
            callbacks: Some(QueueCallbacks { callback: Box::new(callback), on_close }),
            delivery: DeliveryState::Idle,
            end: None,
            drains: false,
            is_finished: false,
        };
        PullQueue(Arc::new(QueueShared {
            state: ProcessOwned::new(Mutex::new(state)),
            source,
            finished: Condvar::new(),
            pool,
        }))
    }

    /// Makes a thread of the pool ask the source, unless one is about to. Does not block. Does nothing after the end.
    pub(crate) fn wake(&self) {
        if let Some(job) = self.delivery_job() {
            submit(&self.0.pool, job);
        }
    }

    /// As [`wake`](PullQueue::wake), but returns the job for the pool to the caller. `None` if a thread is about to ask the source.
    pub(crate) fn delivery_job(&self) -> Option<Job> {
        let mut state = self.0.state.get().ok()?.lock();
        match state.delivery {
            DeliveryState::Running(_) => state.delivery = DeliveryState::Running(true),
            DeliveryState::Idle if state.end.is_none() => {
                state.delivery = DeliveryState::Scheduled;
                return Some(DeliveryJob::boxed(&self.0));
            }
            DeliveryState::Idle | DeliveryState::Scheduled => {}
        }
        None
    }

    /// Ends the subscription without waiting for a call that runs. Otherwise the calling thread finishes it, or, inside a
    /// callback, a thread of the pool. The caller holds no lock.
    pub(crate) fn close(&self) {
        QueueShared::close(&self.0, false);
    }

    /// Whether the subscription is to end or has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.state.get().is_ok_and(|state| state.lock().end.is_some())
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
    /// Calls the callback with each event until the source has nothing or the subscription ends. Does nothing if another
    /// thread does so.
    fn deliver(self: &Arc<Self>) {
        let Ok(lock) = self.state.get() else { return };
        let mut state = lock.lock();
        let Some(mut callbacks) = state.callbacks.take() else {
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
            state = lock.lock();
            if !matches!(pulled, Pulled::Event(_))
                && let Some(reason) = end
            {
                // The source had nothing after the end.
                break reason;
            }
            match pulled {
                // The subscription may have ended while the source was asked.
                Pulled::Event(_) if state.end.is_some() && !state.drains => {}
                Pulled::Event(event) => {
                    MutexGuard::unlocked(&mut state, || {
                        let begun = Clock::default().moment();
                        inside::run("a callback, whose subscription continues,", || (callbacks.callback)(event));
                        if let Some(times) = self.pool.callback_times() {
                            measure_callback(times, Clock::default().moment().since(begun));
                        }
                    });
                    calls = calls.wrapping_add(1);
                    // If others wait for a thread, this subscription goes to the end of the line.
                    if calls.is_multiple_of(CALLS_IN_TURN) && state.end.is_none() && self.pool.is_busy() {
                        (state.callbacks, state.delivery) = (Some(callbacks), DeliveryState::Scheduled);
                        drop(state);
                        return submit(&self.pool, DeliveryJob::boxed(self));
                    }
                }
                Pulled::Ended(reason) => drop(state.end.get_or_insert(reason)),
                Pulled::Empty if state.end.is_none() && state.delivery == DeliveryState::Running(false) => {
                    (state.callbacks, state.delivery) = (Some(callbacks), DeliveryState::Idle);
                    return;
                }
                Pulled::Empty => {}
            }
        };
        drop(state);
        self.finish(callbacks, reason);
    }

    /// Ends the subscription. With `drains`, a thread of the library first delivers the events of a bounded source.
    fn close(this: &Arc<Self>, drains: bool) {
        let Ok(state) = this.state.get() else { return };
        let mut state = state.lock();
        if state.end.is_none() {
            (state.end, state.drains) = (Some(None), drains && this.source.delivers_rest());
            MutexGuard::unlocked(&mut state, || this.source.unsubscribed());
        }
        // If a thread delivers, it finishes the subscription.
        if state.callbacks.is_some() {
            let drains = state.drains;
            drop(state);
            if inside::is_inside() {
                submit(&this.pool, DeliveryJob::boxed(this));
            } else if drains {
                // The caller waits. If the pool refuses the job, dropping it finishes the subscription here.
                let _ = this.pool.submit_now(DeliveryJob::boxed(this));
            } else {
                this.deliver();
            }
        }
    }

    /// Takes the subscription apart after its last call. Code of the program runs, so the caller holds no lock.
    fn finish(&self, callbacks: QueueCallbacks<E>, reason: Option<Error>) {
        let QueueCallbacks { callback, on_close } = callbacks;
        if let Some(on_close) = on_close {
            inside::run("the callback on_close", || on_close(reason));
        }
        inside::run("dropping a callback", || drop(callback));
        if let Ok(state) = self.state.get() {
            state.lock().is_finished = true;
        }
        self.finished.notify_all();
    }

    /// Finishes the subscription without the events that it still has, if no thread delivers them.
    fn finish_now(&self) {
        let Ok(state) = self.state.get() else { return };
        let mut state = state.lock();
        if let Some(callbacks) = state.callbacks.take() {
            let reason = state.end.clone().flatten();
            drop(state);
            self.finish(callbacks, reason);
        }
    }
}

/// Delivers on a thread of the pool. If the pool drops the job, the next wake makes another one; a subscription that has ended is
/// finished then.
struct DeliveryJob<E: Send + 'static>(Option<Arc<QueueShared<E>>>);

impl<E: Send + 'static> DeliveryJob<E> {
    fn boxed(shared: &Arc<QueueShared<E>>) -> Job {
        let mut job = DeliveryJob(Some(Arc::clone(shared)));
        Box::new(move || {
            if let Some(shared) = job.0.take() {
                shared.deliver();
            }
        })
    }
}

impl<E: Send + 'static> Drop for DeliveryJob<E> {
    fn drop(&mut self) {
        let Some(shared) = self.0.take() else { return };
        let Ok(state) = shared.state.get() else { return };
        let mut state = state.lock();
        if state.delivery == DeliveryState::Scheduled {
            state.delivery = DeliveryState::Idle;
        }
        let has_ended = state.end.is_some();
        drop(state);
        if has_ended {
            tracing::debug!("a subscription is finished on the thread that ended it");
            shared.finish_now();
        }
    }
}

impl<E: Send + 'static> Drop for QueueShared<E> {
    fn drop(&mut self) {
        // The last handle was dropped without an end.
        self.finish_now();
    }
}

fn submit(pool: &BlockingPool, job: Job) {
    // A closed pool drops the job: the client is closed.
    let _ = pool.submit(job);
}

/// A queue of any source, as [`Subscription`] needs it.
pub(super) trait Unsubscribe: Send + Sync {
    fn unsubscribe(self: Arc<Self>);
}

impl<E: Send + 'static> Unsubscribe for QueueShared<E> {
    fn unsubscribe(self: Arc<Self>) {
        QueueShared::close(&self, !inside::is_inside());
        // To wait inside a callback could be to wait for the callback itself.
        if let Ok(state) = self.state.get()
            && !inside::is_inside()
        {
            self.finished.wait_while(&mut state.lock(), |state| !state.is_finished);
        }
    }
}

//! Callbacks of whoever uses the library: one at a time for each subscription, on threads that the library can spare.
//!
//! Invariant: a callback never runs on a thread of a runtime that has futures to drive, nor under a lock of ours, so it may
//! call the library, take its time and panic. After [`Subscription::unsubscribe`] returned it is not running, never
//! runs again, and has been dropped.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    thread::{self, ThreadId},
};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

type Callback<E> = Box<dyn FnMut(E) + Send>;

/// Where one subscription's events wait for its callback.
pub(crate) struct CallbackQueue<E>(Arc<Inner<E>>);

struct Inner<E> {
    state: Mutex<State<E>>,
    /// Told when the callback has returned.
    returned: Condvar,
    runtime: Handle,
}

struct State<E> {
    waiting: VecDeque<E>,
    /// Away while it runs; gone once cancelled.
    callback: Option<Callback<E>>,
    /// Whether a thread is on its way, or at work.
    is_served: bool,
    is_cancelled: bool,
    runs_on: Option<ThreadId>,
}

impl<E: Send + 'static> CallbackQueue<E> {
    pub(crate) fn new(runtime: Handle, callback: impl FnMut(E) + Send + 'static) -> CallbackQueue<E> {
        let callback: Option<Callback<E>> = Some(Box::new(callback));
        let state = State { waiting: VecDeque::new(), callback, is_served: false, is_cancelled: false, runs_on: None };
        CallbackQueue(Arc::new(Inner { state: Mutex::new(state), returned: Condvar::new(), runtime }))
    }

    /// Has the callback called with `event`, after all that were posted before.
    pub(crate) fn post(&self, event: E) {
        let mut state = self.0.state.lock();
        if state.is_cancelled {
            return;
        }
        state.waiting.push_back(event);
        if !std::mem::replace(&mut state.is_served, true) {
            let inner = Arc::clone(&self.0);
            // Threads for work that may block: there are as many as there are callbacks at work.
            self.0.runtime.spawn_blocking(move || inner.serve());
        }
    }

    /// Whether its subscription was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.state.lock().is_cancelled
    }

    /// What its user cancels it by.
    pub(crate) fn subscription(&self) -> Subscription {
        Subscription(Arc::downgrade(&self.0) as Weak<dyn Cancel>)
    }
}

impl<E> Inner<E> {
    fn serve(&self) {
        let mut state = self.state.lock();
        while let Some(event) = state.waiting.pop_front()
            && let Some(mut callback) = state.callback.take()
        {
            state.runs_on = Some(thread::current().id());
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
                tracing::error!("a callback panicked; its subscription goes on");
            }
            state = self.state.lock();
            if state.is_cancelled {
                drop(state);
                discard(callback);
                state = self.state.lock();
            } else {
                state.callback = Some(callback);
            }
            state.runs_on = None;
            self.returned.notify_all();
        }
        state.is_served = false;
    }
}

/// Dropping a callback runs code of its owner's, too.
fn discard<E>(callback: Callback<E>) {
    if catch_unwind(AssertUnwindSafe(|| drop(callback))).is_err() {
        tracing::error!("dropping a callback panicked");
    }
}

trait Cancel: Send + Sync {
    fn cancel(&self);
}

impl<E: Send> Cancel for Inner<E> {
    fn cancel(&self) {
        let mut state = self.state.lock();
        state.is_cancelled = true;
        state.waiting.clear();
        let idle = state.callback.take();
        if let Some(callback) = idle {
            // Whoever else cancels waits for this, as for a call.
            state.runs_on = Some(thread::current().id());
            drop(state);
            discard(callback);
            self.state.lock().runs_on = None;
            self.returned.notify_all();
            return;
        }
        // Inside the callback itself: it has only to return.
        while state.runs_on.is_some_and(|thread| thread != thread::current().id()) {
            self.returned.wait(&mut state);
        }
    }
}

/// A subscription to events. Dropping it changes nothing: it lasts until [`unsubscribe`](Subscription::unsubscribe), or
/// until the client is closed.
#[derive(Clone)]
pub struct Subscription(Weak<dyn Cancel>);

impl Subscription {
    /// Ends the subscription. After it returns the callback is not running and never runs again; from inside the
    /// callback: never again after this one. Twice is fine.
    pub fn unsubscribe(&self) {
        if let Some(inner) = self.0.upgrade() {
            inner.cancel();
        }
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("threads")
    }

    #[test]
    fn events_come_in_order_and_a_panic_ends_nothing() {
        let runtime = runtime();
        let (told, heard) = mpsc::channel();
        let queue = CallbackQueue::new(runtime.handle().clone(), move |event: u32| {
            assert_ne!(event, 1, "this one panics");
            told.send(event).expect("the test listens");
        });
        (0..4).for_each(|event| queue.post(event));
        let events: Vec<_> = (0..3).map(|_| heard.recv().expect("an event")).collect();
        assert_eq!(events, [0, 2, 3]);
    }

    #[test]
    fn unsubscribing_waits_for_the_callback_and_drops_it() {
        let runtime = runtime();
        let (started, starts) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (dropped, drops) = mpsc::channel::<()>();
        let queue = CallbackQueue::new(runtime.handle().clone(), move |(): ()| {
            let _keep = &dropped;
            started.send(()).expect("the test listens");
            let _ = released.recv();
        });
        let subscription = queue.subscription();
        queue.post(());
        queue.post(());
        starts.recv().expect("it starts");
        let ending = thread::spawn(move || subscription.unsubscribe());
        while !queue.is_cancelled() {
            thread::yield_now();
        }
        assert!(!ending.is_finished(), "the callback is still running");
        release.send(()).expect("it waits");
        ending.join().expect("no panic");
        assert_eq!(drops.try_recv(), Err(mpsc::TryRecvError::Disconnected), "the callback was dropped");
        assert!(starts.try_recv().is_err(), "the second event was never delivered");
    }

    #[test]
    fn a_callback_may_end_its_own_subscription() {
        let runtime = runtime();
        let (hand_over, own) = mpsc::channel::<Subscription>();
        let (told, heard) = mpsc::channel();
        let queue = CallbackQueue::new(runtime.handle().clone(), move |event: u32| {
            own.recv().expect("the subscription").unsubscribe();
            told.send(event).expect("the test listens");
        });
        queue.post(1);
        queue.post(2);
        hand_over.send(queue.subscription()).expect("it waits");
        assert_eq!(heard.recv(), Ok(1));
        assert!(heard.recv().is_err(), "the callback is gone, and its channel with it");
    }
}

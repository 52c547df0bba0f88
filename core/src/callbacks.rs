//! Callback queues: each subscription's events, delivered to its callback one at a time and in order.
//!
//! Invariant: a callback runs on a thread of the callback pool and under no lock of the library, so it may
//! call the library, block and panic. After [`Subscription::unsubscribe`] returns, the callback is not running, never
//! runs again, and has been dropped.

mod pull_queue;

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    thread::{self, ThreadId},
};

use parking_lot::{Condvar, Mutex};

pub(crate) use self::pull_queue::{EventSource, OnClose, PullQueue, Pulled};
use crate::{error::ErrorKind, threads::BlockingPool};

type Callback<E> = Box<dyn FnMut(E) + Send>;

/// The queue of one subscription.
pub(crate) struct CallbackQueue<E>(Arc<QueueShared<E>>);

struct QueueShared<E> {
    state: Mutex<QueueState<E>>,
    /// Notified whenever a callback has returned or was dropped.
    returned: Condvar,
    pool: BlockingPool,
}

struct QueueState<E> {
    events: VecDeque<E>,
    /// `None` while the callback runs, and after the subscription ended.
    callback: Option<Callback<E>>,
    /// True while a delivery task is scheduled or running.
    is_delivering: bool,
    is_unsubscribed: bool,
    /// The thread that runs or drops the callback now.
    running_on: Option<ThreadId>,
}

impl<E: Send + 'static> CallbackQueue<E> {
    /// Makes an empty queue whose callback runs on threads of `pool`.
    pub(crate) fn new(pool: BlockingPool, callback: impl FnMut(E) + Send + 'static) -> CallbackQueue<E> {
        let state = QueueState {
            events: VecDeque::new(),
            callback: Some(Box::new(callback)),
            is_delivering: false,
            is_unsubscribed: false,
            running_on: None,
        };
        CallbackQueue(Arc::new(QueueShared { state: Mutex::new(state), returned: Condvar::new(), pool }))
    }

    /// Appends an event. Does nothing after the subscription ended.
    pub(crate) fn post(&self, event: E) {
        let mut state = self.0.state.lock();
        if state.is_unsubscribed {
            return;
        }
        state.events.push_back(event);
        if !std::mem::replace(&mut state.is_delivering, true) {
            let shared = Arc::clone(&self.0);
            if let Err(error) = self.0.pool.submit(move || shared.deliver()) {
                // The next event tries again.
                state.is_delivering = false;
                if error.kind() != ErrorKind::Closed {
                    tracing::error!(%error, "an event waits, because its callback has no thread");
                }
            }
        }
    }

    pub(crate) fn is_unsubscribed(&self) -> bool {
        self.0.state.lock().is_unsubscribed
    }

    /// Makes the handle by which the program ends the subscription.
    pub(crate) fn subscription(&self) -> Subscription {
        Subscription(Arc::downgrade(&self.0) as Weak<dyn Unsubscribe>)
    }
}

impl<E> QueueShared<E> {
    /// Calls the callback with each event until the queue is empty or the subscription ends.
    fn deliver(&self) {
        let mut state = self.state.lock();
        while let Some(event) = state.events.pop_front()
            && let Some(mut callback) = state.callback.take()
        {
            state.running_on = Some(thread::current().id());
            drop(state);
            if catch_unwind(AssertUnwindSafe(|| callback(event))).is_err() {
                tracing::error!("a callback panicked; its subscription goes on");
            }
            state = self.state.lock();
            if state.is_unsubscribed {
                drop(state);
                drop_callback(callback);
                state = self.state.lock();
            } else {
                state.callback = Some(callback);
            }
            state.running_on = None;
            self.returned.notify_all();
        }
        state.is_delivering = false;
    }
}

/// Drops a callback. Dropping runs code of the program too, so it may panic and must hold no lock.
fn drop_callback<E>(callback: Callback<E>) {
    if catch_unwind(AssertUnwindSafe(|| drop(callback))).is_err() {
        tracing::error!("dropping a callback panicked");
    }
}

/// A queue of any event type, as [`Subscription`] needs it.
trait Unsubscribe: Send + Sync {
    fn unsubscribe(&self);
}

impl<E: Send> Unsubscribe for QueueShared<E> {
    fn unsubscribe(&self) {
        let mut state = self.state.lock();
        state.is_unsubscribed = true;
        state.events.clear();
        let idle_callback = state.callback.take();
        if let Some(callback) = idle_callback {
            // A concurrent `unsubscribe` waits for the drop as it would for a call.
            state.running_on = Some(thread::current().id());
            drop(state);
            drop_callback(callback);
            self.state.lock().running_on = None;
            self.returned.notify_all();
            return;
        }
        // Inside the callback itself there is nothing to wait for: `deliver` drops the callback when it returns.
        while state.running_on.is_some_and(|thread| thread != thread::current().id()) {
            self.returned.wait(&mut state);
        }
    }
}

/// A subscription to events. It lasts until [`unsubscribe`](Subscription::unsubscribe) is called or the client is closed;
/// dropping this handle does not end it.
///
/// # Examples
///
/// ```no_run
/// use townsquare::{Config, Subscription, blocking::Client};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// let subscription: Subscription = client.auth().on_auth_state_change(|event, session| {
///     println!("{}: {session:?}", event.as_str());
/// });
/// client.auth().sign_in("ann@town.example", "correct horse battery")?;
/// subscription.unsubscribe();
/// client.auth().sign_out()?; // the callback is not called
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Subscription(Weak<dyn Unsubscribe>);

impl Subscription {
    /// Ends the subscription. When this returns, the callback is not running, has been dropped and never runs again.
    /// Called inside the callback, it does not wait: the running call is the last one. A second call does nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// let subscription = client.auth().on_auth_state_change(|event, _| println!("{}", event.as_str()));
    /// subscription.unsubscribe();
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn unsubscribe(&self) {
        if let Some(queue) = self.0.upgrade() {
            queue.unsubscribe();
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

    fn pool() -> BlockingPool {
        BlockingPool::new("townsquare-test", 4)
    }

    #[test]
    fn events_arrive_in_order_and_a_panic_does_not_end_the_subscription() {
        let (sender, receiver) = mpsc::channel();
        let queue = CallbackQueue::new(pool(), move |event: u32| {
            assert_ne!(event, 1, "this event panics");
            sender.send(event).expect("the test receives");
        });
        (0..4).for_each(|event| queue.post(event));
        let events: Vec<_> = (0..3).map(|_| receiver.recv().expect("an event")).collect();
        assert_eq!(events, [0, 2, 3]);
    }

    #[test]
    fn unsubscribe_waits_for_the_running_callback_and_drops_it() {
        let (started, starts) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (dropped, drops) = mpsc::channel::<()>();
        let queue = CallbackQueue::new(pool(), move |(): ()| {
            let _owned = &dropped;
            started.send(()).expect("the test receives");
            let _ = released.recv();
        });
        let subscription = queue.subscription();
        queue.post(());
        queue.post(());
        starts.recv().expect("the callback starts");
        let unsubscribing = thread::spawn(move || subscription.unsubscribe());
        while !queue.is_unsubscribed() {
            thread::yield_now();
        }
        assert!(!unsubscribing.is_finished(), "the callback is still running");
        release.send(()).expect("the callback waits");
        unsubscribing.join().expect("no panic");
        assert_eq!(drops.try_recv(), Err(mpsc::TryRecvError::Disconnected), "the callback was dropped");
        assert!(starts.try_recv().is_err(), "the second event was not delivered");
    }

    #[test]
    fn a_callback_may_end_its_own_subscription() {
        let (hand_over, own) = mpsc::channel::<Subscription>();
        let (sender, receiver) = mpsc::channel();
        let queue = CallbackQueue::new(pool(), move |event: u32| {
            own.recv().expect("the subscription").unsubscribe();
            sender.send(event).expect("the test receives");
        });
        queue.post(1);
        queue.post(2);
        hand_over.send(queue.subscription()).expect("the callback waits");
        assert_eq!(receiver.recv(), Ok(1));
        assert!(receiver.recv().is_err(), "the callback and its sender were dropped");
    }
}

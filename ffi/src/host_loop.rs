//! The loop of a host: subscriptions with callbacks that run only while the host calls `tsq_client_dispatch`.
//!
//! Invariant: no thread of the library runs a callback of such a subscription. The thread that owns the [`HostCalls`] of a
//! subscription is the only one that calls its callback, so calls of one subscription never overlap. The end is told once, then
//! the data is destroyed once. A subscription with something to call is in the list of ready ones, or a thread is about to look.

use std::{
    collections::VecDeque,
    io, mem,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use townsquare::Subscription;

use crate::boundary::{Bell, callback};

/// After so many calls another subscription has its turn.
const CALLS_IN_TURN: u32 = 64;

/// The largest number of events that wait for one callback: as on the library's threads.
const MAX_WAITING: usize = 1_024;

/// The calls that a subscription has for its callback.
pub(crate) trait HostCalls: Send {
    /// Makes the next call, if one waits; else keeps the waker. `Ready(false)` after the last call.
    fn poll_call(&mut self, context: &mut Context<'_>) -> Poll<bool>;

    /// Ends the subscription. With `drains`, makes the calls that an unsubscribing host still gets.
    fn end(self: Box<Self>, drains: bool);
}

/// The subscriptions of a loop, and its file descriptor.
pub(crate) struct HostLoop {
    pub(crate) bell: Arc<Bell>,
    ready: Mutex<VecDeque<Arc<LoopSubscription>>>,
    subscriptions: Mutex<Vec<Arc<LoopSubscription>>>,
    handles: AtomicU64,
}

/// A loop as one client handle uses it. The subscriptions of the handle end with it.
pub(crate) struct LoopHandle {
    pub(crate) host: Arc<HostLoop>,
    id: u64,
}

/// A subscription on a loop.
pub(crate) struct LoopSubscription {
    host: Weak<HostLoop>,
    handle: u64,
    state: Mutex<State>,
    finished: Condvar,
}

struct State {
    /// `None` while a thread owns them, and after the end.
    calls: Option<Box<dyn HostCalls>>,
    is_ready: bool,
    /// Whether a thread found the subscription ready while another owned the calls.
    is_missed: bool,
    ends: bool,
    is_finished: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HostLoop {
    /// # Errors
    /// Of the system: it has no further file descriptor, or (Windows) none that a loop can wait for.
    pub(crate) fn new() -> io::Result<Arc<HostLoop>> {
        Ok(Arc::new(HostLoop {
            bell: Arc::new(Bell::new()?),
            ready: Mutex::default(),
            subscriptions: Mutex::default(),
            handles: AtomicU64::new(0),
        }))
    }

    /// Runs the callbacks that wait. A callback may call it, too.
    pub(crate) fn dispatch(&self) {
        self.bell.clear();
        // Those that become ready meanwhile ring again.
        let count = lock(&self.ready).len();
        for _ in 0..count {
            let Some(subscription) = lock(&self.ready).pop_front() else { return };
            subscription.run();
        }
    }

    /// Ends the subscriptions of every handle, and waits for callbacks that run on other threads.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = lock(&self.subscriptions).clone();
        all.iter().for_each(|subscription| subscription.end(false, true));
    }

    fn remove(&self, subscription: &Arc<LoopSubscription>) {
        lock(&self.subscriptions).retain(|known| !Arc::ptr_eq(known, subscription));
    }
}

impl LoopHandle {
    /// The loop for another handle.
    pub(crate) fn new(host: &Arc<HostLoop>) -> LoopHandle {
        LoopHandle { host: Arc::clone(host), id: host.handles.fetch_add(1, Ordering::Relaxed) }
    }

    /// Adds a subscription of the handle.
    pub(crate) fn add(&self, calls: impl HostCalls + 'static) -> Arc<LoopSubscription> {
        let state =
            State { calls: Some(Box::new(calls)), is_ready: false, is_missed: false, ends: false, is_finished: false };
        let subscription = Arc::new(LoopSubscription {
            host: Arc::downgrade(&self.host),
            handle: self.id,
            state: Mutex::new(state),
            finished: Condvar::new(),
        });
        lock(&self.host.subscriptions).push(Arc::clone(&subscription));
        // The first run asks for calls and leaves its waker.
        Arc::clone(&subscription).wake();
        subscription
    }

    /// Adds a subscription to events, which `subscribe` puts into the queue. `call` gets them.
    pub(crate) fn add_events<E: Send + 'static>(
        &self,
        call: impl FnMut(E) + Send + 'static,
        subscribe: impl FnOnce(Arc<EventQueue<E>>) -> Option<Subscription>,
    ) -> Arc<LoopSubscription> {
        let queue = Arc::new(EventQueue(Mutex::new((VecDeque::new(), None))));
        let subscription = subscribe(Arc::clone(&queue));
        self.add(EventCalls { queue, call: Box::new(call), subscription })
    }

    /// Ends the subscriptions of the handle. Does not wait for a callback that runs.
    pub(crate) fn end(&self) {
        self.own().iter().for_each(|subscription| subscription.end(false, false));
    }

    fn own(&self) -> Vec<Arc<LoopSubscription>> {
        let own = |subscription: &&Arc<LoopSubscription>| subscription.handle == self.id;
        lock(&self.host.subscriptions).iter().filter(own).cloned().collect()
    }
}

impl Drop for LoopHandle {
    /// Ends the subscriptions as unsubscribing does: the host frees the handle, and then what its callbacks use.
    fn drop(&mut self) {
        self.own().iter().for_each(LoopSubscription::unsubscribe);
    }
}

impl LoopSubscription {
    /// Makes the calls that wait, unless another thread does.
    fn run(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        state.is_ready = false;
        let Some(mut calls) = state.calls.take() else {
            state.is_missed = true;
            return;
        };
        let waker = Waker::from(Arc::clone(self));
        let mut polled = Poll::Ready(true);
        for _ in 0..CALLS_IN_TURN {
            if state.ends || polled != Poll::Ready(true) {
                break;
            }
            drop(state);
            polled = calls.poll_call(&mut Context::from_waker(&waker));
            state = lock(&self.state);
        }
        if state.ends || polled == Poll::Ready(false) {
            drop(state);
            return self.finish(calls, false);
        }
        state.calls = Some(calls);
        let is_missed = mem::take(&mut state.is_missed);
        drop(state);
        if is_missed || polled.is_ready() {
            waker.wake();
        }
    }

    /// Ends the subscription as unsubscribing does.
    pub(crate) fn unsubscribe(self: &Arc<Self>) {
        self.end(true, true);
    }

    /// Ends the subscription, on this thread if no thread runs its callback. Else that thread ends it; with `waits` this one waits
    /// for it, unless it is inside a callback, which may be the one that it would wait for.
    fn end(self: &Arc<Self>, drains: bool, waits: bool) {
        let mut state = lock(&self.state);
        state.ends = true;
        if let Some(calls) = state.calls.take() {
            drop(state);
            self.finish(calls, drains && !callback::is_inside());
        } else if waits && !callback::is_inside() {
            drop(self.finished.wait_while(state, |state| !state.is_finished));
        }
    }

    fn finish(self: &Arc<Self>, calls: Box<dyn HostCalls>, drains: bool) {
        calls.end(drains);
        lock(&self.state).is_finished = true;
        self.finished.notify_all();
        if let Some(host) = self.host.upgrade() {
            host.remove(self);
        }
    }
}

impl Wake for LoopSubscription {
    fn wake(self: Arc<Self>) {
        let Some(host) = self.host.upgrade() else { return };
        if !mem::replace(&mut lock(&self.state).is_ready, true) {
            lock(&host.ready).push_back(self);
            host.bell.ring();
        }
    }
}

/// Events that wait for a callback, and the waker of its subscription.
pub(crate) struct EventQueue<E>(Mutex<(VecDeque<E>, Option<Waker>)>);

impl<E> EventQueue<E> {
    /// Appends an event. A callback that falls further behind misses the oldest.
    pub(crate) fn push(&self, event: E) {
        let mut queue = lock(&self.0);
        let oldest = if queue.0.len() >= MAX_WAITING { queue.0.pop_front() } else { None };
        queue.0.push_back(event);
        let waker = queue.1.take();
        drop(queue);
        if oldest.is_some() {
            tracing::warn!(limit = MAX_WAITING, "a callback is too slow and misses the oldest event that waits for it");
        }
        waker.into_iter().for_each(Waker::wake);
    }

    /// The next event; keeps the waker if there is none.
    fn poll_event(&self, context: &mut Context<'_>) -> Poll<E> {
        let mut queue = lock(&self.0);
        let event = queue.0.pop_front();
        if event.is_none() {
            queue.1 = Some(context.waker().clone());
        }
        event.map_or(Poll::Pending, Poll::Ready)
    }
}

/// The calls of events of a session or of the catalog.
struct EventCalls<E> {
    queue: Arc<EventQueue<E>>,
    call: Box<dyn FnMut(E) + Send>,
    /// What fills the queue. Without it one event comes.
    subscription: Option<Subscription>,
}

impl<E: Send> HostCalls for EventCalls<E> {
    fn poll_call(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.queue.poll_event(context).map(|event| {
            (self.call)(event);
            self.subscription.is_some()
        })
    }

    fn end(mut self: Box<Self>, drains: bool) {
        // Afterwards no event is added.
        self.subscription.iter().for_each(Subscription::unsubscribe);
        if drains {
            let events = mem::take(&mut lock(&self.queue.0).0);
            events.into_iter().for_each(|event| (self.call)(event));
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::{sync::atomic::AtomicBool, thread};

    use super::*;

    const EVENTS: u32 = 20_000;

    /// A loop with one subscription to the events of the returned queue.
    fn on_a_loop(call: impl FnMut(u32) + Send + 'static) -> (LoopHandle, Arc<LoopSubscription>, Arc<EventQueue<u32>>) {
        let handle = LoopHandle::new(&HostLoop::new().expect("sockets"));
        let mut queue = None;
        let subscription = handle.add_events(call, |made| {
            queue = Some(made);
            None
        });
        (handle, subscription, queue.expect("made"))
    }

    #[test]
    fn threads_that_dispatch_together_call_once_in_order_and_never_twice_at_a_time() {
        let (heard, is_running) = (Arc::new(Mutex::new(Vec::new())), AtomicBool::new(false));
        let handle = LoopHandle::new(&HostLoop::new().expect("sockets"));
        let queue = Arc::new(EventQueue(Mutex::new((VecDeque::new(), None))));
        let noted = Arc::clone(&heard);
        let call = move |event: u32| {
            assert!(!is_running.swap(true, Ordering::SeqCst), "calls overlap");
            lock(&noted).push(event);
            is_running.store(false, Ordering::SeqCst);
        };
        handle.add(Many { queue: Arc::clone(&queue), call });
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while lock(&heard).len() < EVENTS as usize {
                        handle.host.dispatch();
                    }
                });
            }
            for event in 0..EVENTS {
                while lock(&queue.0).0.len() >= MAX_WAITING {
                    thread::yield_now();
                }
                queue.push(event);
            }
        });
        assert!(lock(&heard).iter().copied().eq(0..EVENTS));
    }

    /// Events without an end.
    struct Many<F> {
        queue: Arc<EventQueue<u32>>,
        call: F,
    }

    impl<F: FnMut(u32) + Send> HostCalls for Many<F> {
        fn poll_call(&mut self, context: &mut Context<'_>) -> Poll<bool> {
            self.queue.poll_event(context).map(|event| {
                (self.call)(event);
                true
            })
        }

        fn end(self: Box<Self>, _drains: bool) {}
    }

    #[test]
    fn a_single_event_ends_its_subscription() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heard);
        let (handle, subscription, queue) = on_a_loop(move |event| lock(&noted).push(event));
        handle.host.dispatch();
        queue.push(1);
        queue.push(2);
        handle.host.dispatch();
        handle.host.dispatch();
        subscription.unsubscribe();
        assert_eq!(*lock(&heard), [1]);
        assert!(lock(&handle.host.subscriptions).is_empty() && Arc::strong_count(&heard) == 1);
    }

    #[test]
    fn a_callback_that_is_too_slow_misses_the_oldest_events() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heard);
        let (handle, _subscription, queue) = on_a_loop(move |event| lock(&noted).push(event));
        let count = u32::try_from(MAX_WAITING).expect("small") + 5;
        (0..count).for_each(|event| queue.push(event));
        handle.host.dispatch();
        assert_eq!(*lock(&heard), [5]);
    }
}

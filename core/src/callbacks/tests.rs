//! Tests of the promises of callback queues (DESIGN 5).

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender, TryRecvError},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::*;
use crate::{
    error::{Error, ErrorKind},
    threads::BlockingPool,
};

const LONG: Duration = Duration::from_secs(10);

/// A queue that a test pushes events into, and what its callbacks have reported.
struct Fixture {
    events: Arc<BoundedEvents<u32>>,
    queue: PullQueue<u32>,
    /// The reason that `on_close` got.
    closes: Receiver<Option<ErrorKind>>,
}

impl Fixture {
    fn new(pool: &BlockingPool, callback: impl FnMut(u32) + Send + 'static) -> Fixture {
        let events = Arc::new(BoundedEvents::new(4));
        let (on_close, closes) = reporting_close();
        let queue = PullQueue::new(pool.clone(), Arc::clone(&events) as _, callback, Some(on_close));
        Fixture { events, queue, closes }
    }

    fn post(&self, event: u32) {
        self.events.push(event);
        self.queue.wake();
    }

    /// Delivers on this thread, unless another thread is about to.
    fn deliver_here(&self) {
        self.queue.delivery_job().into_iter().for_each(|job| job());
    }

    /// The reason of the end, which `on_close` gets exactly once.
    fn close_reason(&self) -> Option<ErrorKind> {
        let reason = self.closes.recv_timeout(LONG).expect("on_close is called");
        assert_eq!(self.closes.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected), "once");
        reason
    }
}

/// An `on_close` that reports the kind of its reason.
fn reporting_close() -> (OnClose, Receiver<Option<ErrorKind>>) {
    let (closed, closes) = mpsc::channel();
    let on_close = move |reason: Option<Error>| {
        closed.send(reason.map(|reason| reason.kind())).expect("the test receives");
    };
    (Box::new(on_close), closes)
}

fn no_events() -> Arc<BoundedEvents<u32>> {
    Arc::new(BoundedEvents::new(1))
}

fn pool() -> BlockingPool {
    BlockingPool::new("townsquare-test", 4)
}

/// Reports how often it was dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A callback that says that it has begun and waits to be released.
fn waiting_callback() -> (impl FnMut(u32) + Send + 'static, Receiver<u32>, Sender<()>) {
    let (started, starts) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let callback = move |event| {
        started.send(event).expect("the test receives");
        let _ = released.recv();
    };
    (callback, starts, release)
}

fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

#[test]
fn events_arrive_in_order_and_a_panic_does_not_end_the_subscription() {
    let (sender, receiver) = mpsc::channel();
    let fixture = Fixture::new(&pool(), move |event| {
        assert_ne!(event, 1, "this event panics");
        sender.send(event).expect("the test receives");
    });
    (0..4).for_each(|event| fixture.post(event));
    let events: Vec<_> = (0..3).map(|_| receiver.recv_timeout(LONG).expect("an event")).collect();
    assert_eq!(events, [0, 2, 3]);
    assert!(!fixture.queue.has_ended());
}

#[test]
fn a_thread_that_delivers_itself_runs_the_callback() {
    let (sender, receiver) = mpsc::channel();
    let fixture = Fixture::new(&pool(), move |event| {
        sender.send((event, thread::current().id())).expect("the test receives");
    });
    fixture.events.push(1);
    fixture.events.push(2);
    fixture.deliver_here();
    let here = thread::current().id();
    assert_eq!([receiver.try_recv(), receiver.try_recv()], [Ok((1, here)), Ok((2, here))]);
}

#[test]
fn a_thread_does_not_wait_for_the_one_that_delivers() {
    let (callback, starts, release) = waiting_callback();
    let fixture = Fixture::new(&pool(), callback);
    fixture.post(1);
    assert_eq!(starts.recv_timeout(LONG), Ok(1));
    fixture.events.push(2);
    fixture.deliver_here();
    assert_eq!(starts.try_recv(), Err(TryRecvError::Empty), "calls do not overlap");
    release.send(()).expect("the callback waits");
    assert_eq!(starts.recv_timeout(LONG), Ok(2), "the thread that delivers was told");
    drop(release);
}

#[test]
fn unsubscribe_waits_for_the_running_callback_and_drops_it() {
    let (mut wait, starts, release) = waiting_callback();
    let drops = Arc::new(AtomicUsize::new(0));
    let owned = Dropped(Arc::clone(&drops));
    let fixture = Fixture::new(&pool(), move |event| {
        let _owned = &owned;
        wait(event);
    });
    fixture.post(1);
    assert_eq!(starts.recv_timeout(LONG), Ok(1));
    let unsubscribing: Vec<_> = (0..2)
        .map(|_| {
            let subscription = fixture.queue.subscription();
            thread::spawn(move || subscription.unsubscribe())
        })
        .collect();
    until(|| fixture.queue.has_ended());
    assert!(unsubscribing.iter().all(|thread| !thread.is_finished()), "the callback is still running");
    assert_eq!(fixture.closes.try_recv(), Err(TryRecvError::Empty), "on_close comes after the last call");
    release.send(()).expect("the callback waits");
    unsubscribing.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(drops.load(Ordering::SeqCst), 1);
    assert_eq!(fixture.closes.try_recv(), Ok(None));
    fixture.post(2);
    fixture.deliver_here();
    assert!(starts.try_recv().is_err());
    fixture.queue.subscription().unsubscribe();
    assert_eq!(fixture.closes.try_recv(), Err(TryRecvError::Disconnected), "on_close is called once");
}

#[test]
fn events_before_unsubscribe_are_delivered_before_it_returns() {
    for waits_for_start in [true, false] {
        let (events, thread_of_callback) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(None)));
        let (seen, thread) = (Arc::clone(&events), Arc::clone(&thread_of_callback));
        let (started, starts) = mpsc::channel();
        let fixture = Fixture::new(&pool(), move |event| {
            let _ = started.send(());
            seen.lock().push(event);
            *thread.lock() = Some(thread::current().id());
        });
        if waits_for_start {
            fixture.post(0);
            starts.recv_timeout(LONG).expect("the callback runs");
        } else {
            // Nobody has woken the queue.
            fixture.events.push(0);
        }
        (1..4).for_each(|event| fixture.events.push(event));
        fixture.queue.subscription().unsubscribe();
        assert_eq!(*events.lock(), [0, 1, 2, 3]);
        assert_ne!(*thread_of_callback.lock(), Some(thread::current().id()), "a thread of the library calls it");
        fixture.post(4);
        fixture.deliver_here();
        assert_eq!(*events.lock(), [0, 1, 2, 3], "nothing follows");
        assert_eq!(fixture.close_reason(), None);
    }
}

#[test]
fn unsubscribe_returns_also_if_the_pool_is_closed() {
    let pool = pool();
    let fixture = Fixture::new(&pool, |_| {});
    fixture.events.push(1);
    pool.close(LONG);
    fixture.queue.subscription().unsubscribe();
    assert_eq!(fixture.close_reason(), None);
}

#[test]
fn a_callback_may_end_its_own_subscription() {
    let (hand_over, own) = mpsc::channel::<Subscription>();
    let (sender, receiver) = mpsc::channel();
    let fixture = Fixture::new(&pool(), move |event| {
        own.recv().expect("the subscription").unsubscribe();
        sender.send(event).expect("the test receives");
    });
    fixture.post(1);
    fixture.post(2);
    hand_over.send(fixture.queue.subscription()).expect("the callback waits");
    assert_eq!(receiver.recv_timeout(LONG), Ok(1));
    assert_eq!(receiver.recv_timeout(LONG), Err(mpsc::RecvTimeoutError::Disconnected), "the callback was dropped");
    assert_eq!(fixture.close_reason(), None);
}

#[test]
fn two_callbacks_that_unsubscribe_each_other_end() {
    for _ in 0..50 {
        let pool = pool();
        let both_run = Arc::new(Barrier::new(2));
        let (ended, ends) = mpsc::channel();
        let (fixtures, hand_overs): (Vec<_>, Vec<_>) = (0..2)
            .map(|_| {
                let (hand_over, other) = mpsc::channel::<Subscription>();
                let (both_run, ended) = (Arc::clone(&both_run), ended.clone());
                let fixture = Fixture::new(&pool, move |_| {
                    let other = other.recv().expect("the other subscription");
                    both_run.wait();
                    other.unsubscribe();
                    ended.send(()).expect("the test receives");
                });
                (fixture, hand_over)
            })
            .unzip();
        fixtures.iter().for_each(|fixture| fixture.post(1));
        hand_overs[0].send(fixtures[1].queue.subscription()).expect("it waits");
        hand_overs[1].send(fixtures[0].queue.subscription()).expect("it waits");
        for fixture in &fixtures {
            ends.recv_timeout(LONG).expect("the callback returns");
            assert_eq!(fixture.close_reason(), None);
        }
    }
}

#[test]
fn inside_a_callback_another_idle_subscription_ends_elsewhere() {
    let pool = pool();
    let here = Arc::new(Mutex::new(()));
    let (closed, closes) = mpsc::channel();
    let of_close = Arc::clone(&here);
    let on_close: OnClose = Box::new(move |_| {
        // A callback that holds a lock and unsubscribes must not wait for an `on_close` that takes it.
        let _lock = of_close.lock();
        closed.send(()).expect("the test receives");
    });
    let idle = PullQueue::new(pool.clone(), no_events(), |_| {}, Some(on_close));
    let subscription = idle.subscription();
    let (returned, returns) = mpsc::channel();
    let fixture = Fixture::new(&pool, move |_| {
        let _lock = here.lock();
        subscription.unsubscribe();
        returned.send(()).expect("the test receives");
    });
    fixture.post(1);
    returns.recv_timeout(LONG).expect("unsubscribe does not wait");
    closes.recv_timeout(LONG).expect("on_close is called");
}

#[test]
fn on_close_may_unsubscribe_and_panic() {
    let (hand_over, own) = mpsc::channel::<Subscription>();
    let drops = Arc::new(AtomicUsize::new(0));
    let owned = Dropped(Arc::clone(&drops));
    let keep = move |_| {
        let _owned = &owned;
    };
    let on_close: OnClose = Box::new(move |_| {
        own.recv().expect("the subscription").unsubscribe();
        panic!("on purpose");
    });
    let queue = PullQueue::new(pool(), no_events(), keep, Some(on_close));
    hand_over.send(queue.subscription()).expect("on_close waits");
    queue.subscription().unsubscribe();
    assert_eq!(drops.load(Ordering::SeqCst), 1, "a panic of on_close does not leak the callback");
}

/// Ends after its events.
struct Ending(Mutex<Vec<u32>>);

impl EventSource<u32> for Ending {
    fn pull(&self) -> Pulled<u32> {
        let expired = || Pulled::Ended(Some(Error::new(ErrorKind::CursorExpired, "too far behind")));
        self.0.lock().pop().map_or_else(expired, Pulled::Event)
    }
}

#[test]
fn a_source_that_ends_tells_its_reason_after_its_last_event() {
    let (sender, receiver) = mpsc::channel();
    let (report, closes) = reporting_close();
    let last = sender.clone();
    let on_close: OnClose = Box::new(move |reason| {
        last.send(None).expect("the test receives");
        report(reason);
    });
    let callback = move |event| sender.send(Some(event)).expect("the test receives");
    let queue = PullQueue::new(pool(), Arc::new(Ending(Mutex::new(vec![2, 1]))), callback, Some(on_close));
    queue.wake();
    assert_eq!(closes.recv_timeout(LONG), Ok(Some(ErrorKind::CursorExpired)));
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [Some(1), Some(2), None]);
    assert!(queue.has_ended());
    queue.subscription().unsubscribe();
    assert!(closes.try_recv().is_err(), "on_close is called once");
}

/// Panics when it is asked.
struct Panicking;

impl EventSource<u32> for Panicking {
    fn pull(&self) -> Pulled<u32> {
        panic!("on purpose")
    }
}

#[test]
fn a_source_that_panics_ends_the_subscription() {
    let (on_close, closes) = reporting_close();
    let queue = PullQueue::new(pool(), Arc::new(Panicking), |_| {}, Some(on_close));
    queue.wake();
    assert_eq!(closes.recv_timeout(LONG), Ok(Some(ErrorKind::Internal)));
    queue.subscription().unsubscribe();
}

/// Has no events, and counts the calls of `unsubscribed`.
#[derive(Default)]
struct Forgotten(AtomicUsize);

impl EventSource<u32> for Forgotten {
    fn pull(&self) -> Pulled<u32> {
        Pulled::Empty
    }

    fn unsubscribed(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_source_is_told_once_that_the_program_unsubscribed() {
    let source = Arc::new(Forgotten::default());
    let queue = PullQueue::new(pool(), Arc::clone(&source) as _, |_| {}, None);
    queue.subscription().unsubscribe();
    queue.subscription().unsubscribe();
    assert_eq!(source.0.load(Ordering::SeqCst), 1);
    let queue = PullQueue::new(pool(), Arc::clone(&source) as _, |_| {}, None);
    drop(queue.delivery_job());
    queue.close();
    queue.subscription().unsubscribe();
    assert_eq!(source.0.load(Ordering::SeqCst), 2, "also by a closed client");
}

#[test]
fn close_does_not_wait_for_the_running_callback() {
    let (callback, starts, release) = waiting_callback();
    let fixture = Fixture::new(&pool(), callback);
    fixture.post(1);
    assert_eq!(starts.recv_timeout(LONG), Ok(1));
    fixture.queue.close();
    fixture.queue.close();
    assert_eq!(fixture.closes.try_recv(), Err(TryRecvError::Empty), "the callback still runs");
    release.send(()).expect("the callback waits");
    assert_eq!(fixture.close_reason(), None);
}

#[test]
fn a_closed_pool_ends_subscriptions_and_tells_them() {
    let pool = pool();
    let before = Fixture::new(&pool, |_| {});
    before.queue.close();
    pool.close(LONG);
    assert_eq!(before.close_reason(), None);
    let after = Fixture::new(&pool, |_| {});
    after.post(1);
    after.queue.close();
    assert_eq!(after.close_reason(), None);
    let dropped = Fixture::new(&pool, |_| {});
    let Fixture { queue, closes, .. } = dropped;
    drop(queue);
    assert_eq!(closes.try_recv(), Ok(None));
}

#[test]
fn a_slow_callback_keeps_a_bounded_number_of_events_and_the_last_one() {
    let (callback, starts, release) = waiting_callback();
    let fixture = Fixture::new(&pool(), callback);
    fixture.post(0);
    assert_eq!(starts.recv_timeout(LONG), Ok(0));
    (1..=1_000).for_each(|event| fixture.post(event));
    drop(release);
    let seen: Vec<_> = (0..4).map(|_| starts.recv_timeout(LONG).expect("an event")).collect();
    assert_eq!(seen, [997, 998, 999, 1_000], "the limit of the fixture is 4");
    fixture.queue.subscription().unsubscribe();
    assert_eq!(starts.try_recv(), Err(TryRecvError::Disconnected));
}

/// Gives the same number forever.
struct Endless(u32);

impl EventSource<u32> for Endless {
    fn pull(&self) -> Pulled<u32> {
        Pulled::Event(self.0)
    }
}

#[test]
fn endless_subscriptions_share_one_thread() {
    let pool = BlockingPool::new("townsquare-test", 1);
    let (sender, receiver) = mpsc::sync_channel(0);
    let queues: Vec<_> = (0..3)
        .map(|number| {
            let sender = sender.clone();
            let callback = move |event| {
                let _ = sender.send(event);
            };
            let queue = PullQueue::new(pool.clone(), Arc::new(Endless(number)), callback, None);
            queue.wake();
            queue
        })
        .collect();
    let mut seen = [0; 3];
    while seen.contains(&0) {
        seen[receiver.recv_timeout(LONG).expect("an event") as usize] += 1;
    }
    drop(receiver);
    queues.iter().for_each(|queue| queue.subscription().unsubscribe());
}

#[test]
fn a_thousand_subscriptions_end_under_load_and_leave_nothing() {
    let pool = pool();
    let drops = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (pool, drops) = (pool.clone(), Arc::clone(&drops));
            thread::spawn(move || {
                for _ in 0..250 {
                    let owned = Dropped(Arc::clone(&drops));
                    let fixture = Fixture::new(&pool, move |_| {
                        let _owned = &owned;
                    });
                    (0..4).for_each(|event| fixture.post(event));
                    fixture.queue.subscription().unsubscribe();
                    assert_eq!(fixture.closes.try_recv(), Ok(None), "told before unsubscribe returns");
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(drops.load(Ordering::SeqCst), 1_000);
}

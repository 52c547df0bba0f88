//! The promises of callback queues in thousands of orders of their threads.
//!
//! These changes were made by hand, one at a time, and a test here failed for each:
//!
//! - `finish` notifies nobody, or notifies before it sets `is_finished`, or sets it before it calls `on_close`;
//! - `finish` does not drop the callback;
//! - `unsubscribe` does not wait;
//! - `close` does not deliver the events of a bounded source, or leaves an idle subscription as it is;
//! - a delivery that the closed pool drops does not finish a subscription that has ended;
//! - `BoundedEvents` gives the newest event first.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::{BoundedEvents, EventSource, OnClose, PullQueue, Pulled, Subscription};
use crate::threads::{
    BlockingPool,
    sync::{Condvar, Mutex, check, thread},
};

/// What happened to a subscription. Its lock is one of `std`, so it changes no schedule.
#[derive(Clone, Default)]
struct History(Arc<std::sync::Mutex<Vec<Step>>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    CallBegins(u32),
    CallEnds(u32),
    /// By the callback itself, which does not wait.
    Unsubscribed,
    Close,
    CallbackDropped,
}

impl History {
    fn add(&self, step: Step) {
        self.0.lock().expect("no panic").push(step);
    }

    fn steps(&self) -> Vec<Step> {
        self.0.lock().expect("no panic").clone()
    }

    /// The events of the calls. Checks that calls do not overlap, that none begins after `unsubscribe`, and that the end follows them.
    fn events_of_ended(&self) -> Vec<u32> {
        let mut steps = self.steps();
        if let Some(end) = steps.iter().position(|step| *step == Step::Unsubscribed) {
            assert!(!steps[end..].iter().any(|step| matches!(step, Step::CallBegins(_))), "{steps:?}");
            steps.retain(|step| *step != Step::Unsubscribed);
        }
        let Some(calls) = steps.strip_suffix(&[Step::Close, Step::CallbackDropped]) else {
            panic!("it has not ended: {steps:?}");
        };
        let event = |pair: &[Step]| match *pair {
            [Step::CallBegins(event), Step::CallEnds(ended)] if event == ended => event,
            _ => panic!("{steps:?}"),
        };
        calls.chunks(2).map(event).collect()
    }
}

/// Tells when a callback is dropped.
struct Owned(History);

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.add(Step::CallbackDropped);
    }
}

/// A source that keeps what waits for itself at the end, as the feed of rows does.
struct Feed(BoundedEvents<u32>);

impl EventSource<u32> for Feed {
    fn pull(&self) -> Pulled<u32> {
        self.0.pull()
    }
}

/// A subscription, and what a test asks about it.
struct Fixture {
    queue: PullQueue<u32>,
    subscription: Subscription,
    history: History,
}

impl Fixture {
    /// `inside` runs in each call.
    fn new(
        pool: &BlockingPool,
        source: Arc<dyn EventSource<u32>>,
        mut inside: impl FnMut(u32) + Send + 'static,
    ) -> Fixture {
        let history = History::default();
        let (owned, of_callback, of_close) = (Owned(history.clone()), history.clone(), history.clone());
        let callback = move |event| {
            let _owned = &owned;
            of_callback.add(Step::CallBegins(event));
            thread::yield_now();
            inside(event);
            of_callback.add(Step::CallEnds(event));
        };
        let on_close: OnClose = Box::new(move |_| {
            thread::yield_now();
            of_close.add(Step::Close);
        });
        let queue = PullQueue::new(pool.clone(), source, callback, Some(on_close));
        Fixture { subscription: queue.subscription(), queue, history }
    }
}

fn pool() -> BlockingPool {
    BlockingPool::new("townsquare-test", 2)
}

/// Posts the events of `numbers`, and counts the ones before the end of the subscription.
fn post(events: &BoundedEvents<u32>, queue: &PullQueue<u32>, numbers: std::ops::Range<u32>, posted: &AtomicUsize) {
    for number in numbers {
        events.push(number);
        if !queue.has_ended() {
            posted.fetch_add(1, Ordering::SeqCst);
        }
        queue.wake();
    }
}

/// Closes the pool and waits for its threads.
fn end(pool: &BlockingPool) {
    pool.close(Duration::MAX);
}

#[test]
fn unsubscribe_delivers_the_events_before_it_and_nothing_runs_afterwards() {
    check(|| {
        let pool = pool();
        let events = Arc::new(BoundedEvents::new(8));
        let fixture = Fixture::new(&pool, Arc::clone(&events) as _, |_| {});
        let posted = Arc::new(AtomicUsize::new(0));
        let poster = {
            let (events, queue, posted) = (Arc::clone(&events), fixture.queue.clone(), Arc::clone(&posted));
            thread::spawn(move || post(&events, &queue, 0..3, &posted))
        };
        let unsubscribing: Vec<_> = (0..2)
            .map(|_| {
                let (subscription, history) = (fixture.subscription.clone(), fixture.history.clone());
                let posted = Arc::clone(&posted);
                thread::spawn(move || {
                    let before = posted.load(Ordering::SeqCst);
                    subscription.unsubscribe();
                    let seen = history.events_of_ended();
                    assert!(seen.len() >= before, "{seen:?} of {before}");
                    assert!(seen.iter().copied().eq(0..seen.len() as u32), "{seen:?}");
                    history.steps()
                })
            })
            .collect();
        poster.join().expect("no panic");
        let histories: Vec<_> = unsubscribing.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        end(&pool);
        histories.iter().for_each(|steps| assert_eq!(*steps, fixture.history.steps(), "nothing follows"));
    });
}

#[test]
fn a_subscription_to_rows_gets_nothing_after_unsubscribe() {
    check(|| {
        let pool = pool();
        let feed = Arc::new(Feed(BoundedEvents::new(8)));
        let fixture = Fixture::new(&pool, Arc::clone(&feed) as _, |_| {});
        let poster = {
            let (feed, queue) = (Arc::clone(&feed), fixture.queue.clone());
            thread::spawn(move || post(&feed.0, &queue, 0..3, &AtomicUsize::new(0)))
        };
        // The call that has begun is the last one.
        let begun = |steps: Vec<Step>| steps.iter().filter(|step| matches!(step, Step::CallBegins(_))).count();
        let (subscription, history) = (fixture.subscription.clone(), fixture.history.clone());
        subscription.unsubscribe();
        let seen = history.events_of_ended();
        assert!(seen.iter().copied().eq(0..seen.len() as u32), "{seen:?}");
        poster.join().expect("no panic");
        end(&pool);
        assert_eq!(begun(history.steps()), seen.len());
    });
}

#[test]
fn every_event_of_two_threads_is_delivered_without_a_further_wake() {
    check(|| {
        let pool = pool();
        let events = Arc::new(BoundedEvents::new(8));
        let all_seen = Arc::new((Mutex::new(0), Condvar::new()));
        let of_callback = Arc::clone(&all_seen);
        let fixture = Fixture::new(&pool, Arc::clone(&events) as _, move |_| {
            *of_callback.0.lock() += 1;
            of_callback.1.notify_all();
        });
        let posters = [0..2, 10..12].map(|numbers| {
            let (events, queue) = (Arc::clone(&events), fixture.queue.clone());
            thread::spawn(move || post(&events, &queue, numbers, &AtomicUsize::new(0)))
        });
        // A lost wake-up leaves this thread waiting for ever, which the model checker reports.
        all_seen.1.wait_while(&mut all_seen.0.lock(), |seen| *seen < 4);
        posters.into_iter().for_each(|poster| poster.join().expect("no panic"));
        fixture.subscription.unsubscribe();
        let seen = fixture.history.events_of_ended();
        for of_one in [[0, 1], [10, 11]] {
            let order: Vec<_> = seen.iter().copied().filter(|event| of_one.contains(event)).collect();
            assert_eq!(order, of_one);
        }
        end(&pool);
    });
}

#[test]
fn an_event_that_arrives_while_the_source_is_asked_is_delivered() {
    check(|| {
        let pool = pool();
        let events = Arc::new(BoundedEvents::<u32>::new(8));
        let seen = Arc::new((Mutex::new(false), Condvar::new()));
        let of_callback = Arc::clone(&seen);
        let fixture = Fixture::new(&pool, Arc::clone(&events) as _, move |_| {
            *of_callback.0.lock() = true;
            of_callback.1.notify_all();
        });
        // A thread asks the source, which has nothing yet.
        fixture.queue.wake();
        events.push(0);
        fixture.queue.wake();
        seen.1.wait_while(&mut seen.0.lock(), |is_seen| !*is_seen);
        fixture.subscription.unsubscribe();
        end(&pool);
    });
}

#[test]
fn callbacks_that_unsubscribe_themselves_and_each_other_end_once() {
    check(|| {
        let pool = pool();
        let all = Arc::new(std::sync::Mutex::new(Vec::<(Subscription, History)>::new()));
        let fixtures: Vec<_> = (0..2)
            .map(|own: usize| {
                let events = Arc::new(BoundedEvents::new(8));
                let of_callback = Arc::clone(&all);
                let fixture = Fixture::new(&pool, Arc::clone(&events) as _, move |_| {
                    let all = of_callback.lock().expect("no panic").clone();
                    all.iter().for_each(|(subscription, _)| subscription.unsubscribe());
                    all[own].1.add(Step::Unsubscribed);
                });
                (fixture, events)
            })
            .collect();
        let both = fixtures.iter().map(|(fixture, _)| (fixture.subscription.clone(), fixture.history.clone()));
        all.lock().expect("no panic").extend(both);
        let posters: Vec<_> = fixtures
            .iter()
            .map(|(fixture, events)| {
                let (events, queue) = (Arc::clone(events), fixture.queue.clone());
                thread::spawn(move || post(&events, &queue, 0..2, &AtomicUsize::new(0)))
            })
            .collect();
        posters.into_iter().for_each(|poster| poster.join().expect("no panic"));
        for (fixture, _) in &fixtures {
            // Outside of a callback, a first call would deliver every event.
            while !fixture.queue.has_ended() {
                thread::yield_now();
            }
            fixture.subscription.unsubscribe();
            let seen = fixture.history.events_of_ended();
            assert!(seen.iter().copied().eq(0..seen.len() as u32), "{seen:?}");
        }
        end(&pool);
        fixtures.iter().for_each(|(fixture, _)| drop(fixture.history.events_of_ended()));
    });
}

#[test]
fn a_subscription_ends_once_also_if_the_pool_is_closed_meanwhile() {
    check(|| {
        let pool = pool();
        let events = Arc::new(BoundedEvents::new(8));
        let fixture = Fixture::new(&pool, Arc::clone(&events) as _, |_| {});
        let threads = [
            {
                let (events, queue) = (Arc::clone(&events), fixture.queue.clone());
                thread::spawn(move || post(&events, &queue, 0..2, &AtomicUsize::new(0)))
            },
            {
                let pool = pool.clone();
                thread::spawn(move || end(&pool))
            },
            {
                let queue = fixture.queue.clone();
                thread::spawn(move || queue.close())
            },
        ];
        fixture.subscription.unsubscribe();
        let seen = fixture.history.events_of_ended();
        assert!(seen.iter().copied().eq(0..seen.len() as u32), "{seen:?}");
        let steps = fixture.history.steps();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        assert_eq!(fixture.history.steps(), steps, "nothing follows");
    });
}

#[test]
fn a_queue_that_is_dropped_ends_its_subscription_once() {
    check(|| {
        let pool = pool();
        let events = Arc::new(BoundedEvents::new(8));
        let Fixture { queue, history, .. } = Fixture::new(&pool, Arc::clone(&events) as _, |_| {});
        let poster = thread::spawn(move || post(&events, &queue, 0..2, &AtomicUsize::new(0)));
        poster.join().expect("no panic");
        end(&pool);
        let seen = history.events_of_ended();
        assert!(seen.iter().copied().eq(0..seen.len() as u32), "{seen:?}");
    });
}

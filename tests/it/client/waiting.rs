//! `blocking::wait` and `wait_while` (DESIGN 2).

use std::{
    future::{pending, poll_fn, ready},
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use townsquare::blocking::{wait, wait_while};

#[test]
fn a_ready_future_is_polled_once() {
    let polls = AtomicUsize::new(0);
    let value = wait(poll_fn(|_| {
        polls.fetch_add(1, Ordering::SeqCst);
        Poll::Ready(7)
    }));
    assert_eq!((value, polls.into_inner()), (7, 1));
}

#[test]
fn a_woken_future_is_polled_again() {
    let (send, receive) = tokio::sync::oneshot::channel();
    let sender = thread::spawn(move || send.send(7));
    assert_eq!(wait(receive), Ok(7));
    sender.join().expect("no panic").expect("received");
}

#[test]
fn wait_works_inside_a_runtime() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    assert_eq!(runtime.block_on(async { wait(ready(7)) }), 7);
    assert_eq!(runtime.block_on(async { tokio::spawn(async { wait(ready(7)) }).await }).expect("no panic"), 7);
    assert_eq!(wait(async { wait(ready(7)) }), 7, "and inside itself");
}

#[test]
fn a_failing_tick_ends_the_wait_and_drops_the_future() {
    struct Dropped<'a>(&'a AtomicUsize);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let (drops, mut ticks) = (AtomicUsize::new(0), 0);
    let begun = Instant::now();
    let guard = Dropped(&drops);
    let future = async move {
        let _guard = guard;
        pending::<()>().await;
    };
    let result = wait_while(future, Duration::from_millis(5), || {
        ticks += 1;
        if ticks == 3 { Err("interrupted") } else { Ok(()) }
    });
    assert_eq!((result, ticks, drops.load(Ordering::SeqCst)), (Err("interrupted"), 3, 1));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn wait_while_returns_the_futures_value() {
    assert_eq!(wait_while(ready(7), Duration::from_secs(60), || Ok::<(), ()>(())), Ok(7));
    let (send, receive) = tokio::sync::oneshot::channel();
    let sender = thread::spawn(move || send.send(8));
    assert_eq!(wait_while(receive, Duration::from_secs(60), || Ok::<(), ()>(())), Ok(Ok(8)));
    sender.join().expect("no panic").expect("received");
}

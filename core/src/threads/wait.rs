//! Waiting for a future on the calling thread, with or without a periodic check.

use std::{
    convert::Infallible,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use super::blocking_caller;
use crate::clock::Clock;

/// A waker that unparks a thread.
struct Unpark(Thread);

impl Unpark {
    fn current_thread() -> Waker {
        Waker::from(Arc::new(Unpark(thread::current())))
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a future of this library on the calling thread. For the Python and C bindings.
#[doc(hidden)]
pub fn wait<F: Future>(future: F) -> F::Output {
    let park = || -> Result<(), Infallible> {
        thread::park();
        Ok(())
    };
    match poll_to_end(future, park) {
        Ok(output) => output,
        Err(never) => match never {},
    }
}

/// [`wait`] that calls `tick` every `every` until the future is ready. For the Python and C bindings, which check there
/// for signals.
///
/// # Errors
/// The error of `tick`. It drops the future.
#[doc(hidden)]
pub fn wait_while<F: Future, E>(
    future: F,
    every: Duration,
    mut tick: impl FnMut() -> Result<(), E>,
) -> Result<F::Output, E> {
    let clock = Clock::default();
    let mut next_tick = None;
    poll_to_end(future, || {
        let next = *next_tick.get_or_insert_with(|| clock.moment().after(every));
        thread::park_timeout(next.since(clock.moment()));
        if clock.moment() >= next {
            next_tick = None;
            tick()?;
        }
        Ok(())
    })
}

/// Polls a future until it is ready. In between, `park` waits until the thread is unparked, or returns an error, which drops the
/// future.
fn poll_to_end<F: Future, E>(future: F, mut park: impl FnMut() -> Result<(), E>) -> Result<F::Output, E> {
    let _blocking = blocking_caller::enter();
    let mut future = pin!(future);
    // Most calls are ready at the first poll. They need no waker of their own.
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Ok(output);
    }
    let waker = Unpark::current_thread();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return Ok(output),
            Poll::Pending => park()?,
        }
    }
}

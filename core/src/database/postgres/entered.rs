//! A future that brings its runtime along.
//!
//! Invariant: it is polled, and dropped, inside the client's runtime, whoever does it: sockets and timers are found
//! there, and the caller needs no runtime.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

pub(super) struct Entered<F> {
    runtime: Handle,
    /// Taken out only to be dropped inside the runtime.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Entered<F> {
    pub(super) fn new(runtime: Handle, future: F) -> Entered<F> {
        Entered { runtime, future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for Entered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _inside = this.runtime.enter();
        match &mut this.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Entered<F> {
    fn drop(&mut self) {
        let _inside = self.runtime.enter();
        self.future = None;
    }
}

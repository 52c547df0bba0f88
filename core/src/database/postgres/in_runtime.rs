//! A future that is polled and dropped inside the client's runtime.
//!
//! Invariant: the future finds sockets and timers wherever it is polled, so its caller needs no runtime. The caller's thread
//! polls it; the client's runtime waits for the sockets. The caller's own runtime is never used, because the caller may block
//! its only thread, and because a connection outlives that runtime.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// A future that enters the client's runtime whenever it is polled or dropped.
pub(super) struct InRuntime<F> {
    runtime: Handle,
    /// `None` only while this value is dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> InRuntime<F> {
    pub(super) fn new(runtime: &Handle, future: F) -> InRuntime<F> {
        InRuntime { runtime: runtime.clone(), future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for InRuntime<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let InRuntime { runtime, future } = &mut *self;
        let _entered = runtime.enter();
        match future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for InRuntime<F> {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        self.future = None;
    }
}

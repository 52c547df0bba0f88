//! A future that is polled and dropped inside the client's runtime.
//!
//! Invariant: the future finds sockets and timers wherever it is polled, so its caller needs no runtime. The caller's thread
//! polls it; the client's runtime waits for the sockets. The caller's own runtime is never used, because the caller may block
//! its only thread, and because a connection outlives that runtime. A future that meets the end of the client's runtime is
//! dropped: sockets and timers would panic.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use crate::{
    error::{Error, Result},
    threads::RuntimeHandle,
};

/// A future that enters the client's runtime whenever it is polled or dropped. Its result is `Closed` if the runtime ends first.
pub(super) struct InRuntime<'a, F> {
    runtime: &'a RuntimeHandle,
    /// `None` once the runtime has ended, and while this value is dropped.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> InRuntime<'_, F> {
    pub(super) fn new(runtime: &RuntimeHandle, future: F) -> InRuntime<'_, F> {
        InRuntime { runtime, future: Some(Box::pin(future)) }
    }
}

impl<F> InRuntime<'_, F> {
    fn drop_future(&mut self) {
        let _entered = self.runtime.tokio.enter();
        self.future = None;
    }
}

impl<T, E: From<Error>, F: Future<Output = Result<T, E>>> Future for InRuntime<'_, F> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, E>> {
        let this = &mut *self;
        if let Some(_entered) = this.runtime.enter()
            && let Some(future) = &mut this.future
        {
            return future.as_mut().poll(context);
        }
        this.drop_future();
        Poll::Ready(Err(Error::closed().into()))
    }
}

impl<F> Drop for InRuntime<'_, F> {
    fn drop(&mut self) {
        self.drop_future();
    }
}

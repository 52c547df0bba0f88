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
    threads::{BoxedFuture, RuntimeHandle},
};

/// A future that enters the client's runtime whenever it is polled or dropped. Its result is `Closed` if the runtime ends first.
pub(super) struct InRuntime<'a, R> {
    runtime: &'a RuntimeHandle,
    /// `None` once the runtime has ended, and while this value is dropped.
    future: Option<BoxedFuture<'a, R>>,
}

impl<'a, R> InRuntime<'a, R> {
    pub(super) fn new(runtime: &'a RuntimeHandle, future: impl Future<Output = R> + Send + 'a) -> InRuntime<'a, R> {
        InRuntime { runtime, future: Some(Box::pin(future)) }
    }

    fn drop_future(&mut self) {
        let _entered = self.runtime.tokio.enter();
        self.future = None;
    }
}

impl<T, E: From<Error>> Future for InRuntime<'_, Result<T, E>> {
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

impl<R> Drop for InRuntime<'_, R> {
    fn drop(&mut self) {
        self.drop_future();
    }
}

//! A future that is polled inside the runtime that suits its caller.
//!
//! Invariant: it is polled, and dropped, inside one runtime, whoever does it: sockets and timers are found there, and
//! the caller needs none. A task of a runtime with threads stays in its own, where the answer wakes it without waking
//! another thread first: half of what a read costs. Everybody else gets the client's: a thread that waits, or an
//! executor of another kind, may stand in a runtime that it keeps from running.

use std::{
    pin::Pin,
    ptr,
    task::{Context, Poll, RawWakerVTable},
};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::{Error, Result};

/// The client's runtime, and how a task of any runtime is told from other callers.
#[derive(Clone)]
pub(super) struct Home {
    runtime: Handle,
    task: &'static RawWakerVTable,
}

pub(super) struct Entered<F> {
    home: Home,
    /// Where it was polled first.
    runtime: Option<Handle>,
    /// Taken out only to be dropped inside the runtime.
    future: Option<Pin<Box<F>>>,
}

impl Home {
    pub(super) async fn new(runtime: Handle) -> Result<Home> {
        let task = std::future::poll_fn(|context| Poll::Ready(context.waker().vtable()));
        let task = runtime.spawn(task).await.map_err(|_| Error::closed())?;
        Ok(Home { runtime, task })
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    fn of_caller(&self, context: &Context<'_>) -> Handle {
        let is_task = ptr::eq(context.waker().vtable(), self.task);
        let current = Handle::try_current().ok().filter(|_| is_task);
        let current = current.filter(|current| current.runtime_flavor() == RuntimeFlavor::MultiThread);
        current.unwrap_or_else(|| self.runtime.clone())
    }
}

impl<F: Future> Entered<F> {
    pub(super) fn new(home: Home, future: F) -> Entered<F> {
        Entered { home, runtime: None, future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for Entered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let runtime = this.runtime.get_or_insert_with(|| this.home.of_caller(context));
        let _inside = runtime.enter();
        match &mut this.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Entered<F> {
    fn drop(&mut self) {
        let _inside = self.runtime.as_ref().unwrap_or(&self.home.runtime).enter();
        self.future = None;
    }
}

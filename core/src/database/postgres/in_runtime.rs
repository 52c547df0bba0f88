//! A future that enters a tokio runtime whenever it is polled or dropped.
//!
//! Invariant: the future is polled and dropped inside one runtime, where it finds sockets and timers, so its caller
//! needs no runtime. A task of a multi-threaded runtime uses that runtime: the answer then wakes the task without
//! waking another thread first. Waking another thread is half of the cost of a read. Every other caller uses the
//! client's runtime, because the caller may block the only thread of its own runtime.

use std::{
    pin::Pin,
    ptr,
    task::{Context, Poll, RawWakerVTable},
};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::error::{Error, Result};

/// Selects the runtime that a future is polled in.
#[derive(Clone)]
pub(super) struct RuntimeSelector {
    client_runtime: Handle,
    /// The waker vtable of tokio's tasks, which tells a task from other callers.
    task_vtable: &'static RawWakerVTable,
}

/// A future that is polled and dropped inside a runtime.
pub(super) struct InRuntime<F> {
    selector: RuntimeSelector,
    /// `None` before the first poll.
    runtime: Option<Handle>,
    /// `None` only while this value is dropped.
    future: Option<Pin<Box<F>>>,
}

impl RuntimeSelector {
    pub(super) async fn new(client_runtime: Handle) -> Result<RuntimeSelector> {
        let vtable = std::future::poll_fn(|context| Poll::Ready(context.waker().vtable()));
        let task_vtable = client_runtime.spawn(vtable).await.map_err(|_| Error::closed())?;
        Ok(RuntimeSelector { client_runtime, task_vtable })
    }

    pub(super) fn client_runtime(&self) -> &Handle {
        &self.client_runtime
    }

    /// The current runtime if a task of a multi-threaded runtime polls with `context`, else the client's.
    fn select(&self, context: &Context<'_>) -> Handle {
        let is_task = ptr::eq(context.waker().vtable(), self.task_vtable);
        let current = Handle::try_current().ok().filter(|_| is_task);
        let current = current.filter(|current| current.runtime_flavor() == RuntimeFlavor::MultiThread);
        current.unwrap_or_else(|| self.client_runtime.clone())
    }
}

impl<F: Future> InRuntime<F> {
    pub(super) fn new(selector: RuntimeSelector, future: F) -> InRuntime<F> {
        InRuntime { selector, runtime: None, future: Some(Box::pin(future)) }
    }
}

impl<F: Future> Future for InRuntime<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let runtime = this.runtime.get_or_insert_with(|| this.selector.select(context));
        let _entered = runtime.enter();
        match &mut this.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for InRuntime<F> {
    fn drop(&mut self) {
        let _entered = self.runtime.as_ref().unwrap_or(&self.selector.client_runtime).enter();
        self.future = None;
    }
}

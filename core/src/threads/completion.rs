//! Work that runs to completion, also if the caller drops its future.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use super::{RuntimeHandle, blocking_caller};
use crate::error::{Error, ErrorKind, Result};

/// Work that runs to completion. In a box, because futures of this library are large.
pub(crate) type Work<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

/// Work that the thread of a blocking caller polls. If it is dropped before the end, for example by Ctrl-C in Python, a task
/// of the runtime does the rest.
struct Completion<T: Send + 'static> {
    /// `None` once it has ended.
    work: Option<Work<T>>,
    runtime: RuntimeHandle,
}

impl RuntimeHandle {
    /// Runs work to completion, as a task of the runtime.
    ///
    /// # Errors
    /// Those of `work`; `Closed` if the client is closed first; `Internal` if `work` panicked.
    pub(crate) async fn complete<T: Send + 'static>(&self, work: Work<T>) -> Result<T> {
        let task = self.spawn(work);
        task.await.unwrap_or_else(|error| Err(if error.is_panic() { panicked() } else { Error::closed() }))
    }

    /// Does what [`complete`](RuntimeHandle::complete) does, but on the thread of a blocking caller, which saves several
    /// changes of threads. `work` must need no runtime, and may continue on another thread.
    pub(crate) async fn complete_here<T: Send + 'static>(&self, work: Work<T>) -> Result<T> {
        match blocking_caller::is_current() {
            true => Completion { work: Some(work), runtime: self.clone() }.await,
            false => self.complete(work).await,
        }
    }
}

impl<T: Send + 'static> Future for Completion<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let Some(work) = &mut self.work else { return Poll::Ready(Err(Error::closed())) };
        // Unwind safe: work that panicked is dropped.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        let result = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(result)) => result,
            Err(_) => Err(panicked()),
        };
        self.work = None;
        Poll::Ready(result)
    }
}

impl<T: Send + 'static> Drop for Completion<T> {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            drop(self.runtime.spawn(work));
        }
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "the operation panicked")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;
    use crate::threads::{BlockingPool, wait, wait_while};

    fn runtime() -> (tokio::runtime::Runtime, RuntimeHandle) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let handle = RuntimeHandle { tokio: runtime.handle().clone(), blocking: BlockingPool::new("test", 1) };
        (runtime, handle)
    }

    #[test]
    fn a_blocking_caller_runs_the_work_itself_and_a_task_does_not() {
        let (runtime, handle) = runtime();
        let thread = || -> Work<_> { Box::pin(async { Ok(std::thread::current().id()) }) };
        assert_eq!(wait(handle.complete_here(thread())).expect("run"), std::thread::current().id());
        let worker = runtime.block_on(handle.complete_here(thread())).expect("run");
        assert_ne!(worker, std::thread::current().id());
    }

    #[test]
    fn work_that_its_caller_drops_is_completed() {
        let (_runtime, handle) = runtime();
        let (release, released) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let work = async move {
            released.await.expect("released");
            done.send(std::thread::current().id()).map_err(|_| Error::closed())
        };
        wait_while(handle.complete_here(Box::pin(work)), Duration::from_millis(1), || Err(()))
            .expect_err("interrupted");
        release.send(()).expect("the work waits");
        assert_ne!(wait(is_done).expect("completed"), std::thread::current().id());
    }

    #[test]
    fn a_panic_of_the_work_is_an_error() {
        let (_runtime, handle) = runtime();
        let panics = || -> Work<()> { Box::pin(async { panic!("on purpose") }) };
        assert_eq!(wait(handle.complete_here(panics())).expect_err("it panics").kind(), ErrorKind::Internal);
        assert_eq!(wait(handle.complete(panics())).expect_err("it panics").kind(), ErrorKind::Internal);
    }
}

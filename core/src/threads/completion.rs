//! Work that runs to completion, also if the caller drops its future.
//!
//! Invariant: the thread of a blocking caller polls its work until it runs code of the host (signal handlers of Python), or
//! until the caller drops the future. Then a task of the runtime does the rest, so that the work holds its locks no longer than
//! it needs them.

use std::{
    cell::RefCell,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::{RuntimeHandle, blocking_caller, panicked};
use crate::error::{Error, Result};

/// Work in a box, because futures of this library are large.
pub(crate) type BoxedWork<T> = Pin<Box<dyn Future<Output = Result<T>> + Send>>;

thread_local! {
    /// The work that this thread polls.
    static POLLED_HERE: RefCell<Vec<Weak<dyn HandOver>>> = const { RefCell::new(Vec::new()) };
}

trait HandOver {
    /// Makes the rest of the work a task of the runtime, unless it is being polled.
    fn hand_over(&self);
}

/// Work that the thread of a blocking caller polls.
struct InlineWork<T: Send + 'static>(Arc<SharedWork<T>>);

struct SharedWork<T: Send + 'static> {
    state: Mutex<WorkState<T>>,
    runtime: RuntimeHandle,
}

enum WorkState<T> {
    Here(BoxedWork<T>),
    Task(JoinHandle<Result<T>>),
    Ended,
}

impl RuntimeHandle {
    /// Runs work to completion, as a task of the runtime.
    ///
    /// # Errors
    /// Those of `work`; `Closed` if the client is closed first; `Internal` if `work` panicked.
    pub(crate) async fn complete<T: Send + 'static>(&self, work: BoxedWork<T>) -> Result<T> {
        joined(self.spawn(work).await)
    }

    /// Does what [`complete`](RuntimeHandle::complete) does, but on the thread of a blocking caller, which saves several
    /// changes of threads. `work` must need no runtime, and must be able to continue on another thread.
    pub(crate) async fn complete_here<T: Send + 'static>(&self, work: BoxedWork<T>) -> Result<T> {
        match blocking_caller::is_current() {
            true => InlineWork::new(work, self.clone()).await,
            false => self.complete(work).await,
        }
    }
}

/// Hands the work that this thread polls over to the runtime. A thread calls it before it runs code of the host, which may
/// take long, or need what the work has locked.
pub(super) fn hand_over() {
    let polled: Vec<_> = POLLED_HERE.with_borrow(|polled| polled.iter().filter_map(Weak::upgrade).collect());
    for work in polled {
        work.hand_over();
    }
}

impl<T: Send + 'static> InlineWork<T> {
    fn new(work: BoxedWork<T>, runtime: RuntimeHandle) -> InlineWork<T> {
        let shared = Arc::new(SharedWork { state: Mutex::new(WorkState::Here(work)), runtime });
        let weak: Weak<dyn HandOver> = Arc::<SharedWork<T>>::downgrade(&shared);
        POLLED_HERE.with_borrow_mut(|polled| {
            polled.retain(|work| work.strong_count() > 0);
            polled.push(weak);
        });
        InlineWork(shared)
    }
}

impl<T: Send + 'static> HandOver for SharedWork<T> {
    fn hand_over(&self) {
        // It is locked while this thread polls the work, and the work runs code of the host.
        let Some(mut state) = self.state.try_lock() else { return };
        *state = match std::mem::replace(&mut *state, WorkState::Ended) {
            WorkState::Here(work) => WorkState::Task(self.runtime.spawn(work)),
            other => other,
        };
    }
}

impl<T: Send + 'static> Future for InlineWork<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let mut state = self.0.state.lock();
        let result = match &mut *state {
            WorkState::Here(work) => {
                // Unwind safe: work that panicked is dropped.
                match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                    Ok(Poll::Pending) => return Poll::Pending,
                    Ok(Poll::Ready(result)) => result,
                    Err(_) => Err(panicked()),
                }
            }
            WorkState::Task(task) => match Pin::new(task).poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(result) => joined(result),
            },
            WorkState::Ended => Err(Error::closed()),
        };
        *state = WorkState::Ended;
        Poll::Ready(result)
    }
}

impl<T: Send + 'static> Drop for InlineWork<T> {
    fn drop(&mut self) {
        self.0.hand_over();
    }
}

fn joined<T>(result: std::result::Result<Result<T>, tokio::task::JoinError>) -> Result<T> {
    result.unwrap_or_else(|error| Err(if error.is_panic() { panicked() } else { Error::closed() }))
}

#[cfg(test)]
mod tests {
    use std::{thread, time::Duration};

    use tokio::sync::oneshot;

    use super::*;
    use crate::{
        error::ErrorKind,
        threads::{BlockingPool, wait, wait_while},
    };

    const TICK: Duration = Duration::from_millis(1);

    fn runtime() -> (tokio::runtime::Runtime, RuntimeHandle) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let handle = RuntimeHandle { tokio: runtime.handle().clone(), blocking: BlockingPool::new("test", 1) };
        (runtime, handle)
    }

    /// Work that waits for its release and returns the thread that it ends on.
    fn waiting() -> (oneshot::Sender<()>, BoxedWork<thread::ThreadId>) {
        let (release, released) = oneshot::channel();
        let work = async move {
            released.await.map_err(|_| Error::closed())?;
            Ok(thread::current().id())
        };
        (release, Box::pin(work))
    }

    #[test]
    fn a_blocking_caller_runs_the_work_itself_and_a_task_does_not() {
        let (runtime, handle) = runtime();
        let here = || -> BoxedWork<_> { Box::pin(async { Ok(thread::current().id()) }) };
        assert_eq!(wait(handle.complete_here(here())).expect("run"), thread::current().id());
        let worker = runtime.block_on(handle.complete_here(here())).expect("run");
        assert_ne!(worker, thread::current().id());
        let (release, work) = waiting();
        let releaser = thread::spawn(move || release.send(()));
        assert_eq!(wait(handle.complete_here(work)).expect("run"), thread::current().id());
        releaser.join().expect("no panic").expect("the work waits");
    }

    #[test]
    fn work_that_its_caller_drops_is_completed() {
        let (_runtime, handle) = runtime();
        let ((release, waiting), (done, is_done)) = (waiting(), oneshot::channel());
        let work = async move { done.send(waiting.await?).map_err(|_| Error::closed()) };
        wait_while(handle.complete_here(Box::pin(work)), TICK, || Err(())).expect_err("interrupted");
        release.send(()).expect("the work waits");
        assert_ne!(wait(is_done).expect("completed"), thread::current().id());
    }

    #[test]
    fn work_goes_on_while_its_thread_runs_code_of_the_host() {
        let (_runtime, handle) = runtime();
        let ((release, waiting), (done, is_done)) = (waiting(), std::sync::mpsc::channel());
        let work = async move {
            let thread = waiting.await?;
            done.send(thread).map_err(|_| Error::closed())?;
            Ok(thread)
        };
        let mut release = Some(release);
        let handler = || -> std::result::Result<(), ()> {
            if let Some(release) = release.take() {
                release.send(()).expect("the work waits");
                is_done.recv_timeout(Duration::from_secs(30)).expect("it ends while this thread waits");
            }
            Ok(())
        };
        let ended_on = wait_while(handle.complete_here(Box::pin(work)), TICK, handler).expect("no error").expect("run");
        assert_ne!(ended_on, thread::current().id());
    }

    #[test]
    fn a_panic_of_the_work_is_an_error() {
        let (_runtime, handle) = runtime();
        let panics = || -> BoxedWork<()> { Box::pin(async { panic!("on purpose") }) };
        assert_eq!(wait(handle.complete_here(panics())).expect_err("it panics").kind(), ErrorKind::Internal);
        assert_eq!(wait(handle.complete(panics())).expect_err("it panics").kind(), ErrorKind::Internal);
    }
}

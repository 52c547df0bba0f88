//! Work that runs to completion, also if the caller drops its future.

use std::pin::Pin;

use super::{RuntimeHandle, panicked};
use crate::error::{Error, Result};

/// A future in a box. A plain function that returns one is compiled in this crate alone. The body of an `async fn` is compiled again in
/// each crate that awaits it, with every `async fn` that it calls.
pub(crate) type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Work in a box, because futures of this library are large.
pub(crate) type BoxedWork<T> = BoxedFuture<'static, Result<T>>;

impl RuntimeHandle {
    /// Runs work to completion, as a task of the runtime. The thread of a blocking caller does not poll it: that thread stops
    /// polling while it runs code of the host, and the work may hold locks that others wait for.
    ///
    /// # Errors
    /// Those of `work`; `Closed` if the client is closed first; `Internal` if `work` panicked.
    pub(crate) async fn complete<T: Send + 'static>(&self, work: BoxedWork<T>) -> Result<T> {
        let ended = self.tokio.spawn(work).await;
        ended.unwrap_or_else(|error| Err(if error.is_panic() { panicked() } else { Error::closed() }))
    }
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
        let handle = RuntimeHandle::new(runtime.handle().clone(), BlockingPool::new("test", 1));
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
    fn work_that_its_caller_drops_is_completed() {
        let (_runtime, handle) = runtime();
        let ((release, waiting), (done, is_done)) = (waiting(), oneshot::channel());
        let work = async move { done.send(waiting.await?).map_err(|_| Error::closed()) };
        wait_while(handle.complete(Box::pin(work)), TICK, || Err(())).expect_err("interrupted");
        release.send(()).expect("the work waits");
        assert_ne!(wait(is_done).expect("completed"), thread::current().id());
    }

    #[test]
    fn nested_work_goes_on_while_its_caller_runs_code_of_the_host() {
        let (_runtime, handle) = runtime();
        let ((release, waiting), (done, is_done)) = (waiting(), std::sync::mpsc::channel());
        let inner = handle.clone();
        let work = async move {
            let thread = inner.complete(waiting).await?;
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
        let ended_on = wait_while(handle.complete(Box::pin(work)), TICK, handler).expect("no error").expect("run");
        assert_ne!(ended_on, thread::current().id());
    }

    #[test]
    fn a_panic_of_the_work_is_an_error() {
        let (_runtime, handle) = runtime();
        let panics: BoxedWork<()> = Box::pin(async { panic!("on purpose") });
        assert_eq!(wait(handle.complete(panics)).expect_err("it panics").kind(), ErrorKind::Internal);
    }
}

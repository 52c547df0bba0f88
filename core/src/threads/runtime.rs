//! The threads of a client: one small tokio runtime for background work, a pool for blocking work and one for callbacks.
//!
//! Invariant: the futures of this library need no runtime of the caller, because work that must be driven is spawned
//! here. After [`Runtime::shut_down`] returns, none of these threads is left. No thread polls a future inside the runtime while
//! it shuts down, because tokio panics when a socket or a timer meets a runtime that shuts down.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::{Builder, Handle},
    task::JoinHandle,
};

use super::{
    BlockingPool, BoxedFuture, block_signals, cannot_start, fork_mark::ForkMark, gate::Gate, require,
    with_blocked_signals,
};
use crate::error::{Error, Result};

/// Starts work on the threads of a client: tasks on its runtime, and blocking work on its pool.
#[derive(Clone)]
pub(crate) struct RuntimeHandle {
    pub(crate) tokio: Handle,
    pub(crate) blocking: BlockingPool,
    gate: Gate,
}

/// A thread of a caller is inside the runtime until this value is dropped.
#[cfg(feature = "postgres")]
pub(crate) struct Entered<'a> {
    _runtime: tokio::runtime::EnterGuard<'a>,
    _gate: super::gate::Passage<'a>,
}

impl RuntimeHandle {
    pub(crate) fn new(tokio: Handle, blocking: BlockingPool) -> RuntimeHandle {
        RuntimeHandle { tokio, blocking, gate: Gate::default() }
    }

    /// Enters the runtime for one poll, which must not block. `None` once the runtime shuts down.
    #[cfg(feature = "postgres")]
    pub(crate) fn enter(&self) -> Option<Entered<'_>> {
        let gate = self.gate.pass()?;
        Some(Entered { _runtime: self.tokio.enter(), _gate: gate })
    }

    /// Starts a task. Its future is in a box, so that the code of a task is there once for each type of result.
    pub(crate) fn spawn<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.tokio.spawn(Box::pin(future) as BoxedFuture<'static, T>)
    }
}

/// Owns the threads. Dropping it ends them without waiting for them.
pub(crate) struct Runtime {
    handle: RuntimeHandle,
    background: Mutex<Option<tokio::runtime::Runtime>>,
    /// Separate from `handle.blocking`, because a callback may wait for work that needs a thread of that pool.
    callbacks: BlockingPool,
    /// Until the threads have ended.
    fork_mark: Mutex<Option<ForkMark>>,
}

impl Runtime {
    /// The time that `shut_down` waits for a blocking task to return.
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

    /// The threads of the tokio runtime.
    const WORKERS: usize = 2;

    /// The threads that a client needs: workers, the writer of SQLite, one for blocking work, and one for `close`.
    const NEEDED_THREADS: usize = Runtime::WORKERS + 3;

    /// # Errors
    /// `Config` in a child that was forked while its parent had a client open; `Unavailable` if the system has too few threads.
    pub(crate) fn start() -> Result<Runtime> {
        let fork_mark = Mutex::new(Some(ForkMark::new()?));
        // tokio panics if it cannot start its first worker, and waits forever if it can start no other thread.
        require(Runtime::NEEDED_THREADS)?;
        let build = || {
            Builder::new_multi_thread()
                .worker_threads(Runtime::WORKERS)
                .max_blocking_threads(16)
                .thread_keep_alive(Duration::from_secs(5))
                .thread_name("townsquare-run")
                .on_thread_start(block_signals)
                .enable_all()
                .build()
        };
        // Its threads start each other, and each inherits the signal mask of the one that starts it.
        let built = with_blocked_signals(|| catch_unwind(AssertUnwindSafe(build)));
        let background =
            built.map_err(|_| Error::unavailable("Cannot start the threads of a client"))?.map_err(cannot_start)?;
        let runtime = background.handle().clone();
        Ok(Runtime {
            handle: RuntimeHandle::new(runtime.clone(), BlockingPool::new("townsquare-work", 16)),
            background: Mutex::new(Some(background)),
            callbacks: BlockingPool::for_callbacks("townsquare-call", runtime),
            fork_mark,
        })
    }

    /// Starts background work.
    pub(crate) fn handle(&self) -> &RuntimeHandle {
        &self.handle
    }

    /// The runtime for tasks.
    pub(crate) fn tokio(&self) -> &Handle {
        &self.handle.tokio
    }

    /// The pool for the callbacks of subscriptions, and for the readers of the change log.
    pub(crate) fn callbacks(&self) -> &BlockingPool {
        &self.callbacks
    }

    /// Cancels every task and waits for the threads to end. Must not be called on one of these threads.
    pub(crate) fn shut_down(&self) {
        self.handle.gate.close();
        let background = self.background.lock().take();
        // Tasks and blocking work first: callbacks may be waiting for them.
        if let Some(background) = background {
            // tokio forbids waiting on a thread of any tokio runtime. `close` is there only if it got no thread of its own.
            if Handle::try_current().is_ok() {
                background.shutdown_background();
            } else {
                background.shutdown_timeout(Runtime::SHUTDOWN_TIMEOUT);
            }
        }
        for pool in [&self.handle.blocking, &self.callbacks] {
            pool.close(Runtime::SHUTDOWN_TIMEOUT);
        }
        drop(self.fork_mark.lock().take());
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // A stream may outlive the client.
        self.handle.gate.close();
        // Does not wait for the threads: the last handle may be dropped on one of them.
        if let Some(background) = self.background.get_mut().take() {
            background.shutdown_background();
        }
        for pool in [&self.handle.blocking, &self.callbacks] {
            pool.close(Duration::ZERO);
        }
    }
}

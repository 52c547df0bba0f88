//! The threads of a client: one small tokio runtime for background work, a pool for blocking work and one for callbacks.
//!
//! Invariant: the futures of this library need no runtime of the caller, because work that must be driven is spawned
//! here. After [`Runtime::shut_down`] returns, none of these threads is left.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};

use crate::{
    error::{Error, Result},
    threads::{self, BlockingPool, RuntimeHandle},
};

/// Owns the threads. Dropping it ends them without waiting.
pub(crate) struct Runtime {
    handle: RuntimeHandle,
    background: Mutex<Option<tokio::runtime::Runtime>>,
    /// Separate from `handle.blocking`, because a callback may wait for work that needs a thread of that pool.
    callbacks: BlockingPool,
}

impl Runtime {
    /// The time that `shut_down` waits for a blocking task to return.
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

    /// The threads of the tokio runtime.
    const WORKERS: usize = 2;

    /// The threads that a client needs: workers, the writer of SQLite, one for blocking work, and one for `close`.
    const NEEDED_THREADS: usize = Runtime::WORKERS + 3;

    pub(crate) fn start() -> Result<Runtime> {
        // tokio panics if it cannot start its first worker, and waits forever if it can start no other thread.
        threads::require(Runtime::NEEDED_THREADS)?;
        let build = || {
            Builder::new_multi_thread()
                .worker_threads(Runtime::WORKERS)
                .max_blocking_threads(16)
                .thread_keep_alive(Duration::from_secs(5))
                .thread_name("townsquare-run")
                .on_thread_start(threads::block_signals)
                .enable_all()
                .build()
        };
        // Its threads start each other, and each inherits the signal mask of the one that starts it.
        let built = threads::with_blocked_signals(|| catch_unwind(AssertUnwindSafe(build)));
        let background = built
            .map_err(|_| Error::unavailable("Cannot start the threads of a client"))?
            .map_err(threads::cannot_start)?;
        Ok(Runtime {
            handle: RuntimeHandle {
                tokio: background.handle().clone(),
                blocking: BlockingPool::new("townsquare-work", 16),
            },
            background: Mutex::new(Some(background)),
            callbacks: BlockingPool::new("townsquare-call", 512),
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

    /// The pool whose threads run the callbacks of subscriptions.
    pub(crate) fn callbacks(&self) -> &BlockingPool {
        &self.callbacks
    }

    /// Cancels every task and waits for the threads to end. Must not be called on one of these threads.
    pub(crate) fn shut_down(&self) {
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
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Does not wait: the last handle may be dropped on one of these threads.
        if let Some(background) = self.background.get_mut().take() {
            background.shutdown_background();
        }
        for pool in [&self.handle.blocking, &self.callbacks] {
            pool.close(Duration::ZERO);
        }
    }
}

//! The threads of a client: one small tokio runtime for background work and one for callbacks.
//!
//! Invariant: the futures of this library need no runtime of the caller, because work that must be driven is spawned
//! here. After [`Runtime::shut_down`] returns, no thread of either runtime is left.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};

use crate::error::{Error, Result};

/// Owns both runtimes. Dropping it shuts them down without waiting for their threads.
pub(crate) struct Runtime {
    background_handle: Handle,
    background: Mutex<Option<tokio::runtime::Runtime>>,
    callbacks_handle: Handle,
    /// Separate, because a callback may block on work that needs a thread of `background`.
    callbacks: Mutex<Option<tokio::runtime::Runtime>>,
}

impl Runtime {
    /// The time that `shut_down` waits for a blocking task to return.
    const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

    pub(crate) fn start() -> Result<Runtime> {
        let background = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .thread_keep_alive(Duration::from_secs(5))
            .thread_name("townsquare-run")
            .enable_all()
            .build()
            .map_err(cannot_start)?;
        // Starts no thread before the first callback.
        let callbacks = Builder::new_current_thread()
            .max_blocking_threads(512)
            .thread_keep_alive(Duration::from_secs(5))
            .thread_name("townsquare-call")
            .build()
            .map_err(cannot_start)?;
        Ok(Runtime {
            background_handle: background.handle().clone(),
            background: Mutex::new(Some(background)),
            callbacks_handle: callbacks.handle().clone(),
            callbacks: Mutex::new(Some(callbacks)),
        })
    }

    /// The runtime for background work.
    pub(crate) fn handle(&self) -> &Handle {
        &self.background_handle
    }

    /// The runtime whose blocking threads run the callbacks of subscriptions.
    pub(crate) fn callbacks(&self) -> &Handle {
        &self.callbacks_handle
    }

    /// Cancels every task and waits for the threads to end. Must not be called on one of these threads.
    pub(crate) fn shut_down(&self) {
        // Background first: it cancels the work that callbacks may be waiting for.
        for runtime in [&self.background, &self.callbacks] {
            let runtime = runtime.lock().take();
            if let Some(runtime) = runtime {
                runtime.shutdown_timeout(Runtime::SHUTDOWN_TIMEOUT);
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Does not wait: the last handle may be dropped on a runtime thread, where waiting is not allowed.
        for runtime in [&mut self.background, &mut self.callbacks] {
            if let Some(runtime) = runtime.get_mut().take() {
                runtime.shutdown_background();
            }
        }
    }
}

fn cannot_start(error: std::io::Error) -> Error {
    Error::unavailable(format!("Cannot start threads: {error}")).caused_by(error)
}

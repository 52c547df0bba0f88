//! The threads of a client: one small runtime for what goes on in the background.
//!
//! Invariant: the futures of this library need no runtime of their caller's; what must be driven is spawned here.
//! After [`Runtime::end`] returns, none of its threads is left, whatever they were doing.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle};

use crate::error::{Error, Result};

/// Owns the runtime; dropping it ends the threads without waiting for them.
pub(crate) struct Runtime {
    handle: Handle,
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
    callbacks: Handle,
    /// Of callbacks alone: they may call the library and wait for work that needs a thread of the other.
    callback_runtime: Mutex<Option<tokio::runtime::Runtime>>,
}

impl Runtime {
    /// A blocking task that ignores the end this long is left to finish by itself.
    const PATIENCE: Duration = Duration::from_secs(10);

    pub(crate) fn start() -> Result<Runtime> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(16)
            .thread_keep_alive(Duration::from_secs(5))
            .thread_name("townsquare-run")
            .enable_all()
            .build()
            .map_err(no_threads)?;
        // Its threads come with the first callback.
        let callback_runtime = Builder::new_current_thread()
            .max_blocking_threads(512)
            .thread_keep_alive(Duration::from_secs(5))
            .thread_name("townsquare-call")
            .build()
            .map_err(no_threads)?;
        Ok(Runtime {
            handle: runtime.handle().clone(),
            runtime: Mutex::new(Some(runtime)),
            callbacks: callback_runtime.handle().clone(),
            callback_runtime: Mutex::new(Some(callback_runtime)),
        })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where callbacks of whoever uses the library run, as blocking tasks.
    pub(crate) fn callbacks(&self) -> &Handle {
        &self.callbacks
    }

    /// Calls off every task and waits for the threads to end. Not to be called from one of them.
    pub(crate) fn end(&self) {
        // Callbacks last: what they wait for is called off first.
        for runtime in [&self.runtime, &self.callback_runtime] {
            let runtime = runtime.lock().take();
            if let Some(runtime) = runtime {
                runtime.shutdown_timeout(Runtime::PATIENCE);
            }
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // The last handle may be dropped anywhere, also on a thread of a runtime, where waiting is not allowed.
        for runtime in [&mut self.runtime, &mut self.callback_runtime] {
            if let Some(runtime) = runtime.get_mut().take() {
                runtime.shutdown_background();
            }
        }
    }
}

fn no_threads(error: std::io::Error) -> Error {
    Error::unavailable(format!("Cannot start threads: {error}")).caused_by(error)
}

//! Wakes asyncio event loops from the library's threads.
//!
//! Invariant: no thread of the core's runtime waits for the GIL. A finished task sends a [`Wakeup`] and continues; one
//! thread for each client, started by the first wakeup, calls the event loops.

use std::sync::{
    Mutex, PoisonError,
    mpsc::{self, Sender},
};

use pyo3::{prelude::*, sync::PyOnceLock};

use crate::{errors::Failure, process};

/// The thread that wakes event loops, once it has started.
#[derive(Default)]
pub(crate) struct LoopWaker(Mutex<Option<Sender<Wakeup>>>);

/// An asyncio future to set a result on, and its event loop.
pub(crate) struct Wakeup {
    pub(crate) event_loop: Py<PyAny>,
    pub(crate) future: Py<PyAny>,
}

/// Sends wakeups to the thread of a [`LoopWaker`].
#[derive(Clone)]
pub(crate) struct WakeupSender(Sender<Wakeup>);

impl LoopWaker {
    /// A sender. The thread ends when the last sender is dropped.
    ///
    /// # Errors
    /// `Unavailable` when the thread cannot be started.
    pub(crate) fn sender(&self) -> Result<WakeupSender, Failure> {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*sender {
            return Ok(WakeupSender(sender.clone()));
        }
        let (new, wakeups) = mpsc::channel::<Wakeup>();
        townsquare::threads::spawn("townsquare-py", move || {
            while let Ok(wakeup) = wakeups.recv() {
                // Attaching to the interpreter is the slowest step, so one attachment serves every queued wakeup.
                let attached = process::attach(|py| {
                    wake(py, &wakeup);
                    wakeups.try_iter().for_each(|wakeup| wake(py, &wakeup));
                });
                if attached.is_none() {
                    return;
                }
            }
        })?;
        Ok(WakeupSender(sender.insert(new).clone()))
    }
}

impl WakeupSender {
    pub(crate) fn send(&self, wakeup: Wakeup) {
        // Sending fails once the interpreter finalizes, when no coroutine waits any more.
        let _ = self.0.send(wakeup);
    }
}

fn wake(py: Python<'_>, wakeup: &Wakeup) {
    static SET_RESULT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let set_result =
        SET_RESULT.get_or_try_init(py, || Ok::<_, PyErr>(wrap_pyfunction!(set_result, py)?.into_any().unbind()));
    // A closed event loop raises. No coroutine waits on that loop, so the exception is ignored.
    let _ =
        set_result.and_then(|set| wakeup.event_loop.call_method1(py, "call_soon_threadsafe", (set, &wakeup.future)));
}

/// Runs on the event loop: completes the future unless it was cancelled.
#[pyfunction]
fn set_result(py: Python<'_>, future: &Bound<'_, PyAny>) -> PyResult<()> {
    if !future.call_method0("done")?.is_truthy()? {
        future.call_method1("set_result", (py.None(),))?;
    }
    Ok(())
}

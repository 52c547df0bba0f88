//! What befalls the process while clients are open: signals, `fork` and the end of the interpreter.
//!
//! Invariants: no thread of ours attaches to an interpreter that is being torn down (CPython answers that by ending
//! the thread, and with it, on some versions, the process); and nothing made before a `fork` is used after it, since
//! the threads behind it did not come along.

use std::{
    future::Future,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use pyo3::{prelude::*, types::PyDict};

/// How often a blocked call looks whether Ctrl-C was pressed.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
/// How often, and at what pace, the end of the interpreter looks for a thread of ours that is still inside it.
const LOOKS: u32 = 2_000;
const PAUSE: Duration = Duration::from_millis(1);

static FORKS: AtomicU64 = AtomicU64::new(0);
static ENDING: AtomicBool = AtomicBool::new(false);
static INSIDE: AtomicUsize = AtomicUsize::new(0);
static LAST_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Asks Python to tell us of forks and of its end.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, module)?,))?;
    // There is no fork, and no such function, on Windows.
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

/// Which process of a line of forks this is; what was made under another number is not to be used.
pub(crate) fn generation() -> u64 {
    FORKS.load(Ordering::Relaxed)
}

/// Blocks this thread, detached, until the future is ready or a signal handler raises.
pub(crate) fn wait<F: Future + Send>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F::Output: Send,
{
    py.detach(|| {
        let outcome = townsquare::blocking::wait_while(future, SIGNAL_CHECK, || {
            rest_if_ending();
            Python::attach(raise_signals)
        });
        rest_if_ending();
        outcome
    })
}

/// Runs the handlers of signals that came; only Python's main thread has any.
fn raise_signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Runs `body` attached to the interpreter, from a thread of our own; `None` when the interpreter is ending.
pub(crate) fn visit<R>(body: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    INSIDE.fetch_add(1, Ordering::SeqCst);
    let result = if ENDING.load(Ordering::SeqCst) { None } else { Python::try_attach(body) };
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Whether the interpreter has begun to end.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// A daemon thread that comes back while the interpreter ends must not touch it: it rests until the process is gone.
fn rest_if_ending() {
    while is_ending() && LAST_THREAD.get() != Some(&thread::current().id()) {
        thread::park();
    }
}

#[pyfunction]
fn after_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
    INSIDE.store(0, Ordering::SeqCst);
}

#[pyfunction]
fn at_exit(py: Python<'_>) {
    let _ = LAST_THREAD.set(thread::current().id());
    ENDING.store(true, Ordering::SeqCst);
    py.detach(|| {
        for _ in 0..LOOKS {
            if INSIDE.load(Ordering::SeqCst) == 0 {
                return;
            }
            thread::sleep(PAUSE);
        }
    });
}

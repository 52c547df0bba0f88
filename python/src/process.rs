//! What befalls the process while clients are open: signals, `fork` and the end of the interpreter.
//!
//! Invariants: no thread of ours attaches to an interpreter that is being torn down (CPython answers that by ending
//! the thread, and with it, on some versions, the process); and nothing made before a `fork` is used after it, since
//! the threads behind it did not come along.

use std::{
    cell::Cell,
    future::Future,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
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

thread_local! {
    static IS_VISITING: Cell<bool> = const { Cell::new(false) };
}

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

/// Blocks this thread, detached, until work that no future stands for is through; a signal handler that raises leaves it
/// to end by itself.
pub(crate) fn wait_for(py: Python<'_>, work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    // No signal is handled on a thread of ours, and who calls may be what the work would wait for.
    if is_visiting() {
        py.detach(|| {
            work();
            rest_if_ending();
        });
        return Ok(());
    }
    let (done, waiting) = mpsc::channel();
    thread::Builder::new().name("townsquare-wait".into()).spawn(move || {
        work();
        let _ = done.send(());
    })?;
    py.detach(move || {
        let outcome = loop {
            match waiting.recv_timeout(SIGNAL_CHECK) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    rest_if_ending();
                    if let Err(raised) = Python::attach(raise_signals) {
                        break Err(raised);
                    }
                }
            }
        };
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
    let _visit = Visit::begin();
    if ENDING.load(Ordering::SeqCst) { None } else { Python::try_attach(body) }
}

/// Whether this thread is one of ours, inside the interpreter: it runs a callback.
pub(crate) fn is_visiting() -> bool {
    IS_VISITING.get()
}

/// Calls code of Python's from a visit. The interpreter, when it has ended, ends the threads that still run such code, by
/// unwinding them: this one rests instead, before anything of it is dropped without the interpreter.
pub(crate) fn stay<R>(call: impl FnOnce() -> R) -> R {
    struct Rest {
        has_returned: bool,
    }
    impl Drop for Rest {
        fn drop(&mut self) {
            if !self.has_returned {
                rest_if_ending();
            }
        }
    }
    let mut rest = Rest { has_returned: false };
    let result = call();
    rest.has_returned = true;
    result
}

/// A thread of ours inside the interpreter.
struct Visit;

impl Visit {
    fn begin() -> Visit {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        IS_VISITING.set(true);
        Visit
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        IS_VISITING.set(false);
        INSIDE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether the interpreter has begun to end.
pub(crate) fn is_ending() -> bool {
    ENDING.load(Ordering::SeqCst)
}

/// A daemon thread that comes back while the interpreter ends must not touch it: it rests until the process is gone.
fn rest_if_ending() {
    if is_ending() && is_visiting() {
        // The end need not wait for it.
        drop(Visit);
    }
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

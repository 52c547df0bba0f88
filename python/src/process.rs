//! Signals, `fork` and interpreter shutdown, as the library's threads and blocked calls meet them.
//!
//! Invariants: no thread of the library attaches to an interpreter that is finalizing, because CPython ends such a thread
//! and, on some versions, the process with it; and nothing made before a `fork` is used in the child process, because
//! the child has none of the library's threads.

use std::{
    cell::Cell,
    future::Future,
    hint::black_box,
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread::{self, ThreadId},
    time::Duration,
};

use pyo3::{prelude::*, types::PyDict};

use crate::errors::Failure;

/// How often a blocked call checks for signals, such as Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(50);
/// How many times, and how often, shutdown checks whether a library thread is still attached.
const EXIT_CHECKS: u32 = 2_000;
const EXIT_CHECK: Duration = Duration::from_millis(1);

static FORK_COUNT: AtomicU64 = AtomicU64::new(0);
static IS_FINALIZING: AtomicBool = AtomicBool::new(false);
static ATTACHED_THREADS: AtomicUsize = AtomicUsize::new(0);
static FINALIZING_THREAD: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    static IS_ATTACHED: Cell<bool> = const { Cell::new(false) };
}

/// Registers the hooks for `fork` and for interpreter shutdown.
pub(crate) fn register_hooks(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(at_exit, module)?,))?;
    // Windows has no fork and no such function.
    if let Ok(register) = py.import("os")?.getattr("register_at_fork") {
        let hooks = PyDict::new(py);
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, module)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

/// How many forks led to this process. What was made under another count belongs to a parent process.
pub(crate) fn fork_count() -> u64 {
    FORK_COUNT.load(Ordering::Relaxed)
}

/// Blocks this thread, without the GIL, until the future is ready or a signal handler raises.
pub(crate) fn block_on<F: Future + Send>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F::Output: Send,
{
    py.detach(|| {
        let outcome = townsquare::blocking::wait_while(future, SIGNAL_CHECK, check_signals);
        park_if_finalizing();
        outcome
    })
}

/// Runs `work` on a new thread and blocks this one, without the GIL, until it has returned or a signal handler raises. After
/// a signal `work` runs to completion on its own.
pub(crate) fn block_on_thread(py: Python<'_>, work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    // A library thread handles no signals, and `work` may be waiting for this very thread.
    if is_library_thread() {
        py.detach(|| {
            work();
            park_if_finalizing();
        });
        return Ok(());
    }
    let (done, completion) = mpsc::channel();
    let waiting = townsquare::threads::spawn("townsquare-wait", move || {
        work();
        let _ = done.send(());
    });
    waiting.map_err(|error| Failure::from(error).into_exception(py, None))?;
    py.detach(move || {
        let outcome = loop {
            match completion.recv_timeout(SIGNAL_CHECK) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(raised) = check_signals() {
                        break Err(raised);
                    }
                }
            }
        };
        park_if_finalizing();
        outcome
    })
}

/// Runs the handlers of pending signals. Python runs them on its main thread only.
fn check_signals() -> PyResult<()> {
    fn run_handlers(py: Python<'_>) -> PyResult<()> {
        py.check_signals()
    }
    park_if_finalizing();
    Python::attach(run_handlers)
}

/// Attaches a library thread to the interpreter for `body`. Returns `None` while the interpreter finalizes.
pub(crate) fn attach<R>(body: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    let _attachment = Attachment::new();
    if is_finalizing() { None } else { Python::try_attach(body) }
}

/// Whether this is a library thread inside [`attach`]: it runs a callback.
pub(crate) fn is_library_thread() -> bool {
    IS_ATTACHED.get()
}

/// Calls Python code from inside [`attach`]. A finalized interpreter ends the threads that still run Python code by
/// unwinding them; this thread parks instead, before its locals are dropped without an interpreter.
pub(crate) fn call_python<R>(call: impl FnOnce() -> R) -> Option<R> {
    struct ParkOnUnwind {
        has_returned: bool,
    }
    impl Drop for ParkOnUnwind {
        fn drop(&mut self) {
            if !self.has_returned {
                park_if_finalizing();
            }
        }
    }
    let mut guard = ParkOnUnwind { has_returned: false };
    let (mut call, mut result) = (Some(call), None);
    let mut run = || result = call.take().map(|call| call());
    // The compiler assumes that C functions never unwind. Where it can see that `call` only runs C functions, it removes
    // the guard's landing pad, and the process aborts.
    black_box::<&mut dyn FnMut()>(&mut run)();
    guard.has_returned = true;
    result
}

/// Counts a library thread that is attached to the interpreter.
struct Attachment;

impl Attachment {
    fn new() -> Attachment {
        ATTACHED_THREADS.fetch_add(1, Ordering::SeqCst);
        IS_ATTACHED.set(true);
        Attachment
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        IS_ATTACHED.set(false);
        ATTACHED_THREADS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether interpreter shutdown has begun.
pub(crate) fn is_finalizing() -> bool {
    IS_FINALIZING.load(Ordering::SeqCst)
}

/// Parks this thread until the process ends, if the interpreter finalizes on another thread.
fn park_if_finalizing() {
    if is_finalizing() && is_library_thread() {
        // Shutdown need not wait for this thread.
        drop(Attachment);
    }
    while is_finalizing() && FINALIZING_THREAD.get() != Some(&thread::current().id()) {
        thread::park();
    }
}

#[pyfunction]
fn after_fork() {
    FORK_COUNT.fetch_add(1, Ordering::Relaxed);
    ATTACHED_THREADS.store(0, Ordering::SeqCst);
}

/// Begins shutdown: lets attached library threads leave the interpreter, for at most two seconds.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    let _ = FINALIZING_THREAD.set(thread::current().id());
    IS_FINALIZING.store(true, Ordering::SeqCst);
    py.detach(|| {
        for _ in 0..EXIT_CHECKS {
            if ATTACHED_THREADS.load(Ordering::SeqCst) == 0 {
                return;
            }
            thread::sleep(EXIT_CHECK);
        }
    });
}

//! How blocked calls handle signals, and how the library's threads handle `fork` and interpreter shutdown.
//!
//! Invariants: no thread of the library attaches to an interpreter that is finalizing, because CPython ends such a
//! thread, and some versions of CPython then abort the process. No object that was created before a `fork` is used in
//! the child process, because the child has none of the library's threads.

use std::{
    cell::Cell,
    future::Future,
    hint::black_box,
    mem::ManuallyDrop,
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
/// How many times shutdown checks whether a library thread is still attached.
const EXIT_CHECKS: u32 = 2_000;
/// The time between two of these checks.
const EXIT_CHECK: Duration = Duration::from_millis(1);

static FORK_COUNT: AtomicU64 = AtomicU64::new(0);
static IS_FINALIZING: AtomicBool = AtomicBool::new(false);
/// How many library threads are attached to the interpreter.
static ATTACHED_THREADS: AtomicUsize = AtomicUsize::new(0);
static FINALIZING_THREAD: OnceLock<ThreadId> = OnceLock::new();

thread_local! {
    /// Whether this thread has an [`Attachment`].
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

/// How many forks led to this process. An object that was created under a different count belongs to a parent process.
pub(crate) fn fork_count() -> u64 {
    FORK_COUNT.load(Ordering::Relaxed)
}

/// A value that only the process that made it drops. In a child process it is leaked: its destructor could wait for
/// threads that the child does not have, or remove files that the parent still uses.
pub(crate) struct ProcessOwned<T> {
    value: Option<T>,
    fork_count: u64,
}

impl<T> ProcessOwned<T> {
    pub(crate) fn new(value: T) -> ProcessOwned<T> {
        ProcessOwned { value: Some(value), fork_count: fork_count() }
    }

    /// The value, unless it was taken. The caller has made sure that this is the value's process.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut()
    }

    /// Takes the value out, as [`get_mut`](ProcessOwned::get_mut).
    pub(crate) fn take(&mut self) -> Option<T> {
        self.value.take()
    }

    /// Puts a value in.
    pub(crate) fn put(&mut self, value: T) {
        self.value = Some(value);
    }
}

impl<T> Drop for ProcessOwned<T> {
    fn drop(&mut self) {
        let value = ManuallyDrop::new(self.value.take());
        if self.fork_count == fork_count() {
            drop(ManuallyDrop::into_inner(value));
        }
    }
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

/// Runs `work` on a new thread. Blocks the calling thread, without the GIL, until `work` returns or a signal handler
/// raises. If a handler raises, `work` still runs to completion.
pub(crate) fn block_on_thread(py: Python<'_>, work: impl FnOnce() + Send + 'static) -> PyResult<()> {
    // Python handles no signals on library threads. Inside a callback, `unsubscribe` must run on the callback's own
    // thread: on another thread it would wait for the callback.
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

/// Calls Python code of the program that may take long. A finalized interpreter ends the threads that still run Python code by
/// unwinding them. When the unwinding starts, this thread parks, so that its local variables are not dropped after the
/// interpreter has ended.
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
    // The compiler assumes that C functions never unwind. If it sees that `call` runs only C functions, it removes the
    // guard's landing pad, and the process aborts.
    black_box::<&mut dyn FnMut()>(&mut run)();
    guard.has_returned = true;
    result
}

/// Marks this thread as attached to the interpreter. A nested attachment changes nothing.
struct Attachment {
    is_nested: bool,
}

impl Attachment {
    fn new() -> Attachment {
        let is_nested = IS_ATTACHED.replace(true);
        if !is_nested {
            ATTACHED_THREADS.fetch_add(1, Ordering::SeqCst);
        }
        Attachment { is_nested }
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if !self.is_nested {
            IS_ATTACHED.set(false);
            ATTACHED_THREADS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Whether interpreter shutdown has begun.
pub(crate) fn is_finalizing() -> bool {
    IS_FINALIZING.load(Ordering::SeqCst)
}

/// Parks this thread until the process ends, if the interpreter finalizes on another thread.
fn park_if_finalizing() {
    if !is_finalizing() || FINALIZING_THREAD.get() == Some(&thread::current().id()) {
        return;
    }
    if is_library_thread() {
        // This thread never leaves `park`, so its `Attachment` is never dropped. Decrement the count here.
        ATTACHED_THREADS.fetch_sub(1, Ordering::SeqCst);
    }
    loop {
        thread::park();
    }
}

#[pyfunction]
fn after_fork() {
    FORK_COUNT.fetch_add(1, Ordering::Relaxed);
    // The child process has only the thread that forked, perhaps inside a callback.
    ATTACHED_THREADS.store(usize::from(IS_ATTACHED.get()), Ordering::SeqCst);
}

/// Begins shutdown: waits at most two seconds until every other library thread has left the interpreter.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    let _ = FINALIZING_THREAD.set(thread::current().id());
    IS_FINALIZING.store(true, Ordering::SeqCst);
    py.detach(|| {
        for _ in 0..EXIT_CHECKS {
            if ATTACHED_THREADS.load(Ordering::SeqCst) <= usize::from(IS_ATTACHED.get()) {
                return;
            }
            thread::sleep(EXIT_CHECK);
        }
    });
}

//! The log: hands the library's `tracing` events to the Python logger `townsquare` and its children.
//!
//! Invariants: an event never waits for the interpreter, because the thread that emits it may hold a lock that another
//! thread waits for with the GIL. It goes into a bounded queue. A separate thread drains the queue, and ends when
//! the queue is empty and before the interpreter finalizes. Only events of the library are handed on: events of
//! dependencies may contain secrets.

use std::{
    cell::Cell,
    collections::VecDeque,
    fmt::{self, Write as _},
    mem,
    sync::{
        Condvar, Mutex, MutexGuard, Once, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::prelude::*;
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
    subscriber::{self, Interest},
};

use crate::process;

/// The name of the root logger of the library.
const LOGGER: &str = "townsquare";
/// How many records wait for Python at most. Further ones are counted and dropped.
const MAX_RECORDS: usize = 1_000;
/// Python's number of the level DEBUG.
const DEBUG: u8 = 10;

/// A queue for each process: the child of a fork uses the next one, because a thread that the child does not have may
/// hold the lock of its parent's. The child of this many forks in a row drops its records.
static QUEUES: [Queue; 32] = [const { Queue::new() }; 32];

/// Whether the logger takes records below WARNING.
static IS_DEBUGGING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this thread hands records to Python. What a handler makes the library log on this thread is dropped.
    static IS_LOGGING: Cell<bool> = const { Cell::new(false) };
}

/// Logs what waits when the interpreter exits. Call it after [`process::register_hooks`]: the functions of `atexit` run in reverse
/// order, and this one needs the interpreter.
pub(crate) fn install(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // Imported now: a program may give up the right to read Python's library later, and `logging` registers its own
    // function with `atexit`, which is to run after this one.
    py.import("logging")?;
    py.import("atexit")?.call_method1("register", (wrap_pyfunction!(log_waiting, module)?,)).map(drop)
}

/// Makes [`Log`] the subscriber of this library, unless the process runs the command, whose log has another form. Hands records below
/// WARNING on if the logger takes them now: an event cannot ask the logger, and to hand all of them on would fill the queue. Each
/// call that begins without a client calls this first.
pub(crate) fn start(py: Python<'_>) -> PyResult<()> {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| drop(subscriber::set_global_default(Log)));
    let is_debugging = logger(py, LOGGER)?.call_method1("isEnabledFor", (DEBUG,))?.is_truthy()?;
    IS_DEBUGGING.store(is_debugging, Ordering::Relaxed);
    Ok(())
}

/// Logs the records that wait, after the thread that drains the queue has ended: once the interpreter finalizes, a call of
/// the library does not return to Python. A handler that calls the library then would keep its lock, and `logging` waits
/// for this lock at the end of the program.
#[pyfunction]
fn log_waiting(py: Python<'_>) {
    if let Some(queue) = Queue::of_process().filter(|_| !IS_LOGGING.get()) {
        py.detach(|| queue.end_drainer());
        queue.log_all(py);
    }
}

/// A record of Python's `logging`.
struct Record {
    level: u8,
    /// `townsquare::discovery`.
    target: &'static str,
    message: String,
}

impl Record {
    /// Calls the logger. If a handler raises, Python's `unraisablehook` gets the exception.
    fn log(self, py: Python<'_>) {
        let name = self.target.replace("::", ".");
        let logged = logger(py, &name).and_then(|logger| logger.call_method1("log", (self.level, self.message)));
        if let Err(unlogged) = logged {
            unlogged.write_unraisable(py, None);
        }
    }
}

fn logger<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("logging")?.call_method1("getLogger", (name,))
}

/// The records of a process that wait for Python.
struct Queue {
    waiting: Mutex<WaitingRecords>,
    drainer_ended: Condvar,
}

struct WaitingRecords {
    records: VecDeque<Record>,
    dropped: usize,
    /// Whether a thread drains the queue.
    is_draining: bool,
    /// Whether the program ends: no thread drains the queue any more.
    is_ending: bool,
}

impl Queue {
    const fn new() -> Queue {
        let waiting = WaitingRecords { records: VecDeque::new(), dropped: 0, is_draining: false, is_ending: false };
        Queue { waiting: Mutex::new(waiting), drainer_ended: Condvar::new() }
    }

    fn of_process() -> Option<&'static Queue> {
        QUEUES.get(usize::try_from(process::fork_count()).ok()?)
    }

    fn lock(&self) -> MutexGuard<'_, WaitingRecords> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&'static self, record: Record) {
        let mut waiting = self.lock();
        if waiting.records.len() >= MAX_RECORDS {
            waiting.dropped += 1;
            return;
        }
        waiting.records.push_back(record);
        if !waiting.is_ending && !mem::replace(&mut waiting.is_draining, true) {
            drop(waiting);
            if townsquare::threads::spawn("townsquare-log", || self.drain()).is_err() {
                // The next record tries again.
                self.note_end_of_drainer(&mut self.lock());
            }
        }
    }

    fn note_end_of_drainer(&self, waiting: &mut WaitingRecords) {
        waiting.is_draining = false;
        self.drainer_ended.notify_all();
    }

    /// Ends the thread that drains the queue after its current record, and waits for it.
    fn end_drainer(&self) {
        let mut waiting = self.lock();
        waiting.is_ending = true;
        while waiting.is_draining {
            waiting = self.drainer_ended.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Logs records until none waits, or until a handler forks: the child has its own queue.
    fn drain(&self) {
        IS_LOGGING.set(true);
        let fork_count = process::fork_count();
        while let Some(record) = (process::fork_count() == fork_count).then(|| self.next(true)).flatten() {
            // `None` once the interpreter finalizes. `log_waiting` has logged what waited.
            process::attach(|py| process::call_python(|| record.log(py)));
        }
    }

    /// Logs the records that wait now. A handler that makes the library log more does not prolong it.
    fn log_all(&self, py: Python<'_>) {
        IS_LOGGING.set(true);
        let waiting = self.lock().records.len();
        for _ in 0..waiting {
            let Some(record) = self.next(false) else { break };
            record.log(py);
        }
        IS_LOGGING.set(false);
    }

    /// The next record, or one about the records that were dropped. `None` ends the thread that `is_drainer`.
    fn next(&self, is_drainer: bool) -> Option<Record> {
        let mut waiting = self.lock();
        if is_drainer && waiting.is_ending {
            self.note_end_of_drainer(&mut waiting);
            return None;
        }
        if let Some(record) = waiting.records.pop_front() {
            return Some(record);
        }
        let dropped = mem::take(&mut waiting.dropped);
        if dropped > 0 {
            let message = format!("{dropped} log records were dropped, because logging them took too long");
            return Some(Record { level: python_level(Level::WARN), target: LOGGER, message });
        }
        if is_drainer {
            self.note_end_of_drainer(&mut waiting);
        }
        None
    }
}

/// The `tracing` subscriber. It ignores spans.
struct Log;

impl Subscriber for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if !is_of_library(metadata) {
            Interest::never()
        } else if *metadata.level() <= Level::WARN {
            Interest::always()
        } else {
            Interest::sometimes()
        }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        is_of_library(metadata) && (*metadata.level() <= Level::WARN || IS_DEBUGGING.load(Ordering::Relaxed))
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        if IS_LOGGING.get() || process::is_finalizing() {
            return;
        }
        let Some(queue) = Queue::of_process() else { return };
        let mut message = Message::default();
        event.record(&mut message);
        let metadata = event.metadata();
        queue.push(Record {
            level: python_level(*metadata.level()),
            target: metadata.target(),
            message: message.text + &message.fields,
        });
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

fn is_of_library(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    metadata.is_event() && (target == LOGGER || target.starts_with("townsquare::"))
}

/// Python's number of a level.
fn python_level(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        _ => DEBUG,
    }
}

/// The fields of an event as text: the message, with ` name=value` for each further field.
#[derive(Default)]
struct Message {
    text: String,
    fields: String,
}

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.text, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

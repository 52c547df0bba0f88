//! What `AsyncClient` hands out: a coroutine around a future of the core.
//!
//! Invariants: nothing runs before the first `await`; an answer that is there at once costs no event loop, no thread and
//! no asyncio future; an answer that is not is computed on the library's threads, and dropping, closing or cancelling
//! the coroutine ends that work. Python code is never called with the state locked.

use std::{
    future::Future,
    mem::{self, ManuallyDrop},
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyIterator, PyTuple, PyType},
};

use crate::{
    courier::{Courier, Mailbox, Note},
    enter::Call,
    errors::Failure,
    handle::Share,
    process,
};

/// An answer that becomes a Python object when somebody takes it.
pub(crate) type Answer = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The future of an answer.
pub(crate) type Work = Pin<Box<dyn Future<Output = Result<Answer, Failure>> + Send>>;

/// Where work goes on that is not ready at once.
pub(crate) enum Place {
    /// Where the caller stands and, when that was not enough, on the client's own runtime.
    Here(Share),
    /// On the client's own runtime from the start: it may take a while.
    Runtime(Share),
    /// On a thread made for it: a client that opens has no runtime yet, and one that closes ends it.
    Thread(Arc<Courier>),
}

/// One call of an `AsyncClient`: await it, once.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct Coroutine {
    call: Call,
    state: Mutex<State>,
    /// Outlives the work, so that the last share of a client is dropped by a Python object.
    place: Place,
}

enum State {
    Fresh(Work),
    Waiting { steps: Py<PyIterator>, slot: Slot, _end: EndOnDrop },
    Running,
    Done,
}

/// Where a finished work leaves its answer; empty for one that was dropped unfinished.
type Slot = Arc<Mutex<Option<Result<Answer, Failure>>>>;

impl Coroutine {
    pub(crate) fn new(call: Call, place: Place, work: Work) -> Coroutine {
        Coroutine { call, state: Mutex::new(State::Fresh(work)), place }
    }

    fn replace(&self, state: State) -> State {
        mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    /// One step: an asyncio future to wait for, or `StopIteration` with the answer.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self.replace(State::Running) {
            State::Fresh(work) => match self.begin(py, work) {
                Ok(Begun::Ready(outcome)) => self.finish(py, outcome),
                Ok(Begun::Waiting(waiting)) => self.look(py, waiting),
                Err(error) => {
                    self.replace(State::Done);
                    Err(error)
                }
            },
            waiting @ State::Waiting { .. } => self.look(py, waiting),
            State::Running => Err(PyValueError::new_err("coroutine already executing")),
            State::Done => {
                self.replace(State::Done);
                Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine"))
            }
        }
    }

    fn begin(&self, py: Python<'_>, mut work: Work) -> PyResult<Begun> {
        if let Place::Here(_) = self.place
            && let Poll::Ready(outcome) = work.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            return Ok(Begun::Ready(outcome));
        }
        if process::is_ending() {
            return Err(PyRuntimeError::new_err("cannot wait for an answer at interpreter shutdown"));
        }
        static RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
        let future = event_loop.call_method0("create_future")?;
        let steps = future.call_method0("__await__")?.cast_into::<PyIterator>()?.unbind();
        let slot = Slot::default();
        let note = Note { event_loop: event_loop.unbind(), future: future.unbind() };
        let end = match &self.place {
            Place::Here(share) | Place::Runtime(share) => {
                let parcel = Parcel::new(&slot, share.courier().mailbox()?, note);
                let client = share.client().map_err(|failure| failure.into_exception(py, self.call.operation()))?;
                let task = client.runtime().spawn(async move { parcel.deliver(work.await) });
                EndOnDrop::new(move || task.abort())
            }
            Place::Thread(courier) => {
                let parcel = Parcel::new(&slot, courier.mailbox()?, note);
                on_a_thread(work, parcel)?
            }
        };
        Ok(Begun::Waiting(State::Waiting { steps, slot, _end: end }))
    }

    /// Passes a step on to the asyncio future's own iterator; when that is through, the answer is in the slot.
    fn look(&self, py: Python<'_>, waiting: State) -> PyResult<Py<PyAny>> {
        let State::Waiting { steps, slot, .. } = &waiting else {
            return self.finish(py, Err(Failure::closed()));
        };
        match steps.bind(py).clone().next() {
            Some(Ok(step)) => {
                self.replace(waiting);
                Ok(step.unbind())
            }
            Some(Err(error)) => {
                self.replace(State::Done);
                Err(error)
            }
            None => {
                let outcome = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                self.finish(py, outcome.unwrap_or_else(|| Err(Failure::closed())))
            }
        }
    }

    fn finish(&self, py: Python<'_>, outcome: Result<Answer, Failure>) -> PyResult<Py<PyAny>> {
        self.replace(State::Done);
        match outcome {
            Ok(answer) => Err(PyStopIteration::new_err((answer(py)?,))),
            Err(failure) => Err(failure.into_exception(py, self.call.operation())),
        }
    }
}

enum Begun {
    Ready(Result<Answer, Failure>),
    Waiting(State),
}

#[pymethods]
impl Coroutine {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    /// Goes on; the event loop calls this.
    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = value;
        self.step(py)
    }

    /// Goes on with an exception; cancelling a task does this. The work under way is ended.
    #[pyo3(signature = (typ, val = None, tb = None, /))]
    fn throw(
        &self,
        py: Python<'_>,
        typ: &Bound<'_, PyAny>,
        val: Option<&Bound<'_, PyAny>>,
        tb: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        match self.replace(State::Running) {
            State::Running => Err(PyValueError::new_err("coroutine already executing")),
            State::Waiting { steps, _end: end, .. } => {
                self.replace(State::Done);
                drop(end);
                let given = if tb.is_some() {
                    3
                } else if val.is_some() {
                    2
                } else {
                    1
                };
                let thrown = PyTuple::new(py, &[Some(typ), val, tb][..given])?;
                steps.call_method1(py, "throw", thrown)
            }
            State::Fresh(_) | State::Done => {
                self.replace(State::Done);
                Err(raised(typ, val)?)
            }
        }
    }

    /// Ends it without an answer, and the work with it.
    fn close(&self) -> PyResult<()> {
        match self.replace(State::Running) {
            State::Running => Err(PyValueError::new_err("coroutine already executing")),
            _ => {
                self.replace(State::Done);
                Ok(())
            }
        }
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.call.name()
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.call.name()
    }

    fn __repr__(&self) -> String {
        format!("<townsquare coroutine {}>", self.call.name())
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        let fresh = matches!(self.state.get_mut().unwrap_or_else(PoisonError::into_inner), State::Fresh(_));
        if fresh {
            process::visit(|py| warn_of_oversight(py, self.call.name()));
        }
    }
}

/// What Python says of its own coroutines when somebody forgets the `await`.
fn warn_of_oversight(py: Python<'_>, name: &str) {
    let pending = PyErr::take(py);
    let text = std::ffi::CString::new(format!("coroutine '{name}' was never awaited")).unwrap_or_default();
    if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
        error.write_unraisable(py, None);
    }
    if let Some(pending) = pending {
        pending.restore(py);
    }
}

fn raised(typ: &Bound<'_, PyAny>, val: Option<&Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let instance = match (typ.cast::<PyType>(), val) {
        (Err(_), _) => typ.clone(),
        (Ok(_), Some(val)) if val.is_instance(typ)? => val.clone(),
        (Ok(class), Some(val)) => class.call1((val,))?,
        (Ok(class), None) => class.call0()?,
    };
    Ok(PyErr::from_value(instance))
}

/// An outcome on its way to a slot, and the note that says so. Dropped undelivered, it still rouses the waiter.
struct Parcel {
    slot: Slot,
    send: Option<(Mailbox, Note)>,
}

impl Parcel {
    fn new(slot: &Slot, mailbox: Mailbox, note: Note) -> Parcel {
        Parcel { slot: Arc::clone(slot), send: Some((mailbox, note)) }
    }

    fn deliver(self, outcome: Result<Answer, Failure>) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if let Some((mailbox, note)) = self.send.take() {
            mailbox.leave(note);
        }
    }
}

/// Ends the work it stands for; of no effect on one that is through, or after a fork.
struct EndOnDrop {
    end: Option<Box<dyn FnOnce() + Send>>,
    born: u64,
}

impl EndOnDrop {
    fn new(end: impl FnOnce() + Send + 'static) -> EndOnDrop {
        EndOnDrop { end: Some(Box::new(end)), born: process::generation() }
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        // Held back unless it runs: dropping it reaches into the runtime too.
        let end = ManuallyDrop::new(self.end.take());
        if self.born == process::generation()
            && let Some(end) = ManuallyDrop::into_inner(end)
        {
            end();
        }
    }
}

/// Runs work on a thread of its own.
fn on_a_thread(work: Work, parcel: Parcel) -> PyResult<EndOnDrop> {
    /// How soon an ended work is dropped.
    const CHECK: Duration = Duration::from_millis(50);
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    thread::Builder::new().name("townsquare-open".into()).spawn(move || {
        let check = || {
            if seen.load(Ordering::Acquire) { Err(()) } else { Ok(()) }
        };
        if let Ok(outcome) = townsquare::blocking::wait_while(work, CHECK, check) {
            parcel.deliver(outcome);
        }
    })?;
    Ok(EndOnDrop::new(move || ended.store(true, Ordering::Release)))
}

/// Makes an answer of anything that Python can be given.
pub(crate) fn answer<T>(value: T) -> Answer
where
    T: for<'py> IntoPyObject<'py> + Send + 'static,
{
    Box::new(move |py| value.into_py_any(py))
}

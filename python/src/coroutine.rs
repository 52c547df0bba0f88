//! The coroutine that a method of `AsyncClient` returns: PEP 492's protocol around a future of the core.
//!
//! Invariants: nothing runs before the first `await`; an answer that is ready at the first poll costs no event loop, no
//! thread and no asyncio future; dropping, closing or cancelling the coroutine cancels its work. No Python code runs
//! while `state` is locked.

// Why not the crate pyo3-async-runtimes (0.30)? It runs each call as a Tokio task and an asyncio future: `stats()`
// takes 151 us instead of 0.7, work starts before the `await`, and its process-wide runtime hangs in a forked child.

use std::{
    mem,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use pyo3::{
    exceptions::{PyAttributeError, PyRuntimeError, PyRuntimeWarning, PyStopIteration, PyTypeError, PyValueError},
    prelude::*,
    sync::PyOnceLock,
    types::{PyIterator, PyTuple, PyType},
};

use crate::{
    background::{AnswerSlot, CancelOnDrop, Executor, Outcome, Work},
    errors::Failure,
    loop_waker::Wakeup,
    method::Method,
    process,
};

/// One call of an `AsyncClient`. It can be awaited once.
#[pyclass(frozen, module = "townsquare._native")]
pub(crate) struct Coroutine {
    method: Method,
    state: Mutex<State>,
    /// Whether somebody has awaited it.
    is_awaited: AtomicBool,
    /// The executor holds a share of the client until the coroutine is dropped, so a library thread never drops the
    /// last share.
    executor: Executor,
}

enum State {
    /// Not awaited yet.
    Created(Work),
    /// Awaited: `steps` is the iterator of an asyncio future that completes once `answer` is filled.
    Waiting { steps: Py<PyIterator>, answer: AnswerSlot, cancel: CancelOnDrop },
    /// A thread is inside the coroutine.
    Running,
    /// Returned, raised, closed or cancelled.
    Done,
}

impl Coroutine {
    pub(crate) fn new(method: Method, executor: Executor, work: Work) -> Coroutine {
        Coroutine { method, state: Mutex::new(State::Created(work)), is_awaited: AtomicBool::new(false), executor }
    }

    fn replace(&self, state: State) -> State {
        mem::replace(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner), state)
    }

    /// Returns what the asyncio future yields, or raises `StopIteration` with the answer.
    fn step(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        // A task calls `send` without `__await__`.
        self.is_awaited.store(true, Ordering::Relaxed);
        match self.replace(State::Running) {
            State::Created(work) => self.start(py, work).inspect_err(|_| {
                self.replace(State::Done);
            }),
            State::Waiting { steps, answer, cancel } => self.wait(py, steps, answer, cancel),
            State::Running => Err(PyValueError::new_err("coroutine already executing")),
            State::Done => {
                self.replace(State::Done);
                Err(PyRuntimeError::new_err("cannot reuse already awaited coroutine"))
            }
        }
    }

    fn start(&self, py: Python<'_>, mut work: Work) -> PyResult<Py<PyAny>> {
        let first = match self.executor {
            Executor::CallerThenRuntime(_) => work.poll_once(),
            Executor::CallerWithoutGil(_) => py.detach(|| work.poll_once()),
            Executor::Runtime(_) | Executor::OwnThread(_) => Poll::Pending,
        };
        if let Poll::Ready(outcome) = first {
            return self.finish(py, outcome);
        }
        if process::is_finalizing() {
            return Err(PyRuntimeError::new_err("cannot wait for an answer at interpreter shutdown"));
        }
        static RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
        let future = event_loop.call_method0("create_future")?;
        let steps = future.call_method0("__await__")?.cast_into::<PyIterator>()?.unbind();
        let answer = AnswerSlot::default();
        let wakeup = Wakeup { event_loop: event_loop.unbind(), future: future.unbind() };
        let cancel = self.executor.spawn(py, self.method, work, &answer, wakeup)?;
        self.wait(py, steps, answer, cancel)
    }

    /// Advances the asyncio future. The answer is in its slot once that future has completed.
    fn wait(
        &self,
        py: Python<'_>,
        steps: Py<PyIterator>,
        answer: AnswerSlot,
        cancel: CancelOnDrop,
    ) -> PyResult<Py<PyAny>> {
        match steps.bind(py).clone().next() {
            Some(Ok(step)) => {
                self.replace(State::Waiting { steps, answer, cancel });
                Ok(step.unbind())
            }
            Some(Err(error)) => {
                self.replace(State::Done);
                Err(error)
            }
            None => self.finish(py, answer.take().unwrap_or_else(|| Err(Failure::closed()))),
        }
    }

    fn finish(&self, py: Python<'_>, outcome: Outcome) -> PyResult<Py<PyAny>> {
        self.replace(State::Done);
        match outcome {
            Ok(answer) => Err(PyStopIteration::new_err((answer(py)?,))),
            Err(failure) => Err(failure.into_exception(py, self.method.operation())),
        }
    }
}

#[pymethods]
impl Coroutine {
    fn __await__(this: Py<Self>) -> Py<Self> {
        this.get().is_awaited.store(true, Ordering::Relaxed);
        this
    }

    /// What `yield from` calls on the iterator of `__await__`. A `for` over a call without `await` would run the call, and find
    /// nothing.
    fn __iter__(this: Py<Self>) -> PyResult<Py<Self>> {
        if this.get().is_awaited.load(Ordering::Relaxed) {
            return Ok(this);
        }
        let text = format!("'{}' is not iterable before it is awaited: write `await`", this.get().method.name());
        Err(PyTypeError::new_err(text))
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.step(py)
    }

    /// Resumes the coroutine.
    fn send(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let _ = value;
        self.step(py)
    }

    /// Raises an exception inside the coroutine and cancels its work. Cancelling an asyncio task calls this.
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
            State::Waiting { steps, cancel, .. } => {
                self.replace(State::Done);
                drop(cancel);
                let count = if tb.is_some() { 3 } else { 1 + usize::from(val.is_some()) };
                steps.call_method1(py, "throw", PyTuple::new(py, &[Some(typ), val, tb][..count])?)
            }
            State::Created(_) | State::Done => {
                self.replace(State::Done);
                Err(exception(typ, val)?)
            }
        }
    }

    /// Ends the coroutine without an answer and cancels its work.
    fn close(&self) -> PyResult<()> {
        if let State::Running = self.replace(State::Running) {
            return Err(PyValueError::new_err("coroutine already executing"));
        }
        self.replace(State::Done);
        Ok(())
    }

    #[getter]
    fn __name__(&self) -> &'static str {
        self.method.name()
    }

    #[getter]
    fn __qualname__(&self) -> &'static str {
        self.method.name()
    }

    /// Called for an attribute that does not exist: one of the answer, if nobody has awaited it.
    fn __getattr__(&self, name: &str) -> PyResult<Py<PyAny>> {
        let method = self.method.name();
        let is_of_answer = !self.is_awaited.load(Ordering::Relaxed) && !name.starts_with('_');
        let text = match is_of_answer {
            true => format!("'{method}' has no attribute '{name}' before it is awaited: write `await`"),
            false => format!("the coroutine '{method}' has no attribute '{name}'"),
        };
        Err(PyAttributeError::new_err(text))
    }

    fn __repr__(&self) -> String {
        format!("<townsquare coroutine {}>", self.method.name())
    }
}

impl Drop for Coroutine {
    fn drop(&mut self) {
        if let State::Created(_) = self.state.get_mut().unwrap_or_else(PoisonError::into_inner) {
            process::attach(|py| warn_never_awaited(py, self.method.name()));
        }
    }
}

/// Python's warning for a coroutine that was dropped without an `await`.
fn warn_never_awaited(py: Python<'_>, name: &str) {
    let pending = PyErr::take(py);
    let text = std::ffi::CString::new(format!("coroutine '{name}' was never awaited")).unwrap_or_default();
    if let Err(error) = PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1) {
        error.write_unraisable(py, None);
    }
    if let Some(pending) = pending {
        pending.restore(py);
    }
}

/// The exception that `throw(typ, val)` stands for.
fn exception(typ: &Bound<'_, PyAny>, val: Option<&Bound<'_, PyAny>>) -> PyResult<PyErr> {
    let instance = match (typ.cast::<PyType>(), val) {
        (Err(_), _) => typ.clone(),
        (Ok(_), Some(val)) if val.is_instance(typ)? => val.clone(),
        (Ok(class), Some(val)) => class.call1((val,))?,
        (Ok(class), None) => class.call0()?,
    };
    Ok(PyErr::from_value(instance))
}

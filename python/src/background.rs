//! Runs work off the event loop, and tells a coroutine when it has completed.
//!
//! Invariants: dropping [`CancelOnDrop`] cancels the work; a [`Completion`] wakes its event loop also when the work was
//! cancelled before it had an answer.

use std::{
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use pyo3::{IntoPyObjectExt, prelude::*};

use crate::{
    client_share::ClientShare,
    errors::Failure,
    loop_waker::{LoopWaker, Wakeup, WakeupSender},
    method::Method,
    process,
};

/// A result of the core that becomes a Python object on a thread that holds the GIL.
pub(crate) type PyConversion = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;
/// The result of work: an answer or a failure.
pub(crate) type Outcome = Result<PyConversion, Failure>;

/// A future of an answer.
pub(crate) struct Work(Pin<Box<dyn Future<Output = Outcome> + Send>>);

impl Work {
    pub(crate) fn new<T, F>(future: F) -> Work
    where
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: for<'py> IntoPyObject<'py> + Send + 'static,
    {
        Work(Box::pin(async move {
            future.await.map(|value| Box::new(|py: Python<'_>| value.into_py_any(py)) as PyConversion)
        }))
    }

    /// Polls the work on another thread. The other value drops it at once, also while that thread has it.
    fn shared(self) -> (impl Future<Output = Option<Outcome>> + Send, SharedWork) {
        let shared = SharedWork(Arc::new(Mutex::new(Some(self))));
        let polled = shared.clone();
        let future = poll_fn(move |context| {
            let mut work = polled.lock();
            let Some(running) = work.as_mut() else { return Poll::Ready(None) };
            let outcome = ready!(running.0.as_mut().poll(context));
            *work = None;
            Poll::Ready(Some(outcome))
        });
        (future, shared)
    }

    /// Polls once on this thread.
    pub(crate) fn poll_once(&mut self) -> Poll<Outcome> {
        self.0.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }
}

/// Work that a thread polls and another may drop.
#[derive(Clone)]
struct SharedWork(Arc<Mutex<Option<Work>>>);

impl SharedWork {
    fn lock(&self) -> MutexGuard<'_, Option<Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where work runs.
pub(crate) enum Executor {
    /// The first poll on the calling thread, the rest on the client's runtime.
    CallerThenRuntime(ClientShare),
    /// As `CallerThenRuntime`; other threads have the GIL during the first poll.
    CallerWithoutGil(ClientShare),
    /// The client's runtime, from the first poll: for work that may block its thread.
    Runtime(ClientShare),
    /// A new thread: a client that opens has no runtime yet, one that closes ends it, and no thread of the runtime may
    /// wait for a Python callback.
    OwnThread(Arc<LoopWaker>),
}

impl Executor {
    /// Starts the work. `answer` receives the outcome before `wakeup` is sent; it stays empty for cancelled work.
    pub(crate) fn spawn(
        &self,
        py: Python<'_>,
        method: Method,
        work: Work,
        answer: &AnswerSlot,
        wakeup: Wakeup,
    ) -> PyResult<CancelOnDrop> {
        let exception = |failure: Failure| failure.into_exception(py, method.operation());
        let sender = |waker: &LoopWaker| waker.sender().map_err(exception);
        match self {
            Executor::CallerThenRuntime(share) | Executor::CallerWithoutGil(share) | Executor::Runtime(share) => {
                let completion = Completion::new(answer, sender(share.waker())?, wakeup);
                let client = share.get().map_err(exception)?;
                let (work, shared) = work.shared();
                let task = client.runtime().spawn(async move {
                    if let Some(outcome) = work.await {
                        completion.deliver(outcome);
                    }
                });
                // What the program does next comes after the drop of the work. No poll waits for the GIL.
                Ok(CancelOnDrop::new(move || {
                    drop(shared.lock().take());
                    task.abort();
                }))
            }
            Executor::OwnThread(waker) => {
                let completion = Completion::new(answer, sender(waker)?, wakeup);
                on_own_thread(work, completion).map_err(exception)
            }
        }
    }
}

fn on_own_thread(work: Work, completion: Completion) -> Result<CancelOnDrop, Failure> {
    /// How soon cancelled work is dropped.
    const CANCELLATION_CHECK: Duration = Duration::from_millis(50);
    let is_cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_cancelled);
    townsquare::threads::spawn("townsquare-call", move || {
        let check = || if flag.load(Ordering::Acquire) { Err(()) } else { Ok(()) };
        if let Ok(outcome) = townsquare::blocking::wait_while(work.0, CANCELLATION_CHECK, check) {
            completion.deliver(outcome);
        }
    })?;
    Ok(CancelOnDrop::new(move || is_cancelled.store(true, Ordering::Release)))
}

/// Where completed work leaves its outcome. Empty while the work runs, and for cancelled work.
#[derive(Clone, Default)]
pub(crate) struct AnswerSlot(Arc<Mutex<Option<Outcome>>>);

impl AnswerSlot {
    pub(crate) fn take(&self) -> Option<Outcome> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Delivers an outcome and wakes the event loop that waits for it.
struct Completion {
    slot: AnswerSlot,
    wakeup: Option<(WakeupSender, Wakeup)>,
}

impl Completion {
    fn new(slot: &AnswerSlot, sender: WakeupSender, wakeup: Wakeup) -> Completion {
        Completion { slot: slot.clone(), wakeup: Some((sender, wakeup)) }
    }

    fn deliver(self, outcome: Outcome) {
        *self.slot.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some((sender, wakeup)) = self.wakeup.take() {
            sender.send(wakeup);
        }
    }
}

/// Cancels work when it is dropped. Does nothing for completed work, and nothing after a fork.
pub(crate) struct CancelOnDrop {
    cancel: Option<Box<dyn FnOnce() + Send>>,
    fork_count: u64,
}

impl CancelOnDrop {
    fn new(cancel: impl FnOnce() + Send + 'static) -> CancelOnDrop {
        CancelOnDrop { cancel: Some(Box::new(cancel)), fork_count: process::fork_count() }
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        // In a child process the closure is leaked: dropping it would use the parent's runtime, and the child does
        // not have its threads.
        let cancel = ManuallyDrop::new(self.cancel.take());
        if self.fork_count == process::fork_count()
            && let Some(cancel) = ManuallyDrop::into_inner(cancel)
        {
            cancel();
        }
    }
}

//! The way from the library's threads to an asyncio event loop.
//!
//! Invariant: no worker of the core's runtime ever waits for the GIL. Whoever has an answer leaves a note and goes on;
//! one thread for each client, started with the first note, rouses the event loops.

use std::{
    io,
    sync::{
        Mutex, PoisonError,
        mpsc::{self, Sender},
    },
    thread,
};

use pyo3::{prelude::*, sync::PyOnceLock};

use crate::process;

/// Carries notes to event loops.
#[derive(Default)]
pub(crate) struct Courier(Mutex<Option<Sender<Note>>>);

/// "The answer that this asyncio future stands for has come."
pub(crate) struct Note {
    pub(crate) event_loop: Py<PyAny>,
    pub(crate) future: Py<PyAny>,
}

/// A place where notes are left.
#[derive(Clone)]
pub(crate) struct Mailbox(Sender<Note>);

impl Courier {
    /// The mailbox; the thread behind it lives as long as somebody holds one.
    pub(crate) fn mailbox(&self) -> io::Result<Mailbox> {
        let mut sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = &*sender {
            return Ok(Mailbox(sender.clone()));
        }
        let (new, notes) = mpsc::channel::<Note>();
        thread::Builder::new().name("townsquare-py".into()).spawn(move || {
            while let Ok(note) = notes.recv() {
                // One visit for all that is there: attaching is the dear part.
                let visited = process::visit(|py| {
                    rouse(py, &note);
                    notes.try_iter().for_each(|note| rouse(py, &note));
                });
                if visited.is_none() {
                    return;
                }
            }
        })?;
        Ok(Mailbox(sender.insert(new).clone()))
    }
}

impl Mailbox {
    pub(crate) fn leave(&self, note: Note) {
        // No receiver: the interpreter is ending and nobody waits any more.
        let _ = self.0.send(note);
    }
}

fn rouse(py: Python<'_>, note: &Note) {
    static SETTLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let settle = SETTLE.get_or_try_init(py, || Ok::<_, PyErr>(wrap_pyfunction!(settle, py)?.into_any().unbind()));
    // A loop that was closed meanwhile raises; whoever waited on it is gone.
    let _ = settle.and_then(|settle| note.event_loop.call_method1(py, "call_soon_threadsafe", (settle, &note.future)));
}

/// Runs on the event loop: ends the wait, unless it was cancelled before.
#[pyfunction]
fn settle(py: Python<'_>, future: &Bound<'_, PyAny>) -> PyResult<()> {
    if !future.call_method0("done")?.is_truthy()? {
        future.call_method1("set_result", (py.None(),))?;
    }
    Ok(())
}

//! Turns of a simulation: points in the code at which a test decides when a task goes on, and whether its step fails.
//!
//! Invariant: without a hook on the current thread, a turn is over at once.

use std::cell::RefCell;

use tokio::sync::oneshot;

use crate::error::Result;

/// Begins the turn of a step, and returns what ends it.
type Hook = Box<dyn Fn(&'static str) -> oneshot::Receiver<Result<()>>>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
}

/// Sets the hook of the current thread.
pub(crate) fn set_hook(hook: Option<Hook>) {
    HOOK.set(hook);
}

/// Waits for the turn of a step.
///
/// # Errors
/// The fault that the hook gives the step.
pub(crate) async fn turn(step: &'static str) -> Result<()> {
    let waiting = HOOK.with_borrow(|hook| hook.as_ref().map(|hook| hook(step)));
    match waiting {
        // The simulation has ended if there is no answer.
        Some(waiting) => waiting.await.unwrap_or(Ok(())),
        None => Ok(()),
    }
}

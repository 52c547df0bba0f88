//! Signals that end the command: SIGINT, SIGTERM and SIGHUP.
//!
//! Invariant: the first signal ends the process, unless the command has called `defer`. Then it sets a mark, and the second
//! signal ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::{exit_code, failure::Failure};

static IS_DEFERRED: AtomicBool = AtomicBool::new(false);
static IS_REQUESTED: AtomicBool = AtomicBool::new(false);
static REQUESTED: Notify = Notify::const_new();

/// Installs the handler. Called before the first client opens, because the threads of a client block signals.
pub(crate) fn install() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        let is_repeated = IS_REQUESTED.swap(true, Ordering::AcqRel);
        if is_repeated || !IS_DEFERRED.load(Ordering::Acquire) {
            exit_code::end_process(exit_code::INTERRUPTED);
        }
        REQUESTED.notify_one();
    })
    .map_err(|error| {
        let sentence = format!("Cannot receive signals: {error}");
        Failure::new(exit_code::FAILURE, sentence, "Check the limits of threads and open files of this process.")
    })
}

/// From now on the first signal does not end the process: the command ends by itself.
pub(crate) fn defer() {
    IS_DEFERRED.store(true, Ordering::Release);
}

/// Whether a signal asks the command to end.
pub(crate) fn is_requested() -> bool {
    IS_REQUESTED.load(Ordering::Acquire)
}

/// Waits for the signal. One task may wait.
pub(crate) async fn requested() {
    REQUESTED.notified().await;
}

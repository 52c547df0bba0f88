//! Long statements that end early: a client that closes does not wait for them.

use super::errors::translate;
use crate::error::{Error, Result};

/// How many steps of SQLite's virtual machine run before a statement asks whether it is cancelled.
const STEPS: i32 = 100_000;

/// Runs `work` on a connection. Its statements end early once `is_cancelled` returns true.
///
/// # Errors
/// `Closed` if the work was cancelled; else those of `work`.
pub(super) fn cancellable<T>(
    connection: &rusqlite::Connection,
    is_cancelled: impl Fn() -> bool + Clone + Send + 'static,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    connection.progress_handler(STEPS, Some(is_cancelled.clone())).map_err(translate)?;
    let result = work();
    connection.progress_handler(0, None::<fn() -> bool>).map_err(translate)?;
    match result {
        Err(_) if is_cancelled() => Err(Error::closed()),
        result => result,
    }
}

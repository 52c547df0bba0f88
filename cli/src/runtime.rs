//! Runs the futures of the library.

use tokio::runtime;

use crate::{exit_code, failure::Failure};

/// Waits for a future on this thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        let sentence = format!("Cannot wait for the library: {error}");
        Failure::new(exit_code::FAILURE, sentence, "Check the limits of open files of this process.")
    })?;
    Ok(runtime.block_on(work))
}

//! Retries of a failed request.

use std::time::Duration;

use crate::error::{Error, Result};

/// A failed request.
pub(super) struct RequestError {
    error: Error,
    is_transient: bool,
}

impl RequestError {
    /// An error that a retry may resolve.
    pub(super) fn transient(error: Error) -> RequestError {
        RequestError { error, is_transient: true }
    }

    /// An error that a retry does not resolve.
    pub(super) fn permanent(error: Error) -> RequestError {
        RequestError { error, is_transient: false }
    }
}

/// The remaining tries of one page, with exponential backoff.
pub(super) struct Retries {
    left: u32,
    backoff: Duration,
    /// For a wait of this length or more the fetch fails at once. Its error has the wait of the upstream's `Retry-After`.
    longest_wait: Duration,
}

impl Retries {
    const FIRST_BACKOFF: Duration = Duration::from_millis(200);

    pub(super) fn new(tries: u32, longest_wait: Duration) -> Retries {
        Retries { left: tries, backoff: Retries::FIRST_BACKOFF, longest_wait }
    }

    /// Waits until the next try is due.
    ///
    /// # Errors
    /// The request's error if there is no further try.
    pub(super) async fn wait_after(&mut self, failure: RequestError) -> Result<()> {
        let RequestError { error, is_transient } = failure;
        self.left -= 1;
        let wait = error.retry_after().unwrap_or(self.backoff);
        if !is_transient || self.left == 0 || wait >= self.longest_wait {
            return Err(error);
        }
        tracing::debug!(%error, ?wait, "retrying a request to the catalog");
        tokio::time::sleep(wait).await;
        self.backoff *= 2;
        Ok(())
    }
}

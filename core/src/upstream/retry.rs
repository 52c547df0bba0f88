//! Whether and when a failed request is tried again.

use std::time::Duration;

use crate::error::{Error, Result};

/// A request that failed.
pub(super) struct Failure {
    error: Error,
    /// Whether the same request may succeed soon.
    passes: bool,
    /// The wait that the upstream asked for.
    wait: Option<Duration>,
}

impl Failure {
    /// One that another try may mend.
    pub(super) fn passing(error: Error) -> Failure {
        Failure { error, passes: true, wait: None }
    }

    /// One that stays until somebody changes something.
    pub(super) fn lasting(error: Error) -> Failure {
        Failure { error, passes: false, wait: None }
    }

    /// One that passes by itself, after the wait the upstream named if it did.
    pub(super) fn limited(error: Error, wait: Option<Duration>) -> Failure {
        Failure { error, passes: true, wait }
    }
}

/// The tries of one page.
pub(super) struct Attempts {
    left: u32,
    backoff: Duration,
    /// A wait of this length or more is not sat out: the refresh fails and says when to come back.
    longest_wait: Duration,
}

impl Attempts {
    const FIRST_BACKOFF: Duration = Duration::from_millis(200);

    pub(super) fn new(tries: u32, longest_wait: Duration) -> Attempts {
        Attempts { left: tries, backoff: Attempts::FIRST_BACKOFF, longest_wait }
    }

    /// Waits until the next try is due.
    ///
    /// # Errors
    /// The failure itself when there is none.
    pub(super) async fn wait_after(&mut self, failure: Failure) -> Result<()> {
        let Failure { error, passes, wait } = failure;
        let error = match wait {
            Some(wait) => error.retry_in(wait),
            None => error,
        };
        self.left -= 1;
        let wait = wait.unwrap_or(self.backoff);
        if !passes || self.left == 0 || wait >= self.longest_wait {
            return Err(error);
        }
        tracing::debug!(%error, ?wait, "the catalog is tried again");
        tokio::time::sleep(wait).await;
        self.backoff *= 2;
        Ok(())
    }
}

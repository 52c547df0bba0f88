//! Exponential backoff between failed refreshes.

use std::time::Duration;

use crate::{clock::Moment, error::Error};

/// The wait after consecutive failures. It doubles with each failure and is at least the upstream's `Retry-After`.
#[derive(Clone, Copy, Default)]
pub(super) struct Backoff {
    until: Option<Moment>,
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(300);
    /// The upper bound of an upstream's `Retry-After`.
    const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3_600);

    /// Starts the wait after a failure.
    pub(super) fn fail(&mut self, now: Moment, error: &Error) {
        let doubled = Backoff::FIRST.saturating_mul(1 << self.failures.min(16)).min(Backoff::LONGEST);
        self.failures += 1;
        let retry_after = error.retry_after().unwrap_or_default().min(Backoff::LONGEST_RETRY_AFTER);
        self.until = Some(now.after(doubled.max(retry_after)));
    }

    /// Returns true until the wait ends.
    pub(super) fn is_active(&self, now: Moment) -> bool {
        self.until.is_some_and(|until| now < until)
    }
}

//! Exponential backoff between failed fetches of one list.

use std::time::Duration;

use crate::{
    clock::Moment,
    error::{Error, ErrorKind},
};

/// The wait after consecutive failures. It doubles with each failure and is at least the upstream's `Retry-After`.
#[derive(Clone, Copy, Default)]
pub(super) struct Backoff {
    until: Option<Moment>,
    failures: u32,
}

/// The failures of a list since its last success.
#[derive(Clone)]
pub(super) struct Failures {
    pub(super) backoff: Backoff,
    pub(super) error: Error,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(300);
    /// The upper bound of an upstream's `Retry-After`.
    pub(super) const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3_600);

    /// A backoff that another process began: `failures` are counted, and `remaining` of the wait is left.
    pub(super) fn resume(now: Moment, failures: u32, remaining: Duration) -> Backoff {
        Backoff { until: Some(now.after(remaining)), failures }
    }

    /// Starts the wait after a failure.
    pub(super) fn fail(&mut self, now: Moment, error: &Error) {
        let doubled = Backoff::FIRST.saturating_mul(1 << self.failures.min(16)).min(Backoff::LONGEST);
        self.failures = self.failures.saturating_add(1);
        let retry_after = error.retry_after().unwrap_or_default().min(Backoff::LONGEST_RETRY_AFTER);
        self.until = Some(now.after(doubled.max(retry_after)));
    }

    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    /// The time until the wait ends; zero after it.
    pub(super) fn remaining(&self, now: Moment) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.since(now))
    }

    /// Returns true until the wait ends.
    pub(super) fn is_active(&self, now: Moment) -> bool {
        self.remaining(now) > Duration::ZERO
    }
}

impl Failures {
    /// Adds a failure to the earlier ones, if there are any.
    pub(super) fn after(before: Option<&Failures>, now: Moment, error: Error) -> Failures {
        let mut backoff = before.map(|before| before.backoff).unwrap_or_default();
        backoff.fail(now, &error);
        Failures { backoff, error }
    }

    /// The error for a caller who may not fetch before the backoff ends; `None` after the backoff.
    pub(super) fn refusal(&self, now: Moment) -> Option<Error> {
        let remaining = self.backoff.remaining(now);
        if remaining.is_zero() {
            return None;
        }
        let is_unavailable = self.error.kind() == ErrorKind::Unavailable;
        Some(if is_unavailable { self.error.clone().retry_in(remaining) } else { self.error.clone() })
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn the_wait_doubles_up_to_five_minutes_and_honours_retry_after() {
        let clock = ManualClock::at(Timestamp::UNIX_EPOCH).clock();
        let (now, mut backoff) = (clock.moment(), Backoff::default());
        let error = Error::unavailable("no");
        let mut waits = Vec::new();
        for _ in 0..11 {
            backoff.fail(now, &error);
            waits.push(backoff.remaining(now).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        backoff.fail(now, &error.clone().retry_in(Duration::from_secs(7_200)));
        assert_eq!(backoff.remaining(now), Backoff::LONGEST_RETRY_AFTER);
        assert_eq!(Backoff::resume(now, 3, Duration::from_secs(5)).remaining(now), Duration::from_secs(5));
    }
}

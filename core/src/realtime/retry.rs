//! When the log is read again after a failure.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::error::Error;

/// The pause after the first of several failures. It doubles with each of them.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// How often the pause doubles: to 1.6 s.
const DOUBLINGS: u32 = 4;

/// The failures since the log was last read. All readers of a client share them: the server is away for all of them, and a
/// thousand readers that try at their own pace would fill the log of the program and hold up a server that comes back.
#[derive(Debug, Default)]
pub(super) struct ReadFailures(AtomicU32);

impl ReadFailures {
    /// Counts a failure, and logs the first of several. Returns how long to wait.
    pub(super) fn add(&self, error: &Error) -> Duration {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            tracing::warn!(%error, "the change log could not be read; the change feed tries again");
        } else {
            tracing::debug!(%error, "the change log could not be read");
        }
        FIRST_PAUSE * 2_u32.pow(before.min(DOUBLINGS))
    }

    /// The log was read.
    pub(super) fn clear(&self) {
        if self.0.load(Ordering::Relaxed) > 0 && self.0.swap(0, Ordering::Relaxed) > 0 {
            tracing::info!("the change log is read again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pauses_double_to_a_limit_and_begin_again_after_a_success() {
        let (failures, error) = (ReadFailures::default(), Error::closed());
        let pauses = |count: usize| (0..count).map(|_| failures.add(&error).as_millis()).collect::<Vec<_>>();
        assert_eq!(pauses(7), [100, 200, 400, 800, 1600, 1600, 1600]);
        failures.clear();
        assert_eq!(pauses(2), [100, 200]);
    }
}

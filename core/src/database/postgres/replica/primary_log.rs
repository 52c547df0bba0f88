//! Where the primary was in its log, and when: what makes an answer of a replica new enough.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

use crate::database::written::LogPlace;

/// How often the task asks the primary for its place in the log, in the time that an answer may lag.
pub(super) const LOOKS_PER_LAG: u32 = 10;

/// Where the primary was in its log.
#[derive(Default)]
pub(super) struct PrimaryLog {
    /// When the primary was asked, and what it answered; the oldest first.
    asked: VecDeque<(Instant, LogPlace)>,
    pub(super) newest: Option<LogPlace>,
}

impl PrimaryLog {
    pub(super) fn add(&mut self, asked: Instant, place: LogPlace, max_lag: Duration) {
        // A few entries are enough, however long an answer may lag. The newest one is always there.
        let spacing = max_lag / LOOKS_PER_LAG;
        if let [.., (before, _), _] = self.asked.make_contiguous()
            && asked.duration_since(*before) < spacing
        {
            self.asked.pop_back();
        }
        self.asked.push_back((asked, place));
        self.newest = Some(place);
        while self.asked.front().is_some_and(|(asked, _)| asked.elapsed() > max_lag) {
            self.asked.pop_front();
        }
    }

    /// The place that makes an answer new enough, and the newest place. `None` if the primary has not answered for so long.
    ///
    /// What a server has that has replayed the place is not older than the moment when the primary was asked for it.
    pub(super) fn floor(&self, max_lag: Duration) -> Option<(LogPlace, LogPlace)> {
        let (_, floor) = self.asked.iter().find(|(asked, _)| asked.elapsed() <= max_lag)?;
        Some((*floor, self.newest?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(place: u64) -> LogPlace {
        LogPlace { system: 1, timeline: 1, place }
    }

    #[test]
    fn the_floor_is_the_oldest_place_that_is_new_enough() {
        let (mut log, lag) = (PrimaryLog::default(), Duration::from_secs(60));
        assert!(log.floor(lag).is_none(), "the primary was not asked");
        let now = Instant::now();
        for (age, number) in [(90, 1), (50, 2), (10, 3)] {
            let asked = now.checked_sub(Duration::from_secs(age)).expect("the machine runs longer");
            log.add(asked, place(number), lag);
        }
        assert_eq!(log.floor(lag), Some((place(2), place(3))));
        assert_eq!(log.floor(Duration::from_secs(20)), Some((place(3), place(3))));
        assert!(log.floor(Duration::from_secs(5)).is_none(), "the primary has not answered for longer");
    }

    #[test]
    fn a_long_lag_needs_few_entries() {
        let (mut log, lag, now) = (PrimaryLog::default(), Duration::from_secs(1_000), Instant::now());
        for second in 0..500 {
            log.add(now + Duration::from_secs(second), place(second), lag);
        }
        assert!(log.asked.len() <= 7, "{}", log.asked.len());
        assert_eq!(log.floor(lag), Some((place(0), place(499))));
    }
}

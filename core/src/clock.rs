//! The time, injected: everything that asks for it asks a [`Clock`].
//!
//! Invariant: no other module reads the system's time. Wall time labels data (`fetched_at`, `created_at`) and may
//! step; monotonic time measures ages and never goes back, so a stepping clock neither freezes nor floods a cache.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};

/// Where a client reads the time.
///
/// The default is the system's; tests use [`ManualClock`].
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<Hands>),
}

struct Hands {
    wall_micros: AtomicI64,
    monotonic_micros: AtomicU64,
}

/// A point on the monotonic clock; meaningful only against another of the same clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// This moment moved into the future.
    pub fn after(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(wait))
    }

    /// How long after `earlier` this moment is; zero when it is not.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Clock {
    /// The wall time now, to the microsecond: what every table of this library keeps.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => micros(Timestamp::now().as_microsecond()),
            Source::Manual(hands) => micros(hands.wall_micros.load(Ordering::Acquire)),
        }
    }

    /// The monotonic time now.
    pub fn moment(&self) -> Moment {
        match &self.0 {
            Source::System => Moment(epoch().elapsed()),
            Source::Manual(hands) => Moment(Duration::from_micros(hands.monotonic_micros.load(Ordering::Acquire))),
        }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::System => "Clock::System",
            Source::Manual(_) => "Clock::Manual",
        })
    }
}

impl PartialEq for Clock {
    fn eq(&self, other: &Clock) -> bool {
        match (&self.0, &other.0) {
            (Source::System, Source::System) => true,
            (Source::Manual(a), Source::Manual(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A clock whose hands are moved by a test.
#[derive(Clone)]
pub struct ManualClock(Arc<Hands>);

impl ManualClock {
    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> ManualClock {
        ManualClock(Arc::new(Hands {
            wall_micros: AtomicI64::new(now.as_microsecond()),
            // Far from zero, so that a test may speak of moments before its start.
            monotonic_micros: AtomicU64::new(1_000_000_000_000),
        }))
    }

    /// The clock to give to a configuration.
    pub fn clock(&self) -> Clock {
        Clock(Source::Manual(Arc::clone(&self.0)))
    }

    /// Lets time pass: both hands move.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.monotonic_micros.fetch_add(by, Ordering::AcqRel);
        self.0.wall_micros.fetch_add(i64::try_from(by).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// Sets the wall clock forwards or backwards, as an administrator or NTP does; no time passes.
    pub fn step(&self, by: SignedDuration) {
        self.0.wall_micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(0), Ordering::AcqRel);
    }
}

/// `time` moved back, to the first moment there is at the most.
pub(crate) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// `time` moved on, to the last moment there is at the most.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn micros(since_epoch: i64) -> Timestamp {
    Timestamp::from_microsecond(since_epoch).unwrap_or(Timestamp::MAX)
}

fn epoch() -> Instant {
    static EPOCH: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_moves_no_monotonic_time() {
        let hands = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = hands.clock();
        let (wall, moment) = (clock.now(), clock.moment());
        hands.step(SignedDuration::from_hours(-1));
        assert_eq!(clock.moment(), moment);
        assert_eq!(clock.now(), wall - SignedDuration::from_hours(1));
        hands.advance(Duration::from_secs(2));
        assert_eq!(clock.moment().since(moment), Duration::from_secs(2));
    }
}

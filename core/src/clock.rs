//! The clock: every module reads the time from a [`Clock`], so that tests can control it.
//!
//! Invariant: no other module reads the system's time. Wall time labels data (`fetched_at`, `created_at`) and may step.
//! Monotonic time measures durations and never goes back, so a step of the wall clock does not change the age of a
//! cache. It counts the time that the machine sleeps, where the system can say it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};

/// The source of time of a client: the system clock, or a [`ManualClock`] in tests.
///
/// ```
/// use townsquare::config::Clock;
///
/// println!("{}", Clock::default().now()); // the system's time
/// ```
#[derive(Clone, Default)]
pub struct Clock(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    System,
    Manual(Arc<ManualTime>),
}

/// The two times of a [`ManualClock`].
#[derive(Debug)]
struct ManualTime {
    wall_micros: AtomicI64,
    monotonic_micros: AtomicU64,
}

/// A point in monotonic time. Compare only moments of the same clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// This moment plus `wait`.
    pub(crate) fn after(self, wait: Duration) -> Moment {
        Moment(self.0.saturating_add(wait))
    }

    /// The time from `earlier` to this moment; zero if `earlier` is not earlier.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Clock {
    /// The current wall time in microseconds, the precision of every table of this library.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System => micros(Timestamp::now().as_microsecond()),
            Source::Manual(time) => micros(time.wall_micros.load(Ordering::Acquire)),
        }
    }

    /// The current monotonic time.
    pub(crate) fn moment(&self) -> Moment {
        match &self.0 {
            Source::System => Moment(since_boot()),
            Source::Manual(time) => Moment(Duration::from_micros(time.monotonic_micros.load(Ordering::Acquire))),
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

/// A clock that only moves when a test moves it.
///
/// ```
/// use std::time::Duration;
/// use townsquare::{Config, Timestamp, config::ManualClock};
///
/// let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
/// let config = Config::new().clock(manual.clock());
/// manual.advance(Duration::from_secs(60)); // a client opened with `config` is now one minute older
/// assert_eq!(manual.clock().now().as_second(), 60);
/// ```
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<ManualTime>);

impl ManualClock {
    /// Creates a clock whose wall time is `now`.
    pub fn at(now: Timestamp) -> ManualClock {
        ManualClock(Arc::new(ManualTime {
            wall_micros: AtomicI64::new(now.as_microsecond()),
            // Above zero, so that a test can compute moments before its start.
            monotonic_micros: AtomicU64::new(1_000_000_000_000),
        }))
    }

    /// The [`Clock`] to pass to [`Config::clock`](crate::Config::clock).
    pub fn clock(&self) -> Clock {
        Clock(Source::Manual(Arc::clone(&self.0)))
    }

    /// Moves wall time and monotonic time forwards.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.monotonic_micros.fetch_add(by, Ordering::AcqRel);
        self.0.wall_micros.fetch_add(i64::try_from(by).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// Moves wall time forwards or backwards, as an administrator or NTP does. Monotonic time does not change.
    pub fn step(&self, by: SignedDuration) {
        self.0.wall_micros.fetch_add(i64::try_from(by.as_micros()).unwrap_or(0), Ordering::AcqRel);
    }
}

/// `time - by`, or `Timestamp::MIN` if that is out of range.
pub(crate) fn earlier(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_sub(by).unwrap_or(Timestamp::MIN)
}

/// `time + by`, or `Timestamp::MAX` if that is out of range.
pub(crate) fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn micros(since_epoch: i64) -> Timestamp {
    Timestamp::from_microsecond(since_epoch).unwrap_or(Timestamp::MAX)
}

/// The time since the machine started, including the time that it slept.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn since_boot() -> Duration {
    use nix::time::{ClockId, clock_gettime};
    // Apple's CLOCK_MONOTONIC counts the time asleep; Linux has a clock of its own for that.
    #[cfg(target_vendor = "apple")]
    const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;
    #[cfg(not(target_vendor = "apple"))]
    const CLOCK: ClockId = ClockId::CLOCK_BOOTTIME;
    clock_gettime(CLOCK).map_or_else(|_| since_first_use(), Duration::from)
}

/// As far as the system's `Instant` counts it.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn since_boot() -> Duration {
    since_first_use()
}

/// The time since the first use of a system clock in this process.
fn since_first_use() -> Duration {
    static FIRST_USE: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    FIRST_USE.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_the_wall_time_leaves_the_monotonic_time() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let clock = manual.clock();
        let (wall, moment) = (clock.now(), clock.moment());
        manual.step(SignedDuration::from_hours(-1));
        assert_eq!(clock.moment(), moment);
        assert_eq!(clock.now(), wall - SignedDuration::from_hours(1));
        manual.advance(Duration::from_secs(2));
        assert_eq!(clock.moment().since(moment), Duration::from_secs(2));
    }

    /// A time namespace moves the clock that counts the time asleep, as a suspended machine does, and no other clock.
    #[test]
    #[cfg(target_os = "linux")]
    #[allow(clippy::print_stderr, reason = "a skipped test says so")]
    fn monotonic_time_counts_the_time_asleep() {
        let program = std::env::current_exe().expect("a test knows its own program");
        let mut command = std::process::Command::new("unshare");
        command.args(["--time", "--fork", "--boottime", "1000000"]).arg(program);
        command.args(["--exact", "clock::tests::a_machine_that_slept", "--ignored"]);
        match command.output() {
            Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
            }
            _ => eprintln!("SKIPPED: this machine lets no test make a time namespace"),
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    #[ignore = "runs in a time namespace, by monotonic_time_counts_the_time_asleep"]
    fn a_machine_that_slept() {
        use nix::time::{ClockId, clock_gettime};
        let awake = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).expect("a clock"));
        assert!(Clock::default().moment().0 >= awake + Duration::from_secs(999_000));
    }
}

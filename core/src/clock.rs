//! The clock: every module reads the time from a [`Clock`], so that tests can control it.
//!
//! Invariant: no other module reads the system's time. Wall time labels data (`fetched_at`, `created_at`) and may step.
//! Monotonic time measures durations and never goes back, so a step of the wall clock does not change the age of a
//! cache. It counts the time that the machine sleeps, where the system can say it.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
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
pub struct Clock(TimeSource);

#[derive(Clone, Default)]
enum TimeSource {
    #[default]
    System,
    Manual(Arc<ManualTime>),
    #[cfg(feature = "postgres")]
    Server(Arc<ServerTime>),
}

/// The time of a database server, which a client reads from time to time. In between, the client's monotonic time counts on.
#[cfg(feature = "postgres")]
struct ServerTime {
    own: Clock,
    /// Microseconds from the client's monotonic time to the server's wall time; [`UNKNOWN`] before the first answer.
    ahead: AtomicI64,
}

/// Before the first answer of a server.
#[cfg(feature = "postgres")]
const UNKNOWN: i64 = i64::MIN;

/// The two times of a [`ManualClock`].
#[derive(Debug)]
struct ManualTime {
    wall_micros: AtomicI64,
    monotonic_micros: AtomicU64,
    /// Microseconds from the monotonic time to the wall time of the PostgreSQL server, for all clients with this clock. The
    /// first answer of a server sets it: only a test moves the clock.
    ahead_of_server: OnceLock<i64>,
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

    fn as_micros(self) -> i64 {
        i64::try_from(self.0.as_micros()).unwrap_or(i64::MAX)
    }
}

impl Clock {
    /// The current wall time in microseconds, the precision of every table of this library.
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            TimeSource::System => micros(Timestamp::now().as_microsecond()),
            TimeSource::Manual(time) => micros(time.wall_micros.load(Ordering::Acquire)),
            #[cfg(feature = "postgres")]
            TimeSource::Server(time) => match time.ahead.load(Ordering::Acquire) {
                UNKNOWN => time.own.now(),
                ahead => micros(self.moment().as_micros().saturating_add(ahead)),
            },
        }
    }

    /// The current monotonic time.
    pub(crate) fn moment(&self) -> Moment {
        match &self.0 {
            TimeSource::System => Moment(since_boot()),
            TimeSource::Manual(time) => Moment(Duration::from_micros(time.monotonic_micros.load(Ordering::Acquire))),
            #[cfg(feature = "postgres")]
            TimeSource::Server(time) => time.own.moment(),
        }
    }

    /// The clock of this machine, also if this clock shows the time of a server.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_machine(&self) -> Clock {
        match &self.0 {
            TimeSource::Server(time) => time.own.clone(),
            _ => self.clone(),
        }
    }

    /// Returns a clock for the time of a server. It shows the time of this clock until [`Clock::synchronize`] sets it.
    #[cfg(feature = "postgres")]
    pub(crate) fn of_server(&self) -> Clock {
        Clock(TimeSource::Server(Arc::new(ServerTime { own: self.clone(), ahead: AtomicI64::new(UNKNOWN) })))
    }

    /// Sets a clock of [`Clock::of_server`] to the time that the server has just sent. The client asked at `asked`, so the
    /// server read its time between `asked` and now. A clock that fits this range stays, so that slow answers do not move it.
    #[cfg(feature = "postgres")]
    pub(crate) fn synchronize(&self, asked: Moment, answer: Timestamp) {
        let TimeSource::Server(time) = &self.0 else { return };
        let least = answer.as_microsecond().saturating_sub(self.moment().as_micros());
        let most = answer.as_microsecond().saturating_sub(asked.as_micros()).max(least);
        let ahead = match &time.own.0 {
            TimeSource::Manual(manual) => *manual.ahead_of_server.get_or_init(|| least),
            _ => time.ahead.load(Ordering::Acquire).clamp(least, most),
        };
        time.ahead.store(ahead, Ordering::Release);
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            TimeSource::System => "Clock::System",
            TimeSource::Manual(_) => "Clock::Manual",
            #[cfg(feature = "postgres")]
            TimeSource::Server(_) => "Clock::Server",
        })
    }
}

impl PartialEq for Clock {
    fn eq(&self, other: &Clock) -> bool {
        match (&self.0, &other.0) {
            (TimeSource::System, TimeSource::System) => true,
            (TimeSource::Manual(a), TimeSource::Manual(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "postgres")]
            (TimeSource::Server(a), TimeSource::Server(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// A clock that only moves when a test moves it.
///
/// A client on PostgreSQL uses the server's time. The first client with this clock reads it; [`advance`](ManualClock::advance)
/// then moves it, and [`step`](ManualClock::step) does not.
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
            ahead_of_server: OnceLock::new(),
        }))
    }

    /// The [`Clock`] to pass to [`Config::clock`](crate::Config::clock).
    pub fn clock(&self) -> Clock {
        Clock(TimeSource::Manual(Arc::clone(&self.0)))
    }

    /// The time of the PostgreSQL server as the clients with this clock see it; `None` before a client has read it.
    ///
    /// ```
    /// use townsquare::{Timestamp, config::ManualClock};
    ///
    /// assert_eq!(ManualClock::at(Timestamp::UNIX_EPOCH).server_time(), None);
    /// ```
    pub fn server_time(&self) -> Option<Timestamp> {
        let ahead = self.0.ahead_of_server.get()?;
        Some(micros(self.clock().moment().as_micros().saturating_add(*ahead)))
    }

    /// Moves wall time and monotonic time forwards.
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.0.monotonic_micros.fetch_add(by, Ordering::AcqRel);
        self.0.wall_micros.fetch_add(i64::try_from(by).unwrap_or(i64::MAX), Ordering::AcqRel);
    }

    /// Moves wall time forwards or backwards, as an administrator or NTP does. Monotonic time does not change. A step of more than
    /// 15 minutes to before the last failed sign-in ends a lockout.
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
    static FIRST_USE: OnceLock<Instant> = OnceLock::new();
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

    #[test]
    #[cfg(feature = "postgres")]
    fn the_clock_of_a_server_shows_the_time_of_the_server() {
        let (own, server) = (Clock::default(), Clock::default().of_server());
        assert!(server.now() >= own.now() - SignedDuration::from_secs(60), "its own time before the first answer");
        let hours = |hours| SignedDuration::from_hours(hours);
        for ahead in [5, -7] {
            server.synchronize(server.moment(), own.now() + hours(ahead));
            let difference = server.now().duration_since(own.now()) - hours(ahead);
            assert!(difference.abs() < SignedDuration::from_secs(60), "{difference}");
        }
        // An answer that took long fits every time of the wait.
        let asked = server.moment();
        let before = server.now();
        while server.moment() == asked {}
        server.synchronize(asked, before);
        assert!(server.now() >= before);
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn a_manual_clock_moves_the_time_of_the_server() {
        let manual = ManualClock::at(Timestamp::UNIX_EPOCH);
        let [first, second] = [(); 2].map(|()| manual.clock().of_server());
        let time = Clock::default().now();
        first.synchronize(first.moment(), time);
        manual.advance(Duration::from_secs(60));
        manual.step(SignedDuration::from_hours(5));
        second.synchronize(second.moment(), time + SignedDuration::from_secs(1));
        for clock in [first, second] {
            assert_eq!(clock.now(), time + SignedDuration::from_secs(60));
        }
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

//! The types of parking_lot on the locks and threads of shuttle, which decides at each of their operations which thread runs next.
//!
//! Invariant: threads take turns, so no two of them run at the same time. A wait with a time-out may end at any moment, unless the
//! time-out is `Duration::MAX`.

use std::{
    collections::VecDeque,
    fmt,
    ops::{Deref, DerefMut},
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use shuttle::{
    rand::Rng as _,
    scheduler::{PctScheduler, RandomScheduler},
};
pub(crate) use shuttle::{sync::atomic, thread, thread_local};

/// `parking_lot::Mutex`: a panic does not poison it.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` inside of [`MutexGuard::unlocked`].
    guard: Option<shuttle::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, guard: Some(self.0.lock().unwrap_or_else(PoisonError::into_inner)) }
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let guard = self.0.try_lock().ok()?;
        Some(MutexGuard { mutex: self, guard: Some(guard) })
    }
}

impl<T> MutexGuard<'_, T> {
    /// Runs `code` while the lock is free.
    pub(crate) fn unlocked<R>(this: &mut Self, code: impl FnOnce() -> R) -> R {
        this.guard = None;
        let result = code();
        this.guard = this.mutex.lock().guard.take();
        result
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("the lock is held outside of `unlocked`")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("the lock is held outside of `unlocked`")
    }
}

/// `parking_lot::Condvar`: `notify_one` tells whether a thread was waiting, and a wait ends for no other reason.
#[derive(Default)]
pub(crate) struct Condvar {
    /// The threads that wait and have not been notified.
    waiting: std::sync::Mutex<VecDeque<Arc<Waiter>>>,
}

struct Waiter {
    thread: thread::Thread,
    is_notified: AtomicBool,
}

/// Whether a wait ended without a notification.
pub(crate) struct WaitTimeoutResult(bool);

impl Condvar {
    pub(crate) fn new() -> Condvar {
        Condvar::default()
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let waiter = self.enter();
        MutexGuard::unlocked(guard, || {
            while !waiter.is_notified.load(Ordering::SeqCst) {
                thread::park();
            }
        });
    }

    pub(crate) fn wait_while<T>(&self, guard: &mut MutexGuard<'_, T>, mut condition: impl FnMut(&mut T) -> bool) {
        while condition(guard) {
            self.wait(guard);
        }
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, timeout: Duration) -> WaitTimeoutResult {
        if timeout == Duration::MAX {
            self.wait(guard);
            return WaitTimeoutResult(false);
        }
        let waiter = self.enter();
        let times_out = MutexGuard::unlocked(guard, || {
            while !waiter.is_notified.load(Ordering::SeqCst) {
                if shuttle::rand::thread_rng().gen_ratio(1, 4) {
                    self.with_waiting(|waiting| waiting.retain(|other| !Arc::ptr_eq(other, &waiter)));
                    return true;
                }
                thread::yield_now();
            }
            false
        });
        WaitTimeoutResult(times_out)
    }

    pub(crate) fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) -> WaitTimeoutResult {
        while condition(guard) {
            if self.wait_for(guard, timeout).timed_out() {
                return WaitTimeoutResult(condition(guard));
            }
        }
        WaitTimeoutResult(false)
    }

    pub(crate) fn notify_one(&self) -> bool {
        let waiter = self.with_waiting(VecDeque::pop_front);
        waiter.as_deref().map(Waiter::notify).is_some()
    }

    pub(crate) fn notify_all(&self) -> usize {
        let waiters = self.with_waiting(std::mem::take);
        waiters.iter().for_each(|waiter| waiter.notify());
        waiters.len()
    }

    /// Adds the current thread, which still holds the lock.
    fn enter(&self) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter { thread: thread::current(), is_notified: AtomicBool::new(false) });
        self.with_waiting(|waiting| waiting.push_back(Arc::clone(&waiter)));
        waiter
    }

    /// No other thread runs meanwhile.
    fn with_waiting<R>(&self, code: impl FnOnce(&mut VecDeque<Arc<Waiter>>) -> R) -> R {
        code(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Waiter {
    fn notify(&self) {
        self.is_notified.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl WaitTimeoutResult {
    pub(crate) fn timed_out(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condvar")
    }
}

/// Runs `protocol` in many orders of its threads: random ones, and ones with few changes of threads, which are the more likely to
/// show a missing lock. `TOWNSQUARE_TEST_SCHEDULES` sets how many of each. A failure prints its schedule, for `shuttle::replay`.
pub(crate) fn check(protocol: impl Fn() + Send + Sync + 'static) {
    check_times(2_000, protocol);
}

/// Does what [`check`] does, by default with this number of schedules of each kind.
pub(crate) fn check_times(schedules: usize, protocol: impl Fn() + Send + Sync + 'static) {
    /// The most changes of threads.
    const DEPTH: usize = 3;
    #[expect(clippy::disallowed_methods, reason = "a test reads its own length")]
    let set = std::env::var("TOWNSQUARE_TEST_SCHEDULES").ok();
    let schedules = set.map_or(schedules, |set| set.parse().expect("TOWNSQUARE_TEST_SCHEDULES is a number"));
    let mut config = shuttle::Config::new();
    // For SQLite.
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    let protocol = Arc::new(protocol);
    let again = Arc::clone(&protocol);
    shuttle::Runner::new(RandomScheduler::new(schedules), config.clone()).run(move || again());
    shuttle::Runner::new(PctScheduler::new(DEPTH, schedules), config).run(move || protocol());
}

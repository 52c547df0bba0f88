//! Waiting for a condition, by polling it until a deadline.

use std::{
    thread,
    time::{Duration, Instant},
};

const PACE: Duration = Duration::from_millis(5);
/// Long enough for a loaded machine; only a failing test reaches it.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Blocks until `ready` returns true.
///
/// # Panics
/// With `what`, when `ready` does not return true before [`DEADLINE`].
pub fn wait_until(what: &str, ready: impl FnMut() -> bool) {
    wait_up_to(DEADLINE, what, ready);
}

/// Blocks until `ready` returns true.
///
/// # Panics
/// With `what`, when `ready` does not return true before `deadline`.
pub fn wait_up_to(deadline: Duration, what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + deadline;
    while !ready() {
        assert!(Instant::now() < end, "waited {deadline:?} until {what}");
        #[allow(clippy::disallowed_methods, reason = "polls until a deadline")]
        thread::sleep(PACE);
    }
}

/// Waits until `ready` returns true, without blocking the thread.
///
/// # Panics
/// With `what`, when `ready` does not return true before [`DEADLINE`].
pub async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !ready() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} until {what}");
        #[allow(clippy::disallowed_methods, reason = "polls until a deadline")]
        tokio::time::sleep(PACE).await;
    }
}

/// Returns the value of a future that must finish within `limit`.
///
/// # Panics
/// With `what`, when it takes longer.
pub async fn within<F: Future>(what: &str, limit: Duration, future: F) -> F::Output {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took over {limit:?}"),
    }
}

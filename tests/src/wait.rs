//! Waiting for something to become true, with a deadline instead of a guess.

use std::{
    thread,
    time::{Duration, Instant},
};

const PACE: Duration = Duration::from_millis(5);
/// Long enough for a loaded machine; reached only by a test that fails.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Blocks until `ready` says so.
///
/// # Panics
/// Naming `what`, when it has not become true in time.
pub fn wait_until(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !ready() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} until {what}");
        thread::sleep(PACE);
    }
}

/// The same without blocking the thread.
///
/// # Panics
/// Naming `what`, when it has not become true in time.
pub async fn until(what: &str, mut ready: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !ready() {
        assert!(Instant::now() < end, "waited {DEADLINE:?} until {what}");
        tokio::time::sleep(PACE).await;
    }
}

/// The value of a future that must not hang.
///
/// # Panics
/// Naming `what`, when it takes too long.
pub async fn within<F: Future>(what: &str, limit: Duration, future: F) -> F::Output {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("{what} took over {limit:?}"),
    }
}

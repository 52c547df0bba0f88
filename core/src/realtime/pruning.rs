//! Retention: deletes old entries of the log in small writes, as fast as entries are written.
//!
//! Invariant: while the log is within four times its limits, no entry is deleted that a subscription of this client still
//! needs. A write waits only while the log is far over its limits and pruning makes progress, here or in another client: for a
//! second at most.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use crate::{
    database::{
        Database,
        change_log::{EntryKey, LogPressure, LogSize, RetentionLimits},
    },
    error::{ErrorKind, Result},
};

/// How often the log is pruned if no write calls for it: for the age of entries, and for writes of other programs.
const INTERVAL: Duration = Duration::from_secs(5);

/// A client that has not used the feed looks at the log once in so many intervals: another process may have switched capture on.
const UNUSED_INTERVALS: u32 = 12;

/// How often a client that writes looks whether another process has switched capture on.
const UNUSED_PAUSE: Duration = Duration::from_millis(250);

/// How often a log is pruned while a subscription or a running transaction holds it up.
const HELD_UP_PAUSE: Duration = Duration::from_millis(500);

/// The percentage of the limits at which a write has the log pruned. Pruning at each write would cost a commit each.
const OVER: u32 = 105;

/// The percentage of the limits beyond which entries are pruned that subscriptions need.
const FOUR_TIMES: u32 = 400;

/// The percentage of the limits at which writes wait.
pub(super) const FAR_OVER: u32 = 150;

/// How long a write waits while the log shrinks.
const SHORT_HOLD: Duration = Duration::from_millis(50);

/// How long a write waits while the log grows.
const LONG_HOLD: Duration = Duration::from_secs(1);

/// How the client uses the log.
pub(super) struct LogUse {
    pub(super) database: Database,
    /// Whether the client has used the change feed, which switches capture on.
    pub(super) knows_capture: bool,
    /// The key after which a subscription still needs the log.
    pub(super) needed_after: Option<EntryKey>,
}

/// Prunes the log until `log_use` returns `None`, because the client is gone. Calls `end_pruned` with the id of the last entry that
/// was pruned: a subscription that needs it may never ask for it.
pub(super) async fn run(
    limits: RetentionLimits,
    pressure: Arc<LogPressure>,
    log_use: impl Fn() -> Option<LogUse> + Send + Sync,
    end_pruned: impl Fn(i64) + Send + Sync,
) {
    let mut pruning = Pruning {
        log_use,
        end_pruned,
        limits,
        pressure,
        is_counted: false,
        is_in_use: false,
        held_up_at: None,
        stalled_since: None,
    };
    let (mut interval_number, mut due) = (0_u32, Instant::now() + INTERVAL);
    loop {
        let is_due = tokio::select! {
            biased;
            () = tokio::time::sleep_until(due) => true,
            () = pruning.pressure.called() => false,
        };
        if is_due {
            interval_number = interval_number.wrapping_add(1);
            due = Instant::now() + INTERVAL;
        }
        let Some(LogUse { database, knows_capture, .. }) = (pruning.log_use)() else { return };
        let is_in_use = knows_capture || pruning.is_in_use;
        if is_due && !is_in_use && !interval_number.is_multiple_of(UNUSED_INTERVALS) {
            continue;
        }
        let pause = if is_in_use { database.pause_between_sizes() } else { UNUSED_PAUSE };
        let looked = pruning.look(&database, is_due).await;
        drop(database);
        let pruned = match looked {
            Ok(Some(size)) => pruning.prune(size).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match pruned {
            Err(error) if error.kind() == ErrorKind::Closed => return,
            Err(error) => {
                tracing::warn!(%error, "the change log could not be pruned");
                tokio::time::sleep_until(due).await;
            }
            Ok(()) if !is_due => tokio::time::sleep(pause).await,
            Ok(()) => {}
        }
    }
}

struct Pruning<Use, End> {
    log_use: Use,
    end_pruned: End,
    limits: RetentionLimits,
    pressure: Arc<LogPressure>,
    /// Whether the client has counted the whole log once.
    is_counted: bool,
    /// Whether the log had entries at the last look.
    is_in_use: bool,
    /// When the log was last found over its limits, but a subscription or a running transaction held up the pruning.
    held_up_at: Option<Instant>,
    /// Since when the log has been far over its limits and nobody has pruned it, though no subscription of this client needs it.
    stalled_since: Option<Instant>,
}

/// Writes that wait, and the size of the log when the last ones went on.
struct Hold {
    since: Instant,
    size: LogSize,
}

impl<Use: Fn() -> Option<LogUse>, End: Fn(i64)> Pruning<Use, End> {
    /// Looks at the log. Returns its size if it is time to prune it.
    async fn look(&mut self, database: &Database, is_due: bool) -> Result<Option<LogSize>> {
        let size = database.log_size().await?;
        self.is_in_use = size.rows > 0;
        let is_held_up = self.held_up_at.is_some_and(|at| at.elapsed() < HELD_UP_PAUSE);
        let over = if is_held_up { FOUR_TIMES } else { OVER };
        Ok((is_due || size.is_over(self.limits, over) || size.is_uncounted()).then_some(size))
    }

    /// Prunes the log until it is within its limits, or until a subscription holds it up.
    async fn prune(&mut self, size: LogSize) -> Result<()> {
        // Also if this future is dropped.
        let _release = ReleaseOnDrop(Arc::clone(&self.pressure));
        if size.is_over(self.limits, FAR_OVER) {
            // From now on, and not from the end of the first step: the log may grow faster than one step shrinks it.
            self.pressure.hold();
        }
        let mut hold = Hold { since: Instant::now(), size };
        let mut before = size;
        loop {
            let Some(LogUse { database, needed_after, .. }) = (self.log_use)() else { return Ok(()) };
            let (has_more, size) = self.step(&database, needed_after, &mut hold).await?;
            let has_moved = before.pruned < size.pruned;
            before = size;
            let is_far_over = size.is_over(self.limits, FAR_OVER);
            let is_held_up = needed_after.is_some_and(|key| key.id <= size.pruned);
            // Another client may be pruning, or a transaction that writes the log runs (PostgreSQL).
            let is_stalled = !has_moved && is_far_over && !is_held_up;
            self.stalled_since = is_stalled.then(|| self.stalled_since.unwrap_or_else(Instant::now));
            let makes_progress = has_moved || self.stalled_since.is_some_and(|since| since.elapsed() < LONG_HOLD);
            if makes_progress && is_far_over {
                self.hold_writes(&mut hold, size);
            } else {
                hold = Hold { since: Instant::now(), size };
                self.pressure.release();
            }
            if has_more {
                drop(database);
                tokio::task::yield_now().await;
            } else if makes_progress && size.is_over(self.limits, OVER) {
                let pause = database.pause_between_sizes();
                drop(database);
                tokio::time::sleep(pause).await;
            } else {
                let waits = is_held_up || is_stalled;
                self.held_up_at = (waits && size.is_over(self.limits, OVER)).then(Instant::now);
                return Ok(());
            }
        }
    }

    /// Prunes a part of the log. Returns whether there is more to delete, and the size of the log. A slow step does not hold writes
    /// any longer.
    async fn step(
        &mut self,
        database: &Database,
        needed_after: Option<EntryKey>,
        hold: &mut Hold,
    ) -> Result<(bool, LogSize)> {
        let (limits, is_counted) = (self.limits, self.is_counted);
        let mut step = pin!(async {
            if !is_counted {
                database.recount_changes().await?;
            }
            let has_more = database.prune_changes(limits, needed_after).await?;
            Ok((has_more, database.log_size().await?))
        });
        let (has_more, size) = loop {
            match timeout_at(hold.since + LONG_HOLD, step.as_mut()).await {
                Ok(step) => break step?,
                Err(_) => {
                    self.pressure.let_through();
                    hold.since = Instant::now();
                }
            }
        };
        self.is_counted = true;
        (self.end_pruned)(size.pruned);
        Ok((has_more, size))
    }

    /// Makes writes wait. Lets them go on after a short time if the log is no larger than when the last ones went on.
    fn hold_writes(&self, hold: &mut Hold, size: LogSize) {
        self.pressure.hold();
        let shrinks = size.rows <= hold.size.rows && size.bytes <= hold.size.bytes;
        if hold.since.elapsed() >= if shrinks { SHORT_HOLD } else { LONG_HOLD } {
            self.pressure.let_through();
            *hold = Hold { since: Instant::now(), size };
        }
    }
}

struct ReleaseOnDrop(Arc<LogPressure>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

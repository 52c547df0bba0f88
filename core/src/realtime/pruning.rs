//! Retention: deletes old entries of the log in small writes.
//!
//! Invariant: while the log is within four times its limits, no entry is deleted that a subscription of this client still
//! needs.

use std::time::Duration;

use crate::{
    database::{
        Database,
        change_log::{EntryKey, RetentionLimits},
    },
    error::ErrorKind,
};

/// How often the log is pruned.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many intervals pass between two looks of a client that has not used the change feed: another process may have switched
/// capture on.
const UNUSED_INTERVALS: u32 = 12;

/// How the client uses the log.
pub(super) struct LogUse {
    pub(super) database: Database,
    /// Whether the client has used the change feed, which switches capture on.
    pub(super) knows_capture: bool,
    /// The key after which a subscription still needs the log.
    pub(super) needed_after: Option<EntryKey>,
}

/// Prunes the log until `log_use` returns `None`, because the client is gone.
pub(super) async fn run(limits: RetentionLimits, log_use: impl Fn() -> Option<LogUse>) {
    let (mut interval_number, mut is_counted) = (0_u32, false);
    loop {
        tokio::time::sleep(INTERVAL).await;
        interval_number = interval_number.wrapping_add(1);
        let Some(first) = log_use() else { return };
        if !first.knows_capture && !interval_number.is_multiple_of(UNUSED_INTERVALS) {
            continue;
        }
        if !is_counted {
            match first.database.recount_changes().await {
                Ok(()) => is_counted = true,
                Err(error) => tracing::debug!(%error, "the change log could not be counted"),
            }
        }
        drop(first);
        loop {
            let Some(LogUse { database, needed_after, .. }) = log_use() else { return };
            match database.prune_changes(limits, needed_after).await {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => break,
                Err(error) if error.kind() == ErrorKind::Closed => return,
                Err(error) => {
                    tracing::warn!(%error, "the change log could not be pruned");
                    break;
                }
            }
        }
    }
}

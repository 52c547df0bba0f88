//! Retention: deletes old entries of the log in small writes.
//!
//! Invariant: while the log is within four times its limits, no entry is deleted that a subscription of this client still
//! needs.

use std::{sync::Weak, time::Duration};

use super::core::RealtimeCore;
use crate::error::ErrorKind;

/// How often the log is pruned.
const INTERVAL: Duration = Duration::from_secs(5);

/// How many intervals pass between two looks of a client that has not used the feed: another process may have switched
/// capture on.
const UNUSED_INTERVALS: u32 = 12;

/// Prunes the log while the client exists.
pub(super) async fn run(core: Weak<RealtimeCore>) {
    let mut interval_number = 0_u32;
    loop {
        tokio::time::sleep(INTERVAL).await;
        interval_number = interval_number.wrapping_add(1);
        let Some(core) = core.upgrade() else { return };
        if !core.knows_capture() && !interval_number.is_multiple_of(UNUSED_INTERVALS) {
            continue;
        }
        loop {
            let keep_after = core.needed_after();
            match core.database.prune_changes(core.limits, keep_after).await {
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

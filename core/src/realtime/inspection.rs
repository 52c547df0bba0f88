//! The check of the change feed: how far it is behind, and how large the log is.

use super::{core::RealtimeCore, pruning::FAR_OVER};
use crate::{
    error::Result,
    model::{FindingCode, Findings},
};

/// How far the feed may be behind, in seconds.
const LAG: f64 = 60.0;

impl RealtimeCore {
    /// Adds what is wrong with the change feed. Changes nothing.
    ///
    /// # Errors
    /// Those of the database.
    pub(crate) async fn inspect(&self, findings: &mut Findings) -> Result<()> {
        let lag = self.stats().await?.lag_seconds;
        if lag > LAG {
            let message = format!("The change feed is {lag:.0} s behind the last commit.");
            findings.add(FindingCode::FeedBehind, message);
        }
        let size = self.database.log_size().await?;
        if size.is_over(self.limits, FAR_OVER) {
            let message = format!("The change log has {} changes and {} MiB.", size.rows, size.bytes >> 20);
            findings.add(FindingCode::LogOverLimit, message);
        }
        Ok(())
    }
}

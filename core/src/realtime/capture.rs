//! Switches the change log on and off for the program. A request over HTTP never does.

use std::sync::Arc;

use super::{core::RealtimeCore, lane::Lane, request::Capture};
use crate::{
    database::change_log::{CursorKey, LogPoint, capture_is_off},
    error::{Error, Result},
};

impl RealtimeCore {
    /// Switches capture on if it is off. Returns the key of the database's cursors. Asks the database each time: after a failover
    /// it may have another key, and capture may be off.
    ///
    /// # Errors
    /// `Unavailable` if capture is off and `capture` may not switch it on.
    pub(super) async fn capture(&self, capture: Capture) -> Result<Arc<CursorKey>> {
        let (is_on, cursors) = self.database.capture_state().await?;
        if !is_on {
            match capture {
                Capture::SwitchOn => self.database.start_capture().await?,
                Capture::MustBeOn => return Err(capture_is_off()),
            }
        }
        let cursors = Arc::new(cursors);
        self.cursors.store(Some(Arc::clone(&cursors)));
        Ok(cursors)
    }

    /// Switches capture off and ends every subscription.
    pub(super) async fn stop(&self) -> Result<()> {
        self.database.stop_capture().await?;
        for lane in &self.lanes {
            self.end_all(lane, &capture_is_off(), None);
        }
        Ok(())
    }

    /// Ends the subscriptions of a lane after the changes that they have. `head` is the point from which its log reader continues,
    /// if it runs.
    pub(super) fn end_all(&self, lane: &Lane, reason: &Error, head: Option<LogPoint>) {
        let mut registry = lane.registry.lock();
        let woken = registry.end_all(reason);
        let head = registry.head.and(head);
        lane.set_head(&mut registry, head);
        drop(registry);
        self.wake(woken);
    }

    /// The key of the database's cursors.
    pub(super) async fn cursors(&self) -> Result<Arc<CursorKey>> {
        match self.cursors.load_full() {
            Some(cursors) => Ok(cursors),
            None => Ok(Arc::new(self.database.capture_state().await?.1)),
        }
    }
}

//! Switches the change log on and off for the program. A request over HTTP never does.

use std::sync::Arc;

use super::{core::RealtimeCore, lane::Lane};
use crate::{
    database::{
        CurrentPrincipal,
        change_log::{CursorKey, LogPoint, capture_is_off},
    },
    error::{Error, Result},
};

impl RealtimeCore {
    /// Switches capture on if it is off. Returns the key of the database's cursors. Asks the database each time: after a failover
    /// it may have another key, and capture may be off.
    ///
    /// # Errors
    /// `Closed` for a closed client or handle.
    pub(super) async fn start_capture(&self, handle: &CurrentPrincipal) -> Result<Arc<CursorKey>> {
        self.check_open(handle)?;
        let (is_on, cursors) = self.database.capture_state().await?;
        if !is_on {
            self.database.start_capture().await?;
        }
        Ok(self.keep_cursors(cursors))
    }

    /// The key of the database's cursors; `None` if capture is off.
    ///
    /// # Errors
    /// `Closed` for a closed client or handle.
    pub(super) async fn cursors_of_capture(&self, handle: &CurrentPrincipal) -> Result<Option<Arc<CursorKey>>> {
        self.check_open(handle)?;
        let (is_on, cursors) = self.database.capture_state().await?;
        Ok(is_on.then(|| self.keep_cursors(cursors)))
    }

    fn keep_cursors(&self, cursors: CursorKey) -> Arc<CursorKey> {
        let cursors = Arc::new(cursors);
        self.cursors.store(Some(Arc::clone(&cursors)));
        cursors
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

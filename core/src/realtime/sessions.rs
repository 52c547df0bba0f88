//! Ends subscriptions with the sessions for which they act.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use super::{caller::SessionCaller, core::RealtimeCore, subscription_state::SubscriptionState};
use crate::{
    database::CurrentPrincipal,
    error::{ErrorKind, Result},
};

/// How often the access tokens of subscriptions are checked. A change of a row checks them, too.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

impl RealtimeCore {
    /// # Errors
    /// `Unauthorized` if the handle may no longer act for the caller's session.
    pub(super) async fn require_session(&self, handle: &CurrentPrincipal, caller: SessionCaller) -> Result<()> {
        match caller.session_id {
            Some(session_id) => self.database.check_session(handle, session_id).await,
            None => Ok(()),
        }
    }

    /// Ends a subscription if its handle may no longer act for its session. Returns true if the subscription continues.
    ///
    /// # Errors
    /// Those of the database, but not `Unauthorized`.
    pub(super) async fn keeps_session(&self, subscription: &SubscriptionState) -> Result<bool> {
        let Some(session_id) = subscription.fixed_session() else { return Ok(true) };
        match self.database.check_session(&subscription.handle, session_id).await {
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                self.wake(subscription.end_after_batch(Some(error)));
                Ok(false)
            }
            checked => checked.map(|()| true),
        }
    }

    /// Ends subscriptions when their access tokens expire, as long as there are subscriptions with sessions.
    pub(super) fn watch_expiry(&self) {
        if !self.watches_expiry.swap(true, Ordering::AcqRel) {
            let this = Weak::clone(&self.this);
            self.runtime.spawn(async move {
                let mut is_needed = true;
                while is_needed {
                    tokio::time::sleep(EXPIRY_INTERVAL).await;
                    is_needed = this.upgrade().is_some_and(|core: Arc<RealtimeCore>| core.end_expired());
                }
            });
        }
    }

    /// Ends the subscriptions with an access token that has expired. Returns whether subscriptions with sessions are left.
    fn end_expired(&self) -> bool {
        let mut registries = self.lanes.each_ref().map(|lane| lane.registry.lock());
        let now = self.clock.now();
        let woken: Vec<_> = registries.iter_mut().flat_map(|registry| registry.end_expired(now)).collect();
        let is_needed = registries.iter().any(|registry| registry.has_sessions());
        if !is_needed {
            // Under the registries' locks: a subscription that is added later starts another task.
            self.watches_expiry.store(false, Ordering::Release);
        }
        drop(registries);
        self.wake(woken);
        is_needed
    }
}

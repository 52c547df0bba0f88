//! A subscription with a callback.

use std::sync::{Arc, Weak};

use super::{
    core::RealtimeCore,
    request::Capture,
    subscription_state::{Consumer, NextForConsumer, SubscriptionState},
    view::View,
};
use crate::{
    callbacks::{EventSource, PullQueue, Pulled, Subscription},
    database::CurrentPrincipal,
    error::{Error, Result},
    model::RowChange,
    threads::wait,
};

impl RealtimeCore {
    /// Adds a subscription with a callback.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        principal: &CurrentPrincipal,
        view: View,
        since: Option<&str>,
        callback: impl FnMut(RowChange) + Send + 'static,
        on_close: impl FnOnce(Option<Error>) + Send + 'static,
    ) -> Result<Subscription> {
        let state = self.new_subscription(principal, view, since, Capture::SwitchOn).await?;
        self.register(&state).await?;
        let source = SubscriptionSource { core: Arc::downgrade(self), state: Arc::clone(&state) };
        let queue = PullQueue::new(self.callbacks.clone(), Arc::new(source), callback, Some(Box::new(on_close)));
        let subscription = queue.subscription();
        let wake = state.set_consumer(Consumer::Queue(queue));
        self.deliver(wake.into_iter().collect());
        Ok(subscription)
    }
}

/// The source of a callback's queue.
struct SubscriptionSource {
    core: Weak<RealtimeCore>,
    state: Arc<SubscriptionState>,
}

impl SubscriptionSource {
    fn unregister(&self) {
        match self.core.upgrade() {
            Some(core) => core.unregister(&self.state),
            None => self.state.detach(),
        }
    }
}

impl EventSource<RowChange> for SubscriptionSource {
    fn pull(&self) -> Pulled<RowChange> {
        loop {
            match self.state.take(None) {
                NextForConsumer::Change(change) => return Pulled::Event(change),
                NextForConsumer::Nothing => return Pulled::Empty,
                NextForConsumer::Ended(reason) => {
                    self.unregister();
                    return Pulled::Ended(reason);
                }
                NextForConsumer::Read(position) => {
                    let Some(core) = self.core.upgrade() else { return Pulled::Ended(None) };
                    if let Err(error) = wait(core.read_behind(&self.state, position)) {
                        self.state.pause();
                        core.retry_later(&self.state, &error);
                        return Pulled::Empty;
                    }
                }
            }
        }
    }

    fn unsubscribed(&self) {
        self.unregister();
    }
}

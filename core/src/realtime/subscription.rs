//! A subscription with a callback.

use std::sync::{Arc, Weak};

use super::{
    core::RealtimeCore,
    feed::{Consumer, Feed, Taken},
    request::Capture,
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
        let feed = self.new_feed(principal, view, since, Capture::SwitchOn).await?;
        self.register(&feed).await?;
        let source = FeedSource { core: Arc::downgrade(self), feed: Arc::clone(&feed) };
        let queue = PullQueue::new(self.callbacks.clone(), Arc::new(source), callback, Some(Box::new(on_close)));
        let subscription = queue.subscription();
        let wake = feed.set_consumer(Consumer::Queue(queue));
        self.deliver(wake.into_iter().collect());
        Ok(subscription)
    }
}

/// The source of a callback's queue.
struct FeedSource {
    core: Weak<RealtimeCore>,
    feed: Arc<Feed>,
}

impl FeedSource {
    fn unregister(&self) {
        match self.core.upgrade() {
            Some(core) => core.unregister(&self.feed),
            None => self.feed.detach(),
        }
    }
}

impl EventSource<RowChange> for FeedSource {
    fn pull(&self) -> Pulled<RowChange> {
        loop {
            match self.feed.take(None) {
                Taken::Change(change) => return Pulled::Event(change),
                Taken::Nothing => return Pulled::Empty,
                Taken::Ended(reason) => {
                    self.unregister();
                    return Pulled::Ended(reason);
                }
                Taken::Read(position) => {
                    let Some(core) = self.core.upgrade() else { return Pulled::Ended(None) };
                    if let Err(error) = wait(core.read_behind(&self.feed, position)) {
                        self.feed.pause();
                        core.retry_later(&self.feed, &error);
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

//! How subscriptions, streams and live queries begin and end.

use std::sync::{Arc, Weak};

use super::{
    caller::{CallerTimeline, SessionCaller},
    core::RealtimeCore,
    request::CursorRange,
    subscription_state::{Consumer, FollowedHandle, NextForConsumer, SubscriptionState},
    view::View,
};
use crate::{
    callbacks::{EventSource, PullQueue, Pulled, Subscription},
    database::{
        CurrentPrincipal,
        change_log::{CurrentRow, CursorKey},
    },
    error::{Error, Result},
    model::RowChange,
    policy::RowImage,
    threads::wait,
};

impl RealtimeCore {
    /// Adds a subscription with a callback.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        handle: &CurrentPrincipal,
        view: View,
        range: CursorRange,
        callback: impl FnMut(RowChange) + Send + 'static,
        on_close: impl FnOnce(Option<Error>) + Send + 'static,
    ) -> Result<Subscription> {
        let cursors = self.start_capture(handle).await?;
        let (state, _) = self.new_subscription(handle, view, range, &cursors).await?;
        let source = SubscriptionSource { core: Arc::downgrade(self), state: Arc::clone(&state) };
        let (woken, subscription) = state.set_consumer(|| {
            let pool = self.callbacks.clone();
            let queue = PullQueue::new(pool, Arc::new(source), callback, Some(Box::new(on_close)));
            let subscription = queue.subscription();
            (Consumer::Queue(queue), subscription)
        })?;
        self.wake(woken);
        Ok(subscription)
    }

    /// Adds a stream. Returns it with the cursor of its position.
    pub(super) async fn stream(
        &self,
        handle: &CurrentPrincipal,
        view: View,
        range: CursorRange,
        cursors: &CursorKey,
    ) -> Result<(Arc<SubscriptionState>, String)> {
        let (subscription, cursor) = self.new_subscription(handle, view, range, cursors).await?;
        subscription.set_consumer(|| (Consumer::Stream(None), ()))?;
        Ok((subscription, cursor))
    }

    /// Reads the rows of a view as the caller sees them now, and adds a stream of the changes after them.
    pub(super) async fn live(
        &self,
        handle: &CurrentPrincipal,
        view: View,
    ) -> Result<(Vec<RowImage>, Arc<SubscriptionState>)> {
        let began_as = SessionCaller::of(&handle.principal());
        self.start_capture(handle).await?;
        self.ensure_watch(self.lane(&view)).await?;
        let shown = view.clone();
        let shows = move |row: &CurrentRow| shown.shows_current(began_as.caller, row);
        let (mut rows, position) =
            self.database.rows_and_position(view.table, view.filter.text_equality(), shows).await?;
        self.require_session(handle, began_as).await?;
        rows.iter_mut().for_each(|row| view.table.hide_columns(began_as.caller, row));
        let subscription = Arc::new(SubscriptionState::new(view, handle.clone(), began_as, None, position, None));
        self.register(&subscription).await?;
        subscription.set_consumer(|| (Consumer::Stream(None), ()))?;
        Ok((rows, subscription))
    }

    /// Adds a subscription without a consumer. Returns it with the cursor of its position.
    async fn new_subscription(
        &self,
        handle: &CurrentPrincipal,
        view: View,
        range: CursorRange,
        cursors: &CursorKey,
    ) -> Result<(Arc<SubscriptionState>, String)> {
        let lane = self.lane(&view);
        self.ensure_watch(lane).await?;
        let head = self.database.head().await?;
        let after = head.after;
        let (position, replays_to) = match range.since.as_deref() {
            Some(cursor) => (self.database.position_of(cursor, cursors).await?, Some(head)),
            None => (head, None),
        };
        let until = match range.until.as_deref() {
            Some(cursor) => Some(self.database.position_of(cursor, cursors).await?),
            None => None,
        };
        let follows = (!handle.has_fixed_caller()).then(|| {
            let known = lane.registry.lock().timeline_of(handle);
            let timeline = known.unwrap_or_else(|| Arc::new(CallerTimeline::new(handle.clone())));
            FollowedHandle { timeline, after }
        });
        // After the head is known: a session that ends later has its entry after the head.
        let began_as = SessionCaller::of(&handle.principal());
        self.require_session(handle, began_as).await?;
        let cursor = cursors.cursor(&position);
        let subscription = SubscriptionState::new(view, handle.clone(), began_as, follows, position, replays_to);
        let subscription = Arc::new(subscription.ending_at(until));
        self.register(&subscription).await?;
        Ok((subscription, cursor))
    }

    /// Adds a subscription to the registry. From here on it misses nothing.
    async fn register(&self, subscription: &Arc<SubscriptionState>) -> Result<()> {
        let lane = self.lane(&subscription.view);
        loop {
            self.ensure_watch(lane).await?;
            let mut registry = lane.registry.lock();
            if self.is_closed() {
                drop(registry);
                subscription.close();
                return Err(Error::closed());
            }
            // The watch can have been stopped meanwhile.
            let Some(head) = registry.head else { continue };
            let woken = registry.add(subscription, head);
            if registry.has_sessions() {
                self.watch_expiry();
            }
            drop(registry);
            self.wake(woken);
            self.signal_for(subscription);
            break;
        }
        // A handle that was closed meanwhile has ended its subscriptions before this one was added.
        if subscription.handle.is_closed() {
            subscription.close();
            self.unregister(subscription);
        }
        Ok(())
    }

    /// Removes a subscription.
    pub(super) fn unregister(&self, subscription: &Arc<SubscriptionState>) {
        subscription.detach();
        let mut registry = self.lane(&subscription.view).registry.lock();
        let is_last = registry.remove(subscription) && registry.len() == 0;
        drop(registry);
        if is_last {
            self.stop_unused_watch_later();
        }
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
                        core.retry_read(&self.state, error);
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

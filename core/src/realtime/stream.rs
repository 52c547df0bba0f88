//! A subscription as a stream.

use std::{
    fmt,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
};

use super::{
    core::RealtimeCore,
    subscription_state::{NextForConsumer, SubscriptionState},
};
use crate::{
    error::{Error, Operation, Result},
    model::RowChange,
};
use futures_core::Stream;

/// Changes as a stream: the result of [`Realtime::changes`](super::Realtime::changes). It is live when it is returned.
/// Dropping it ends it.
///
/// A stream that nobody reads costs at most 1 MiB of memory, and one larger row: it falls behind in the log and reads the rest
/// later. The log keeps changes for the option [`change_retention`](crate::Config::change_retention).
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// use townsquare::realtime::ChangeRequest;
///
/// let mut changes = client.realtime().changes(ChangeRequest::table("fidgets")).await?;
/// while let Some(change) = changes.next().await.transpose()? {
///     println!("{} {:?}", change.event_type, change.new);
/// }
/// # Ok(())
/// # }
/// ```
///
/// It is also a `futures::Stream`, for the adapters of the crate `futures`:
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// # use futures_util as futures;
/// use futures::{StreamExt, TryStreamExt};
/// use townsquare::realtime::ChangeRequest;
///
/// let changes = client.realtime().changes(ChangeRequest::table("spaces")).await?;
/// let names = changes.map_ok(|change| change.new.map(|space| space["name"].to_string()));
/// let first_ten: Vec<Option<String>> = names.take(10).try_collect().await?;
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct ChangeStream {
    subscription: Arc<SubscriptionState>,
    core: Weak<RealtimeCore>,
    has_ended: bool,
    operation: Operation,
}

impl ChangeStream {
    pub(super) fn new(
        core: &Arc<RealtimeCore>,
        subscription: Arc<SubscriptionState>,
        operation: Operation,
    ) -> ChangeStream {
        ChangeStream { subscription, core: Arc::downgrade(core), has_ended: false, operation }
    }

    /// The next change; waits for it. A caller that drops the future loses no change. `None` after the end: the stream or the
    /// client was closed, or the last call returned an error.
    ///
    /// # Errors
    /// `CursorExpired` if the log no longer has what follows; `Unauthorized` if the session of a live query has ended;
    /// `Closed` in a forked child.
    pub async fn next(&mut self) -> Option<Result<RowChange>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Ends the stream: `next` returns `None` from here on.
    pub fn close(&mut self) {
        self.has_ended = true;
        self.closer().close();
    }

    /// A handle that ends the stream from another thread or task.
    pub fn closer(&self) -> StreamCloser {
        StreamCloser { subscription: Arc::downgrade(&self.subscription), core: Weak::clone(&self.core) }
    }

    fn is_inherited(&self) -> bool {
        self.core.upgrade().is_some_and(|core| core.is_inherited())
    }

    fn poll_change(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<RowChange>>> {
        loop {
            if self.has_ended {
                return Poll::Ready(None);
            }
            if self.is_inherited() {
                self.has_ended = true;
                return Poll::Ready(Some(Err(Error::inherited().with_operation(self.operation))));
            }
            match self.subscription.take(Some(context.waker())) {
                NextForConsumer::Change(change) => return Poll::Ready(Some(Ok(change))),
                NextForConsumer::Nothing => return Poll::Pending,
                NextForConsumer::Ended(reason) => {
                    self.has_ended = true;
                    return Poll::Ready(reason.map(|reason| Err(reason.with_operation(self.operation))));
                }
                NextForConsumer::Read(position) => match self.core.upgrade() {
                    Some(core) => core.read_for_stream(&self.subscription, position),
                    None => self.has_ended = true,
                },
            }
        }
    }
}

/// Ends a [`ChangeStream`] from another thread or task.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// use townsquare::realtime::ChangeRequest;
///
/// let mut changes = client.realtime().changes(ChangeRequest::table("spaces")).await?;
/// let closer = changes.closer();
/// std::thread::spawn(move || closer.close());
/// assert!(changes.next().await.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct StreamCloser {
    subscription: Weak<SubscriptionState>,
    core: Weak<RealtimeCore>,
}

impl StreamCloser {
    /// Ends the stream. A call of `next` that waits returns `None`. Closing an ended stream does nothing.
    pub fn close(&self) {
        if let Some(subscription) = self.subscription.upgrade() {
            subscription.close();
            if let Some(core) = self.core.upgrade() {
                core.unregister(&subscription);
            }
        }
    }
}

crate::model::opaque!(StreamCloser);

impl Stream for ChangeStream {
    type Item = Result<RowChange>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<RowChange>>> {
        self.poll_change(context)
    }
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        // The locks of an inherited client may be held forever.
        if !self.is_inherited() {
            self.close();
        }
    }
}

impl fmt::Debug for ChangeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChangeStream").field("has_ended", &self.has_ended).finish_non_exhaustive()
    }
}

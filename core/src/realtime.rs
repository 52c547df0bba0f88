//! Changes of rows, delivered as they are committed (SPEC 6, DESIGN 5).
//!
//! Invariant: a subscription gets each change of its view exactly once, in the order of the commits, whoever made it: the
//! events come from the change log, which the database writes in the transaction of the change. A row is judged as it was
//! when its statement ran. A slow callback falls behind in the log, not in memory, and holds up no other subscription.

mod live;
mod request;
mod stream;

use std::{fmt, sync::Arc};

pub use self::{
    live::LiveQuery,
    request::{ChangeRequest, LiveRequest},
    stream::{ChangeStream, StreamCloser},
};
use crate::error::{Error, ErrorKind, Operation, Result, operation};
pub use crate::{
    callbacks::Subscription,
    model::{EventType, RealtimeStats, RowChange},
};

/// Subscriptions to changes of rows, for the caller of one handle.
///
/// ```no_run
/// use townsquare::{Config, blocking::Client, realtime::ChangeRequest};
///
/// let client = Client::open(Config::new().data_dir("town"))?;
/// let subscription = client.realtime().subscribe("spaces", ChangeRequest::table("spaces"), |change| {
///     println!("{} {:?}", change.event_type, change.new);
/// })?;
/// subscription.unsubscribe();
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Realtime {
    core: Arc<()>,
}

impl Realtime {
    pub(crate) fn skeleton() -> Realtime {
        Realtime { core: Arc::new(()) }
    }

    /// Calls `callback` with every change that `request` selects, from here on or since its cursor.
    pub async fn subscribe(
        &self,
        channel: &str,
        request: ChangeRequest,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        operation(Operation::Subscribe, async {
            let _ = (channel, request, callback, &self.core);
            missing()
        })
        .await
    }

    /// SPEC 6's subscription `space-changes`: the changes of one space.
    pub async fn on_space_changes(
        &self,
        space_id: uuid::Uuid,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        self.subscribe("space-changes", ChangeRequest::table("spaces").filter(format!("id=eq.{space_id}")), callback)
            .await
    }

    /// SPEC 6's subscription `fidget-changes`: the changes of the fidgets of one space.
    pub async fn on_fidget_changes(
        &self,
        space_id: uuid::Uuid,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        let request = ChangeRequest::table("fidgets").filter(format!("space_id=eq.{space_id}"));
        self.subscribe("fidget-changes", request, callback).await
    }

    /// The changes that `request` selects, as a stream.
    pub async fn changes(&self, request: ChangeRequest) -> Result<ChangeStream> {
        operation(Operation::Changes, async {
            let _ = request;
            missing()
        })
        .await
    }

    /// The rows that `request` selects now, and every change after them.
    pub async fn live(&self, request: LiveRequest) -> Result<LiveQuery> {
        operation(Operation::LiveQuery, async {
            let _ = request;
            missing()
        })
        .await
    }

    /// The position after the last commit.
    pub async fn cursor(&self) -> Result<String> {
        operation(Operation::FeedCursor, async { missing() }).await
    }

    /// The figures of the feed.
    pub async fn stats(&self) -> Result<RealtimeStats> {
        operation(Operation::RealtimeStats, async { missing() }).await
    }
}

fn missing<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Internal, "The feed does not exist yet"))
}

impl fmt::Debug for Realtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Realtime").finish_non_exhaustive()
    }
}

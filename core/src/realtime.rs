//! Changes of rows, delivered as they are committed (SPEC 6, DESIGN 5).
//!
//! Invariant: a subscription gets each change of its view exactly once, in the order of the commits, whoever made it: the
//! events come from the change log, which the database writes in the transaction of the change. A row is judged as it was
//! when its statement ran. A slow callback falls behind in the log, not in memory, and holds up no other subscription.
//!
//! A program that must not miss a change while it is down stores the cursor of the last change that it handled, and
//! subscribes since that cursor when it starts again:
//!
//! ```no_run
//! use townsquare::{Config, blocking::Client, realtime::ChangeRequest};
//!
//! let client = Client::open(Config::new().data_dir("town"))?;
//! let mut request = ChangeRequest::table("spaces");
//! if let Ok(cursor) = std::fs::read_to_string("cursor") {
//!     request = request.since(cursor);
//! }
//! for change in client.realtime().changes(request)? {
//!     let change = change?;
//!     println!("{} {:?}", change.event_type, change.new);
//!     std::fs::write("cursor", &*change.cursor).expect("the cursor is stored");
//! }
//! # Ok::<(), townsquare::Error>(())
//! ```

mod caller;
mod core;
mod delivery;
mod feed;
mod handler;
mod live;
mod pruning;
mod pump;
mod registry;
mod request;
mod stream;
mod subscription;
mod view;

use std::{fmt, sync::Arc};

use uuid::Uuid;

use self::view::View;
pub(crate) use self::{core::RealtimeCore, handler::EventOptions};
pub use self::{
    handler::{EventBody, EventResponse},
    live::LiveQuery,
    request::{ChangeRequest, LiveRequest},
    stream::{ChangeStream, StreamCloser},
};
pub use crate::{
    callbacks::Subscription,
    model::{EventType, RealtimeStats, RowChange},
};
use crate::{
    database::{CurrentPrincipal, change_log::cursor_text},
    error::{Error, Operation, Result, operation},
    validate,
};

/// Subscriptions to changes of rows, for the caller of one handle.
///
/// The *view* of a subscription is the rows that its caller may select and that its filter matches. A change of a row in the
/// view before and after is an `UPDATE`; a row that comes into the view, also by publishing its space, is an `INSERT`; a row
/// that leaves the view is a `DELETE`. Rows of `users` are shown to that user and the service alone.
///
/// A subscription of a client follows sign-in and sign-out; after sign-out it goes on as anonymous. One of an
/// [`as_user`](crate::Client::as_user) handle becomes anonymous when the session ends.
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
    core: Arc<RealtimeCore>,
    principal: CurrentPrincipal,
    events: EventOptions,
}

impl Realtime {
    pub(crate) fn new(core: Arc<RealtimeCore>, principal: CurrentPrincipal, events: EventOptions) -> Realtime {
        Realtime { core, principal, events }
    }

    /// Ends the subscriptions of this handle.
    pub(crate) fn close_handle(&self) {
        self.core.close_handle(&self.principal);
    }

    /// Calls `callback` with every change that `request` selects, in the order of the commits, on a thread of the library. The
    /// subscription is live when this returns: every later commit is delivered. It lasts until
    /// [`unsubscribe`](Subscription::unsubscribe), or until the handle or the client is closed. `channel` is a name of the
    /// program's choice, for its logs.
    ///
    /// Calls of one subscription never overlap. The callback may call the library, unsubscribe anything, block and panic.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown table, schema or column, and for a filter or a cursor that is malformed; `CursorExpired`
    /// for a cursor whose following changes are no longer kept, or of another incarnation of the database; `Unauthorized`
    /// if the caller's session has ended; `Closed` on a closed handle.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::realtime::{ChangeRequest, EventType};
    ///
    /// let request = ChangeRequest::table("spaces").event(EventType::Insert).filter("name=like.Harbor%");
    /// let subscription = client.realtime().subscribe("harbors", request, |change| println!("{:?}", change.new)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn subscribe(
        &self,
        channel: &str,
        request: ChangeRequest,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        operation(Operation::Subscribe, async {
            validate::text("channel", Some(&channel))?;
            let (view, since) = request.view()?;
            let on_close = request.on_close;
            let on_close = move |reason: Option<Error>| {
                if let Some(on_close) = on_close {
                    on_close(reason.map(|reason| reason.with_operation(Operation::Subscribe)));
                }
            };
            self.core.subscribe(&self.principal, view, since.as_deref(), callback, on_close).await
        })
        .await
    }

    /// SPEC 6's subscription `space-changes`: the changes of one space. An `UPDATE` carries the new row; a `DELETE` means that
    /// the space is gone for this caller.
    ///
    /// # Errors
    /// Those of [`subscribe`](Realtime::subscribe).
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let subscription = client.realtime().on_space_changes(space_id, |change| println!("{:?}", change.new)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn on_space_changes(
        &self,
        space_id: Uuid,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        let request = ChangeRequest::table("spaces").filter(format!("id=eq.{space_id}"));
        self.subscribe("space-changes", request, callback).await
    }

    /// SPEC 6's subscription `fidget-changes`: the changes of the fidgets of one space.
    ///
    /// # Errors
    /// Those of [`subscribe`](Realtime::subscribe).
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let subscription = client.realtime().on_fidget_changes(space_id, |change| println!("{:?}", change.new)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn on_fidget_changes(
        &self,
        space_id: Uuid,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        let request = ChangeRequest::table("fidgets").filter(format!("space_id=eq.{space_id}"));
        self.subscribe("fidget-changes", request, callback).await
    }

    /// The changes that `request` selects, as a stream. It is live when this returns.
    ///
    /// # Errors
    /// Those of [`subscribe`](Realtime::subscribe).
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client, stored: String) -> townsquare::Result<()> {
    /// use townsquare::realtime::ChangeRequest;
    ///
    /// let mut changes = client.realtime().changes(ChangeRequest::table("fidgets").since(stored)).await?;
    /// while let Some(change) = changes.next().await.transpose()? {
    ///     println!("{}", change.cursor);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn changes(&self, request: ChangeRequest) -> Result<ChangeStream> {
        // Read here: a future that borrowed the request would not be `Send`.
        let view = request.view();
        operation(Operation::Changes, async {
            let (view, since) = view?;
            let feed = self.core.stream(&self.principal, view, since.as_deref()).await?;
            Ok(ChangeStream::new(&self.core, feed, Operation::Changes))
        })
        .await
    }

    /// The rows that `request` selects now, and every change after them, with no gap and no repeat.
    ///
    /// # Errors
    /// Those of [`subscribe`](Realtime::subscribe).
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::realtime::LiveRequest;
    ///
    /// let spaces = client.realtime().live(LiveRequest::table("spaces")).await?;
    /// println!("{} spaces", spaces.rows.len());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn live(&self, request: LiveRequest) -> Result<LiveQuery> {
        operation(Operation::LiveQuery, async {
            let view = View::new("public", &request.table, None, &request.filter)?;
            let table = view.table;
            let (rows, feed) = self.core.live(&self.principal, view).await?;
            let changes = ChangeStream::new(&self.core, feed, Operation::LiveQuery);
            Ok(LiveQuery { rows: live::in_order(table, rows), changes })
        })
        .await
    }

    /// The position after the last commit, to subscribe since later.
    ///
    /// # Errors
    /// Those of the database.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// use townsquare::realtime::ChangeRequest;
    ///
    /// let cursor = client.realtime().cursor().await?;
    /// // Later, also after a restart of the program:
    /// let changes = client.realtime().changes(ChangeRequest::table("spaces").since(cursor)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cursor(&self) -> Result<String> {
        operation(Operation::FeedCursor, async {
            self.core.check_open(&self.principal)?;
            let incarnation = self.core.capture().await?;
            Ok(cursor_text(&self.core.database.head().await?, &incarnation))
        })
        .await
    }

    /// The figures of the change feed: how many changes it keeps, and how far it is behind.
    ///
    /// # Errors
    /// Those of the database.
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let stats = client.realtime().stats().await?;
    /// println!("{} changes since {:?}", stats.retained, stats.oldest);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stats(&self) -> Result<RealtimeStats> {
        operation(Operation::RealtimeStats, async {
            self.core.check_open(&self.principal)?;
            self.core.stats().await
        })
        .await
    }
}

impl fmt::Debug for Realtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Realtime").finish_non_exhaustive()
    }
}

//! Changes of rows, delivered as they are committed.
//!
//! Invariant: a subscription gets each change of its view exactly once, in the order of the log, whoever made it: the
//! events come from the change log, which the database writes in the transaction of the change. It has the order of the commits; on
//! PostgreSQL, transactions that overlap in time are there in the order of their statements. A row is judged as it was
//! when its statement ran. A slow callback falls behind in the log, not in memory, and holds up no other subscription, unless 512
//! of them run: a subscription that nobody reads costs at most 1 MiB, and one larger row.
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

mod behind;
mod caller;
mod capture;
mod commit_watch;
mod core;
mod deletions;
mod filter;
mod inspection;
mod lane;
mod live;
mod log_reader;
mod pending_change;
mod pruning;
mod registry;
mod request;
mod retry;
mod sessions;
mod stream;
mod subscribe;
mod subscription_index;
mod subscription_state;
#[cfg(all(test, feature = "sqlite"))]
mod tests;
mod view;

use std::sync::Arc;

use uuid::Uuid;

pub(crate) use self::core::RealtimeCore;
use self::view::View;
pub use self::{
    live::LiveQuery,
    request::{ChangeRequest, LiveRequest},
    stream::{ChangeStream, StreamCloser},
};
pub use crate::{
    callbacks::Subscription,
    http_message::EventResponse,
    model::{EventType, RealtimeStats, RowChange},
};
use crate::{
    database::{CurrentPrincipal, call},
    error::{Error, Operation, Result},
    policy::Caller,
    request_context::RequestContext,
    validate,
};

/// Subscriptions to changes of rows, for the caller of one handle.
///
/// Most examples use the [blocking client](crate::blocking::Client). With the async one, add `.await` to each call.
///
/// The *view* of a subscription is the rows that its caller may select and that its filter matches. A change of a row in the
/// view before and after is an `UPDATE`; a row that comes into the view, also by publishing its space, is an `INSERT`; a row
/// that leaves the view is a `DELETE`. Rows of `users` are shown to that user and the service alone. The columns
/// `admin_email`, `admin_identity_public_keys` and `custom_domain_authorized` of `community_configs` are the service's: rows for
/// others are without them, and a filter that names one is refused like one that names an unknown column.
///
/// A subscription of a client follows sign-in and sign-out; after sign-out it continues as anonymous. One of an
/// [`as_user`](crate::Client::as_user) handle, and every live query, acts for the caller that it began with. It ends with
/// `Unauthorized` when the handle may no longer act for that caller: the session has ended, the access token has expired, or
/// the session got other tokens that the handle does not have.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// use std::sync::mpsc;
/// use townsquare::{realtime::ChangeRequest, spaces::NewSpace};
///
/// let (sender, receiver) = mpsc::channel();
/// let subscription = client.realtime().subscribe("spaces", ChangeRequest::table("spaces"), move |change| {
///     let _ = sender.send(change);
/// })?;
/// client.as_service().spaces().create_space(NewSpace::named("Harbor").public())?;
/// let change = receiver.recv().unwrap();
/// assert_eq!((change.event_type.as_str(), &change.new.unwrap()["name"]), ("INSERT", &"Harbor".into()));
/// subscription.unsubscribe();
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Clone)]
pub struct Realtime {
    core: Arc<RealtimeCore>,
    principal: CurrentPrincipal,
    /// For HTTP requests.
    pub(crate) requests: RequestContext,
}

impl Realtime {
    pub(crate) fn new(core: Arc<RealtimeCore>, principal: CurrentPrincipal, requests: RequestContext) -> Realtime {
        Realtime { core, principal, requests }
    }

    /// The caller of the handle.
    pub(crate) fn principal(&self) -> &CurrentPrincipal {
        &self.principal
    }

    /// Opens the stream of an HTTP request for `caller`, and returns it with the cursor that it begins with. `None` if the change log
    /// is off: a request does not switch it on.
    pub(crate) async fn request_stream(
        &self,
        caller: &CurrentPrincipal,
        request: ChangeRequest,
    ) -> Result<Option<(ChangeStream, String)>> {
        let Some(cursors) = self.core.cursors_of_capture(caller).await? else { return Ok(None) };
        let (view, range) = request.view(caller.principal().caller())?;
        let (subscription, cursor) = self.core.stream(caller, view, range, &cursors).await?;
        Ok(Some((ChangeStream::new(&self.core, subscription, Operation::Changes), cursor)))
    }

    /// The caller that decides which columns a filter may name. A handle that follows sign-in is never the service.
    fn caller(&self) -> Caller {
        self.principal.principal().caller()
    }

    /// Ends the subscriptions of this handle.
    pub(crate) fn close_handle(&self) {
        self.core.close_subscriptions(Some(&self.principal));
    }

    /// Switches the change log on, in the database and so for all processes. Does nothing if it is on. The first subscription,
    /// live query or cursor of the program does so, too; a request over HTTP never does.
    ///
    /// # Errors
    /// The errors of the database; `Closed` on a closed handle.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// // Before the server takes requests for events.
    /// client.realtime().start()?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn start(&self) -> Result<()> {
        call(&self.principal, Operation::StartRealtime, async {
            self.core.start_capture(&self.principal).await.map(drop)
        })
        .await
    }

    /// Switches the change log off, for all processes, and empties it. The subscriptions, streams and live queries of every
    /// process end with `Unavailable`, and every cursor expires. The next subscription of a program switches the log on again.
    ///
    /// # Errors
    /// `Unauthorized` or `Forbidden` if the caller is not the service; the errors of the database; `Closed` on a closed handle.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// client.as_service().realtime().stop()?;
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn stop(&self) -> Result<()> {
        call(&self.principal, Operation::StopRealtime, async {
            self.core.check_open(&self.principal)?;
            let caller = self.principal.principal().caller();
            if caller != Caller::Service {
                return Err(Error::service_required("changes", caller == Caller::Anonymous));
            }
            self.core.stop().await
        })
        .await
    }

    /// Calls `callback` with every change that `request` selects, in the order of the commits, on a thread of the library. (On
    /// PostgreSQL the statements of transactions that overlap in time are interleaved; the changes of one row are in order.) The
    /// subscription is live when this returns: every later commit is delivered. It lasts until
    /// [`unsubscribe`](Subscription::unsubscribe), or until the handle or the client is closed. `channel` is a name of the
    /// program's choice, for its logs.
    ///
    /// Calls of one subscription never overlap. The callback may call the library, unsubscribe anything, block and panic. Changes
    /// that are made while the program is down are missed, unless it subscribes [`since`](ChangeRequest::since) a stored cursor.
    ///
    /// # Errors
    /// - `InvalidInput` for an unknown table, schema or column, and for a filter or a cursor that is malformed.
    /// - `CursorExpired` if the log no longer has the changes after the cursor, or if the cursor is of another incarnation or
    ///   history of the database.
    /// - `Unauthorized` if the caller's session has ended; `Closed` on a closed handle.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use std::sync::mpsc;
    /// use townsquare::{realtime::{ChangeRequest, EventType}, spaces::NewSpace};
    ///
    /// let (sender, receiver) = mpsc::channel();
    /// let request = ChangeRequest::table("spaces").event(EventType::Insert).filter("name=like.Harbor%");
    /// client.realtime().subscribe("harbors", request, move |change| {
    ///     let _ = sender.send(change.new.unwrap()["name"].clone());
    /// })?;
    ///
    /// let spaces = ["Pier", "Harbor East"].map(|name| NewSpace::named(name).public());
    /// client.as_service().spaces().create_spaces(spaces.into())?;
    /// assert_eq!(receiver.recv().unwrap(), "Harbor East");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::{ErrorKind, realtime::ChangeRequest};
    ///
    /// let error = client.realtime().subscribe("typo", ChangeRequest::table("space"), |_| {}).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn subscribe(
        &self,
        channel: &str,
        request: ChangeRequest,
        callback: impl FnMut(RowChange) + Send + 'static,
    ) -> Result<Subscription> {
        call(&self.principal, Operation::Subscribe, async {
            validate::text("channel", Some(&channel))?;
            let (view, range) = request.view(self.caller())?;
            let on_close = request.on_close;
            let on_close = move |reason: Option<Error>| {
                if let Some(on_close) = on_close {
                    on_close(reason.map(|reason| reason.with_operation(Operation::Subscribe)));
                }
            };
            self.core.subscribe(&self.principal, view, range, callback, on_close).await
        })
        .await
    }

    /// The subscription `space-changes`: the changes of one space. An `UPDATE` carries the new row; a `DELETE` means
    /// that the space is gone for this caller.
    ///
    /// # Errors
    /// The errors of [`subscribe`](Realtime::subscribe).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let subscription = client.realtime().on_space_changes(space_id, |change| println!("{:?}", change.new))?;
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

    /// The subscription `fidget-changes`: the changes of the fidgets of one space.
    ///
    /// # Errors
    /// The errors of [`subscribe`](Realtime::subscribe).
    ///
    /// ```
    /// # fn example(client: &townsquare::blocking::Client, space_id: townsquare::Uuid) -> townsquare::Result<()> {
    /// let subscription = client.realtime().on_fidget_changes(space_id, |change| println!("{:?}", change.new))?;
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
    /// The stream has no end while the client is open: the program leaves the loop, or ends the stream from elsewhere by
    /// [`closer`](ChangeStream::closer). A request with [`until`](ChangeRequest::until) ends by itself.
    ///
    /// # Errors
    /// The errors of [`subscribe`](Realtime::subscribe).
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
    ///
    /// The cursor of a change is the place to continue from, also after a restart:
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::{realtime::ChangeRequest, spaces::NewSpace};
    ///
    /// let mut changes = client.realtime().changes(ChangeRequest::table("spaces"))?;
    /// let service = client.as_service();
    /// service.spaces().create_spaces(["Harbor", "Pier"].map(|name| NewSpace::named(name).public()).into())?;
    /// let cursor = changes.next().unwrap()?.cursor; // the program stores it after its work on this change
    ///
    /// let mut changes = client.realtime().changes(ChangeRequest::table("spaces").since(&*cursor))?;
    /// assert_eq!(changes.next().unwrap()?.new.unwrap()["name"], "Pier");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn changes(&self, request: ChangeRequest) -> Result<ChangeStream> {
        self.changes_as(Operation::Changes, request).await
    }

    /// [`changes`](Realtime::changes) with errors of another operation. For the C binding, which makes callbacks of a stream.
    #[doc(hidden)]
    pub async fn changes_as(&self, of: Operation, request: ChangeRequest) -> Result<ChangeStream> {
        // Read here: a future that borrowed the request would not be `Send`.
        let view = request.view(self.caller());
        call(&self.principal, of, async {
            let (view, range) = view?;
            let cursors = self.core.start_capture(&self.principal).await?;
            let (subscription, _) = self.core.stream(&self.principal, view, range, &cursors).await?;
            Ok(ChangeStream::new(&self.core, subscription, of))
        })
        .await
    }

    /// The rows that `request` selects now, and every change after them, with no gap and no repeat.
    ///
    /// The rows are read into memory at once. For a large table, select with a filter, or read pages and use
    /// [`changes`](Realtime::changes).
    ///
    /// # Errors
    /// The errors of [`subscribe`](Realtime::subscribe); `TooLarge` if the rows take more than 64 MiB of memory.
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
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::{realtime::LiveRequest, spaces::NewSpace};
    ///
    /// let service = client.as_service();
    /// service.spaces().create_space(NewSpace::named("Harbor").public())?;
    /// let mut spaces = client.realtime().live(LiveRequest::table("spaces").filter("is_public=is.true"))?;
    /// assert_eq!(spaces.rows[0]["name"], "Harbor");
    ///
    /// service.spaces().create_space(NewSpace::named("Pier").public())?;
    /// assert_eq!(spaces.changes.next().unwrap()?.new.unwrap()["name"], "Pier");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn live(&self, request: LiveRequest) -> Result<LiveQuery> {
        call(&self.principal, Operation::LiveQuery, async {
            let view = View::new("public", &request.table, self.caller(), None, &request.filter)?;
            let table = view.table;
            let (rows, subscription) = self.core.live(&self.principal, view).await?;
            let changes = ChangeStream::new(&self.core, subscription, Operation::LiveQuery);
            Ok(LiveQuery { rows: live::in_order(table, rows), changes })
        })
        .await
    }

    /// The position after the last commit, to subscribe since later. The text is opaque: programs store and compare nothing else.
    ///
    /// A cursor is valid for as long as the log keeps the changes after it ([`change_retention`](crate::Config::change_retention)).
    ///
    /// # Errors
    /// The errors of the database.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::{realtime::ChangeRequest, spaces::NewSpace};
    ///
    /// let cursor = client.realtime().cursor()?;
    /// client.as_service().spaces().create_space(NewSpace::named("Harbor").public())?;
    /// // Later, also after a restart of the program:
    /// let mut changes = client.realtime().changes(ChangeRequest::table("spaces").since(cursor))?;
    /// assert_eq!(changes.next().unwrap()?.new.unwrap()["name"], "Harbor");
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn cursor(&self) -> Result<String> {
        call(&self.principal, Operation::FeedCursor, async {
            let cursors = self.core.start_capture(&self.principal).await?;
            Ok(cursors.cursor(&self.core.database.head().await?))
        })
        .await
    }

    /// The figures of the change feed: how many changes it keeps, and how far it is behind.
    ///
    /// # Errors
    /// The errors of the database.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// let stats = client.realtime().stats()?;
    /// println!("{} changes since {:?}", stats.retained, stats.oldest);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn stats(&self) -> Result<RealtimeStats> {
        call(&self.principal, Operation::RealtimeStats, async {
            self.core.check_open(&self.principal)?;
            self.core.stats().await
        })
        .await
    }
}

crate::model::opaque!(Realtime);

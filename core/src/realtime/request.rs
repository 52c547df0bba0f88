//! The parameters of subscriptions and live queries.

use std::fmt;

use super::view::View;
use crate::{
    callbacks::OnClose,
    error::{Error, Result},
    model::EventType,
    policy::Caller,
};

/// The changes that a subscription or a stream gets: a table, and optionally an event, a filter and a cursor.
///
/// ```
/// use townsquare::realtime::{ChangeRequest, EventType};
///
/// let renamed = ChangeRequest::table("spaces").event(EventType::Update).filter("is_public=is.true");
/// ```
#[must_use]
pub struct ChangeRequest {
    schema: String,
    table: String,
    event: Option<EventType>,
    filter: String,
    since: Option<String>,
    until: Option<String>,
    pub(super) on_close: Option<OnClose>,
}

impl ChangeRequest {
    /// Every change of a table: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces`, `fidgets`
    /// or `files`.
    pub fn table(table: impl Into<String>) -> ChangeRequest {
        ChangeRequest {
            schema: "public".to_owned(),
            table: table.into(),
            event: None,
            filter: String::new(),
            since: None,
            until: None,
            on_close: None,
        }
    }

    /// Only the changes that are delivered as this event. Without it, every event.
    pub fn event(mut self, event: EventType) -> ChangeRequest {
        self.event = Some(event);
        self
    }

    /// Only rows that fulfil the filter: conditions `column=op.value`, joined by `&`. The operators are `eq`, `neq`, `lt`, `lte`,
    /// `gt`, `gte`, `in`, `like`, `ilike` and `is`. A filter has at most 8 conditions and 1,024 bytes. A value that may have an `&` stands
    /// in double quotes, with a backslash before `"` and `\`: `name=eq."Quay & Co"`. In a pattern of `like`, `%` and `*` stand for any
    /// text and `_` for one character.
    pub fn filter(mut self, filter: impl Into<String>) -> ChangeRequest {
        self.filter = filter.into();
        self
    }

    /// Begins after a cursor: first the changes since then, then those to come, with no gap and no repeat.
    ///
    /// For a row that was deleted since, or that the caller no longer sees, only a `DELETE` with the primary key is delivered, also
    /// if another row has the key now. A filter then tests only the primary key, and `space_id` for fidgets. The service gets
    /// every change as it was.
    pub fn since(mut self, cursor: impl Into<String>) -> ChangeRequest {
        self.since = Some(cursor.into());
        self
    }

    /// Ends the subscription or the stream at a cursor. A program that reads the changes up to now takes the cursor of
    /// [`Realtime::cursor`](super::Realtime::cursor). Changes after the cursor are not delivered. The end is the same as when the
    /// program closes the stream.
    ///
    /// A stream until a cursor and a stream since the same cursor together deliver each change once. On PostgreSQL, a change waits
    /// until older transactions have ended, and so does the end of the stream.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// use townsquare::{realtime::ChangeRequest, spaces::NewSpace};
    ///
    /// let service = client.as_service();
    /// let start = service.realtime().cursor()?;
    /// service.spaces().create_space(NewSpace::named("Harbor"))?;
    /// let end = service.realtime().cursor()?;
    /// service.spaces().create_space(NewSpace::named("Pier"))?;
    ///
    /// let request = ChangeRequest::table("spaces").since(start).until(end);
    /// assert_eq!(service.realtime().changes(request)?.count(), 1);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn until(mut self, cursor: impl Into<String>) -> ChangeRequest {
        self.until = Some(cursor.into());
        self
    }

    /// The schema of the table: `public`, the default and the only one.
    pub fn schema(mut self, schema: impl Into<String>) -> ChangeRequest {
        self.schema = schema.into();
        self
    }

    /// Calls `on_close` once, after the last call of the subscription's callback: with `None` if the program unsubscribed, the client
    /// closed or [`until`](ChangeRequest::until) was reached, otherwise with the reason why it ended. A stream reports its end
    /// itself.
    pub fn on_close(mut self, on_close: impl FnOnce(Option<Error>) + Send + 'static) -> ChangeRequest {
        self.on_close = Some(Box::new(on_close));
        self
    }

    #[cfg(test)]
    pub(crate) fn cursor(&self) -> Option<&str> {
        self.since.as_deref()
    }

    /// The view of `caller`, and the cursors of `since` and `until`.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown schema or table, for a column that the caller does not read, and for a malformed filter.
    pub(super) fn view(&self, caller: Caller) -> Result<(View, CursorRange)> {
        let view = View::new(&self.schema, &self.table, caller, self.event, &self.filter)?;
        Ok((view, CursorRange { since: self.since.clone(), until: self.until.clone() }))
    }
}

impl fmt::Debug for ChangeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("ChangeRequest");
        out.field("table", &self.table)
            .field("event", &self.event)
            .field("filter", &self.filter)
            .finish_non_exhaustive()
    }
}

/// The cursors at which the changes of a subscription begin and end.
#[derive(Debug, Default)]
pub(super) struct CursorRange {
    pub(super) since: Option<String>,
    pub(super) until: Option<String>,
}

/// The rows that a live query returns and follows: a table, and optionally a filter.
///
/// ```
/// use townsquare::realtime::LiveRequest;
///
/// let clocks = LiveRequest::table("fidgets").filter("type=eq.clock");
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct LiveRequest {
    pub(super) table: String,
    pub(super) filter: String,
}

impl LiveRequest {
    /// Every row of a table: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces`, `fidgets` or
    /// `files`.
    pub fn table(table: impl Into<String>) -> LiveRequest {
        LiveRequest { table: table.into(), filter: String::new() }
    }

    /// Only rows that fulfil the filter; see [`ChangeRequest::filter`].
    pub fn filter(mut self, filter: impl Into<String>) -> LiveRequest {
        self.filter = filter.into();
        self
    }
}

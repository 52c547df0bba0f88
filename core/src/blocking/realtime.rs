//! The change feed without async.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::{wait, wait_while};
use crate::{
    callbacks::Subscription,
    error::Result,
    http_message::{BodyCloser, ResponseBody},
    model::{RealtimeStats, RowChange},
    realtime::{ChangeRequest, LiveRequest, StreamCloser},
};

area! { Realtime:
    start() -> ();
    stop() -> ();
    subscribe(channel: &str, request: ChangeRequest, callback: impl FnMut(RowChange) + Send + 'static) -> Subscription;
    on_space_changes(space_id: Uuid, callback: impl FnMut(RowChange) + Send + 'static) -> Subscription;
    on_fidget_changes(space_id: Uuid, callback: impl FnMut(RowChange) + Send + 'static) -> Subscription;
    cursor() -> String;
    stats() -> RealtimeStats;
}

impl Realtime<'_> {
    #[doc = text_of!(Realtime.handle_events_request)]
    pub fn handle_events_request(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
    ) -> Result<EventResponse> {
        Ok(wait(self.0.handle_events_request(method, target, headers))?.map(EventBody))
    }

    #[doc = text_of!(Realtime.handle_events)]
    ///
    /// ```no_run
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir("town"))?;
    /// use std::io::Write;
    ///
    /// # let (mut connection, headers) = (std::io::sink(), Vec::new());
    /// let response = client.realtime().handle_events("/events?table=spaces", &headers)?;
    /// for bytes in response.body {
    ///     connection.write_all(&bytes).and_then(|()| connection.flush()).expect("the browser listens");
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub fn handle_events(&self, target: &str, headers: &[(String, String)]) -> Result<EventResponse> {
        Ok(wait(self.0.handle_events(target, headers))?.map(EventBody))
    }

    #[doc = text_of!(Realtime.changes)]
    pub fn changes(&self, request: ChangeRequest) -> Result<ChangeStream> {
        wait(self.0.changes(request)).map(ChangeStream)
    }

    #[doc = text_of!(Realtime.live)]
    pub fn live(&self, request: LiveRequest) -> Result<LiveQuery> {
        let crate::realtime::LiveQuery { rows, changes } = wait(self.0.live(request))?;
        Ok(LiveQuery { rows, changes: ChangeStream(changes) })
    }
}

/// [`townsquare::realtime::EventResponse`](crate::realtime::EventResponse) without async.
pub type EventResponse = crate::realtime::EventResponse<EventBody>;

/// The body of an [`EventResponse`] as an iterator that waits for the next bytes. Dropping it ends the subscription.
#[derive(Debug)]
#[must_use]
pub struct EventBody(ResponseBody);

impl EventBody {
    /// A handle that ends the body from another thread, also one that waits in `next`; `None` for a refusal.
    pub fn closer(&self) -> Option<BodyCloser> {
        self.0.closer()
    }
}

impl Iterator for EventBody {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        // An error is an event.
        wait(self.0.next_chunk()).ok().flatten()
    }
}

/// [`townsquare::realtime::ChangeStream`](crate::realtime::ChangeStream) as an iterator that waits for each change.
#[derive(Debug)]
#[must_use]
pub struct ChangeStream(crate::realtime::ChangeStream);

/// [`townsquare::realtime::LiveQuery`](crate::realtime::LiveQuery) without async.
#[derive(Debug)]
#[non_exhaustive]
pub struct LiveQuery {
    /// The rows when the query began.
    pub rows: Vec<Map<String, Value>>,
    /// Every change after them.
    pub changes: ChangeStream,
}

impl ChangeStream {
    /// The next change; waits for it at most `timeout`. `None` at the time-out and after the end.
    ///
    /// # Errors
    /// `CursorExpired` if the log no longer has the changes that follow; `Unauthorized` if the session of a live query has ended;
    /// `Closed` in a forked child.
    ///
    /// ```no_run
    /// # fn example(mut changes: townsquare::blocking::ChangeStream) -> townsquare::Result<()> {
    /// use std::time::Duration;
    ///
    /// // A game takes what has happened since its last frame.
    /// while let Some(change) = changes.next_within(Duration::ZERO).transpose()? {
    ///     println!("{}", change.event_type);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn next_within(&mut self, timeout: Duration) -> Option<Result<RowChange>> {
        wait_while(self.0.next(), timeout, || Err(())).ok().flatten()
    }

    #[doc = text_of!(ChangeStream.close)]
    ///
    /// ```no_run
    /// # fn example(mut changes: townsquare::blocking::ChangeStream) {
    /// changes.close();
    /// assert!(changes.next().is_none());
    /// # }
    /// ```
    pub fn close(&mut self) {
        self.0.close();
    }

    /// A handle that ends the stream from another thread, also one that waits in `next`.
    ///
    /// ```no_run
    /// # fn example(changes: townsquare::blocking::ChangeStream) {
    /// let closer = changes.closer();
    /// std::thread::spawn(move || closer.close());
    /// for change in changes {
    ///     println!("{change:?}");
    /// }
    /// # }
    /// ```
    pub fn closer(&self) -> StreamCloser {
        self.0.closer()
    }
}

impl Iterator for ChangeStream {
    type Item = Result<RowChange>;

    fn next(&mut self) -> Option<Result<RowChange>> {
        wait(self.0.next())
    }
}

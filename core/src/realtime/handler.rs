//! `handle_events`: subscriptions over HTTP as server-sent events, without a server.
//!
//! Invariant: every request gets a response. It acts for the bearer of its `Authorization` header and for nobody else: the
//! caller of the handle has no part in it. A client that was cut and comes back with `Last-Event-ID` misses nothing. The events
//! of a bearer end with the bearer's token; they do not continue as anonymous.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::{runtime::Handle, task::JoinSet};

use super::{ChangeRequest, ChangeStream, EventType, Realtime, RowChange, StreamCloser, request::Capture};
use crate::{
    bearer::BearerResolver,
    client_key::{ClientSlots, Slot},
    error::{Error, Operation, Result, operation},
    http_file::{RequestTarget, header},
    http_refusal::HttpRefusal,
    policy::Table,
};

/// About how many bytes of events are sent as one chunk.
const CHUNK: usize = 64 << 10;

/// What the handler needs of its client.
#[derive(Clone)]
pub(crate) struct EventOptions {
    pub(crate) bearer: BearerResolver,
    /// The time between two heartbeats.
    pub(crate) heartbeat: Duration,
    /// Runs the timers of heartbeats.
    pub(crate) runtime: Handle,
    /// The streams that the client may have at the same time.
    pub(crate) streams: ClientSlots,
}

/// The response of [`Realtime::handle_events`](super::Realtime::handle_events), for any HTTP server.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// client.realtime().start().await?;
/// let mut response = client.realtime().handle_events("/events?table=spaces", &[]).await?;
/// assert_eq!(response.status, 200);
/// while let Some(bytes) = response.body.next_chunk().await {
///     println!("{}", String::from_utf8_lossy(&bytes));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct EventResponse<B = EventBody> {
    /// The HTTP status.
    pub status: u16,
    /// The headers; their names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body: events until the client or the stream is closed, or JSON that describes a refusal.
    pub body: B,
}

/// The body of an [`EventResponse`], in chunks. Dropping it ends the subscription.
#[must_use]
pub struct EventBody {
    /// What is sent before the next event.
    ready: VecDeque<Bytes>,
    /// `None` for a refusal, and after the end.
    events: Option<Events>,
}

struct Events {
    stream: ChangeStream,
    heartbeat: Duration,
    runtime: Handle,
    /// The timer of the next heartbeat.
    timer: JoinSet<()>,
    _slot: Option<Slot>,
}

impl Realtime {
    /// Answers a GET request for server-sent events: the changes of `/…?table=spaces&filter=id=eq.…`.
    ///
    /// The parameters have the meaning of the fields of [`ChangeRequest`]: `table`, `event`, `filter` and `since`. Several
    /// `filter` must all hold. The path has no meaning. A request acts for the bearer of its `Authorization` header and for
    /// nobody else; without it, it is anonymous. The header `Last-Event-ID` is the cursor to continue from.
    ///
    /// Each change is `event: change`, `id:` its cursor and `data:` the change as JSON. The first lines of the body give the
    /// cursor that the subscription begins with. A comment follows after every
    /// [`event_heartbeat`](crate::Config::event_heartbeat) without a change.
    ///
    /// If the subscription ends by itself, the last event is `event: end` with `data: {"error":"Session has ended","status":401}`:
    /// the status and the message with which a repeated request would be refused. A bearer's subscription ends when the access
    /// token expires, is replaced or is revoked.
    ///
    /// The status is 200; 400 for a malformed request, filter or cursor, 401 for a token that is not valid, 404 for an unknown
    /// table, 410 for a cursor after which the feed no longer has every change, 429 for a client with too many streams (see
    /// [`with_client_key`](crate::Client::with_client_key)), 503 while the change log is switched off: a request never switches it
    /// on ([`start`](Realtime::start) does).
    ///
    /// # Errors
    /// `Closed` on a closed handle.
    pub async fn handle_events(&self, target: &str, headers: &[(String, String)]) -> Result<EventResponse> {
        operation(Operation::HandleEvents, async {
            self.principal.check_open()?;
            Ok(match self.open_events(target, headers).await {
                Ok(body) => EventResponse { status: 200, headers: stream_headers(), body },
                Err(refusal) => refused(refusal),
            })
        })
        .await
    }

    async fn open_events(&self, target: &str, headers: &[(String, String)]) -> Result<EventBody, HttpRefusal> {
        let (request, since) = read_request(target, headers)?;
        let slot = self.events.streams.take()?;
        let bearer = self.events.bearer.principal(headers).await?;
        let caller = bearer.unwrap_or_else(|| self.core.database.anonymous_request());
        // A request does not switch capture on: with capture, every change costs a second write. The refusal is made here, because
        // the refusal of an error of `capture` would not name the reason and would be logged.
        if !self.core.database.capture_state().await?.0 {
            return Err(HttpRefusal::new(503, "The change feed is switched off"));
        }
        let cursors = self.core.capture(Capture::MustBeOn).await?;
        // A client that is cut before its first event comes back with this cursor.
        let since = match since {
            Some(cursor) => cursor,
            None => cursors.cursor(&self.core.database.head().await?),
        };
        let (view, _) = request.view(caller.principal().caller())?;
        let subscription = self.core.stream(&caller, view, Some(&since), Capture::MustBeOn).await?;
        let stream = ChangeStream::new(&self.core, subscription, Operation::Changes);
        let EventOptions { heartbeat, runtime, .. } = self.events.clone();
        let events = Events { stream, heartbeat, runtime, timer: JoinSet::new(), _slot: slot };
        Ok(EventBody { ready: VecDeque::from([format!("id: {since}\n\n").into()]), events: Some(events) })
    }
}

/// Reads what a request asks for: the subscription, and the cursor to continue from.
fn read_request(target: &str, headers: &[(String, String)]) -> Result<(ChangeRequest, Option<String>), HttpRefusal> {
    // Forms and `URLSearchParams` write a space as `+`.
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = if path.is_empty() { "/" } else { path };
    let target = RequestTarget::parse(&format!("{path}?{}", query.replace('+', "%20")))?;
    let given = |name| target.parameter(name).filter(|value| !value.is_empty());
    let table = given("table").ok_or_else(|| Error::invalid_input("the request names no table"))?;
    if !Table::ALL.iter().any(|known| known.name() == table) {
        return Err(HttpRefusal::new(404, "There is no such table"));
    }
    let mut request = ChangeRequest::table(table);
    if let Some(event) = given("event").filter(|event| *event != "*") {
        request = request.event(event.parse::<EventType>()?);
    }
    let filters: Vec<_> = target.parameters("filter").filter(|filter| !filter.is_empty()).collect();
    request = request.filter(filters.join("&"));
    let last_event = header(headers, "last-event-id")
        .map_err(|()| Error::invalid_input("the request has two headers last-event-id"))?
        .filter(|cursor| !cursor.is_empty());
    Ok((request, last_event.or_else(|| given("since")).map(str::to_owned)))
}

fn stream_headers() -> Vec<(String, String)> {
    [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-store"),
        ("vary", "authorization"),
        ("x-content-type-options", "nosniff"),
        // nginx would collect the events.
        ("x-accel-buffering", "no"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

fn refused(refusal: HttpRefusal) -> EventResponse {
    let (status, headers, content) = refusal.into_parts();
    let mut headers: Vec<_> = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    headers.push(("content-length".to_owned(), content.len().to_string()));
    EventResponse { status, headers, body: EventBody { ready: VecDeque::from([content.into()]), events: None } }
}

impl EventBody {
    /// Returns the next bytes: one or several whole events, or a heartbeat. `None` at the end: after the event `end`, or when the
    /// stream or the client was closed.
    pub async fn next_chunk(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// A handle that ends the body from another thread or task; `None` for a refusal.
    pub fn closer(&self) -> Option<StreamCloser> {
        self.events.as_ref().map(|events| events.stream.closer())
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(chunk) = self.ready.pop_front() {
            return Poll::Ready(Some(chunk));
        }
        let Some(events) = &mut self.events else { return Poll::Ready(None) };
        let chunk = std::task::ready!(events.poll_chunk(context));
        if chunk.is_none() {
            self.events = None;
        }
        Poll::Ready(chunk)
    }
}

impl Events {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK {
            match Pin::new(&mut self.stream).poll_next(context) {
                Poll::Ready(Some(Ok(change))) => write_event(&mut chunk, &change),
                Poll::Ready(Some(Err(error))) => {
                    write_end(&mut chunk, error);
                    break;
                }
                // After what was received, the next call finds the end again.
                Poll::Ready(None) if chunk.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        if !chunk.is_empty() {
            self.timer = JoinSet::new();
            return Poll::Ready(Some(chunk.into()));
        }
        if self.timer.is_empty() {
            let heartbeat = self.heartbeat;
            self.timer.spawn_on(async move { tokio::time::sleep(heartbeat).await }, &self.runtime);
        }
        self.timer.poll_join_next(context).map(|ended| match ended {
            Some(Ok(())) => Some(Bytes::from_static(b": heartbeat\n\n")),
            // The client's runtime has ended.
            _ => None,
        })
    }
}

/// Appends an event. JSON and cursors have no line breaks.
fn write_event(chunk: &mut Vec<u8>, change: &RowChange) {
    chunk.extend_from_slice(format!("event: change\nid: {}\ndata: ", change.cursor).as_bytes());
    let length = chunk.len();
    if let Err(error) = serde_json::to_writer(&mut *chunk, change) {
        tracing::error!(%error, "a change could not be written as JSON");
        chunk.truncate(length);
    }
    chunk.extend_from_slice(b"\n\n");
}

/// Appends the event that says why the subscription ended.
fn write_end(chunk: &mut Vec<u8>, error: Error) {
    let (status, error) = HttpRefusal::from(error).status_and_message();
    let data = serde_json::json!({ "status": status, "error": error });
    chunk.extend_from_slice(format!("event: end\ndata: {data}\n\n").as_bytes());
}

impl Stream for EventBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.poll_chunk(context).map(|chunk| chunk.map(Ok))
    }
}

impl fmt::Debug for EventBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBody").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(target: &str, headers: &[(&str, &str)]) -> Result<(ChangeRequest, Option<String>), u16> {
        let headers: Vec<_> = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        read_request(target, &headers).map_err(|refusal| refusal.into_parts().0)
    }

    #[test]
    fn the_query_is_decoded_as_forms_write_it() {
        let target = "/events?table=spaces&filter=name=eq.a+b%2Bc&filter=is_public%3Dis.true&event=update&since=x";
        let (request, since) = read(target, &[]).expect("a request");
        let request = format!("{request:?}");
        for part in ["spaces", "Update", "name=eq.a b+c&is_public=is.true"] {
            assert!(request.contains(part), "{part}: {request}");
        }
        assert_eq!(since.as_deref(), Some("x"));
        let (_, since) = read("?table=files&event=*&since=x", &[("Last-Event-ID", " y ")]).expect("a request");
        assert_eq!(since.as_deref(), Some("y"), "the header is newer than the URL");
    }

    #[test]
    fn malformed_requests_are_refused() {
        for (target, status) in [
            ("/events", 400),
            ("/events?table=", 400),
            ("/events?table=secrets", 404),
            ("/events?table=spaces&event=TRUNCATE", 400),
            ("/events?table=%zz", 400),
        ] {
            assert_eq!(read(target, &[]).err(), Some(status), "{target}");
        }
        let twice = [("last-event-id", "a"), ("Last-Event-ID", "b")];
        assert_eq!(read("/events?table=spaces", &twice).err(), Some(400));
    }
}

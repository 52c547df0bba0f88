//! `handle_events`: subscriptions over HTTP as server-sent events.
//!
//! Invariant: a request acts for the bearer of its `Authorization` header and for nobody else. The caller of the handle is
//! ignored. A client that reconnects with `Last-Event-ID` misses no event. The events of a bearer end with the bearer's token; they
//! do not continue as anonymous.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use ::http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_TYPE, VARY},
};
use bytes::Bytes;
use futures_core::Stream;
use tokio::{runtime::Handle, task::JoinSet};

use super::{bearer, headers::single, refusal::HttpRefusal, request::Request, response::Response, target::Target};
use crate::{
    client_key::Slot,
    database::call,
    error::{Error, Operation, Result},
    http_message::{HttpResponse, ResponseBody},
    policy::Table,
    realtime::{ChangeRequest, ChangeStream, EventResponse, EventType, Realtime, RowChange},
};

/// The methods that are answered.
const METHODS: &str = "GET, HEAD";

/// About how many bytes of events are sent as one chunk.
const CHUNK: usize = 64 << 10;

/// The parameters of a request.
const PARAMETERS: [&str; 4] = ["table", "event", "filter", "since"];

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The changes of a subscription as server-sent events.
struct EventStream {
    /// What is sent before the first event.
    first: Option<Bytes>,
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
    /// `filter` must all hold. Another parameter is refused, and so are two of `table`, `event` or `since`. The path has no meaning.
    /// A request acts for the bearer of its `Authorization` header and for nobody else; without it, it is anonymous. The header
    /// `Last-Event-ID` is the cursor to continue from.
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
        self.handle_events_request("GET", target, headers).await
    }

    /// Answers a request of any method as [`handle_events`](Realtime::handle_events) answers GET: HEAD, CORS preflights
    /// (OPTIONS), and 405 for others.
    ///
    /// # Errors
    /// `Closed` on a closed handle.
    ///
    /// # Examples
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let response = client.realtime().handle_events_request("POST", "/events?table=spaces", &[]).await?;
    /// assert_eq!(response.status, 405);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn handle_events_request(
        &self,
        method: &str,
        target: &str,
        headers: &[(String, String)],
    ) -> Result<EventResponse> {
        self.respond(&Request::of_text(method, target, headers)).await.map(HttpResponse::from)
    }

    /// # Errors
    /// `Closed` on a closed handle.
    pub(super) async fn respond(&self, request: &Request<'_>) -> Result<Response> {
        let answer = async { open(self, request).await.map_err(HttpRefusal::of_no_file) };
        let respond = async { Ok(request.respond(METHODS, &self.requests.shared.allowed_origins, answer).await) };
        call(self.principal(), Operation::HandleEvents, respond).await
    }
}

async fn open(realtime: &Realtime, request: &Request<'_>) -> Result<Response, HttpRefusal> {
    if !matches!(request.method, "GET" | "HEAD") {
        return Err(HttpRefusal::method_not_allowed(METHODS));
    }
    let changes = read_request(request.target, &request.headers)?;
    let context = &realtime.requests;
    let slot = context.take_event_stream()?;
    let caller = bearer::principal(context, &request.headers).await?;
    // A request does not switch capture on: with capture, every change costs a second write.
    let Some((stream, since)) = realtime.request_stream(&caller, changes).await? else {
        return Err(HttpRefusal::new(503, "The change feed is switched off"));
    };
    if request.method == "HEAD" {
        return Ok(event_response(ResponseBody::unread(ResponseBody::UNKNOWN_SIZE)));
    }
    let closer = stream.closer();
    let events = EventStream {
        // For a client that disconnects before its first event.
        first: Some(format!("id: {since}\n\n").into()),
        stream,
        heartbeat: context.shared.heartbeat,
        runtime: context.shared.runtime.clone(),
        timer: JoinSet::new(),
        _slot: slot,
    };
    let body = ResponseBody::from_chunks(ResponseBody::UNKNOWN_SIZE, events);
    Ok(event_response(body.with_closer(move || closer.close())))
}

fn event_response(body: ResponseBody) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(VARY, HeaderValue::from_static("authorization"));
    // nginx would collect the events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// Reads what a request asks for.
fn read_request(target: &str, headers: &HeaderMap) -> Result<ChangeRequest, HttpRefusal> {
    let malformed = |why: &str| HttpRefusal::new(400, why);
    let query = Target::parse(target).and_then(|target| target.parameters()).map_err(malformed)?;
    // A filter with a misspelt name would be no filter: the subscription would get every row.
    if let Some((unknown, _)) = query.0.iter().find(|(name, _)| !PARAMETERS.contains(&name.as_str())) {
        let (shortened, known) = (unknown.chars().take(60).collect::<String>(), PARAMETERS.join(", "));
        let message = format!("the request has no parameter {shortened:?}; its parameters are {known}");
        return Err(HttpRefusal::new(400, message));
    }
    let value_of = |name| query.single(name).map_err(|why| malformed(&why));
    let table = value_of("table")?.ok_or_else(|| malformed("the request names no table"))?;
    if !Table::ALL.iter().any(|known| known.name() == table) {
        return Err(HttpRefusal::new(404, "There is no such table"));
    }
    let filters: Vec<_> = query.all("filter").filter(|filter| !filter.is_empty()).collect();
    let mut request = ChangeRequest::table(table).filter(filters.join("&"));
    if let Some(event) = value_of("event")?.filter(|event| *event != "*") {
        request = request.event(event.parse::<EventType>()?);
    }
    let since = value_of("since")?;
    let last_event = single(headers, &LAST_EVENT_ID)?.filter(|cursor| !cursor.is_empty());
    Ok(match last_event.or(since) {
        Some(cursor) => request.since(cursor),
        None => request,
    })
}

impl Stream for EventStream {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.poll_events(context).map(|chunk| chunk.map(Ok)),
        }
    }
}

impl EventStream {
    fn poll_events(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::headers::header_map;

    fn read(target: &str, headers: &[(&str, &str)]) -> Result<ChangeRequest, u16> {
        read_request(target, &header_map(headers)).map_err(|refusal| refusal.status_and_message().0)
    }

    #[test]
    fn the_query_is_decoded_as_forms_write_it() {
        let target = "/events?table=spaces&filter=name=eq.a+b%2Bc&filter=is_public%3Dis.true&event=update&since=x";
        let request = read(target, &[]).expect("a request");
        assert_eq!(request.cursor(), Some("x"));
        let request = format!("{request:?}");
        for part in ["spaces", "Update", "name=eq.a b+c&is_public=is.true"] {
            assert!(request.contains(part), "{part}: {request}");
        }
        let request = read("?table=files&event=*&since=x", &[("Last-Event-ID", " y ")]).expect("a request");
        assert_eq!(request.cursor(), Some("y"), "the header is newer than the URL");
    }

    #[test]
    fn an_unknown_parameter_is_refused_by_name() {
        let refusal = read_request("/events?table=spaces&filtr=id=eq.1", &HeaderMap::new()).expect_err("misspelt");
        let message = "the request has no parameter \"filtr\"; its parameters are table, event, filter, since";
        assert_eq!(refusal.status_and_message(), (400, message.to_owned()));
    }

    #[test]
    fn a_parameter_that_is_given_twice_is_refused_by_name() {
        for (name, target) in [
            ("table", "?table=spaces&table=fidgets"),
            ("table", "?table=spaces&table=spaces"),
            ("event", "?table=spaces&event=UPDATE&event=*"),
            ("since", "?table=spaces&since=x&since=y"),
        ] {
            let refusal = read_request(target, &header_map(&[("Last-Event-ID", "z")])).expect_err(target);
            let message = format!("the parameter {name} is given more than once");
            assert_eq!(refusal.status_and_message(), (400, message), "{target}");
        }
        assert!(read("?table=&table=spaces&filter=id=eq.1&filter=id=eq.2", &[]).is_ok());
    }

    #[test]
    fn malformed_requests_are_refused() {
        for (target, status) in [
            ("/events", 400),
            ("/events?table=", 400),
            ("/events?table=secrets", 404),
            ("/events?table=spaces&event=TRUNCATE", 400),
            ("/events?table=%zz", 400),
            ("/events?table=spaces&filtr=id=eq.1", 400),
            ("/events?table=spaces&Filter=id=eq.1", 400),
            ("/events?table=secrets&filter", 404),
        ] {
            assert_eq!(read(target, &[]).err(), Some(status), "{target}");
        }
        let twice = [("last-event-id", "a"), ("Last-Event-ID", "b")];
        assert_eq!(read("/events?table=spaces", &twice).err(), Some(400));
    }
}

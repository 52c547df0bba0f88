//! An HTTP proxy before an S3 server, which injects faults by rule.
//!
//! Invariant: without a rule for it a request and its answer pass unchanged, also their headers, which the client has signed.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::{Duration, Instant},
};

use bytes::Bytes;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming, SizeHint},
    header::{CONTENT_LENGTH, TRANSFER_ENCODING},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::Runtime,
    time::Sleep,
};

use crate::s3_server::listen;

/// What a request asks of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Every request.
    Any,
    /// Reads an object or a range of it.
    Get,
    /// Asks for the attributes of an object.
    Head,
    /// Lists objects.
    List,
    /// Writes an object in one request.
    Put,
    /// Copies an object inside the store.
    Copy,
    /// Removes an object.
    Delete,
    /// Begins an upload in parts.
    BeginUpload,
    /// Sends a part.
    PutPart,
    /// Completes an upload in parts.
    CompleteUpload,
    /// Aborts an upload in parts.
    AbortUpload,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The proxy answers with this status and with this code of S3. The server does not get the request.
    Status(u16, &'static str),
    /// As `Status(429, "SlowDown")`, with a header that asks for this many seconds.
    RetryAfter(u64),
    /// As a 403 of a store with a clock that is an hour ahead.
    ClockSkew,
    /// The proxy takes the request and says nothing.
    Stall,
    /// The proxy sends the headers of the answer, and then a byte a second.
    Drip,
    /// The server gets half of the body of the request; then both connections end.
    CutRequest,
    /// The client gets half of the body of the answer.
    CutAnswer,
    /// The server does what is asked, and the client's connection ends without an answer.
    LoseAnswer,
    /// The answer is the one of this many milliseconds ago, if the same request was answered then, or else the first one later.
    OldAnswer(u64),
}

/// A fault and the requests that it happens to.
#[derive(Debug, Clone)]
pub struct Rule {
    fault: Fault,
    call: Call,
    path: String,
    skipped: usize,
    times: usize,
    until: Option<Instant>,
}

impl Rule {
    /// The fault happens to every call of this kind.
    pub fn new(fault: Fault, call: Call) -> Rule {
        Rule { fault, call, path: String::new(), skipped: 0, times: usize::MAX, until: None }
    }

    /// Only to requests with this text in their path or query.
    pub fn path(self, path: &str) -> Rule {
        Rule { path: path.to_owned(), ..self }
    }

    /// Only to the requests after this many others.
    pub fn after(self, skipped: usize) -> Rule {
        Rule { skipped, ..self }
    }

    /// Only to this many requests.
    pub fn times(self, times: usize) -> Rule {
        Rule { times, ..self }
    }

    /// Only from now on for this long.
    pub fn lasting(self, duration: Duration) -> Rule {
        Rule { until: Some(Instant::now() + duration), ..self }
    }
}

/// The time of an answer to a listing, the listing, and the answer.
type Listing = (Instant, String, Response<Bytes>);

#[derive(Default)]
struct Shared {
    rules: Mutex<Vec<Rule>>,
    seen: Mutex<Vec<(Call, String)>>,
    listings: Mutex<Vec<Listing>>,
    open: AtomicUsize,
    bytes: AtomicU64,
}

/// A running proxy. Dropping it closes its port and its connections.
pub struct S3Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

impl S3Proxy {
    /// Starts a proxy for a server on the loopback.
    ///
    /// # Panics
    /// When the system has no port or no thread left.
    pub fn to(server: SocketAddr) -> S3Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("threads for a proxy");
        let (listener, address) = listen(&runtime);
        let shared = Arc::new(Shared::default());
        runtime.spawn(serve(listener, server, Arc::clone(&shared)));
        S3Proxy { address, shared, runtime: Some(runtime) }
    }

    /// The URL of the server with the address of the proxy in place of the server's.
    pub fn through(&self, url: &str, server: SocketAddr) -> String {
        url.replace(&server.to_string(), &self.address.to_string())
    }

    /// Adds a rule. The first rule that matches a request applies.
    pub fn inject(&self, rule: Rule) {
        self.shared.rules.lock().push(rule);
    }

    /// Removes all rules. A request that already stalls goes on to do so.
    pub fn heal(&self) {
        self.shared.rules.lock().clear();
    }

    /// How many requests of this kind there were with this text in their path or query.
    pub fn count(&self, call: Call, path: &str) -> usize {
        let seen = self.shared.seen.lock();
        seen.iter().filter(|(found, uri)| (call == Call::Any || *found == call) && uri.contains(path)).count()
    }

    /// The bytes of all bodies so far, of requests and of answers.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::SeqCst)
    }

    /// How many connections of clients are open.
    pub fn connections(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for S3Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Shared {
    /// Takes the fault of a request.
    fn fault_of(&self, call: Call, uri: &str) -> Option<Fault> {
        self.seen.lock().push((call, uri.to_owned()));
        let now = Instant::now();
        let mut rules = self.rules.lock();
        rules.retain(|rule| rule.times > 0 && rule.until.is_none_or(|until| now < until));
        let matches = |rule: &&mut Rule| (rule.call == Call::Any || rule.call == call) && uri.contains(&rule.path);
        for rule in rules.iter_mut().filter(matches) {
            if rule.skipped > 0 {
                rule.skipped -= 1;
                continue;
            }
            rule.times = rule.times.saturating_sub(1);
            return Some(rule.fault);
        }
        None
    }

    /// The newest answer to a listing from before `age`. If there is none, the oldest answer.
    fn old_listing(&self, uri: &str, age: Duration) -> Option<Response<Bytes>> {
        let listings = self.listings.lock();
        let mut same = listings.iter().filter(|(_, listing, _)| listing == uri);
        let old = same.clone().rfind(|(at, _, _)| at.elapsed() >= age).or_else(|| same.next());
        old.map(|(_, _, answer)| answer.clone())
    }
}

fn call_of(request: &Request<Incoming>) -> Call {
    let query = request.uri().query().unwrap_or_default();
    let has = |name: &str| query.split('&').any(|pair| pair.split('=').next() == Some(name));
    match *request.method() {
        Method::GET if has("list-type") => Call::List,
        Method::GET => Call::Get,
        Method::HEAD => Call::Head,
        Method::POST if has("uploads") => Call::BeginUpload,
        Method::POST => Call::CompleteUpload,
        Method::DELETE if has("uploadId") => Call::AbortUpload,
        Method::DELETE => Call::Delete,
        _ if has("partNumber") => Call::PutPart,
        _ if request.headers().contains_key("x-amz-copy-source") => Call::Copy,
        _ => Call::Put,
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        shared.open.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            let proxied = Arc::clone(&shared);
            let answer = service_fn(move |request| {
                let shared = Arc::clone(&proxied);
                // A task, because a server completes a request also after its client has closed the connection.
                async move { tokio::spawn(answer(request, server, shared)).await.unwrap_or(Err(Cut)) }
            });
            // A client may close its connection at any time.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
            shared.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

async fn answer(request: Request<Incoming>, server: SocketAddr, shared: Arc<Shared>) -> Result<Response<Sent>, Cut> {
    let (call, uri) = (call_of(&request), request.uri().to_string());
    let fault = shared.fault_of(call, &uri);
    let (head, body) = request.into_parts();
    if fault == Some(Fault::Stall) {
        return std::future::pending().await;
    }
    let Some(body) = collect(body).await else { return Err(Cut) };
    shared.bytes.fetch_add(body.len() as u64, Ordering::SeqCst);
    let is_head = call == Call::Head;
    match fault {
        Some(Fault::Status(status, code)) => return Ok(refusal(status, code, is_head)),
        Some(Fault::RetryAfter(seconds)) => {
            let mut refused = refusal(429, "SlowDown", is_head);
            refused.headers_mut().insert("retry-after", seconds.into());
            return Ok(refused);
        }
        Some(Fault::ClockSkew) => {
            let mut refused = refusal(403, "RequestTimeTooSkewed", is_head);
            let later = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
            let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&later);
            refused.headers_mut().insert("date", date.expect("a date").parse().expect("a header"));
            return Ok(refused);
        }
        Some(Fault::OldAnswer(age)) => {
            if let Some(old) = shared.old_listing(&uri, Duration::from_millis(age)) {
                return Ok(old.map(Sent::whole));
            }
        }
        _ => {}
    }
    let body = if fault == Some(Fault::CutRequest) { Sent::half(body) } else { Sent::whole(body) };
    let mut found = forward(Request::from_parts(head, body), server).await.ok_or(Cut)?;
    shared.bytes.fetch_add(found.body().len() as u64, Ordering::SeqCst);
    if fault == Some(Fault::LoseAnswer) {
        return Err(Cut);
    }
    if found.headers_mut().remove(TRANSFER_ENCODING).is_some() {
        let length = found.body().len();
        found.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if call == Call::List {
        shared.listings.lock().push((Instant::now(), uri, found.clone()));
    }
    match fault {
        // There is no body to cut.
        Some(Fault::CutAnswer) if found.body().is_empty() => Err(Cut),
        Some(Fault::CutAnswer) => Ok(found.map(Sent::half)),
        Some(Fault::Drip) => Ok(found.map(Sent::slow)),
        _ => Ok(found.map(Sent::whole)),
    }
}

fn refusal(status: u16, code: &str, is_head: bool) -> Response<Sent> {
    let body = if is_head { String::new() } else { format!("<Error><Code>{code}</Code></Error>") };
    let mut response = Response::new(Sent::whole(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}

/// Sends a request to the server. `None` if the connection ends.
async fn forward(request: Request<Sent>, server: SocketAddr) -> Option<Response<Bytes>> {
    let stream = TcpStream::connect(server).await.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let (head, body) = sender.send_request(request).await.ok()?.into_parts();
    Some(Response::from_parts(head, collect(body).await?))
}

/// Reads a body. `None` if it is cut.
async fn collect(mut body: Incoming) -> Option<Bytes> {
    let mut bytes = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Some(data) = frame.ok()?.data_ref() {
            bytes.extend_from_slice(data);
        }
    }
    Some(bytes.into())
}

/// The failure that makes hyper end a connection.
#[derive(Debug)]
struct Cut;

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the proxy cuts the connection")
    }
}

impl std::error::Error for Cut {}

/// A body that is sent whole, or half, or a byte a second.
struct Sent {
    rest: Bytes,
    /// The length that the headers name.
    length: u64,
    is_cut: bool,
    pause: Option<Pin<Box<Sleep>>>,
    is_slow: bool,
}

impl Sent {
    fn whole(rest: Bytes) -> Sent {
        Sent { length: rest.len() as u64, rest, is_cut: false, pause: None, is_slow: false }
    }

    fn half(body: Bytes) -> Sent {
        let (length, mut half) = (body.len(), body);
        half.truncate(length / 2);
        Sent { length: length as u64, is_cut: true, ..Sent::whole(half) }
    }

    fn slow(body: Bytes) -> Sent {
        Sent { is_slow: true, ..Sent::whole(body) }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Cut;

    #[allow(clippy::disallowed_methods, reason = "a slow answer takes its time")]
    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(pause) = &mut self.pause {
            std::task::ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        if self.rest.is_empty() {
            // Half a body has reached the other end before the connection is cut.
            return Poll::Ready(std::mem::take(&mut self.is_cut).then_some(Err(Cut)));
        }
        let length = if self.is_slow { 1 } else { self.rest.len() };
        let data = self.rest.split_to(length);
        if self.is_slow || self.is_cut {
            let pause = if self.is_slow { Duration::from_secs(1) } else { Duration::from_millis(20) };
            self.pause = Some(Box::pin(tokio::time::sleep(pause)));
        }
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && !self.is_cut
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

//! HTTP messages for any server: responses, and the bodies of requests and responses in chunks.
//!
//! Invariant: a body of a request is read only while it is stored, and a body of a response is read only while it is sent.
//! So memory does not grow with the body.

use std::{
    fmt,
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, ReadBuf};

use crate::error::Result;

/// The size of the chunks in which a reader is read.
const CHUNK: usize = 64 << 10;

/// A response for any HTTP server: the answer of [`Discovery::handle`](crate::discovery::Discovery::handle).
///
/// ```
/// # fn example(client: &townsquare::blocking::Client) -> townsquare::Result<()> {
/// let response = client.discovery().handle("GET", "/api/miniapp-discovery?limit=5", b"", &[])?;
/// for (name, value) in &response.headers {
///     println!("{name}: {value}");
/// }
/// println!("{} {}", response.status, String::from_utf8_lossy(&response.body));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpResponse<B = Bytes> {
    /// The HTTP status.
    pub status: u16,
    /// The headers; their names are in lower case. `content-length` is among them if the length of the body is known.
    pub headers: Vec<(String, String)>,
    /// The body. It is empty for HEAD, and compressed if the header `content-encoding` says so.
    pub body: B,
}

/// The response of [`Storage::handle_file`](crate::storage::Storage::handle_file).
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// let mut response = client.storage().handle_file("GET", "/assets/images/cat.png", &[], "").await?;
/// for (name, value) in &response.headers {
///     println!("{name}: {value}");
/// }
/// while let Some(bytes) = response.body.next_chunk().await? {
///     println!("{} bytes", bytes.len());
/// }
/// # Ok(())
/// # }
/// ```
pub type FileResponse = HttpResponse<ResponseBody>;

/// The response of [`Realtime::handle_events`](crate::realtime::Realtime::handle_events).
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// client.realtime().start().await?;
/// let mut response = client.realtime().handle_events("/events?table=spaces", &[]).await?;
/// assert_eq!(response.status, 200);
/// while let Some(bytes) = response.body.next_chunk().await? {
///     println!("{}", String::from_utf8_lossy(&bytes));
/// }
/// # Ok(())
/// # }
/// ```
pub type EventResponse<B = ResponseBody> = HttpResponse<B>;

/// The body of a request for [`Storage::handle_file`](crate::storage::Storage::handle_file): bytes, a reader, or a stream
/// of chunks.
///
/// ```
/// use townsquare::storage::RequestBody;
///
/// let short = RequestBody::from("hello");
/// ```
pub struct RequestBody(RequestContent);

enum RequestContent {
    Bytes(Bytes),
    Chunks(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
}

/// The body of a response, in chunks: a `futures::Stream` of bytes. Dropping the body of server-sent events ends their
/// subscription.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// # use futures_util as futures;
/// use futures::StreamExt;
///
/// let response = client.realtime().handle_events("/events?table=spaces", &[]).await?;
/// let mut chunks = response.body.take(2);
/// while let Some(chunk) = chunks.next().await {
///     print!("{}", String::from_utf8_lossy(&chunk?));
/// }
/// # Ok(())
/// # }
/// ```
#[must_use]
pub struct ResponseBody {
    size: u64,
    content: ResponseContent,
    closer: Option<BodyCloser>,
}

/// Ends the body of server-sent events from another thread or task.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// let mut response = client.realtime().handle_events("/events?table=spaces", &[]).await?;
/// if let Some(closer) = response.body.closer() {
///     std::thread::spawn(move || closer.close());
/// }
/// while let Some(bytes) = response.body.next_chunk().await? {
///     println!("{}", String::from_utf8_lossy(&bytes));
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct BodyCloser(Arc<dyn Fn() + Send + Sync>);

enum ResponseContent {
    Bytes(Bytes),
    /// In a mutex, because the stream is not `Sync`.
    Chunks(Mutex<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>>),
}

impl<B> HttpResponse<B> {
    /// The same response with another body.
    pub(crate) fn map<C>(self, body: impl FnOnce(B) -> C) -> HttpResponse<C> {
        HttpResponse { status: self.status, headers: self.headers, body: body(self.body) }
    }
}

impl RequestBody {
    /// A body that is streamed from a reader.
    pub fn from_reader(reader: impl AsyncRead + Send + 'static) -> RequestBody {
        RequestBody::from_chunks(stream::try_unfold(Box::pin(reader), async |mut reader| {
            let mut chunk = vec![0; CHUNK];
            let mut buffer = ReadBuf::new(&mut chunk);
            poll_fn(|context| reader.as_mut().poll_read(context, &mut buffer)).await?;
            let length = buffer.filled().len();
            chunk.truncate(length);
            Ok((length > 0).then(|| (chunk.into(), reader)))
        }))
    }

    /// A body that is streamed in chunks. An error means that the client went away: nothing is stored. A body of axum:
    /// `RequestBody::from_chunks(body.into_data_stream().map_err(std::io::Error::other))`, with `TryStreamExt` of futures-util.
    pub fn from_chunks(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> RequestBody {
        RequestBody(RequestContent::Chunks(Box::pin(chunks)))
    }

    /// The bytes, if they are all in memory.
    pub(crate) fn into_bytes(self) -> Result<Bytes, RequestBody> {
        match self.0 {
            RequestContent::Bytes(bytes) => Ok(bytes),
            chunks @ RequestContent::Chunks(_) => Err(RequestBody(chunks)),
        }
    }

    /// The next bytes, or `None` at the end.
    pub(crate) async fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        match &mut self.0 {
            RequestContent::Bytes(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            RequestContent::Chunks(chunks) => poll_fn(|context| chunks.as_mut().poll_next(context)).await.transpose(),
        }
    }
}

macro_rules! from_bytes {
    ($($type:ty),*) => {$(
        impl From<$type> for RequestBody {
            fn from(bytes: $type) -> RequestBody {
                RequestBody(RequestContent::Bytes(bytes.into()))
            }
        }
    )*};
}

from_bytes!(Bytes, Vec<u8>, String, &'static [u8], &'static str);

impl ResponseBody {
    /// A body of `size` bytes; [`UNKNOWN_SIZE`](ResponseBody::UNKNOWN_SIZE) if nobody knows.
    pub(crate) fn from_chunks(size: u64, chunks: impl Stream<Item = Result<Bytes>> + Send + 'static) -> ResponseBody {
        ResponseBody { size, content: ResponseContent::Chunks(Mutex::new(Box::pin(chunks))), closer: None }
    }

    /// The same body. `close` ends it, also while another thread waits for its next bytes.
    pub(crate) fn with_closer(self, close: impl Fn() + Send + Sync + 'static) -> ResponseBody {
        ResponseBody { closer: Some(BodyCloser(Arc::new(close))), ..self }
    }

    /// A handle that ends the body from another thread or task; `None` for a body that never waits for an event.
    pub fn closer(&self) -> Option<BodyCloser> {
        self.closer.clone()
    }

    /// The body of a response to HEAD, before its content is left out: GET would send `size` bytes.
    pub(crate) fn unread(size: u64) -> ResponseBody {
        ResponseBody { size, ..ResponseBody::from(Bytes::new()) }
    }

    /// The bytes that are in memory; empty for a body that is streamed.
    pub(crate) fn in_memory(&self) -> Bytes {
        match &self.content {
            ResponseContent::Bytes(bytes) => bytes.clone(),
            ResponseContent::Chunks(_) => Bytes::new(),
        }
    }

    /// The size of a body that ends when its source does: server-sent events.
    pub const UNKNOWN_SIZE: u64 = u64::MAX;

    /// The number of bytes that the body has in all. For HEAD it is 0, also if the file has content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// For a file, as [`FileReader::next_chunk`](crate::storage::FileReader::next_chunk). The response is not complete then: end
    /// the connection. For events never: an error is an event.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await.transpose()
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> ResponseBody {
        ResponseBody { size: bytes.len() as u64, content: ResponseContent::Bytes(bytes), closer: None }
    }
}

impl BodyCloser {
    /// Ends the body. A call of `next_chunk` that waits returns `None`. Closing an ended body does nothing.
    pub fn close(&self) {
        (self.0)();
    }
}

crate::model::opaque!(BodyCloser);

impl Stream for ResponseBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let chunk = match &mut self.content {
            ResponseContent::Bytes(bytes) => (!bytes.is_empty()).then(|| Ok(std::mem::take(bytes))),
            ResponseContent::Chunks(chunks) => ready!(chunks.get_mut().as_mut().poll_next(context)),
        };
        if chunk.is_none() {
            // Closes the file. The host may keep the body.
            self.content = ResponseContent::Bytes(Bytes::new());
        }
        Poll::Ready(chunk)
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RequestContent::Bytes(bytes) => f.debug_tuple("RequestBody").field(&bytes.len()).finish(),
            RequestContent::Chunks(_) => f.debug_tuple("RequestBody").finish_non_exhaustive(),
        }
    }
}

impl fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("size", &self.size).finish_non_exhaustive()
    }
}

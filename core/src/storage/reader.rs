//! A file that is being read.
//!
//! Invariant: every byte is of the version that [`FileReader::info`] describes.

use std::{
    fmt, io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use futures_core::Stream;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, ReadBuf};

use super::read::{Content, clip};
use crate::{
    database::CurrentPrincipal,
    error::{Error, Operation, Result, operation},
    model::FileInfo,
    objects::{CHUNK, ObjectReader},
};

/// A file that is being read: the result of [`Storage::reader`](super::Storage::reader). It is also a `futures::Stream` of chunks
/// and an `AsyncRead` of tokio.
///
/// It reads one version of the file, also after others have replaced or deleted the file.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// let mut reader = client.storage().reader("assets", "videos/tour.mp4").await?;
/// println!("{} bytes of type {}", reader.info().size, reader.info().content_type);
/// let header = reader.read_at(0..16).await?; // does not move the position of `next_chunk`
/// while let Some(chunk) = reader.next_chunk().await? {
///     println!("{} bytes", chunk.len());
/// }
/// # Ok(())
/// # }
/// ```
///
/// With the adapters of the crate `futures`:
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// # use futures_util as futures;
/// use futures::TryStreamExt;
///
/// let reader = client.storage().reader("assets", "videos/tour.mp4").await?;
/// let largest = reader.try_fold(0, async |largest, chunk| Ok(chunk.len().max(largest))).await?;
/// # Ok(())
/// # }
/// ```
pub struct FileReader {
    info: FileInfo,
    content: Content,
    /// Of the service: it tells whether the client is closed.
    service: CurrentPrincipal,
    /// The position of the next chunk.
    position: u64,
    /// The most bytes of a chunk.
    chunk_size: u64,
    /// Reads the next chunk, from the first poll on. In a mutex, because the future is not `Sync`.
    reading: Option<Mutex<Reading>>,
    failed: Option<Error>,
    /// The part of a chunk that `poll_read` has not given yet.
    rest: Bytes,
}

type Reading = Pin<Box<dyn Future<Output = Result<Bytes>> + Send>>;

impl FileReader {
    /// `service` is the principal of the service on the client.
    pub(super) fn new(info: FileInfo, content: Content, service: &CurrentPrincipal) -> FileReader {
        let service = service.clone();
        FileReader {
            info,
            content,
            service,
            position: 0,
            chunk_size: CHUNK,
            reading: None,
            failed: None,
            rest: Bytes::new(),
        }
    }

    /// Gives smaller chunks, for a consumer that may keep one for long.
    pub(crate) fn in_chunks_of(self, chunk_size: u64) -> FileReader {
        FileReader { chunk_size, ..self }
    }

    pub(super) fn is_inline(&self) -> bool {
        matches!(self.content, Content::Inline(_))
    }

    /// The object with the bytes. `None` for an inline file.
    pub(super) fn object(&self) -> Option<&ObjectReader> {
        match &self.content {
            Content::Object(object) => Some(object),
            Content::Inline(_) => None,
        }
    }

    /// What is known about the version that the reader gives.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// `Closed` once the client is closed. For the bindings, which read ahead.
    #[doc(hidden)]
    pub fn require_open(&self) -> Result<()> {
        self.service.check_open().map_err(|error| error.with_operation(Operation::OpenReader))
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// `Unavailable` or `Internal` if the object store fails. Reading on fails with the same error. `Closed` once the client is
    /// closed.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Returns the bytes from `range.start` to before `range.end`. The position of `next_chunk` does not change.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the start is after the end or beyond the file. Else as `next_chunk`.
    pub async fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.require_open()?;
        operation(Operation::OpenReader, self.read_range(range)).await
    }

    /// Does what [`read_at`](FileReader::read_at) does, without an operation.
    pub(super) async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        self.content.read(clip(&range, self.info.size)?).await
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        // Bytes in memory need nothing that is closed.
        self.require_open()?;
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.rest))));
        }
        if let Some(error) = &self.failed {
            return Poll::Ready(Err(error.clone()));
        }
        let end = self.info.size.min(self.position + self.chunk_size);
        if self.position == end {
            return Poll::Ready(Ok(None));
        }
        let reading = self.reading.get_or_insert_with(|| {
            let (content, range) = (self.content.clone(), self.position..end);
            Mutex::new(Box::pin(async move { content.read(range).await }))
        });
        let chunk = ready!(reading.get_mut().as_mut().poll(context));
        self.reading = None;
        Poll::Ready(match chunk {
            Ok(chunk) => {
                self.position += chunk.len() as u64;
                Ok(Some(chunk))
            }
            Err(error) => Err(self.failed.insert(error.with_operation(Operation::OpenReader)).clone()),
        })
    }
}

impl Stream for FileReader {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        self.get_mut().poll_chunk(context).map(Result::transpose)
    }
}

impl AsyncRead for FileReader {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut chunk = match ready!(this.poll_chunk(context)) {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Poll::Ready(Ok(())),
            Err(error) => return Poll::Ready(Err(io::Error::other(error))),
        };
        let length = chunk.len().min(buffer.remaining());
        buffer.put_slice(&chunk[..length]);
        chunk.advance(length);
        this.rest = chunk;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader").field("info", &self.info).finish_non_exhaustive()
    }
}

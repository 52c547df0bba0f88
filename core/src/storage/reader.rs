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

use super::read::{Content, clip, slice};
use crate::{
    error::{Error, Operation, Result, operation},
    model::FileInfo,
    objects::ObjectReader,
};

/// The largest chunk of an inline file.
const CHUNK: usize = 1 << 20;

/// A file that is being read: the result of [`Storage::reader`](super::Storage::reader). It is also a `Stream` of chunks
/// and an `AsyncRead`.
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
pub struct FileReader {
    info: FileInfo,
    source: ByteSource,
    /// The chunk that `poll_read` has not given whole.
    rest: Bytes,
}

/// Where the bytes come from.
enum ByteSource {
    /// The bytes that were not given yet, and all of them.
    Inline {
        rest: Bytes,
        all: Bytes,
    },
    Object(ObjectReader),
    /// The object is read by a future that `poll_next` began.
    Reading(Mutex<Reading>),
    /// The object could not be read.
    Failed(Error),
}

/// Reads the next chunk and gives the object back. In a mutex, because the future is not `Sync`.
type Reading = Pin<Box<dyn Future<Output = (ObjectReader, Result<Option<Bytes>>)> + Send>>;

impl FileReader {
    pub(super) fn new(info: FileInfo, content: Content) -> FileReader {
        let source = match content {
            Content::Inline(all) => ByteSource::Inline { rest: all.clone(), all },
            Content::Object(object) => ByteSource::Object(object),
        };
        FileReader { info, source, rest: Bytes::new() }
    }

    pub(super) fn is_inline(&self) -> bool {
        matches!(self.source, ByteSource::Inline { .. })
    }

    /// What is known about the version that the reader gives.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// `Unavailable` or `Internal` if the object store fails. Reading on fails with the same error.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        std::future::poll_fn(|context| self.poll_chunk(context)).await
    }

    /// Returns the bytes from `range.start` to before `range.end`. The position of `next_chunk` does not change.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the start is after the end or beyond the file. Else as `next_chunk`.
    pub async fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        operation(Operation::OpenReader, self.read_range(range)).await
    }

    /// Does what [`read_at`](FileReader::read_at) does, without an operation.
    pub(super) async fn read_range(&self, range: Range<u64>) -> Result<Bytes> {
        let range = clip(&range, self.info.size)?;
        match &self.source {
            ByteSource::Inline { all, .. } => Ok(slice(all, range)),
            ByteSource::Object(object) => object.read(range).await,
            ByteSource::Failed(error) => Err(error.clone()),
            ByteSource::Reading(_) => Err(Error::invalid_input("a chunk of this reader is being read")),
        }
    }

    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.rest))));
        }
        // The placeholder stays only if the future panics.
        let placeholder = ByteSource::Failed(Error::file(500, "The reader has failed before"));
        let mut reading: Reading = match std::mem::replace(&mut self.source, placeholder) {
            ByteSource::Inline { mut rest, all } => {
                let chunk = rest.split_to(rest.len().min(CHUNK));
                self.source = ByteSource::Inline { rest, all };
                return Poll::Ready(Ok((!chunk.is_empty()).then_some(chunk)));
            }
            ByteSource::Failed(error) => {
                self.source = ByteSource::Failed(error.clone());
                return Poll::Ready(Err(error));
            }
            ByteSource::Object(mut object) => Box::pin(async move {
                let chunk = object.next_chunk().await;
                (object, chunk)
            }),
            ByteSource::Reading(reading) => reading.into_inner(),
        };
        match reading.as_mut().poll(context) {
            Poll::Pending => {
                self.source = ByteSource::Reading(Mutex::new(reading));
                Poll::Pending
            }
            Poll::Ready((object, Ok(chunk))) => {
                self.source = ByteSource::Object(object);
                Poll::Ready(Ok(chunk))
            }
            Poll::Ready((_, Err(error))) => {
                let error = error.with_operation(Operation::OpenReader);
                self.source = ByteSource::Failed(error.clone());
                Poll::Ready(Err(error))
            }
        }
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

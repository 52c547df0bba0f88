//! Bodies of requests and responses, in chunks.
//!
//! Invariant: a body of a request is read only while it is stored, and a body of a response is read only while it is sent.
//! So memory does not grow with the file.

use std::{fmt, future::poll_fn, io, ops::Range, pin::Pin};

use bytes::Bytes;
use futures_core::Stream;
use tokio::io::{AsyncRead, ReadBuf};

use crate::{error::Result, storage::FileReader};

/// The size of the chunks in which a reader, or a part of a file, is read.
const CHUNK: usize = 64 << 10;

/// The body of a request for [`Storage::handle_file`](crate::storage::Storage::handle_file): bytes, a reader, or a stream
/// of chunks.
///
/// ```
/// use townsquare::storage::RequestBody;
///
/// let short = RequestBody::from("hello");
/// ```
pub struct RequestBody(BodySource);

enum BodySource {
    Bytes(Bytes),
    Reader(Pin<Box<dyn AsyncRead + Send>>),
    Chunks(Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>),
}

impl RequestBody {
    /// A body that is streamed from a reader.
    pub fn from_reader(reader: impl AsyncRead + Send + 'static) -> RequestBody {
        RequestBody(BodySource::Reader(Box::pin(reader)))
    }

    /// A body that is streamed in chunks. An error means that the client went away: nothing is stored.
    pub fn from_chunks(chunks: impl Stream<Item = io::Result<Bytes>> + Send + 'static) -> RequestBody {
        RequestBody(BodySource::Chunks(Box::pin(chunks)))
    }

    /// The bytes, if they are all in memory.
    pub(super) fn into_bytes(self) -> Result<Bytes, RequestBody> {
        match self.0 {
            BodySource::Bytes(bytes) => Ok(bytes),
            source @ (BodySource::Reader(_) | BodySource::Chunks(_)) => Err(RequestBody(source)),
        }
    }

    /// The next bytes, or `None` at the end.
    pub(super) async fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        match &mut self.0 {
            BodySource::Bytes(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            BodySource::Chunks(chunks) => poll_fn(|context| chunks.as_mut().poll_next(context)).await.transpose(),
            BodySource::Reader(reader) => {
                let mut chunk = vec![0; CHUNK];
                let mut buffer = ReadBuf::new(&mut chunk);
                poll_fn(|context| reader.as_mut().poll_read(context, &mut buffer)).await?;
                let length = buffer.filled().len();
                chunk.truncate(length);
                Ok((length > 0).then(|| chunk.into()))
            }
        }
    }
}

macro_rules! from_bytes {
    ($($type:ty),*) => {$(
        impl From<$type> for RequestBody {
            fn from(bytes: $type) -> RequestBody {
                RequestBody(BodySource::Bytes(bytes.into()))
            }
        }
    )*};
}

from_bytes!(Bytes, Vec<u8>, String, &'static [u8], &'static str);

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodySource::Bytes(bytes) => f.debug_tuple("RequestBody").field(&bytes.len()).finish(),
            BodySource::Reader(_) | BodySource::Chunks(_) => f.debug_tuple("RequestBody").finish_non_exhaustive(),
        }
    }
}

/// The body of a [`FileResponse`](crate::storage::FileResponse), in chunks.
#[derive(Debug)]
pub struct ResponseBody {
    size: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Bytes(Bytes),
    Whole(Box<FileReader>),
    /// The range that is left to send.
    Part(Box<FileReader>, Range<u64>),
}

impl ResponseBody {
    pub(super) fn empty() -> ResponseBody {
        ResponseBody::bytes(Bytes::new())
    }

    pub(super) fn bytes(bytes: Bytes) -> ResponseBody {
        ResponseBody { size: bytes.len() as u64, content: Content::Bytes(bytes) }
    }

    pub(super) fn whole(reader: FileReader) -> ResponseBody {
        ResponseBody { size: reader.info().size, content: Content::Whole(Box::new(reader)) }
    }

    pub(super) fn part(reader: FileReader, range: Range<u64>) -> ResponseBody {
        ResponseBody { size: range.end - range.start, content: Content::Part(Box::new(reader), range) }
    }

    /// Closes the file. The host may keep the body.
    fn end(&mut self) -> Option<Bytes> {
        self.content = Content::Bytes(Bytes::new());
        None
    }

    /// The number of bytes that the body has in all. For HEAD it is 0, also if the file has content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// As [`FileReader::next_chunk`]. The response is not complete then: end the connection.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        match &mut self.content {
            Content::Bytes(bytes) => Ok(Some(std::mem::take(bytes)).filter(|bytes| !bytes.is_empty())),
            Content::Whole(reader) => match reader.next_chunk().await? {
                None => Ok(self.end()),
                chunk => Ok(chunk),
            },
            Content::Part(_, rest) if rest.is_empty() => Ok(self.end()),
            Content::Part(reader, rest) => {
                let end = rest.end.min(rest.start.saturating_add(CHUNK as u64));
                let chunk = reader.read_at(rest.start..end).await?;
                rest.start = end;
                Ok(Some(chunk))
            }
        }
    }
}

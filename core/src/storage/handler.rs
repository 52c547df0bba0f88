//! Requests and responses of `handle_file`.

use std::fmt;

use bytes::Bytes;
use tokio::io::AsyncRead;

use crate::error::Result;

/// The body of a request for [`Storage::handle_file`](super::Storage::handle_file): bytes, or a reader.
pub struct RequestBody(Source);

#[allow(dead_code, reason = "handle_file reads it")]
enum Source {
    Bytes(Bytes),
    Reader(std::pin::Pin<Box<dyn AsyncRead + Send>>),
}

impl RequestBody {
    /// A body that is streamed from a reader.
    pub fn from_reader(reader: impl AsyncRead + Send + 'static) -> RequestBody {
        RequestBody(Source::Reader(Box::pin(reader)))
    }
}

macro_rules! from_bytes {
    ($($type:ty),*) => {$(
        impl From<$type> for RequestBody {
            fn from(bytes: $type) -> RequestBody {
                RequestBody(Source::Bytes(bytes.into()))
            }
        }
    )*};
}

from_bytes!(Bytes, Vec<u8>, String, &'static [u8], &'static str);

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Bytes(bytes) => f.debug_tuple("RequestBody").field(&bytes.len()).finish(),
            Source::Reader(_) => f.debug_tuple("RequestBody").finish_non_exhaustive(),
        }
    }
}

/// The response of [`Storage::handle_file`](super::Storage::handle_file).
#[derive(Debug)]
#[non_exhaustive]
pub struct FileResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers; their names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: ResponseBody,
}

/// The body of a [`FileResponse`], in chunks.
#[derive(Debug)]
pub struct ResponseBody {}

impl ResponseBody {
    /// The number of bytes that the body has in all.
    pub fn size(&self) -> u64 {
        todo!()
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// As [`FileReader::next_chunk`](super::FileReader::next_chunk).
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        todo!()
    }
}

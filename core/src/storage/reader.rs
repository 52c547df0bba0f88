//! A file that is being read.
//!
//! Invariant: every byte is of the version that [`FileReader::info`] describes.

use std::{
    fmt, io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_core::Stream;
use tokio::io::{AsyncRead, ReadBuf};

use crate::{error::Result, model::FileInfo};

/// A file that is being read: the result of [`Storage::reader`](super::Storage::reader). It is also a `Stream` of chunks
/// and an `AsyncRead`.
pub struct FileReader {
    info: FileInfo,
}

impl FileReader {
    /// What is known about the version that the reader gives.
    pub fn info(&self) -> &FileInfo {
        &self.info
    }

    /// Returns the next bytes, or `None` at the end.
    ///
    /// # Errors
    /// `Unavailable` or `Internal` if the object store fails. Reading on fails with the same error.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        todo!()
    }

    /// Returns the bytes from `range.start` to before `range.end`. The position of `next_chunk` does not change.
    ///
    /// # Errors
    /// `InvalidInput` (400) if the start is after the end or beyond the file. Else as `next_chunk`.
    pub async fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let _ = range;
        todo!()
    }
}

impl Stream for FileReader {
    type Item = Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        todo!()
    }
}

impl AsyncRead for FileReader {
    fn poll_read(self: Pin<&mut Self>, _context: &mut Context<'_>, _buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        todo!()
    }
}

impl fmt::Debug for FileReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReader").field("info", &self.info).finish_non_exhaustive()
    }
}

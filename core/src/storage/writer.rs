//! A file that is being written.
//!
//! Invariant: the file changes in `finish` and not before. Dropping a writer leaves nothing.

use std::fmt;

use bytes::Bytes;

use crate::{
    error::{Error, Operation, Result},
    model::FileInfo,
};

/// A file that is being written: the result of [`Storage::writer`](super::Storage::writer). Dropping it discards what was
/// written.
pub struct FileWriter {}

impl FileWriter {
    /// Appends bytes.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`; `Unavailable` (507) if the disk is full. After an error, `finish` fails too.
    pub async fn write(&mut self, data: impl Into<Bytes>) -> Result<()> {
        let _ = data.into();
        todo!()
    }

    /// Makes the written bytes the file, durably, and returns what is known about it.
    ///
    /// # Errors
    /// As [`Storage::upload`](super::Storage::upload).
    pub async fn finish(self) -> Result<FileInfo> {
        todo!()
    }

    /// The error of an upload whose source cannot be read.
    pub(crate) fn source_failed(&self, error: std::io::Error) -> Error {
        Error::file(400, format!("the source cannot be read: {error}")).with_operation(Operation::OpenWriter)
    }

    /// Discards what was written.
    pub async fn abort(self) {
        todo!()
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter").finish_non_exhaustive()
    }
}

//! A file that is being written.
//!
//! Invariant: the file changes in `finish` and not before. Dropping a writer leaves nothing.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::{Storage, buckets::FileTarget, rows::NewFile};
use crate::{
    error::{Error, Operation, Result, is_out_of_descriptors, operation},
    model::{FileInfo, UploadOptions},
    objects::Stage,
    policy::Caller,
};

/// A file that is being written: the result of [`Storage::writer`](super::Storage::writer). The file changes when
/// [`finish`](FileWriter::finish) returns. Dropping the writer before discards the bytes that were written.
///
/// ```
/// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
/// use townsquare::storage::UploadOptions;
///
/// let mut writer = client.storage().writer("assets", "notes/a.txt", UploadOptions::new()).await?;
/// for line in ["one\n", "two\n"] {
///     writer.write(line).await?;
/// }
/// assert_eq!(writer.finish().await?.size, 8);
/// # Ok(())
/// # }
/// ```
pub struct FileWriter {
    storage: Storage,
    /// The caller that opened the file. No other caller can finish it.
    caller: Caller,
    target: FileTarget,
    options: UploadOptions,
    size: u64,
    body: UploadBody,
}

/// The bytes so far.
enum UploadBody {
    /// In memory, while they may become an inline file, or until they are verified.
    Buffer(BytesMut),
    /// On their way to the object store.
    Stage(Box<(NewFile, Stage)>),
    /// A write failed.
    Failed(Error),
}

impl FileWriter {
    pub(super) fn new(storage: Storage, target: FileTarget, options: UploadOptions) -> FileWriter {
        let caller = storage.scope.caller();
        FileWriter { storage, caller, target, options, size: 0, body: UploadBody::Buffer(BytesMut::new()) }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`; `Unavailable` (507) if the disk is full; `Closed` once the client is closed. After an
    /// error, and after a call whose future the caller dropped, `finish` fails too.
    pub async fn write(&mut self, data: impl Into<Bytes>) -> Result<()> {
        operation(Operation::OpenWriter, self.append(data.into())).await
    }

    /// Does what [`write`](FileWriter::write) does, without an operation.
    pub(super) async fn append(&mut self, data: Bytes) -> Result<()> {
        // The file would lack a part if the caller dropped this future and went on.
        let cancelled = UploadBody::Failed(Error::file(400, "a write of this file was cancelled"));
        let mut body = std::mem::replace(&mut self.body, cancelled);
        let appended = self.append_to(&mut body, data).await;
        self.body = match &appended {
            Ok(()) => body,
            Err(error) => UploadBody::Failed(error.clone()),
        };
        appended
    }

    async fn append_to(&mut self, body: &mut UploadBody, data: Bytes) -> Result<()> {
        let core = &self.storage.core;
        // Bytes that only go to memory need nothing that is closed. Their source may have no end.
        if core.runtime.blocking.is_closed() {
            return Err(Error::closed());
        }
        let size = self.size + data.len() as u64;
        self.storage.check_upload_size(size, &self.options)?;
        match body {
            UploadBody::Buffer(buffer) if self.options.verify || core.is_inline(size) => {
                buffer.extend_from_slice(&data);
            }
            UploadBody::Buffer(buffer) => {
                let buffer = std::mem::take(buffer).freeze();
                let head = if buffer.is_empty() { &data } else { &buffer };
                let new = self.storage.new_file(self.target.clone(), &self.options, head);
                let mut stage = core.objects.stage(new.attributes());
                if !buffer.is_empty() {
                    stage.write(buffer).await?;
                }
                stage.write(data).await?;
                *body = UploadBody::Stage(Box::new((new, stage)));
            }
            UploadBody::Stage(staging) => staging.1.write(data).await?,
            UploadBody::Failed(error) => return Err(error.clone()),
        }
        self.size = size;
        Ok(())
    }

    /// Makes the written bytes the file, durably, and returns what is known about it.
    ///
    /// # Errors
    /// As [`Storage::upload`](super::Storage::upload); `Unauthorized` (401) if another user has signed in to the client, or nobody
    /// is signed in any more.
    pub async fn finish(self) -> Result<FileInfo> {
        operation(Operation::OpenWriter, self.complete()).await
    }

    /// Does what [`finish`](FileWriter::finish) does, without an operation.
    pub(super) async fn complete(self) -> Result<FileInfo> {
        if self.storage.scope.caller() != self.caller {
            return Err(Error::file(401, "the caller has changed since the file was opened"));
        }
        match self.body {
            UploadBody::Buffer(buffer) => self.storage.upload_bytes(self.target, &self.options, buffer.freeze()).await,
            UploadBody::Stage(staging) => {
                let (new, stage) = *staging;
                self.storage.put_object(new, stage.finish().await?).await
            }
            UploadBody::Failed(error) => Err(error),
        }
    }

    /// Discards what was written.
    pub async fn abort(self) {
        drop(self);
    }

    /// The error of an upload whose source cannot be read.
    pub(crate) fn source_failed(&self, error: std::io::Error) -> Error {
        source_failed(error).with_operation(Operation::OpenWriter)
    }
}

/// The error of an upload whose source cannot be read.
pub(super) fn source_failed(error: std::io::Error) -> Error {
    if is_out_of_descriptors(&error) {
        return Error::no_descriptors(error);
    }
    Error::file(400, format!("the source cannot be read: {error}")).caused_by(error)
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("FileWriter");
        out.field("bucket", &self.target.bucket).field("path", &self.target.path.as_str()).field("size", &self.size);
        out.finish_non_exhaustive()
    }
}

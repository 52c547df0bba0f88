//! Opening a file for reading: inline bytes come with the row, an object is opened and compared with the row.
//!
//! Invariant: a reader is given only bytes of the version that its row describes.

use std::{ops::Range, time::Duration};

use bytes::Bytes;

use super::{
    FileReader, Storage,
    buckets::Target,
    core::LOCK_TIMEOUT,
    rows::{self, FileColumns, FileVersion, FoundFile},
    statements as sql,
};
use crate::{
    error::{Error, Result},
    objects::ObjectReader,
};

/// How often a reader that meets a writer tries again before it takes the writer's lock.
const TRIES: u32 = 8;

/// How often it tries under the lock, which keeps writers of objects out, but not writers of inline files: one of them may
/// replace the object that the reader opens. Then the next try finds the inline file.
const TRIES_UNDER_LOCK: u32 = 4;

/// The bytes of one version of a file.
pub(super) enum Content {
    Inline(Bytes),
    Object(ObjectReader),
}

impl Storage {
    pub(super) async fn open_reader(&self, bucket: &str, path: &str) -> Result<FileReader> {
        self.open_reader_of(self.core.buckets.target(bucket, path)?).await
    }

    pub(super) async fn open_reader_of(&self, target: Target) -> Result<FileReader> {
        let (info, content) = self.open(target).await?;
        Ok(FileReader::new(info, content))
    }

    /// Returns the bytes of a file: the part that `range` makes of the size.
    pub(super) async fn read_file(
        &self,
        bucket: &str,
        path: &str,
        range: impl FnOnce(u64) -> Result<Range<u64>>,
    ) -> Result<Bytes> {
        let (file, content) = self.open::<FileVersion>(self.core.buckets.target(bucket, path)?).await?;
        content.read(range(file.size())?).await
    }

    async fn open<D: FileColumns>(&self, target: Target) -> Result<(D, Content)> {
        for attempt in 0..TRIES {
            if let Some(opened) = self.try_open(&target).await? {
                return Ok(opened);
            }
            self.core.pause(Duration::from_millis(1 << attempt)).await?;
        }
        let this = self.clone();
        let open = async move {
            let key = target.key();
            let settle_and_open = async {
                for _ in 0..TRIES_UNDER_LOCK {
                    this.core.settle_locked(&key).await?;
                    if let Some(opened) = this.try_open(&target).await? {
                        return Ok(opened);
                    }
                }
                Err(Error::file(503, "Another writer changes the file"))
            };
            this.core.with_locks(&[&key], LOCK_TIMEOUT, settle_and_open).await
        };
        self.core.run(open).await
    }

    /// Opens a file; `None` if a writer is changing it.
    async fn try_open<D: FileColumns>(&self, target: &Target) -> Result<Option<(D, Content)>> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        let found = self.scope.fetch_optional(D::STATEMENT, &values, rows::found_file::<D>).await?;
        let FoundFile { columns, is_inline, content, has_intent } = found.ok_or_else(missing)?;
        let size = columns.size();
        if is_inline {
            let content = content.ok_or_else(gone)?;
            check_size(size, content.len() as u64)?;
            return Ok(Some((columns, Content::Inline(content))));
        }
        if has_intent {
            return Ok(None);
        }
        let object = self.core.objects.open_version(&target.key(), size, columns.etag()).await?;
        let is_current = match object.as_ref().and_then(|object| object.is_of(columns.etag())) {
            Some(is_of_row) => is_of_row,
            // Reads the row again: if it has not changed, the object belongs to it.
            None => self.is_current(target, columns.etag()).await?,
        };
        if !is_current {
            return Ok(None);
        }
        let object = object.ok_or_else(gone)?;
        check_size(size, object.size)?;
        Ok(Some((columns, Content::Object(object))))
    }

    /// Whether the file still has this version, and nobody is writing its object.
    async fn is_current(&self, target: &Target, etag: &str) -> Result<bool> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        let read = |row: &crate::database::Row<'_>| Ok((row.get::<String>(0)?, row.get::<bool>(1)?));
        let found = self.scope.fetch_optional(&sql::VERSION, &values, read).await?;
        let (version, has_intent) = found.ok_or_else(missing)?;
        Ok(version == etag && !has_intent)
    }
}

impl Content {
    /// Reads a range, which is clipped to the size.
    pub(super) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        match self {
            Content::Inline(content) => Ok(slice(content, range)),
            Content::Object(object) => object.read(range).await,
        }
    }
}

/// Checks a range and clips its end to the size.
///
/// # Errors
/// `InvalidInput` (400) if it begins after its end or beyond the size.
pub(super) fn clip(range: &Range<u64>, size: u64) -> Result<Range<u64>> {
    if range.start > range.end || range.start > size {
        return Err(Error::file(
            400,
            format!("the range {}..{} is not in a file of {size} bytes", range.start, range.end),
        ));
    }
    Ok(range.start..range.end.min(size))
}

/// The part of inline bytes. `range` is clipped to them.
pub(super) fn slice(content: &Bytes, range: Range<u64>) -> Bytes {
    let index = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(content.len());
    content.slice(index(range.start)..index(range.end))
}

pub(super) fn missing() -> Error {
    Error::file(404, "there is no such file, or the caller may not see it")
}

fn gone() -> Error {
    Error::file(404, "the bytes of the file are gone")
}

fn check_size(of_row: u64, stored: u64) -> Result<()> {
    if of_row == stored {
        return Ok(());
    }
    Err(Error::file(500, format!("The stored bytes are {stored}, but the file has {of_row}")))
}

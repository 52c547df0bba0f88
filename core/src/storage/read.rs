//! Opening a file for reading: inline bytes come with the row, an object is opened and compared with the row.
//!
//! Invariant: a reader is given only bytes of the version that its row describes.

use std::{ops::Range, time::Duration};

use bytes::Bytes;

use super::{
    FileReader, Storage,
    buckets::Target,
    core::LOCK_TIMEOUT,
    rows::{self, FoundFile},
    statements as sql,
};
use crate::{
    error::{Error, Result},
    model::FileInfo,
    objects::ObjectReader,
};

/// How often a reader that meets a writer tries again before it takes the writer's lock.
const TRIES: u32 = 8;

/// How often it tries under the lock, which keeps writers of objects out, but not writers of inline files: one of them may
/// replace the object that the reader opens. Then the next try finds the inline file.
const TRIES_UNDER_LOCK: u32 = 4;

/// The outcome of one try.
#[allow(clippy::large_enum_variant, reason = "it is matched at once; a box would cost every read an allocation")]
enum Opened {
    Reader(FileReader),
    /// A writer is changing the file.
    Busy,
}

impl Storage {
    pub(super) async fn open_reader(&self, bucket: &str, path: &str) -> Result<FileReader> {
        self.open_reader_of(self.core.buckets.target(bucket, path)?).await
    }

    pub(super) async fn open_reader_of(&self, target: Target) -> Result<FileReader> {
        for attempt in 0..TRIES {
            if let Opened::Reader(reader) = self.try_open(&target).await? {
                return Ok(reader);
            }
            self.core.pause(Duration::from_millis(1 << attempt)).await?;
        }
        let this = self.clone();
        let open = async move {
            let key = target.key();
            let settle_and_open = async {
                for _ in 0..TRIES_UNDER_LOCK {
                    this.core.settle_locked(&key).await?;
                    if let Opened::Reader(reader) = this.try_open(&target).await? {
                        return Ok(reader);
                    }
                }
                Err(Error::file(503, "Another writer changes the file"))
            };
            this.core.with_locks(&[&key], LOCK_TIMEOUT, settle_and_open).await
        };
        self.core.run(open).await
    }

    async fn try_open(&self, target: &Target) -> Result<Opened> {
        let FoundFile { row, content, has_intent } = self.find(target).await?;
        if row.is_inline {
            let content = content.ok_or_else(gone)?;
            check_size(&row.info, content.len() as u64)?;
            return Ok(Opened::Reader(FileReader::inline(row.info, content)));
        }
        if has_intent {
            return Ok(Opened::Busy);
        }
        let object = self.core.objects.open_object(&target.key()).await?;
        let is_current = match object.as_ref().and_then(|object| object.is_of(&row.info.etag)) {
            Some(is_of_row) => is_of_row,
            // The row tells: the object was opened between two looks at it.
            None => self.is_current(target, &row.info.etag).await?,
        };
        if !is_current {
            return Ok(Opened::Busy);
        }
        let object: ObjectReader = object.ok_or_else(gone)?;
        check_size(&row.info, object.size)?;
        Ok(Opened::Reader(FileReader::object(row.info, object)))
    }

    async fn find(&self, target: &Target) -> Result<FoundFile> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        self.scope.fetch_optional(&sql::GET, &values, rows::found_file).await?.ok_or_else(missing)
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

fn check_size(info: &FileInfo, size: u64) -> Result<()> {
    if info.size == size {
        return Ok(());
    }
    Err(Error::file(500, format!("The stored bytes are {size}, but the file has {}", info.size)))
}

//! Opening a file for reading: inline bytes come with the row, an object is opened and compared with the row.
//!
//! Invariant: a reader is given only bytes of the version that its row describes. While a writer replaces an object with that
//! version, readers continue with it.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    FileReader, Storage,
    buckets::FileTarget,
    core::StorageCore,
    refusal::{busy, missing},
    rows::{self, FoundFile},
    statements as sql,
};
use crate::{
    database::Row,
    error::{Error, Result},
    model::FileInfo,
    objects::{ObjectKey, ObjectReader},
};

/// How often a reader that meets a writer tries again before it takes the writer's lock.
const TRIES: u32 = 8;

/// How often it tries under the lock, which keeps writers of objects out, but not writers of inline files: one of them may
/// replace the object that the reader opens. Then the next try finds the inline file.
const TRIES_UNDER_LOCK: u32 = 4;

/// The bytes of one version of a file.
#[derive(Clone)]
pub(super) enum Content {
    Inline(Bytes),
    Object(Arc<ObjectReader>),
}

/// The outcome of one try to open a file.
enum OpenAttempt {
    Opened(FileReader),
    /// A writer is changing the file.
    Changing,
    /// The object has the row's size and another version. Nobody is changing the file.
    OtherVersion(FileReader),
}

impl Storage {
    pub(super) async fn open_reader(&self, bucket: &str, path: &str) -> Result<FileReader> {
        self.open_part(bucket, path, |info| Ok(0..info.size)).await
    }

    /// Opens a file whose bytes will be read in the order of `range`. A remote store then needs one request.
    pub(crate) async fn open_part(
        &self,
        bucket: &str,
        path: &str,
        range: impl Fn(&FileInfo) -> Result<Range<u64>> + Send + Sync + 'static,
    ) -> Result<FileReader> {
        let target = self.core.buckets.target(bucket, path)?;
        self.wait_for_changes_at(&target.key()).await;
        for attempt in 0..TRIES {
            match self.try_open(&target, &range).await? {
                OpenAttempt::Opened(reader) => return Ok(reader),
                OpenAttempt::Changing => self.core.pause(Duration::from_millis(1 << attempt)).await?,
                OpenAttempt::OtherVersion(_) => break,
            }
        }
        let (this, key) = (self.clone(), target.key());
        let recover_and_open = async move {
            for _ in 0..TRIES_UNDER_LOCK {
                this.core.recover_locked(&target.key()).await?;
                match this.try_open(&target, &range).await? {
                    OpenAttempt::Opened(reader) => return Ok(reader),
                    OpenAttempt::Changing => {}
                    OpenAttempt::OtherVersion(reader) => {
                        this.core.adopt_version(&target.key(), &reader.info().etag).await?;
                        return Ok(reader);
                    }
                }
            }
            Err(busy(&target.key()))
        };
        self.core.run_locked(vec![key], recover_and_open).await
    }

    /// Returns the bytes of a file: the part that `range` makes of what is known about it.
    pub(super) async fn read_file(
        &self,
        bucket: &str,
        path: &str,
        range: impl Fn(&FileInfo) -> Result<Range<u64>> + Clone + Send + Sync + 'static,
    ) -> Result<Bytes> {
        let reader = self.open_part(bucket, path, range.clone()).await?;
        reader.read_range(range(reader.info())?).await
    }

    async fn try_open(
        &self,
        target: &FileTarget,
        range: impl Fn(&FileInfo) -> Result<Range<u64>>,
    ) -> Result<OpenAttempt> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        let found = self.scope.fetch_optional(&sql::GET, &values, rows::found_file).await?;
        let service = self.core.service.current_principal();
        let FoundFile { info, is_inline, content, has_intent } = found.ok_or_else(missing)?;
        if is_inline {
            let content = content.ok_or_else(Error::bytes_gone)?;
            check_size(info.size, content.len() as u64)?;
            return Ok(OpenAttempt::Opened(FileReader::new(info, Content::Inline(content), service)));
        }
        let object = self.core.objects.open_range(&target.key(), range(&info)?).await?;
        let is_of_row = object.as_ref().and_then(|object| object.is_of(&info.etag));
        // An object with the row's version and size is the file, also while a writer is about to replace it.
        let is_whole = object.as_ref().is_some_and(|object| object.size() == info.size);
        if (is_of_row != Some(true) || !is_whole) && (has_intent || !self.is_current(target, &info.etag).await?) {
            return Ok(OpenAttempt::Changing);
        }
        let object = object.ok_or_else(Error::bytes_gone)?;
        check_size(info.size, object.size())?;
        let reader = FileReader::new(info, Content::Object(Arc::new(object)), service);
        Ok(if is_of_row == Some(false) { OpenAttempt::OtherVersion(reader) } else { OpenAttempt::Opened(reader) })
    }

    /// Whether the file still has this version, and nobody is writing its object.
    async fn is_current(&self, target: &FileTarget, etag: &str) -> Result<bool> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<bool>(1)?));
        let found = self.scope.fetch_optional(&sql::VERSION, &values, read).await?;
        let (version, has_intent) = found.ok_or_else(missing)?;
        Ok(version == etag && !has_intent)
    }
}

impl StorageCore {
    /// Gives the object of a file the row's version if it has the row's digest: a move gives the source's object the version of
    /// the target as its last step, and its process may have ended before. Requires the lock of the path.
    ///
    /// # Errors
    /// 500 if the bytes are of another version.
    pub(super) async fn adopt_version(&self, key: &ObjectKey, etag: &str) -> Result<()> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into(), etag.into()];
        let read = |row: &Row<'_>| row.get_optional::<String>(0);
        let digest = self.service.fetch_optional(&sql::DIGEST, &values, read).await?.flatten();
        let object = self.objects.digest(key).await?.and_then(|object| object.digest);
        if digest.is_none() || object != digest {
            return Err(Error::file(500, "The stored bytes are of another version than the file"));
        }
        self.objects.write_version(key, etag).await
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

fn check_size(of_row: u64, stored: u64) -> Result<()> {
    if of_row == stored {
        return Ok(());
    }
    Err(Error::file(500, format!("The stored bytes are {stored}, but the file has {of_row}")))
}

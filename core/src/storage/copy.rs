//! Copies and moves within a bucket. A copy is an upload of the source's bytes. A move has the steps of an upload, and its
//! transactions change the rows of both paths. If the store can, it stages the bytes itself; else they pass through this process.
//!
//! Invariant: a move changes both paths in one transaction, so of several moves of one file one succeeds. A copy reads one
//! version of its source.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    FileReader, Storage,
    buckets::FileTarget,
    recovery::{TRIES, lock_paths},
    refusal::{busy, check_new_file, check_source, missing},
    rows::NewFile,
    statements as sql,
    upload::new_etag,
};
use crate::{
    clock::later,
    database::{Row, record},
    error::{Error, Result},
    model::{FileInfo, Overwrite},
    objects::Staged,
};

impl Storage {
    /// Checks the paths of a copy or a move.
    fn two_targets(&self, bucket: &str, source: &str, target: &str) -> Result<(FileTarget, FileTarget)> {
        let source = self.core.buckets.target(bucket, source)?;
        let target = self.core.buckets.new_target(bucket, target)?;
        if source.path == target.path {
            return Err(Error::file(400, "the source is the target"));
        }
        Ok((source, target))
    }

    pub(super) async fn copy_file(
        &self,
        bucket: &str,
        source: &str,
        target: &str,
        overwrite: Overwrite,
    ) -> Result<FileInfo> {
        let (source, target) = self.two_targets(bucket, source, target)?;
        let has_bytes = !self.core.objects.copies_on_server();
        let mut reader = self.open_source(&source, has_bytes).await?;
        if !has_bytes && !reader.is_inline() {
            // An object that is no larger than `inline_file_limit`, because the limit was raised, becomes an inline file.
            if !self.core.is_inline(reader.info().size) {
                let new = self.new_copy(target.clone(), reader.info(), overwrite)?;
                self.check_write(&new.target, new.owner_id).await?;
                if let Some(staged) = self.stage_copy(&source, &new, &reader).await? {
                    return self.put_object(new, staged).await;
                }
            }
            // It may be of another version by now.
            reader = self.open_source(&source, true).await?;
        }
        let new = self.new_copy(target, reader.info(), overwrite)?;
        let size = reader.info().size;
        if self.core.is_inline(size) {
            let data = reader.read_range(0..size).await?;
            return self.put_file(new, data).await;
        }
        self.check_write(&new.target, new.owner_id).await?;
        let staged = self.stage_bytes(&new, reader).await?;
        self.put_object(new, staged).await
    }

    /// The file that a copy of `source` writes.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`.
    fn new_copy(&self, target: FileTarget, source: &FileInfo, overwrite: Overwrite) -> Result<NewFile> {
        self.core.check_size(source.size)?;
        Ok(NewFile { owner_id: self.scope.caller().id(), ..file_at_destination(target, source, overwrite) })
    }

    /// Opens a source: for reading all bytes, or without a request for the bytes of an object.
    async fn open_source(&self, source: &FileTarget, has_bytes: bool) -> Result<FileReader> {
        let range = move |info: &FileInfo| Ok(0..if has_bytes { info.size } else { 0 });
        self.open_part(source.bucket.as_str(), source.path.as_str(), range).await
    }

    pub(super) async fn rename_file(
        &self,
        bucket: &str,
        source: &str,
        target: &str,
        overwrite: Overwrite,
    ) -> Result<FileInfo> {
        let (source, target) = self.two_targets(bucket, source, target)?;
        for attempt in 0..TRIES {
            let reader = self.open_source(&source, false).await?;
            let mut new = file_at_destination(target.clone(), reader.info(), overwrite);
            new.moved = Some((source.path.as_str().to_owned(), reader.info().etag.clone()));
            let moved = match reader.is_inline() {
                true => self.move_inline(&source, new).await,
                false => self.move_object(&source, new, reader).await,
            };
            match moved {
                // Another writer changed or deleted the source. A reader sees it once that writer's transaction is committed.
                Err(error) if error.status() == 404 => {
                    self.core.pause(Duration::from_millis(1 << attempt)).await?;
                }
                moved => return moved,
            }
        }
        Err(busy(&source.key()))
    }

    /// Moves the version of an inline file that `new.moved` names.
    ///
    /// # Errors
    /// 404 if the source has another version by now. Else as an upload.
    async fn move_inline(&self, source: &FileTarget, new: NewFile) -> Result<FileInfo> {
        let (caller, clock, key) = (self.scope.caller(), self.core.clock.clone(), new.target.key());
        let target = new.target.clone();
        let moved = self.write_rows(&target, Some(source), move |transaction| {
            Box::pin(async move {
                let target = &new.target;
                let source = new.moved.as_ref().ok_or_else(missing)?;
                let (bucket, path) = (target.bucket.as_str(), target.path.as_str());
                lock_paths(transaction, bucket, new.paths()).await?;
                for path in new.paths() {
                    let place = [bucket.into(), path.into()];
                    if transaction.fetch_optional(&sql::FIND_UNFINISHED, &place, |_| Ok(())).await?.is_some() {
                        return Ok(None);
                    }
                }
                check_source(transaction, bucket, source, caller).await?;
                // The policy compares the moved row's owner for a file in a public bucket: it is the caller, who may
                // delete the source.
                check_new_file(transaction, &new, caller).await?;
                let read = |row: &Row<'_>| Ok((row.get::<bool>(0)?, row.get::<Timestamp>(1)?));
                let replaced =
                    transaction.fetch_optional(&sql::DELETE_REPLACED, &[bucket.into(), path.into()], read).await?;
                // `updated_at` grows with every write of a path, also if the clock was set back.
                let after = |before| later(before, Duration::from_micros(1));
                let now = replaced.map_or(clock.now(), |(_, before)| clock.now().max(after(before)));
                let values = [
                    bucket.into(),
                    source.0.as_str().into(),
                    source.1.as_str().into(),
                    path.into(),
                    target.space_id.into(),
                    target.path.first_segment().into(),
                    new.etag.as_str().into(),
                    now.into(),
                ];
                let info = transaction.fetch_optional(&sql::MOVE_INLINE, &values, record).await?;
                let info = info.ok_or_else(|| busy(&target.key()))?;
                Ok(Some((info, replaced.is_some_and(|(is_inline, _)| !is_inline))))
            })
        });
        let (info, replaces_object) = moved.await?;
        if replaces_object {
            self.core.clean_up(key).await;
        }
        Ok(info)
    }

    /// Moves the version of an object that `new.moved` names and `reader` describes.
    ///
    /// # Errors
    /// 404 if the source has another version by now. Else as an upload.
    async fn move_object(&self, source: &FileTarget, new: NewFile, reader: FileReader) -> Result<FileInfo> {
        self.check_write(&new.target, new.owner_id).await?;
        // Another move of the source ends first: the source is gone then, and not in use.
        let (core, key) = (Arc::clone(&self.core), source.key());
        self.core.run(async move { core.recover_unfinished(&key).await }).await?;
        let staged = match self.core.objects.copies_on_server() {
            true => self.stage_copy(source, &new, &reader).await?,
            false => self.stage_link(source, reader.info()).await?,
        };
        let staged = match staged {
            Some(staged) => staged,
            None => {
                let whole = self.open_source(source, true).await?;
                if whole.info().etag != reader.info().etag {
                    return Err(missing());
                }
                self.stage_bytes(&new, whole).await?
            }
        };
        self.put_object(new, staged).await
    }

    /// Stages a second name of an object's bytes, which costs the same for every size; `None` if the store has no such
    /// names. The intent of the move is refused unless the object is still of this version.
    async fn stage_link(&self, source: &FileTarget, info: &FileInfo) -> Result<Option<Staged>> {
        match self.digest_of(source, info).await? {
            Some(digest) => self.core.objects.stage_link(&source.key(), info.size, digest).await,
            None => Ok(None),
        }
    }

    /// Has the store stage a copy of the object that `reader` describes. `None` if the store cannot, or if the object is of
    /// another version.
    async fn stage_copy(&self, source: &FileTarget, new: &NewFile, reader: &FileReader) -> Result<Option<Staged>> {
        let object = reader.object().filter(|object| object.is_of(&reader.info().etag) == Some(true));
        let Some(object) = object else { return Ok(None) };
        match self.digest_of(source, reader.info()).await? {
            Some(digest) => self.core.objects.stage_copy(object, digest, new.attributes()).await,
            None => Ok(None),
        }
    }

    /// The digest of a version of a file. `None` if the file is of another version, or if its bytes were never hashed.
    async fn digest_of(&self, file: &FileTarget, info: &FileInfo) -> Result<Option<String>> {
        let values = [file.bucket.as_str().into(), file.path.as_str().into(), info.etag.as_str().into()];
        let read = |row: &Row<'_>| row.get_optional::<String>(0);
        Ok(self.core.service.fetch_optional(&sql::DIGEST, &values, read).await?.flatten())
    }

    /// Stages what a reader gives.
    async fn stage_bytes(&self, new: &NewFile, mut reader: FileReader) -> Result<Staged> {
        let mut stage = self.core.objects.stage(new.attributes());
        while let Some(chunk) = reader.next_chunk().await? {
            stage.write(chunk).await?;
        }
        stage.finish().await
    }
}

/// The file that a copy or a move of `source` writes. The owner stays.
fn file_at_destination(target: FileTarget, source: &FileInfo, overwrite: Overwrite) -> NewFile {
    NewFile {
        target,
        owner_id: source.owner_id,
        content_type: source.content_type.clone(),
        cache_control: source.cache_control,
        metadata: source.metadata.clone(),
        etag: new_etag(),
        upsert: overwrite == Overwrite::Replace,
        if_match: None,
        moved: None,
    }
}

//! Copies and moves within a bucket.
//!
//! Invariant: a move changes both paths in one transaction, so of several moves of one file one succeeds. A copy reads one
//! version of its source.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use super::{
    FileReader, Storage,
    buckets::FileTarget,
    put::{check_values, new_etag, refusal},
    read::missing,
    recovery::lock_paths,
    refusal::WriteRefusal,
    rows::{self, FileRow, NewFile},
    statements as sql,
};
use crate::{
    clock::later,
    error::{Error, Result},
    model::{FileInfo, Overwrite},
    objects::Staged,
};

/// How often a move begins again because its source changed meanwhile.
const TRIES: usize = 8;

/// What a move of an inline file did.
enum InlineMove {
    Moved {
        info: FileInfo,
        /// Whether the file replaced an object.
        replaced_object: bool,
    },
    /// Nothing: the source has another version by now.
    SourceChanged,
}

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
        let (_, target) = self.two_targets(bucket, source, target)?;
        let reader = self.open_reader(bucket, source).await?;
        let mut new = file_at_destination(target, reader.info(), overwrite);
        new.owner_id = self.scope.caller().id();
        self.put_from(new, reader).await
    }

    pub(super) async fn rename_file(
        &self,
        bucket: &str,
        source: &str,
        target: &str,
        overwrite: Overwrite,
    ) -> Result<FileInfo> {
        let (source, target) = self.two_targets(bucket, source, target)?;
        for _ in 0..TRIES {
            let values = [source.bucket.as_str().into(), source.path.as_str().into()];
            let found = self.scope.fetch_optional(&sql::STAT, &values, rows::file_row).await?;
            let row: FileRow = found.ok_or_else(missing)?;
            let moved = if row.is_inline {
                self.move_inline(&source, file_at_destination(target.clone(), &row.info, overwrite), &row.info.etag)
                    .await?
            } else {
                self.move_object(&source, target.clone(), overwrite).await?
            };
            if let Some(moved) = moved {
                return Ok(moved);
            }
        }
        Err(WriteRefusal::Busy.into_error(self.scope.caller(), &source))
    }

    /// Moves an inline file; `None` if it changed meanwhile.
    async fn move_inline(&self, source: &FileTarget, new: NewFile, etag: &str) -> Result<Option<FileInfo>> {
        let target = new.target.clone();
        let work = Arc::new((source.clone(), new, etag.to_owned()));
        let this = self.clone();
        let write = move || {
            let (this, work) = (this.clone(), Arc::clone(&work));
            async move { this.try_move_inline(work).await }
        };
        match self.write_between_intents(&target, Some(source), write).await? {
            InlineMove::Moved { info, replaced_object } => {
                if replaced_object {
                    self.core.clean_up(target.key()).await;
                }
                Ok(Some(info))
            }
            InlineMove::SourceChanged => Ok(None),
        }
    }

    /// Moves an inline file of a version; `None` if an intent is in the way.
    async fn try_move_inline(&self, work: Arc<(FileTarget, NewFile, String)>) -> Result<Option<InlineMove>> {
        let (caller, now) = (self.scope.caller(), self.core.clock.now());
        let work = self.scope.write(move |transaction| {
            Box::pin(async move {
                let (from, new, etag) = &*work;
                let paths = [from.path.as_str(), new.target.path.as_str()];
                lock_paths(transaction, &from.bucket, paths).await?;
                for path in paths {
                    let place = [from.bucket.as_str().into(), path.into()];
                    if transaction.fetch_optional(&sql::FIND_UNFINISHED, &place, |_| Ok(())).await?.is_some() {
                        return Ok(None);
                    }
                }
                let version = [from.bucket.as_str().into(), from.path.as_str().into(), etag.as_str().into()];
                let may_delete = transaction.fetch_optional(&sql::CHECK_DELETE, &version, |_| Ok(())).await?;
                if may_delete.is_none() {
                    let found = transaction.fetch_optional(&sql::STAT, &version[..2], rows::file_info).await?;
                    return match found {
                        Some(info) if info.etag == *etag => Err(WriteRefusal::Denied.into_error(caller, from)),
                        Some(_) => Ok(Some(InlineMove::SourceChanged)),
                        None => Err(missing()),
                    };
                }
                let why = refusal(transaction, new).await?;
                if why != WriteRefusal::Busy {
                    return Err(why.into_error(caller, &new.target));
                }
                // The policy compares the moved row's owner for a file in a public bucket: it is the caller, who may
                // delete the source.
                let values = check_values(&new.target, new.owner_id);
                if transaction.fetch_optional(&sql::CHECK_WRITE, &values, |_| Ok(())).await?.is_none() {
                    return Err(WriteRefusal::Denied.into_error(caller, &new.target));
                }
                let place = [new.target.bucket.as_str().into(), new.target.path.as_str().into()];
                let read = |row: &crate::database::Row<'_>| Ok((row.get::<bool>(0)?, row.get::<Timestamp>(1)?));
                let replaced = transaction.fetch_optional(&sql::DELETE_REPLACED, &place, read).await?;
                // `updated_at` grows with every write of a path, also if the clock was set back.
                let now = replaced.map_or(now, |(_, before)| now.max(later(before, Duration::from_micros(1))));
                let values = [
                    from.bucket.as_str().into(),
                    from.path.as_str().into(),
                    etag.as_str().into(),
                    new.target.path.as_str().into(),
                    new.target.space_id.into(),
                    new.target.path.first_segment().into(),
                    new.etag.as_str().into(),
                    now.into(),
                ];
                let info = transaction.fetch_optional(&sql::MOVE_INLINE, &values, rows::file_info).await?;
                let info = info.ok_or_else(|| WriteRefusal::Busy.into_error(caller, &new.target))?;
                let replaced_object = replaced.is_some_and(|(is_inline, _)| !is_inline);
                Ok(Some(InlineMove::Moved { info, replaced_object }))
            })
        });
        work.await
    }

    /// Moves an object; `None` if it is an inline file meanwhile, or if it changed.
    async fn move_object(
        &self,
        source: &FileTarget,
        target: FileTarget,
        overwrite: Overwrite,
    ) -> Result<Option<FileInfo>> {
        let reader = self.open_reader(&source.bucket, source.path.as_str()).await?;
        if reader.is_inline() {
            return Ok(None);
        }
        let mut new = file_at_destination(target, reader.info(), overwrite);
        new.moved = Some((source.path.as_str().to_owned(), reader.info().etag.clone()));
        self.check_write(&new.target, new.owner_id).await?;
        self.core.recover_unfinished(&source.key()).await?;
        let staged = match self.stage_link(source, reader.info()).await? {
            Some(staged) => staged,
            None => self.stage_copy(&new, reader).await?,
        };
        match self.put_object(new, staged).await {
            // Another writer changed or deleted the source: `move_file` reads it again.
            Err(error) if error.status() == Some(404) => Ok(None),
            moved => moved.map(Some),
        }
    }

    /// Stages a second name of an object's bytes, which costs the same for every size; `None` if the store has no such
    /// names. The intent of the move is refused unless the object is still of this version.
    async fn stage_link(&self, source: &FileTarget, info: &FileInfo) -> Result<Option<Staged>> {
        let values = [source.bucket.as_str().into(), source.path.as_str().into(), info.etag.as_str().into()];
        let read = |row: &crate::database::Row<'_>| row.get_optional::<String>(0);
        match self.core.service.fetch_optional(&sql::DIGEST, &values, read).await?.flatten() {
            Some(digest) => self.core.objects.stage_link(&source.key(), info.size, digest).await,
            None => Ok(None),
        }
    }

    /// Stages what a reader gives.
    async fn stage_copy(&self, new: &NewFile, mut reader: FileReader) -> Result<Staged> {
        let mut stage = self.core.objects.stage(new.attributes());
        while let Some(chunk) = reader.next_chunk().await? {
            stage.write(chunk).await?;
        }
        stage.finish().await
    }

    /// Writes what a reader gives.
    async fn put_from(&self, new: NewFile, reader: FileReader) -> Result<FileInfo> {
        let size = reader.info().size;
        self.core.check_size(size)?;
        if self.core.is_inline(size) {
            let data = reader.read_range(0..size).await?;
            return self.put_new_bytes(new, data).await;
        }
        self.check_write(&new.target, new.owner_id).await?;
        let staged = self.stage_copy(&new, reader).await?;
        self.put_object(new, staged).await
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

//! Writing a file: inline in one transaction, or as an object with an intent.
//!
//! Invariant: the caller's policy is checked in the transaction that changes the row or writes the intent. A refused write
//! changes nothing. While a path has an intent, and while one moves a file from it, no other write changes the file's row.

use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use uuid::Uuid;

use super::{
    Storage,
    buckets::FileTarget,
    checks::check_options,
    content_type::guess_content_type,
    core::{LOCK_TIMEOUT, StorageCore},
    read::missing,
    recovery::{Finished, lock_paths},
    refusal::WriteRefusal,
    rows::{Intent, NewFile},
    statements as sql,
};
use crate::{
    database::{Row, Transaction, Value},
    error::{Error, ErrorKind, Result},
    model::{FileInfo, UploadOptions},
    objects::{ObjectKey, Staged},
    policy::Caller,
};

/// The part of the bytes that the content type is guessed from.
pub(super) const HEAD: usize = 8_192;

/// How often a write begins again because a dead writer's intent is in its way.
const TRIES: usize = 8;

/// The error of a write with installed bytes and without its row. The next client that recovers the path finishes it.
fn in_doubt(error: Error) -> Error {
    if error.kind() == ErrorKind::Closed { error } else { Error::outcome_unknown().caused_by(error) }
}

/// What an inline write did.
pub(super) struct InlineWrite {
    updated_at: Timestamp,
    /// Whether it replaced an object.
    replaced_object: bool,
}

impl Storage {
    /// The file that an upload with these options writes. `head` is the beginning of its bytes.
    pub(super) fn new_file(&self, target: FileTarget, options: &UploadOptions, head: &[u8]) -> NewFile {
        let guess = || guess_content_type(target.path.name(), &head[..head.len().min(HEAD)]).to_owned();
        NewFile {
            owner_id: self.scope.caller().id(),
            content_type: options.content_type.clone().unwrap_or_else(guess),
            cache_control: options.cache_control,
            metadata: options.metadata.clone(),
            etag: new_etag(),
            upsert: options.upsert,
            if_match: options.if_match.clone(),
            moved: None,
            target,
        }
    }

    /// Checks bucket, path and options.
    pub(super) fn check_upload(&self, bucket: &str, path: &str, options: &UploadOptions) -> Result<FileTarget> {
        let target = self.core.buckets.new_target(bucket, path)?;
        check_options(options)?;
        Ok(target)
    }

    /// Writes bytes that are at hand.
    pub(super) async fn put_bytes(&self, target: FileTarget, options: &UploadOptions, data: Bytes) -> Result<FileInfo> {
        self.core.check_upload_size(data.len() as u64, options)?;
        if options.verify && !crate::signed_file::verify_content(&data) {
            return Err(Error::file(400, "the content is not a signed file whose signature verifies"));
        }
        let new = self.new_file(target, options, &data);
        self.put_new_bytes(new, data).await
    }

    pub(super) async fn put_new_bytes(&self, new: NewFile, data: Bytes) -> Result<FileInfo> {
        if self.core.is_inline(data.len() as u64) {
            return self.put_inline(new, data).await;
        }
        self.check_write(&new.target, new.owner_id).await?;
        let mut stage = self.core.objects.stage(new.attributes());
        stage.write(data).await?;
        self.put_object(new, stage.finish().await?).await
    }

    /// Refuses a write that the policy refuses, before its bytes are staged.
    pub(super) async fn check_write(&self, target: &FileTarget, owner_id: Option<Uuid>) -> Result<()> {
        let caller = self.scope.caller();
        let values = check_values(target, owner_id);
        match self.scope.fetch_optional(&sql::CHECK_WRITE, &values, |_| Ok(())).await? {
            Some(()) => Ok(()),
            None => Err(WriteRefusal::Denied.into_error(caller, target)),
        }
    }

    async fn put_inline(&self, new: NewFile, data: Bytes) -> Result<FileInfo> {
        let (new, size) = (Arc::new(new), data.len() as u64);
        let (this, file) = (self.clone(), Arc::clone(&new));
        let write = move || {
            let (this, new, data) = (this.clone(), Arc::clone(&file), data.clone());
            async move { this.try_put_inline(&new, data).await }
        };
        let written = self.write_between_intents(&new.target, None, write).await?;
        if written.replaced_object {
            self.core.clean_up(new.target.key()).await;
        }
        Ok(new.info(size, written.updated_at))
    }

    /// Writes an inline file; `None` if an intent is in the way.
    async fn try_put_inline(&self, new: &Arc<NewFile>, data: Bytes) -> Result<Option<InlineWrite>> {
        let caller = self.scope.caller();
        let (file, values) = (Arc::clone(new), new.values(data.len() as u64, self.core.clock.now()));
        let quota = self.core.options.quota;
        let work = self.scope.write(move |transaction| {
            Box::pin(async move {
                match write_inline(transaction, &file, &values, data).await? {
                    Ok(written) => {
                        quota.check(transaction, file.owner_id).await?;
                        Ok(Some(written))
                    }
                    Err(WriteRefusal::Busy) => Ok(None),
                    Err(refusal) => Err(refusal.into_error(caller, &file.target)),
                }
            })
        });
        work.await
    }

    /// Writes rows that change no object. If `write` returns `None`, an intent is in its way: then it runs again after the
    /// unfinished writes of the objects of `target` and `source`, under their locks.
    ///
    /// # Errors
    /// Those of `write`; `Unavailable` (503) if there is always another intent.
    pub(super) async fn write_between_intents<T, W>(
        &self,
        target: &FileTarget,
        source: Option<&FileTarget>,
        write: impl Fn() -> W + Send + Sync + 'static,
    ) -> Result<T>
    where
        T: Send + 'static,
        W: Future<Output = Result<Option<T>>> + Send + 'static,
    {
        if let Some(written) = write().await? {
            return Ok(written);
        }
        let keys: Vec<ObjectKey> = source.into_iter().chain([target]).map(FileTarget::key).collect();
        let busy = WriteRefusal::Busy.into_error(self.scope.caller(), target);
        let core = Arc::clone(&self.core);
        let work = async move {
            for _ in 0..TRIES {
                for key in &keys {
                    core.recover_unfinished(key).await?;
                }
                // Of the paths that are locked, only a dead writer can have an intent. That of a move from one of them lies
                // at another path, and the next try recovers it.
                let write = async {
                    for key in &keys {
                        core.recover_locked(key).await?;
                    }
                    write().await
                };
                let locked: Vec<_> = keys.iter().collect();
                if let Some(written) = core.with_locks(&locked, LOCK_TIMEOUT, write).await? {
                    return Ok(written);
                }
            }
            Err(busy)
        };
        self.core.run(work).await
    }

    /// Makes staged bytes the file. A move also deletes its source.
    pub(super) async fn put_object(&self, new: NewFile, mut staged: Staged) -> Result<FileInfo> {
        let this = self.clone();
        self.core
            .run(async move {
                let (key, source) = (new.target.key(), new.source_key());
                let keys: Vec<_> = source.iter().chain([&key]).collect();
                this.core.require_current_store().await?;
                for _ in 0..TRIES {
                    let write = this.try_put_object(&new, staged);
                    staged = match this.core.with_locks(&keys, LOCK_TIMEOUT, write).await? {
                        Ok(info) => return Ok(info),
                        Err(staged) => staged,
                    };
                    for key in this.core.overlapping_outbox(&new.target).await? {
                        this.core.recover(&key, LOCK_TIMEOUT).await?;
                    }
                }
                Err(WriteRefusal::Busy.into_error(this.scope.caller(), &new.target))
            })
            .await
    }

    /// Makes staged bytes the file; returns them if something unfinished is in the way. Requires the locks of the path and of
    /// the source.
    async fn try_put_object(&self, new: &NewFile, staged: Staged) -> Result<std::result::Result<FileInfo, Staged>> {
        let (key, source) = (new.target.key(), new.source_key());
        if let Some(source) = &source {
            self.core.recover_locked(source).await?;
        }
        let Some(intent) = self.begin_object(new, &staged).await? else {
            self.core.recover_locked(&key).await?;
            return Ok(Err(staged));
        };
        // The intent keeps new files from the overlapping paths, so from here on none of them comes into the outbox.
        if !self.core.overlapping_outbox(&new.target).await?.is_empty() {
            self.core.delete_intent(&key, intent.etag).await?;
            return Ok(Err(staged));
        }
        let info = self.finish_object(new, staged, intent).await?;
        if let Some(source) = &source
            && let Err(error) = self.core.recover_locked(source).await
        {
            tracing::warn!(%error, "the object of a moved file stays for now");
        }
        Ok(Ok(info))
    }

    /// Installs staged bytes and makes their intent the row of the file.
    async fn finish_object(&self, new: &NewFile, staged: Staged, intent: Intent) -> Result<FileInfo> {
        let (key, size) = (new.target.key(), staged.size);
        let staged_id = staged.id.clone();
        // A power loss must not leave the new bytes without the intent.
        self.core.service.flush_commits().await?;
        if let Err(error) = self.core.objects.install(staged, &key).await {
            if !self.core.objects.is_remote() {
                self.core.recover_locked(&key).await?;
                return Err(error);
            }
            // The store may have installed the bytes, or install them later. In doubt the intent stays.
            if !self.core.is_installed(&key, &intent).await.unwrap_or_default() {
                return Err(in_doubt(error));
            }
            self.core.objects.discard(&staged_id).await?;
        }
        let finished = self.core.finish_intent(&key, intent, !new.is_conditional()).await;
        match finished.map_err(in_doubt)? {
            Finished::Yes(updated_at) => Ok(new.info(size, updated_at)),
            Finished::SourceGone => {
                self.core.recover_locked(&key).await?;
                Err(missing())
            }
            Finished::Overtaken => {
                self.core.recover_locked(&key).await?;
                Err(self.overtaken(new.clone()).await)
            }
        }
    }

    /// The error of a write that found its intent gone or the file changed: the reason that the caller would get for a new write.
    async fn overtaken(&self, new: NewFile) -> Error {
        let caller = self.scope.caller();
        let target = new.target.clone();
        let work = self.scope.write(move |transaction| {
            Box::pin(async move {
                lock_paths(transaction, &new.target.bucket, [new.target.path.as_str()]).await?;
                refusal(transaction, &new).await
            })
        });
        match work.await {
            Ok(refusal) => refusal.into_error(caller, &target),
            Err(error) => error,
        }
    }

    /// Writes the intent; `None` if something unfinished is in the way. Requires the lock of the path.
    async fn begin_object(&self, new: &NewFile, staged: &Staged) -> Result<Option<Intent>> {
        let caller = self.scope.caller();
        let mut values = new.values(staged.size, self.core.clock.now());
        let (moved_from, moved_etag) = new.moved.clone().unzip();
        values.extend([staged.digest.clone().into(), staged.id.clone().into(), moved_from.into(), moved_etag.into()]);
        let (file, quota) = (new.clone(), self.core.options.quota);
        let work = self.scope.write(move |transaction| {
            Box::pin(async move {
                let written = write_intent(transaction, &file, &values, caller).await?;
                // A move changes no owner and adds no file.
                if written.is_ok() && file.moved.is_none() {
                    quota.check(transaction, file.owner_id).await?;
                }
                Ok(written)
            })
        });
        match work.await? {
            Ok(base_etag) => Ok(Some(Intent {
                etag: new.etag.clone(),
                size: staged.size,
                digest: staged.digest.clone(),
                staged: staged.id.clone(),
                base_etag,
                moved: new.moved.clone(),
            })),
            Err(WriteRefusal::Busy) => Ok(None),
            Err(refusal) => Err(refusal.into_error(caller, &new.target)),
        }
    }
}

impl StorageCore {
    /// Whether a file of this size is kept in the database.
    pub(super) fn is_inline(&self, size: u64) -> bool {
        size <= self.options.inline_file_limit
    }

    /// Finishes or undoes the writes of a path, and the moves from it, that dead writers left. Waits for living writers.
    pub(super) async fn recover_unfinished(self: &Arc<Self>, key: &ObjectKey) -> Result<()> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        for path in self.service.fetch(&sql::FIND_UNFINISHED, &values, |row: &Row<'_>| row.get::<String>(0)).await? {
            let (core, key) = (Arc::clone(self), ObjectKey { bucket: key.bucket.clone(), path });
            self.run(async move { core.recover(&key, LOCK_TIMEOUT).await }).await?;
        }
        Ok(())
    }

    /// Checks the size of an upload with these options.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`, and with `verify` over `max_verified_size`: the bytes are in memory until they
    /// are verified, and their JSON needs many times as much.
    pub(super) fn check_upload_size(&self, size: u64, options: &UploadOptions) -> Result<()> {
        self.check_size(size)?;
        if options.verify && size > self.options.max_verified_size {
            let limit = self.options.max_verified_size;
            return Err(Error::file(413, format!("the limit of verify is {limit} bytes (max_verified_size)")));
        }
        Ok(())
    }

    /// # Errors
    /// `TooLarge` (413) over `max_file_size`.
    pub(super) fn check_size(&self, size: u64) -> Result<()> {
        if size > self.options.max_file_size {
            return Err(Error::file(413, format!("the limit is {} bytes (max_file_size)", self.options.max_file_size)));
        }
        Ok(())
    }
}

pub(super) fn new_etag() -> String {
    Uuid::new_v4().simple().to_string()
}

/// The values of `CHECK_WRITE`.
pub(super) fn check_values(target: &FileTarget, owner_id: Option<Uuid>) -> [Value<'_>; 5] {
    let (access, first_segment) = (target.access.as_str().into(), target.path.first_segment().into());
    [target.bucket.as_str().into(), access, target.space_id.into(), first_segment, owner_id.into()]
}

async fn write_inline(
    transaction: &mut Transaction<'_>,
    new: &NewFile,
    values: &[Value<'_>],
    data: Bytes,
) -> Result<Result<InlineWrite, WriteRefusal>> {
    let target = &new.target;
    lock_paths(transaction, &target.bucket, [target.path.as_str()]).await?;
    let read = |row: &Row<'_>| Ok(InlineWrite { updated_at: row.get(0)?, replaced_object: row.get(1)? });
    let Some(written) = transaction.fetch_optional(&sql::PUT_INLINE, values, read).await? else {
        return Ok(Err(refusal(transaction, new).await?));
    };
    let content = [target.bucket.as_str().into(), target.path.as_str().into(), data.into()];
    transaction.execute(&sql::PUT_CONTENT, &content).await?;
    Ok(Ok(written))
}

async fn write_intent(
    transaction: &mut Transaction<'_>,
    new: &NewFile,
    values: &[Value<'_>],
    caller: Caller,
) -> Result<Result<String, WriteRefusal>> {
    let target = &new.target;
    let source = new.moved.as_ref().map(|(source, _)| source.as_str());
    lock_paths(transaction, &target.bucket, source.into_iter().chain([target.path.as_str()])).await?;
    if let Some((source, etag)) = &new.moved {
        let source = [target.bucket.as_str().into(), source.as_str().into(), etag.as_str().into()];
        if transaction.fetch_optional(&sql::CHECK_DELETE, &source, |_| Ok(())).await?.is_none() {
            let version = transaction.fetch_optional(&sql::EXISTING, &source[..2], |row| row.get::<String>(0)).await?;
            let is_there = version.as_ref() == Some(etag);
            return Err(if is_there { WriteRefusal::Denied.into_error(caller, target) } else { missing() });
        }
        // A dead writer's move of the file has yet to be recovered.
        if transaction.fetch_optional(&sql::FIND_UNFINISHED, &source[..2], |_| Ok(())).await?.is_some() {
            return Ok(Err(WriteRefusal::Busy));
        }
    }
    match transaction.fetch_optional(&sql::PUT_INTENT, values, |row| row.get::<String>(0)).await? {
        Some(base_etag) => Ok(Ok(base_etag)),
        None => Ok(Err(refusal(transaction, new).await?)),
    }
}

/// Why the statement of a write changed nothing.
pub(super) async fn refusal(transaction: &mut Transaction<'_>, new: &NewFile) -> Result<WriteRefusal> {
    let target = &new.target;
    let may_write =
        transaction.fetch_optional(&sql::CHECK_WRITE, &check_values(target, new.owner_id), |_| Ok(())).await?;
    if may_write.is_none() {
        return Ok(WriteRefusal::Denied);
    }
    let values = [target.bucket.as_str().into(), target.path.as_str().into()];
    let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get_optional::<bool>(1)?));
    match transaction.fetch_optional(&sql::EXISTING, &values, read).await? {
        Some((_, may_update)) if may_update != Some(true) => return Ok(WriteRefusal::Denied),
        Some((etag, _)) if new.if_match.as_ref().is_some_and(|wanted| *wanted != etag) => {
            return Ok(WriteRefusal::Changed { found: Some(etag) });
        }
        Some(_) if !new.upsert => return Ok(WriteRefusal::Exists),
        None if new.if_match.as_ref().is_some_and(|wanted| !wanted.is_empty()) => {
            return Ok(WriteRefusal::Changed { found: None });
        }
        _ => {}
    }
    let (inside, after) = target.inside();
    let values = [target.bucket.as_str().into(), target.folders().into(), inside.into(), after.into()];
    let is_taken = transaction.fetch_optional(&sql::NAME_IS_TAKEN, &values, |_| Ok(())).await?;
    Ok(if is_taken.is_some() { WriteRefusal::NameTaken } else { WriteRefusal::Busy })
}

//! Writing a file, from its checks to its row.
//!
//! A small file is written inline, in one transaction: [`Storage::put_inline`]. A large one is an object: its bytes are staged
//! ([`Storage::put_file`]), and then [`Storage::put_object`] locks the path, writes an intent, installs the bytes, and makes
//! the intent the row.
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
    recovery::{IntentOutcome, TRIES, lock_paths},
    refusal::{busy, check_new_file, check_source, missing},
    rows::{self, Intent, NewFile},
    statements as sql,
};
use crate::{
    database::Row,
    error::{Error, Result},
    model::{FileInfo, UploadOptions},
    objects::Staged,
    threads::BoxedFuture,
};

/// The part of the bytes that the content type is guessed from.
const HEAD: usize = 8_192;

impl Storage {
    /// Checks bucket, path and options.
    pub(super) fn check_upload(&self, bucket: &str, path: &str, options: &UploadOptions) -> Result<FileTarget> {
        let target = self.core.buckets.new_target(bucket, path)?;
        check_options(options)?;
        Ok(target)
    }

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

    /// Checks the bytes of an upload and writes them.
    pub(super) fn upload_bytes<'a>(
        &'a self,
        target: FileTarget,
        options: &'a UploadOptions,
        data: Bytes,
    ) -> BoxedFuture<'a, Result<FileInfo>> {
        Box::pin(async move {
            self.check_upload_size(data.len() as u64, options)?;
            if options.verify && !crate::signed_file::verify_content(&data) {
                return Err(Error::file(400, "the content is not a signed file whose signature verifies"));
            }
            let new = self.new_file(target, options, &data);
            self.put_file(new, data).await
        })
    }

    /// Writes a file: inline, or as an object whose bytes are staged first.
    pub(super) async fn put_file(&self, new: NewFile, data: Bytes) -> Result<FileInfo> {
        // A read, so that a caller who may not write does not occupy the writer of the database.
        self.check_write(&new.target, new.owner_id).await?;
        if self.core.is_inline(data.len() as u64) {
            return self.put_inline(new, data).await;
        }
        let mut stage = self.core.objects.stage(new.attributes());
        stage.write(data).await?;
        self.put_object(new, stage.finish().await?).await
    }

    /// Writes an inline file: its row and its bytes in one transaction.
    async fn put_inline(&self, new: NewFile, data: Bytes) -> Result<FileInfo> {
        let (caller, quota, size) = (self.scope.caller(), self.core.options.quota, data.len() as u64);
        let (file, values) = (new.clone(), new.values(size, self.core.clock.now()));
        let written = self.write_rows(&new.target, None, move |transaction| {
            Box::pin(async move {
                let (bucket, path) = (file.target.bucket.as_str(), file.target.path.as_str());
                lock_paths(transaction, bucket, [path]).await?;
                let read = |row: &Row<'_>| Ok((row.get::<Timestamp>(0)?, row.get::<bool>(1)?));
                let Some(written) = transaction.fetch_optional(&sql::PUT_INLINE, &values, read).await? else {
                    check_new_file(transaction, &file, caller).await?;
                    return Ok(None);
                };
                transaction.execute(&sql::PUT_CONTENT, &[bucket.into(), path.into(), data.into()]).await?;
                quota.check(transaction, file.owner_id).await?;
                Ok(Some(written))
            })
        });
        let (updated_at, replaces_object) = written.await?;
        if replaces_object {
            self.core.clean_up(new.target.key()).await;
        }
        Ok(new.info(size, updated_at))
    }

    /// Makes staged bytes the file. A move also deletes its source.
    pub(super) async fn put_object(&self, new: NewFile, staged: Staged) -> Result<FileInfo> {
        let (this, source, key) = (self.clone(), new.source_key(), new.target.key());
        let keys: Vec<_> = source.iter().chain([&key]).cloned().collect();
        let (changed, paths, core) = (keys.clone(), keys.clone(), Arc::clone(&self.core));
        let put = async move {
            let mut staged = Some(staged);
            for _ in 0..TRIES {
                this.core.wait_for_move().await?;
                if let Some(source) = &source {
                    this.core.recover_unfinished(source).await?;
                }
                let locked = this.put_object_locked(&new, &mut staged);
                if let Some(info) = this.core.with_locks(&keys, LOCK_TIMEOUT, locked).await? {
                    return Ok(info);
                }
                for key in this.core.overlapping_outbox(&new.target).await? {
                    this.core.recover(&key, LOCK_TIMEOUT).await?;
                }
            }
            Err(busy(&key))
        };
        let put = async move {
            put.await.inspect_err(|error: &Error| {
                if error.is_outcome_unknown() {
                    core.add_doubt(paths);
                }
            })
        };
        self.change(changed, Box::pin(put)).await
    }

    /// Makes staged bytes the file; `None` if something unfinished is in the way. Requires the locks of the path and of the
    /// source.
    async fn put_object_locked(&self, new: &NewFile, staged: &mut Option<Staged>) -> Result<Option<FileInfo>> {
        let (key, source) = (new.target.key(), new.source_key());
        if let Some(source) = &source {
            self.core.recover_locked(source).await?;
        }
        let Some(bytes) = staged.as_ref() else { return Ok(None) };
        let size = bytes.size;
        // 1. The intent says what is about to be installed.
        let Some(intent) = self.write_intent(new, bytes).await? else {
            self.core.recover_locked(&key).await?;
            return Ok(None);
        };
        match self.core.check_intent(&new.target, &intent).await {
            Ok(IntentCheck::Valid) => {}
            Ok(IntentCheck::OutboxOverlaps) => return Ok(None),
            Ok(IntentCheck::Gone) => {
                self.core.recover_locked(&key).await?;
                return Err(self.overtaken(new.clone()).await);
            }
            // The intent stays. Who recovers it from a remote store installs the staged bytes, if they are still there.
            Err(error) => return Err(if self.core.objects.is_remote() { error.in_doubt() } else { error }),
        }
        // 2. The bytes become the object.
        let installed = match staged.take() {
            Some(bytes) => self.core.install(bytes, &intent, new).await,
            None => Ok(()),
        };
        // 3. The intent becomes the row.
        let finished = match installed {
            Ok(()) => self.core.finish_intent(&key, intent, !new.is_conditional()).await,
            // The store may yet install the bytes: who recovers the intent looks.
            Err(error) if self.core.objects.is_remote() => return Err(error),
            Err(error) if error.status() == 409 => {
                // Another file has the name. Nothing was installed, also if that file has the same bytes.
                self.core.delete_intent(&key, intent.etag).await?;
                return Err(error);
            }
            // The bytes may have their name, for example if only its folder could not be flushed.
            Err(error) => Err(error),
        };
        let finished = match finished {
            Ok(finished) => finished,
            Err(error) => IntentOutcome::Finished(self.core.settle_failed(&key, &new.etag, error).await?),
        };
        let updated_at = match finished {
            IntentOutcome::Finished(updated_at) => updated_at,
            IntentOutcome::SourceGone => {
                self.core.recover_locked(&key).await?;
                return Err(missing());
            }
            IntentOutcome::Overtaken => {
                self.core.recover_locked(&key).await?;
                return Err(self.overtaken(new.clone()).await);
            }
        };
        if let Some(source) = &source
            && let Err(error) = self.core.recover_locked(source).await
        {
            tracing::warn!(%error, "the object of a moved file stays for now");
        }
        Ok(Some(new.info(size, updated_at)))
    }

    /// Writes the intent; `None` if something unfinished is in the way. Requires the lock of the path.
    async fn write_intent(&self, new: &NewFile, staged: &Staged) -> Result<Option<Intent>> {
        let (caller, quota, file) = (self.scope.caller(), self.core.options.quota, new.clone());
        let created_at = self.core.clock.now();
        let mut values = new.values(staged.size, created_at);
        let (moved_from, moved_etag) = new.moved.clone().unzip();
        values.extend([staged.digest.clone().into(), staged.id.clone().into(), moved_from.into(), moved_etag.into()]);
        let written = self.scope.write(move |transaction| {
            Box::pin(async move {
                let bucket = file.target.bucket.as_str();
                lock_paths(transaction, bucket, file.paths()).await?;
                if let Some(user_id) = file.owner_id {
                    transaction.lock_rights(user_id).await?;
                }
                if let Some(source) = &file.moved {
                    check_source(transaction, bucket, source, caller).await?;
                    // A dead writer's move of the file has yet to be recovered.
                    let place = [bucket.into(), source.0.as_str().into()];
                    if transaction.fetch_optional(&sql::FIND_UNFINISHED, &place, |_| Ok(())).await?.is_some() {
                        return Ok(None);
                    }
                }
                let read = |row: &Row<'_>| row.get::<String>(0);
                let Some(base_etag) = transaction.fetch_optional(&sql::PUT_INTENT, &values, read).await? else {
                    check_new_file(transaction, &file, caller).await?;
                    return Ok(None);
                };
                // A move changes no owner and adds no file.
                if file.moved.is_none() {
                    quota.check(transaction, file.owner_id).await?;
                }
                Ok(Some(base_etag))
            })
        });
        Ok(written.await?.map(|base_etag| Intent {
            etag: new.etag.clone(),
            size: staged.size,
            digest: staged.digest.clone(),
            staged: staged.id.clone(),
            base_etag,
            moved: new.moved.clone(),
            is_revoked: false,
            created_at,
            owner_id: new.owner_id,
        }))
    }

    /// The error that a new write would get, for a write that lost to another one.
    async fn overtaken(&self, new: NewFile) -> Error {
        let caller = self.scope.caller();
        let checked = self.scope.write(move |transaction| {
            Box::pin(async move {
                lock_paths(transaction, &new.target.bucket, [new.target.path.as_str()]).await?;
                check_new_file(transaction, &new, caller).await
            })
        });
        // Who recovered the intent may have made its bytes the file.
        checked.await.err().unwrap_or_else(Error::outcome_unknown)
    }

    /// Checks the size of an upload with these options. Public for the binding that copies the bytes afterwards.
    ///
    /// # Errors
    /// `TooLarge` (413) over `max_file_size`; with `verify` also `TooLarge` (413) over `max_verified_size`: the bytes are in
    /// memory until they are verified, and their JSON needs many times as much.
    #[doc(hidden)]
    pub fn check_upload_size(&self, size: u64, options: &UploadOptions) -> Result<()> {
        self.check_size(size)?;
        let limit = self.core.options.max_verified_size;
        if options.verify && size > limit {
            return Err(Error::file(413, format!("the limit of verify is {limit} bytes (max_verified_size)")));
        }
        Ok(())
    }
}

/// What became of a new intent before its bytes are installed.
enum IntentCheck {
    Valid,
    /// The object of an overlapping path is still to be removed. The intent is deleted.
    OutboxOverlaps,
    /// It was revoked, or somebody else has recovered it. It is deleted.
    Gone,
}

impl StorageCore {
    /// Looks whether the bytes of a new intent may be installed. Deletes the intent if not. Requires the lock of the path.
    async fn check_intent(&self, target: &FileTarget, intent: &Intent) -> Result<IntentCheck> {
        let key = target.key();
        // The intent keeps new files from the overlapping paths, so from here on none of them comes into the outbox.
        let check = if !self.overlapping_outbox(target).await?.is_empty() {
            IntentCheck::OutboxOverlaps
        } else {
            // A power loss must not leave the new bytes without the intent.
            self.service.flush_commits().await?;
            let place = [key.bucket.as_str().into(), key.path.as_str().into()];
            match self.service.fetch_optional(&sql::FIND_INTENT, &place, rows::intent).await? {
                Some(current) if !current.is_revoked => return Ok(IntentCheck::Valid),
                _ => IntentCheck::Gone,
            }
        };
        self.delete_intent(&key, intent.etag.clone()).await?;
        Ok(check)
    }

    /// Makes the staged bytes of an intent the object. Requires the lock of the path.
    ///
    /// # Errors
    /// Those of the object store. If the outcome is unknown, the error says so and the intent stays.
    async fn install(&self, staged: Staged, intent: &Intent, new: &NewFile) -> Result<()> {
        let key = new.target.key();
        let Err(error) = self.objects.install(staged, &key).await else { return Ok(()) };
        if !self.objects.is_remote() {
            return Err(error);
        }
        // The store may have installed the bytes, or install them later.
        if !self.is_installed(&key, intent).await.unwrap_or_default() {
            return Err(error.in_doubt());
        }
        // Without its stage, a copy that the store has not begun cannot replace a newer object.
        self.objects.discard(&intent.staged).await.map_err(Error::in_doubt)
    }

    /// Whether a file of this size is kept in the database.
    pub(super) fn is_inline(&self, size: u64) -> bool {
        size <= self.options.inline_file_limit
    }

    /// # Errors
    /// `TooLarge` (413) over `max_file_size`.
    pub(super) fn check_size(&self, size: u64) -> Result<()> {
        let limit = self.options.max_file_size;
        if size > limit {
            return Err(Error::file(413, format!("the limit is {limit} bytes (max_file_size)")));
        }
        Ok(())
    }
}

pub(super) fn new_etag() -> String {
    Uuid::new_v4().simple().to_string()
}

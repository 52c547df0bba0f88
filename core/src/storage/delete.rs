//! Deleting a file, and finding the row of one.
//!
//! Invariant: an object's row is deleted under the lock of its path, so if a delete and a move of one file run at the same time,
//! one succeeds.

use uuid::Uuid;

use super::{
    Storage,
    buckets::FileTarget,
    core::{OPEN_TIMEOUT, StorageCore},
    list::end_of_prefix,
    recovery::lock_paths,
    refusal::{changed, denied, missing},
    statements as sql,
};
use crate::{
    database::record,
    error::{ErrorKind, Result},
    model::FileInfo,
    objects::ObjectKey,
    policy::Caller,
};

impl Storage {
    /// Deletes a file, if `if_match` is `None` or its version.
    pub(crate) async fn delete_version(&self, bucket: &str, path: &str, if_match: Option<&str>) -> Result<()> {
        let target = self.core.buckets.target(bucket, path)?;
        self.wait_for_changes_at(&target.key()).await;
        let if_match = if_match.map(str::to_owned);
        // An inline file that the caller may delete needs no lock.
        let path = target.path.as_str().to_owned();
        let values = vec![target.bucket.clone().into(), path.into(), if_match.clone().into(), false.into()];
        if self.scope.execute(&sql::DELETE, values, |_| Ok(())).await?.is_some() {
            return Ok(());
        }
        // The file is an object, or the caller may not delete it. Whoever may not, gets no lock.
        let place = [target.bucket.as_str().into(), vec![target.path.as_str().to_owned()].into()];
        let found = self.scope.fetch_optional(&sql::FIND_DELETABLE, &place, |row| row.get_optional::<bool>(2)).await?;
        match found {
            None => {
                let cancels = if_match.is_none();
                let cancelled = cancels && self.cancel_uploads(&target.bucket, target.path.as_str(), false).await? > 0;
                return if cancelled { Ok(()) } else { Err(missing()) };
            }
            Some(may_delete) if may_delete != Some(true) && if_match.is_none() => {
                return Err(denied(self.scope.caller()));
            }
            Some(_) => {}
        }
        let (this, key) = (self.clone(), target.key());
        let keys = vec![key.clone()];
        let delete = async move {
            this.delete_row(target, if_match).await?;
            if let Err(error) = this.core.recover_locked(&key).await {
                tracing::warn!(%error, "the object of a deleted file stays for now");
            }
            Ok(())
        };
        self.change_locked(keys, delete).await
    }

    /// Cancels the caller's new uploads to a path, or to every path with that prefix, that a crash or a store without an answer left
    /// unfinished. The files would appear later. Skips an upload that is being installed. Returns the number of the others.
    pub(super) async fn cancel_uploads(&self, bucket: &str, path: &str, is_prefix: bool) -> Result<u64> {
        let (owner, is_service) = match self.scope.caller() {
            Caller::Anonymous => return Ok(0),
            caller => (caller.id(), caller == Caller::Service),
        };
        let end = end_of_prefix(path);
        let values = [bucket.into(), path.into(), end.as_str().into(), owner.into(), is_service.into()];
        let paths = self.core.service.fetch(&sql::NEW_UPLOADS, &values, |row| row.get::<String>(0)).await?;
        let mut cancelled = 0;
        for found in paths.into_iter().filter(|found| is_prefix || found == path) {
            let key = ObjectKey { bucket: bucket.to_owned(), path: found };
            let core = self.core.clone();
            let cancel = async move {
                let keys = [key.clone()];
                core.with_locks(&keys, OPEN_TIMEOUT, core.cancel_upload_locked(&key, owner, is_service)).await
            };
            match self.core.run(cancel).await {
                Ok(()) => cancelled += 1,
                Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
                Err(error) => tracing::debug!(%error, "an upload is not cancelled"),
            }
        }
        Ok(cancelled)
    }

    /// Deletes the row of a file. Requires the lock of the path. One transaction, with the path locked in the database, finds
    /// the row and the reason why it cannot be deleted, so that no other writer comes between.
    ///
    /// # Errors
    /// 404 if the caller sees no file; 412 if `if_match` names another version; 401 or 403 if the policy refuses.
    async fn delete_row(&self, target: FileTarget, if_match: Option<String>) -> Result<()> {
        let caller = self.scope.caller();
        let delete = self.scope.write(move |transaction| {
            Box::pin(async move {
                let (bucket, path) = (target.bucket.as_str(), target.path.as_str());
                lock_paths(transaction, bucket, [path]).await?;
                let values = [bucket.into(), path.into(), if_match.as_deref().into(), true.into()];
                if transaction.fetch_optional(&sql::DELETE, &values, |_| Ok(())).await?.is_some() {
                    return Ok(());
                }
                let found = transaction.fetch_optional(&sql::STAT, &values[..2], record::<FileInfo>).await?;
                let etag = found.ok_or_else(missing)?.etag;
                let is_other = if_match.is_some_and(|wanted| wanted != etag);
                Err(if is_other { changed(&target, Some(&etag)) } else { denied(caller) })
            })
        });
        delete.await
    }

    /// What is known about a file that the caller may see.
    pub(super) async fn find_row(&self, target: &FileTarget) -> Result<FileInfo> {
        self.find_visible_row(target).await?.ok_or_else(missing)
    }

    /// What is known about a file; `None` if the caller may not see it.
    pub(super) async fn find_visible_row(&self, target: &FileTarget) -> Result<Option<FileInfo>> {
        self.wait_for_changes_at(&target.key()).await;
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        self.scope.fetch_optional(&sql::STAT, &values, record).await
    }
}

impl StorageCore {
    /// Cancels a new upload. Requires the lock of the path, so its writer is dead or has given up.
    ///
    /// # Errors
    /// 404 if it is not there any more.
    async fn cancel_upload_locked(&self, key: &ObjectKey, owner: Option<Uuid>, is_service: bool) -> Result<()> {
        let place = key.clone();
        let cancelled = self.service.write(move |transaction| {
            Box::pin(async move {
                let (bucket, path) = (place.bucket.as_str(), place.path.as_str());
                lock_paths(transaction, bucket, [path]).await?;
                let values = [bucket.into(), path.into(), owner.into(), is_service.into()];
                let staged =
                    transaction.fetch_optional(&sql::CANCEL_UPLOAD, &values, |row| row.get::<String>(0)).await?;
                let staged = staged.ok_or_else(missing)?;
                transaction.execute(&sql::END_UPLOAD, &[bucket.into(), path.into(), staged.into()]).await.map(drop)
            })
        });
        cancelled.await?;
        if let Err(error) = self.recover_locked(key).await {
            tracing::warn!(%error, "the object of a cancelled upload stays for now");
        }
        Ok(())
    }
}

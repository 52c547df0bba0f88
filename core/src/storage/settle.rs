//! Settling: finishes or undoes what a crash left between the bytes of an object and its row.
//!
//! Invariant: an intent becomes the row of its file only if its bytes are the object, and if nobody has written the file
//! since the intent. After settling a path, row and object agree.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use jiff::Timestamp;

use super::{
    buckets::{Target, space_id_of},
    core::{LOCK_TIMEOUT, OPEN_TIMEOUT, StorageCore},
    rows::{self, Intent},
    statements as sql,
};
use crate::{
    database::{Effect, Transaction},
    error::{ErrorKind, Result},
    objects::ObjectKey,
    storage_path::folders,
};

/// How often a client looks for the objects of files that other programs or cascades deleted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// The paths that are settled in one go.
const PENDING: i64 = 1_000;

/// How an intent ended.
pub(super) enum Finished {
    /// The file has the new row, of this time.
    Yes(Timestamp),
    /// Somebody wrote or deleted the file since the intent.
    Overtaken,
    /// Plain SQL changed or deleted the source of the move meanwhile, and the file was not moved.
    SourceGone,
}

/// What becomes of an intent if somebody wrote or deleted the file since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfOvertaken {
    /// Its row replaces the other one.
    Replace,
    /// It is deleted.
    GiveUp,
    /// It stays as it is.
    Leave,
}

impl StorageCore {
    /// Settles every path with an intent or an entry in the outbox, except those that another writer uses. Returns how
    /// many were settled.
    pub(super) async fn settle_pending(&self, timeout: Duration) -> Result<u64> {
        let mut settled = 0;
        for key in self.service.fetch(&sql::PENDING, &[PENDING.into()], rows::object_key).await? {
            match self.settle(&key, timeout).await {
                Ok(()) => settled += 1,
                Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
                Err(error) => tracing::debug!(%error, "a file stays unsettled"),
            }
        }
        Ok(settled)
    }

    /// Settles a path.
    ///
    /// # Errors
    /// `Unavailable` if another writer uses it for longer than `timeout`; those of the object store.
    pub(super) async fn settle(&self, key: &ObjectKey, timeout: Duration) -> Result<()> {
        self.with_locks(&[key], timeout, self.settle_locked(key)).await
    }

    /// The objects of deleted files whose paths are folders of a path, or lie inside it. In a folder of the system they are
    /// in the way of the object of that path.
    pub(super) async fn overlapping_outbox(&self, target: &Target) -> Result<Vec<ObjectKey>> {
        let (inside, after) = target.inside();
        let values = [target.bucket.as_str().into(), target.folders().into(), inside.into(), after.into()];
        self.service.fetch(&sql::OVERLAPPING_OUTBOX, &values, rows::object_key).await
    }

    /// Settles a path whose object a committed transaction made superfluous. A failure is left to the next sweep.
    pub(super) async fn clean_up(self: &Arc<Self>, key: ObjectKey) {
        let core = Arc::clone(self);
        let settled = self.run(async move { core.settle(&key, LOCK_TIMEOUT).await }).await;
        if let Err(error) = settled {
            tracing::warn!(%error, "the object of a deleted file stays for now");
        }
    }

    /// Settles a path. Requires its lock.
    pub(super) async fn settle_locked(&self, key: &ObjectKey) -> Result<()> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        if let Some(intent) = self.service.fetch_optional(&sql::FIND_INTENT, &values, rows::intent).await? {
            self.settle_intent(key, intent).await?;
        }
        if self.service.fetch_optional(&sql::FIND_IN_OUTBOX, &values, |_| Ok(())).await?.is_some() {
            if self.service.fetch_optional(&sql::OBJECT_IS_USED, &values, |_| Ok(())).await?.is_none() {
                self.objects.remove(key).await?;
            }
            let values = vec![key.bucket.clone().into(), key.path.clone().into()];
            self.service.execute(&sql::DELETE_FROM_OUTBOX, values, |_| Ok(())).await?;
        }
        Ok(())
    }

    async fn settle_intent(&self, key: &ObjectKey, intent: Intent) -> Result<()> {
        // First, so that the writer of another machine that is late cannot install them any more.
        self.objects.discard(&intent.staged).await?;
        let object = self.objects.digest(key).await?;
        if object.is_some_and(|object| object.is_of(intent.size, &intent.digest, &intent.etag)) {
            self.finish_intent(key, intent, false).await?;
            return Ok(());
        }
        self.delete_intent(key, intent.etag).await
    }

    /// Deletes the intent with this etag.
    pub(super) async fn delete_intent(&self, key: &ObjectKey, etag: String) -> Result<()> {
        let values = vec![key.bucket.clone().into(), key.path.clone().into(), etag.into()];
        self.service.execute(&sql::DELETE_INTENT, values, |_| Ok(())).await.map(drop)
    }

    /// Makes an intent, whose bytes are the object, the row of its file. Requires the lock of the path. With `is_forced` the
    /// row replaces any other version, which somebody wrote after the intent.
    ///
    /// Settling the intent gives the same row if the file has the version before, so then the commit may be recovered after a
    /// power loss. Any other row is on the disk when this returns, and so is a move, whose source is removed after it.
    pub(super) async fn finish_intent(&self, key: &ObjectKey, intent: Intent, is_forced: bool) -> Result<Finished> {
        let work = Arc::new((key.clone(), intent));
        if work.1.moved.is_none() {
            let if_overtaken = if is_forced { IfOvertaken::Leave } else { IfOvertaken::GiveUp };
            if let Some(finished) = self.try_finish(Arc::clone(&work), if_overtaken, Effect::RecoverableWrites).await? {
                return Ok(finished);
            }
        }
        let if_overtaken = if is_forced { IfOvertaken::Replace } else { IfOvertaken::GiveUp };
        Ok(self.try_finish(work, if_overtaken, Effect::Writes).await?.unwrap_or(Finished::Overtaken))
    }

    async fn try_finish(
        &self,
        work: Arc<(ObjectKey, Intent)>,
        if_overtaken: IfOvertaken,
        effect: Effect,
    ) -> Result<Option<Finished>> {
        let finish = self.service.write_with(effect, move |transaction| {
            Box::pin(async move { finish(transaction, &work.0, &work.1, if_overtaken).await })
        });
        finish.await
    }

    /// Starts the task that settles paths from time to time. It ends with the client.
    pub(super) fn start_sweeper(self: &Arc<Self>) {
        let core: Weak<StorageCore> = Arc::downgrade(self);
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                let Some(core) = core.upgrade() else { return };
                match core.settle_pending(OPEN_TIMEOUT).await {
                    Err(error) if error.kind() == ErrorKind::Closed => return,
                    Err(error) => tracing::debug!(%error, "no file could be settled"),
                    Ok(_) => {}
                }
            }
        });
    }
}

/// Locks paths of a bucket in a transaction, in the order of the paths, so that two moves do not wait for each other.
pub(super) async fn lock_paths(
    transaction: &mut Transaction<'_>,
    bucket: &str,
    paths: impl IntoIterator<Item = &str>,
) -> Result<()> {
    let mut paths: Vec<&str> = paths.into_iter().collect();
    paths.sort_unstable();
    for path in paths {
        let folders: Vec<String> = folders(path).map(str::to_owned).collect();
        transaction.lock_path(bucket, &folders, path, space_id_of(bucket, path)).await?;
    }
    Ok(())
}

/// Makes an intent the row of its file. `None` if nothing changed: the file was overtaken and is to be left.
async fn finish(
    transaction: &mut Transaction<'_>,
    key: &ObjectKey,
    intent: &Intent,
    if_overtaken: IfOvertaken,
) -> Result<Option<Finished>> {
    let path = || [key.bucket.as_str().into(), key.path.as_str().into()];
    let version = [key.bucket.as_str().into(), key.path.as_str().into(), intent.etag.as_str().into()];
    let source = intent.moved.as_ref().map(|(source, _)| source.as_str());
    lock_paths(transaction, &key.bucket, source.into_iter().chain([key.path.as_str()])).await?;
    if let Some((source, etag)) = &intent.moved {
        // The locks of both paths and the intent keep other writers of the library out, but not plain SQL. A file that the
        // move replaced has lost its bytes, so then the move counts as done before the change of its source.
        let source = [key.bucket.as_str().into(), source.as_str().into(), etag.as_str().into()];
        let has_source = transaction.fetch_optional(&sql::CHECK_DELETE, &source, |_| Ok(())).await?.is_some();
        if !has_source && transaction.fetch_optional(&sql::EXISTING, &path(), |_| Ok(())).await?.is_none() {
            transaction.execute(&sql::DELETE_INTENT, &version).await?;
            transaction.execute(&sql::ADD_TO_OUTBOX, &path()).await?;
            return Ok(Some(Finished::SourceGone));
        }
    }
    let mut values = version.to_vec();
    values.extend([intent.base_etag.as_str().into(), (if_overtaken == IfOvertaken::Replace).into()]);
    let updated_at = transaction.fetch_optional(&sql::FINISH_INTENT, &values, |row| row.get::<Timestamp>(0)).await?;
    if updated_at.is_none() && if_overtaken == IfOvertaken::Leave {
        return Ok(None);
    }
    transaction.execute(&sql::DELETE_INTENT, &version).await?;
    let Some(updated_at) = updated_at else {
        // The object is of no row: the newer version is inline, or the file was deleted.
        transaction.execute(&sql::ADD_TO_OUTBOX, &path()).await?;
        return Ok(Some(Finished::Overtaken));
    };
    transaction.execute(&sql::DELETE_CONTENT, &path()).await?;
    transaction.execute(&sql::DELETE_FROM_OUTBOX, &path()).await?;
    if let Some((source, etag)) = &intent.moved {
        let source = [key.bucket.as_str().into(), source.as_str().into(), etag.as_str().into(), true.into()];
        transaction.fetch_optional(&sql::DELETE, &source, |_| Ok(())).await?;
    }
    Ok(Some(Finished::Yes(updated_at)))
}

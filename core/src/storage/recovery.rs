//! Recovery: finishes or undoes what a crash, or a store that did not answer, left between the bytes of an object and its row.
//!
//! Invariant: an intent becomes the row of its file only if its bytes are the object, and if nobody has written the file
//! since the intent. After the recovery of a path, row and object agree.

use std::{
    slice,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::{Instant, timeout};

use super::{
    Storage,
    buckets::{FileTarget, space_id_of},
    core::{LOCK_TIMEOUT, OPEN_TIMEOUT, StorageCore},
    refusal::busy,
    rows::{self, Intent},
    statements as sql,
};
use crate::{
    clock::later,
    database::{Row, Transaction, Value, Work},
    error::{Error, ErrorKind, Result},
    objects::{ObjectKey, Objects},
    storage_path::folders,
    threads::BoxedFuture,
};

/// How often a client looks for the objects of files that other programs or cascades deleted.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// For how long a failed write, and a read after it, look how the write ended.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// The writes in doubt that a client remembers. The sweeper settles others.
const MOST_UNSETTLED: usize = 1_000;

/// How often a write begins again because something unfinished is in its way.
pub(super) const TRIES: usize = 8;

/// The paths that are read at a time.
const PAGE: i64 = 1_000;

/// The paths that are recovered at a time: their commits share a flush of the disk, and a remote store answers them together.
const AT_ONCE: usize = 16;

/// How an intent ended.
pub(super) enum IntentOutcome {
    /// The file has the new row, of this time.
    Finished(Timestamp),
    /// Somebody wrote or deleted the file since the intent.
    Overtaken,
    /// Plain SQL changed or deleted the source of the move meanwhile, and the file was not moved.
    SourceGone,
}

impl Storage {
    /// Runs a transaction that changes rows and no object. If `write` returns `None`, an intent is in its way: then it runs
    /// again after the unfinished writes of the objects of `target` and `source`, under their locks.
    ///
    /// # Errors
    /// Those of `write`; `Unavailable` (503) if there is always another intent.
    pub(super) async fn write_rows<T: Send + 'static>(
        &self,
        target: &FileTarget,
        source: Option<&FileTarget>,
        write: impl for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, Option<T>> + Clone + Send + Sync + 'static,
    ) -> Result<T> {
        let keys: Vec<ObjectKey> = source.into_iter().chain([target]).map(FileTarget::key).collect();
        self.wait_for_changes(|key| keys.contains(key)).await;
        if let Some(written) = self.scope.write(write.clone()).await? {
            return Ok(written);
        }
        let changed = keys.clone();
        let (this, busy) = (self.clone(), busy(&target.key()));
        let retry = async move {
            for _ in 0..TRIES {
                for key in &keys {
                    this.core.recover_unfinished(key).await?;
                }
                // Only a dead writer can have an intent at a path that is locked. A move from such a path has its intent at
                // another path, and the next try recovers it.
                let recover_and_write = async {
                    for key in &keys {
                        this.core.recover_locked(key).await?;
                    }
                    this.scope.write(write.clone()).await
                };
                if let Some(written) = this.core.with_locks(&keys, LOCK_TIMEOUT, recover_and_write).await? {
                    return Ok(written);
                }
            }
            Err(busy)
        };
        self.change(changed, Box::pin(retry)).await
    }
}

impl StorageCore {
    /// Recovers every path with an intent or an entry in the outbox, except those that another writer uses, and those that
    /// fail. Stops at the time `until`. Returns how many were recovered.
    ///
    /// # Errors
    /// Those of the database; `Config` or `Unavailable` if the object store cannot be used; `Closed`.
    pub(super) async fn recover_pending(&self, timeout: Duration, until: Option<Instant>) -> Result<u64> {
        let (mut recovered, mut bucket, mut path) = (0, String::new(), String::new());
        loop {
            let values = [bucket.as_str().into(), path.as_str().into(), PAGE.into()];
            let keys = self.service.fetch(&sql::PENDING, &values, rows::object_key).await?;
            let Some(last) = keys.last() else { return Ok(recovered) };
            (bucket, path) = (last.bucket.clone(), last.path.clone());
            // A store that does not answer would fail once for each path, after the time limit of a call.
            self.require_store().await?;
            for keys in keys.chunks(AT_ONCE) {
                if until.is_some_and(|until| Instant::now() >= until) {
                    return Ok(recovered);
                }
                for outcome in join_all(keys.iter().map(|key| self.recover(key, timeout))).await {
                    match outcome {
                        Ok(()) => recovered += 1,
                        Err(error) if error.kind() == ErrorKind::Closed => return Err(error),
                        Err(error) => tracing::debug!(%error, "a file stays unrecovered"),
                    }
                }
            }
        }
    }

    /// Recovers a path. Requires the runtime.
    ///
    /// # Errors
    /// `Unavailable` if another writer uses it for longer than `timeout`; the errors of the object store.
    pub(super) async fn recover(&self, key: &ObjectKey, timeout: Duration) -> Result<()> {
        self.with_locks(slice::from_ref(key), timeout, self.recover_locked(key)).await?;
        self.unsettled.lock().retain(|paths| paths.last() != Some(key));
        Ok(())
    }

    /// Finishes or undoes the writes of a path, and the moves from it, that dead writers left. Waits for living writers.
    /// Requires the runtime.
    pub(super) async fn recover_unfinished(&self, key: &ObjectKey) -> Result<()> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        for path in self.service.fetch(&sql::FIND_UNFINISHED, &values, |row| row.get::<String>(0)).await? {
            self.recover(&ObjectKey { bucket: key.bucket.clone(), path }, LOCK_TIMEOUT).await?;
        }
        Ok(())
    }

    /// The objects of deleted files at the folders of a path, or inside the path: in a folder of the system they are in the way of the
    /// object of that path. And the path itself if an upload to it was ended, because the store may yet carry out its copy.
    pub(super) async fn overlapping_outbox(&self, target: &FileTarget) -> Result<Vec<ObjectKey>> {
        let (inside, after) = target.inside();
        let values = [
            target.bucket.as_str().into(),
            target.folders().into(),
            inside.into(),
            after.into(),
            target.path.as_str().into(),
        ];
        self.service.fetch(&sql::OVERLAPPING_OUTBOX, &values, rows::object_key).await
    }

    /// Learns how a write ended whose last transaction failed with `error`, and finishes it if its bytes are the object. Returns the
    /// time of its row. Requires the locks of its paths.
    ///
    /// # Errors
    /// `error`, or `Unavailable`, if the write did not happen. If nobody knows, the error says so and the intent stays.
    pub(super) async fn settle_failed(&self, key: &ObjectKey, etag: &str, error: Error) -> Result<Timestamp> {
        let settled = timeout(SETTLE_TIMEOUT, async {
            self.recover_locked(key).await?;
            let version = [key.bucket.as_str().into(), key.path.as_str().into(), etag.into()];
            self.service.fetch_optional(&sql::TIME_OF_VERSION, &version, |row| row.get(0)).await
        });
        match settled.await {
            Ok(Ok(Some(updated_at))) => Ok(updated_at),
            Ok(Ok(None)) if error.is_outcome_unknown() => Err(busy(key)),
            Ok(Ok(None)) => Err(error),
            Ok(Err(_)) | Err(_) => Err(error.in_doubt()),
        }
    }

    /// Remembers an upload, a copy or a move whose outcome is unknown. The last of its paths has the intent.
    pub(super) fn add_doubt(&self, paths: Vec<ObjectKey>) {
        let mut unsettled = self.unsettled.lock();
        unsettled.retain(|other| other.last() != paths.last());
        if unsettled.len() >= MOST_UNSETTLED {
            unsettled.remove(0);
        }
        unsettled.push(paths);
    }

    /// Settles the writes of this client whose outcome is unknown, at the paths that `is_concerned` accepts. Otherwise such a write could
    /// take effect after the program has looked whether it did. What cannot be settled soon is left to the sweeper.
    pub(super) async fn settle_doubts(self: &Arc<Self>, is_concerned: impl Fn(&ObjectKey) -> bool) {
        let keys: Vec<ObjectKey> = {
            let unsettled = self.unsettled.lock();
            let concerned = unsettled.iter().filter(|paths| paths.iter().any(&is_concerned));
            concerned.filter_map(|paths| paths.last().cloned()).collect()
        };
        if keys.is_empty() {
            return;
        }
        let core = Arc::clone(self);
        let settle = async move {
            // A recovery goes on after the time limit, with its lock: it may be about to remove an object.
            let recover = |key: &ObjectKey| {
                let (core, of_task, key) = (Arc::clone(&core), Arc::clone(&core), key.clone());
                async move { core.run(async move { of_task.recover(&key, OPEN_TIMEOUT).await }).await }
            };
            let settled = timeout(SETTLE_TIMEOUT, async {
                for keys in keys.chunks(AT_ONCE) {
                    join_all(keys.iter().map(recover)).await;
                }
            });
            if settled.await.is_err() {
                tracing::debug!("writes of files stay in doubt");
            }
            Ok(())
        };
        // The client may be closed. The call that waits learns it.
        let _ = self.run(settle).await;
    }

    /// Removes an object that a committed transaction made superfluous. After a failure the next sweep removes it.
    pub(super) async fn clean_up(self: &Arc<Self>, key: ObjectKey) {
        let (core, keys) = (Arc::clone(self), vec![key.clone()]);
        let recovered = self.run_locked(keys, async move { core.recover_locked(&key).await }).await;
        if let Err(error) = recovered {
            tracing::warn!(%error, "the object of a deleted file stays for now");
        }
    }

    /// Recovers a path. Requires its lock.
    pub(super) fn recover_locked<'a>(&'a self, key: &'a ObjectKey) -> BoxedFuture<'a, Result<()>> {
        Box::pin(async move {
            let values: [Value<'static>; 2] = [key.bucket.clone().into(), key.path.clone().into()];
            if let Some(Some(staged)) = self.find_in_outbox(key).await? {
                // Before another object has the path: a late copy of these bytes would replace it.
                self.objects.discard(&staged).await?;
                let [bucket, path] = values.clone();
                self.service.execute(&sql::CLEAR_STAGED, vec![bucket, path, staged.into()], |_| Ok(())).await?;
            }
            if let Some(intent) = self.service.fetch_optional(&sql::FIND_INTENT, &values, rows::intent).await? {
                self.recover_intent(key, intent).await?;
            }
            if let Some(staged) = self.find_in_outbox(key).await? {
                // An upload may have been ended since.
                if let Some(staged) = &staged {
                    self.objects.discard(staged).await?;
                }
                if self.service.fetch_optional(&sql::OBJECT_IS_USED, &values, |_| Ok(())).await?.is_none() {
                    // A power loss must not bring the row back without its object.
                    self.service.flush_commits().await?;
                    self.objects.remove(key).await?;
                }
                let values = vec![key.bucket.clone().into(), key.path.clone().into(), staged.into()];
                self.service.execute(&sql::DELETE_KNOWN_FROM_OUTBOX, values, |_| Ok(())).await?;
            }
            Ok(())
        })
    }

    /// Whether a path is in the outbox. The inner value is the name of the staged bytes of an ended upload.
    async fn find_in_outbox(&self, key: &ObjectKey) -> Result<Option<Option<String>>> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        let staged = |row: &Row<'_>| row.get_optional(0);
        self.service.fetch_optional(&sql::FIND_IN_OUTBOX, &values, staged).await
    }

    /// Finishes an intent if its bytes are the object, else undoes it. Requires the lock of the path.
    ///
    /// In a store with locks the writer is dead or has given up, and it cannot install bytes after their stage was removed. A
    /// remote store may still complete the copy of a writer that has given up. So the copy is repeated there: only an object
    /// with the intent's version shows how the intent ended. A copy that the store completes later has the same bytes. The copy
    /// of a user who has lost the right is not repeated, but given the time to complete.
    async fn recover_intent(&self, key: &ObjectKey, intent: Intent) -> Result<()> {
        // A store cannot complete the copy of bytes that are gone, unless it has begun.
        if !self.objects.is_remote() || intent.is_revoked {
            self.objects.discard(&intent.staged).await?;
        }
        let is_installed =
            self.is_installed(key, &intent).await? || (!intent.is_revoked && self.install_again(key, &intent).await?);
        let latest = later(intent.created_at, Objects::latest_copy(intent.size));
        let may_complete = || self.clock.now() < latest;
        if !is_installed && intent.is_revoked && self.objects.is_remote() && may_complete() {
            return Err(busy(key));
        }
        if self.objects.is_remote() {
            // Before the intent ends: a stage that stayed would let a late copy replace a newer object.
            self.objects.discard(&intent.staged).await?;
        }
        if is_installed {
            // The writer may have ended between the installation and its flush.
            self.objects.make_durable(key).await?;
            self.finish_intent(key, intent, false).await.map(drop)
        } else {
            self.delete_intent(key, intent.etag).await
        }
    }

    /// Whether the object of an intent consists of its bytes.
    pub(super) async fn is_installed(&self, key: &ObjectKey, intent: &Intent) -> Result<bool> {
        let object = self.objects.digest(key).await?;
        Ok(object.is_some_and(|object| object.is_of(intent.size, &intent.digest, &intent.etag)))
    }

    /// Installs the staged bytes of an intent in a remote store, unless the file has changed since the intent, so that they must
    /// not replace it. False if nothing was installed.
    async fn install_again(&self, key: &ObjectKey, intent: &Intent) -> Result<bool> {
        if !self.objects.is_remote() || self.version(key).await?.unwrap_or_default() != intent.base_etag {
            return Ok(false);
        }
        if let Some((path, etag)) = &intent.moved {
            let source = ObjectKey { bucket: key.bucket.clone(), path: path.clone() };
            if self.version(&source).await?.as_ref() != Some(etag) {
                return Ok(false);
            }
        }
        self.objects.install_stage(&intent.staged, intent.size, key, &intent.etag).await
    }

    /// The version of a file. `None` if there is none.
    async fn version(&self, key: &ObjectKey) -> Result<Option<String>> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        self.service.fetch_optional(&sql::EXISTING, &values, |row| row.get(0)).await
    }

    /// Deletes the intent with this etag.
    pub(super) async fn delete_intent(&self, key: &ObjectKey, etag: String) -> Result<()> {
        let values = vec![key.bucket.clone().into(), key.path.clone().into(), etag.into()];
        self.service.execute(&sql::DELETE_INTENT, values, |_| Ok(())).await.map(drop)
    }

    /// Makes an intent, whose bytes are the object, the row of its file. Requires the lock of the path. With `is_forced` the
    /// row replaces any other version, which somebody wrote after the intent.
    pub(super) async fn finish_intent(
        &self,
        key: &ObjectKey,
        intent: Intent,
        is_forced: bool,
    ) -> Result<IntentOutcome> {
        let (etag, is_move) = (intent.etag.clone(), intent.moved.is_some());
        let work = Arc::new((key.clone(), intent));
        let finish = self
            .service
            .write(move |transaction| Box::pin(async move { finish(transaction, &work.0, &work.1, is_forced).await }));
        let finished = finish.await?;
        if is_move && matches!(finished, IntentOutcome::Finished(_)) {
            // The object of a move is a second name of the source, and has its version. If this fails, a reader compares the
            // digest, and writes the version then.
            if let Err(error) = self.objects.write_version(key, &etag).await {
                tracing::debug!(%error, "a moved file keeps its old version for now");
            }
        }
        Ok(finished)
    }

    /// Starts the task that recovers paths from time to time, and after large deletions. It ends with the client.
    pub(super) fn start_sweeper(self: &Arc<Self>) {
        let core: Weak<StorageCore> = Arc::downgrade(self);
        let superfluous_objects = Arc::clone(self.service.superfluous_objects());
        self.runtime.spawn(async move {
            loop {
                // Both outcomes, a notification and the end of the time, start a sweep.
                let _ = timeout(SWEEP_INTERVAL, superfluous_objects.notified()).await;
                let Some(core) = core.upgrade() else { return };
                match core.recover_pending(OPEN_TIMEOUT, None).await {
                    Err(error) if error.kind() == ErrorKind::Closed => return,
                    Err(error) => tracing::debug!(%error, "no file could be recovered"),
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

/// Makes an intent the row of its file. With `is_forced` it replaces any other version.
async fn finish(
    transaction: &mut Transaction<'_>,
    key: &ObjectKey,
    intent: &Intent,
    is_forced: bool,
) -> Result<IntentOutcome> {
    let path = || [key.bucket.as_str().into(), key.path.as_str().into()];
    let version = [key.bucket.as_str().into(), key.path.as_str().into(), intent.etag.as_str().into()];
    let source = intent.moved.as_ref().map(|(source, _)| source.as_str());
    lock_paths(transaction, &key.bucket, source.into_iter().chain([key.path.as_str()])).await?;
    // A revocation deletes the intent, and not between the statements below.
    if let Some(user_id) = intent.owner_id {
        transaction.lock_rights(user_id).await?;
    }
    if let Some((source, etag)) = &intent.moved {
        // The locks of both paths and the intent keep other writers of the library out, but not plain SQL. A file that the
        // move replaced has lost its bytes, so then the move counts as done before the change of its source.
        let source = [key.bucket.as_str().into(), source.as_str().into(), etag.as_str().into()];
        let has_source = transaction.fetch_optional(&sql::CHECK_DELETE, &source, |_| Ok(())).await?.is_some();
        if !has_source && transaction.fetch_optional(&sql::EXISTING, &path(), |_| Ok(())).await?.is_none() {
            transaction.execute(&sql::DELETE_INTENT, &version).await?;
            transaction.execute(&sql::ADD_TO_OUTBOX, &path()).await?;
            return Ok(IntentOutcome::SourceGone);
        }
    }
    let mut values = version.to_vec();
    values.extend([intent.base_etag.as_str().into(), is_forced.into()]);
    let updated_at = transaction.fetch_optional(&sql::FINISH_INTENT, &values, |row| row.get::<Timestamp>(0)).await?;
    transaction.execute(&sql::DELETE_INTENT, &version).await?;
    let Some(updated_at) = updated_at else {
        // The object is of no row: the newer version is inline, or the file was deleted.
        transaction.execute(&sql::ADD_TO_OUTBOX, &path()).await?;
        return Ok(IntentOutcome::Overtaken);
    };
    transaction.execute(&sql::DELETE_CONTENT, &path()).await?;
    transaction.execute(&sql::DELETE_FROM_OUTBOX, &path()).await?;
    if let Some((source, etag)) = &intent.moved {
        let source = [key.bucket.as_str().into(), source.as_str().into(), etag.as_str().into(), true.into()];
        transaction.fetch_optional(&sql::DELETE, &source, |_| Ok(())).await?;
    }
    Ok(IntentOutcome::Finished(updated_at))
}

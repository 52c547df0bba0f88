//! Repair: finishes unfinished writes, and removes objects without a row and rows without an object.
//!
//! Invariant: nothing is removed unless the object store is the one with the files of the database.

use std::{slice, sync::Arc, time::Duration};

use super::{
    Storage,
    buckets::Buckets,
    core::{LOCK_TIMEOUT, StorageCore},
    rows::{self, key_of},
    statements as sql,
};
use crate::{
    database::Row,
    error::{Error, Result},
    model::{RepairReport, StoredObject},
    objects::{ObjectDigest, ObjectKey, ObjectStat},
    policy::Caller,
};

/// The rows that are read at a time.
const PAGE: u32 = 1_000;

/// Staged bytes that are younger may belong to a writer that is alive on another machine.
pub(super) const STALE: Duration = Duration::from_secs(3_600);

impl Storage {
    /// # Errors
    /// `Unauthorized` (401) or `Forbidden` (403) for every caller but the service.
    pub(super) fn require_service(&self) -> Result<()> {
        match self.scope.caller() {
            Caller::Service => Ok(()),
            Caller::Anonymous => Err(Error::file(401, "only the service may do this")),
            Caller::User(_) => Err(Error::file(403, "only the service may do this")),
        }
    }

    pub(super) async fn repair_files(&self) -> Result<RepairReport> {
        self.require_service()?;
        let this = self.clone();
        self.core.run(async move { this.repair_all().await }).await
    }

    async fn repair_all(&self) -> Result<RepairReport> {
        self.core.recheck_store().await?;
        let mut report = RepairReport::default();
        loop {
            let recovered = self.core.recover_pending(LOCK_TIMEOUT, None).await?;
            report.finished += recovered;
            if recovered == 0 {
                break;
            }
        }
        report.orphans_removed += u64::from(self.core.objects.remove_stale_stages(STALE).await?);
        self.scope.execute(&sql::DELETE_STRAY_CONTENTS, Vec::new(), |_| Ok(())).await?;
        for (bucket, _) in Buckets::stored(&self.scope).await? {
            report.orphans_removed += self.core.remove_orphans(&bucket).await?;
            self.check_objects(&bucket, &mut report).await?;
        }
        Ok(report)
    }

    /// Removes the rows of a bucket whose objects are gone, and reports those whose objects have another size or version.
    async fn check_objects(&self, bucket: &str, report: &mut RepairReport) -> Result<()> {
        let mut after = String::new();
        loop {
            let values = [bucket.into(), after.as_str().into(), i64::from(PAGE).into()];
            let rows = self.scope.fetch(&sql::LIST_OBJECTS, &values, rows::stored_object).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            after.clone_from(&last.path);
            for row in rows {
                self.check_object(&row, report).await?;
            }
        }
    }

    async fn check_object(&self, row: &StoredObject, report: &mut RepairReport) -> Result<()> {
        let key = key_of(row);
        if self.core.objects.stat(&key).await?.is_some_and(|object| is_of(&object, row)) {
            return Ok(());
        }
        // Looks again under the lock, because a writer may have been at work.
        let check = self.check_object_locked(&key, row);
        match self.core.with_locks(slice::from_ref(&key), LOCK_TIMEOUT, check).await? {
            RepairFinding::Same => {}
            RepairFinding::Adopted => report.finished += 1,
            RepairFinding::Gone => report.rows_removed += 1,
            RepairFinding::Damaged => report.mismatched.push(key.to_string()),
        }
        Ok(())
    }

    async fn check_object_locked(&self, key: &ObjectKey, row: &StoredObject) -> Result<RepairFinding> {
        let etag = row.etag.as_str();
        self.core.recover_locked(key).await?;
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        let version = |row: &Row<'_>| row.get::<String>(0);
        if self.scope.fetch_optional(&sql::VERSION, &values, version).await?.as_deref() != Some(etag) {
            return Ok(RepairFinding::Same);
        }
        match self.core.objects.stat(key).await? {
            Some(object) if is_of(&object, row) => Ok(RepairFinding::Same),
            Some(ObjectStat { version: Some(_), .. }) if self.core.objects.is_remote() => self.adopt(key, etag).await,
            Some(object) if object.size == row.size && self.core.adopt_version(key, etag).await.is_ok() => {
                Ok(RepairFinding::Same)
            }
            Some(_) => Ok(RepairFinding::Damaged),
            None => {
                // A store that was unmounted or replaced meanwhile has no object of any file.
                self.core.recheck_store().await?;
                let path = key.path.clone();
                let values = vec![key.bucket.clone().into(), path.into(), etag.to_owned().into(), true.into()];
                let deleted = self.scope.execute(&sql::DELETE, values, |_| Ok(())).await?;
                self.core.recover_locked(key).await?;
                Ok(if deleted.is_some() { RepairFinding::Gone } else { RepairFinding::Same })
            }
        }
    }

    /// Gives the file the version of its object in a remote store: the store completed the copy of a writer that had given up, and
    /// so replaced the object of a later writer. Requires the lock of the path.
    async fn adopt(&self, key: &ObjectKey, etag: &str) -> Result<RepairFinding> {
        let Some(ObjectDigest { size, digest, version: Some(version) }) = self.core.objects.hash(key).await? else {
            return Ok(RepairFinding::Damaged);
        };
        let values = vec![
            key.bucket.clone().into(),
            key.path.clone().into(),
            etag.to_owned().into(),
            version.into(),
            i64::try_from(size).unwrap_or(i64::MAX).into(),
            digest.into(),
            self.core.clock.now().into(),
        ];
        let adopted = self.scope.execute(&sql::ADOPT_OBJECT, values, |_| Ok(())).await?;
        tracing::warn!(
            bucket = key.bucket,
            path = key.path,
            "the object has another version than the file, which now has it too"
        );
        Ok(if adopted.is_some() { RepairFinding::Adopted } else { RepairFinding::Same })
    }
}

impl StorageCore {
    /// Removes the objects and the staged bytes that a killed move has left in the store of its target. Nobody else writes there.
    ///
    /// # Errors
    /// Those of the store and of the database.
    pub(crate) async fn remove_rest_of_move(self: &Arc<Self>) -> Result<()> {
        let core = Arc::clone(self);
        let remove = async move {
            core.objects.remove_stale_stages(Duration::ZERO).await?;
            for (bucket, _) in Buckets::stored(&core.service).await? {
                core.remove_orphans(&bucket).await?;
            }
            Ok(())
        };
        self.run(remove).await
    }

    /// Removes the objects of a bucket that no row describes. Returns how many. Requires the runtime.
    async fn remove_orphans(&self, bucket: &str) -> Result<u64> {
        let mut removed = 0;
        let mut pages = self.objects.list(bucket).await?;
        loop {
            let page = pages.next_page().await?;
            if page.is_empty() {
                return Ok(removed);
            }
            for object in page {
                let key = ObjectKey { bucket: bucket.to_owned(), path: object.path };
                if !self.is_object_used(&key).await? && self.remove_orphan(&key).await? {
                    removed += 1;
                }
            }
        }
    }

    async fn is_object_used(&self, key: &ObjectKey) -> Result<bool> {
        let values = [key.bucket.as_str().into(), key.path.as_str().into()];
        Ok(self.service.fetch_optional(&sql::OBJECT_IS_USED, &values, |_| Ok(())).await?.is_some())
    }

    /// Removes an object under its lock, unless it has a row meanwhile.
    async fn remove_orphan(&self, key: &ObjectKey) -> Result<bool> {
        let remove = async {
            if self.is_object_used(key).await? {
                return Ok(false);
            }
            self.service.flush_commits().await?;
            self.objects.remove(key).await.map(|()| true)
        };
        self.with_locks(slice::from_ref(key), LOCK_TIMEOUT, remove).await
    }
}

/// What repair found at the path of an object.
enum RepairFinding {
    Same,
    Gone,
    /// Bytes of another version; the row got that version.
    Adopted,
    /// Bytes of another size or version.
    Damaged,
}

/// Whether an object has the size of the row and, if it has a version, the version of the row.
pub(super) fn is_of(object: &ObjectStat, row: &StoredObject) -> bool {
    object.size == row.size && object.version.as_ref().is_none_or(|version| *version == row.etag)
}

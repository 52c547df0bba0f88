//! Deleting a file, and finding the row of one.
//!
//! Invariant: an object's row is deleted under the lock of its path, so that of a delete and a move of one file one succeeds.

use super::{Storage, buckets::Target, core::LOCK_TIMEOUT, read::missing, refusal::Refusal, rows, statements as sql};
use crate::{error::Result, model::FileInfo};

impl Storage {
    /// Deletes a file, if `if_match` is `None` or its version.
    pub(super) async fn delete_version(&self, bucket: &str, path: &str, if_match: Option<&str>) -> Result<()> {
        let target = self.core.buckets.target(bucket, path)?;
        let if_match = if_match.map(str::to_owned);
        if self.delete_row(&target, if_match.clone(), false).await? {
            return Ok(());
        }
        // The file is an object, or the caller may not delete it.
        let found = self.find_row(&target).await?;
        let (this, version) = (self.clone(), if_match.clone());
        let delete = async move {
            let key = target.key();
            let delete = async {
                let is_deleted = this.delete_row(&target, version, true).await?;
                if is_deleted && let Err(error) = this.core.settle_locked(&key).await {
                    tracing::warn!(%error, "the object of a deleted file stays for now");
                }
                Ok(is_deleted)
            };
            let is_deleted = this.core.with_locks(&[&key], LOCK_TIMEOUT, delete).await?;
            Ok((is_deleted, target))
        };
        let (is_deleted, target) = self.core.run(delete).await?;
        if is_deleted {
            return Ok(());
        }
        let is_other = if_match.is_some_and(|etag| etag != found.etag);
        let refusal = if is_other { Refusal::Changed { found: Some(found.etag) } } else { Refusal::Denied };
        Err(refusal.into_error(self.scope.caller(), &target))
    }

    /// Deletes the row of a file; false if there is none that the caller may delete. `with_object`: also if the file is an
    /// object, whose lock this requires.
    async fn delete_row(&self, target: &Target, if_match: Option<String>, with_object: bool) -> Result<bool> {
        let path = target.path.as_str().to_owned();
        let values = vec![target.bucket.clone().into(), path.into(), if_match.into(), with_object.into()];
        Ok(self.scope.execute(&sql::DELETE, values, |_| Ok(())).await?.is_some())
    }

    /// What is known about a file that the caller may see.
    pub(super) async fn find_row(&self, target: &Target) -> Result<FileInfo> {
        let values = [target.bucket.as_str().into(), target.path.as_str().into()];
        self.scope.fetch_optional(&sql::STAT, &values, rows::file_info).await?.ok_or_else(missing)
    }
}

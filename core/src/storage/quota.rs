//! Quotas of files: how many files, and how many bytes, one owner may have.

use uuid::Uuid;

use crate::{
    database::{OWNER_USAGE, OwnerUsage, Transaction},
    error::{Error, Result},
};

/// The limits of the files of one owner; `None` is no limit.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileQuota {
    /// The option `max_owner_bytes`.
    pub(crate) max_bytes: Option<u64>,
    /// The option `max_owner_files`.
    pub(crate) max_files: Option<u64>,
}

impl FileQuota {
    /// Checks the size of one file of an owner, before its bytes are on the disk.
    ///
    /// # Errors
    /// `QuotaExceeded` (413) for a file that alone is over the quota.
    pub(super) fn check_file(self, owner_id: Option<Uuid>, size: u64) -> Result<()> {
        match self.max_bytes.filter(|limit| owner_id.is_some() && size > *limit) {
            None => Ok(()),
            Some(limit) => Err(bytes_exceeded(size, limit)),
        }
    }

    /// Checks the files of an owner, in the transaction that wrote one of them. Other writes of the owner wait until the
    /// transaction ends, so that together they do not exceed the quota. The service writes files without an owner, which no
    /// quota limits.
    ///
    /// # Errors
    /// `QuotaExceeded`: 413 for bytes, 409 for the number of files.
    pub(super) async fn check(self, transaction: &mut Transaction<'_>, owner_id: Option<Uuid>) -> Result<()> {
        let Some(owner_id) = owner_id.filter(|_| self.max_bytes.or(self.max_files).is_some()) else { return Ok(()) };
        let usage = transaction.fetch_optional(&OWNER_USAGE, &[owner_id.into()], OwnerUsage::read).await?;
        let OwnerUsage { files, bytes, .. } = usage.unwrap_or_default();
        if let Some(limit) = self.max_files.filter(|limit| files > *limit) {
            return Err(Error::quota_exceeded(409, files, "files", "max_owner_files", limit));
        }
        if let Some(limit) = self.max_bytes.filter(|limit| bytes > *limit) {
            return Err(bytes_exceeded(bytes, limit));
        }
        Ok(())
    }
}

fn bytes_exceeded(bytes: u64, limit: u64) -> Error {
    Error::quota_exceeded(413, bytes, "bytes of files", "max_owner_bytes", limit)
}

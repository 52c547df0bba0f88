//! What one user owns, for quotas.

use super::{row::Row, statement::Statement};
use crate::error::Result;

/// Counts what the user `$1` owns. On PostgreSQL, it first waits for the transactions that have counted for the same user, and
/// keeps others out until its own transaction ends. So a transaction that writes, counts, and fails beyond a limit cannot exceed
/// the limit together with another one.
pub(crate) static OWNER_USAGE: Statement = Statement::new("SELECT spaces, files, bytes FROM {owner_usage $1}");

/// A row of [`OWNER_USAGE`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnerUsage {
    pub(crate) spaces: u64,
    /// The files, with the files that are being written.
    pub(crate) files: u64,
    /// The bytes of the files.
    pub(crate) bytes: u64,
}

impl OwnerUsage {
    pub(crate) fn read(row: &Row<'_>) -> Result<OwnerUsage> {
        let number = |column| Ok(row.get::<i64>(column)?.unsigned_abs());
        Ok(OwnerUsage { spaces: number(0)?, files: number(1)?, bytes: number(2)? })
    }
}

//! How large the change log is, and how large it may be.

use std::time::Duration;

use jiff::Timestamp;

use crate::{database::row::Row, error::Result};

/// How much of the log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetentionLimits {
    pub(crate) age: Duration,
    pub(crate) rows: u64,
    /// The size of the entries, about as they are stored.
    pub(crate) bytes: u64,
}

/// The figures of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogStats {
    /// The number of entries; it may be an estimate.
    pub(crate) retained: u64,
    pub(crate) oldest: Option<Timestamp>,
    /// How long committed entries have been held back by a transaction that stays open (PostgreSQL).
    pub(crate) lag: Duration,
}

/// The size of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogSize {
    /// The id of the last entry that was pruned.
    pub(crate) pruned: i64,
    pub(crate) rows: i64,
    /// The bytes that were counted, and those of the next [`LogSize::UNCOUNTED`] entries.
    pub(crate) bytes: i64,
    /// How many entries are not counted yet, at most [`LogSize::UNCOUNTED`].
    pub(crate) uncounted: i64,
}

impl LogSize {
    /// The most entries whose bytes are added up to know the size. If more are not counted, it is time to count them.
    pub(in crate::database) const UNCOUNTED: i64 = 1_000;

    /// Reads the columns `pruned`, `rows`, `bytes` and `uncounted`.
    pub(in crate::database) fn read(row: &Row<'_>) -> Result<LogSize> {
        Ok(LogSize { pruned: row.get(0)?, rows: row.get(1)?, bytes: row.get(2)?, uncounted: row.get(3)? })
    }

    /// Whether the log has more than `percent` of its limits.
    pub(crate) fn is_over(&self, limits: RetentionLimits, percent: u32) -> bool {
        let exceeds = |size: i64, limit: u64| i128::from(size) * 100 > i128::from(limit) * i128::from(percent);
        exceeds(self.rows, limits.rows) || exceeds(self.bytes, limits.bytes)
    }

    /// Whether the log has many entries that are not counted.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.uncounted >= LogSize::UNCOUNTED
    }
}

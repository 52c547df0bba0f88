//! Places in the change log: the key of an entry, a point between entries, and a position, which can be after some later entries
//! too.

use std::sync::Arc;

use super::Snapshot;

/// The place of an entry in the log. The order of keys is the order of the feed.
///
/// PostgreSQL takes an entry's id while its transaction holds the lock of the changed row. So the ids of one row's changes
/// have the order of the changes, which the ids of their transactions need not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct EntryKey {
    /// The number of the row in the log.
    pub(crate) id: i64,
    /// PostgreSQL: the id of the transaction. SQLite: 0, because its transactions write one after another.
    pub(crate) transaction: u64,
}

/// Identifies an entry: an entry of another history with the same id has another proof. A database gets another history when
/// a server fails over to one that lagged, and when a power loss undoes the last commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EntryProof {
    pub(crate) id: i64,
    /// PostgreSQL: the id of the transaction. SQLite: 0.
    pub(crate) transaction: u64,
    /// PostgreSQL: when the entry was written, in microseconds. SQLite: a random number.
    pub(crate) mark: i64,
}

/// A place in the log up to which every entry is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogPoint {
    /// Every entry up to this key is before the point.
    pub(crate) after: EntryKey,
    /// The last entry before the point, which may have been pruned.
    pub(crate) stands_on: EntryProof,
}

/// How far the log was at a moment. A transaction that was rolled back has taken ids, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogEnd {
    /// No entry will be added up to this key.
    pub(crate) settled: EntryKey,
    /// No entry has a larger id.
    pub(crate) last_id: i64,
}

/// A position in the log: after some entries and before all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// Every entry up to this key is before the position.
    pub(crate) after: EntryKey,
    /// The last entry up to the key, which may have been pruned.
    pub(crate) stands_on: EntryProof,
    /// PostgreSQL: the entries of transactions that this snapshot sees are before the position, too. `advance_to` drops it
    /// when it says nothing more.
    pub(crate) seen: Option<Arc<Snapshot>>,
}

impl EntryKey {
    /// Before every entry.
    pub(crate) const START: EntryKey = EntryKey { id: 0, transaction: 0 };

    /// A key that is not before any entry with this id.
    pub(crate) const fn up_to(id: i64) -> EntryKey {
        EntryKey { id, transaction: u64::MAX }
    }

    /// Whether a change of caller at this key counts for an entry: the entry is after it, and in another transaction. A
    /// user whose session ends with the user's own deletion still gets what that deletes.
    pub(crate) fn counts_for(self, entry: EntryKey) -> bool {
        self < entry && (self.transaction == 0 || self.transaction != entry.transaction)
    }
}

impl LogPoint {
    /// The point that is further on in the log.
    pub(crate) fn max(self, other: LogPoint) -> LogPoint {
        if self.after < other.after { other } else { self }
    }

    /// The point that is less far on in the log.
    pub(crate) fn min(self, other: LogPoint) -> LogPoint {
        if other.after < self.after { other } else { self }
    }
}

impl From<LogPoint> for Position {
    fn from(point: LogPoint) -> Position {
        Position { after: point.after, stands_on: point.stands_on, seen: None }
    }
}

impl Position {
    /// The point up to which every entry is before the position.
    pub(crate) fn point(&self) -> LogPoint {
        LogPoint { after: self.after, stands_on: self.stands_on }
    }

    /// Moves the position to a point after it.
    pub(crate) fn advance_to(&mut self, point: LogPoint) {
        (self.after, self.stands_on) = (point.after, point.stands_on);
        self.seen.take_if(|snapshot| point.after.id >= snapshot.last_id);
    }

    /// The key after which the log must have its entries, so that the position can be checked and read from.
    pub(crate) fn needed_after(&self) -> EntryKey {
        self.seen.as_ref().map_or(self.after, |snapshot| self.after.min(EntryKey::up_to(snapshot.settled)))
    }

    /// No entry before the position has a larger id.
    pub(crate) fn last_id(&self) -> i64 {
        self.seen.as_ref().map_or(self.stands_on.id, |snapshot| snapshot.last_id)
    }

    /// Whether the position is before the same entries as a point.
    pub(crate) fn is_at(&self, point: LogPoint) -> bool {
        self.seen.is_none() && self.stands_on == point.stands_on
    }

    /// Whether a reader that has read the log up to `key` has found no entry after the position, and not all before it.
    pub(crate) fn is_ahead_of(&self, key: EntryKey) -> bool {
        self.after >= key && !self.is_reached_by(key)
    }

    /// Whether a reader that has delivered every entry up to `key` has delivered every entry before this position.
    pub(crate) fn is_reached_by(&self, key: EntryKey) -> bool {
        // A cursor names an entry by its id alone, and no two entries have the same id.
        self.after.id <= key.id && self.seen.as_ref().is_none_or(|snapshot| snapshot.last_id <= key.id)
    }

    /// Whether the entry is after this position: it is still to be delivered.
    pub(crate) fn includes(&self, key: &EntryKey) -> bool {
        let is_seen = |snapshot: &Arc<Snapshot>| key.id <= snapshot.last_id && snapshot.sees(key.transaction);
        *key > self.after && !self.seen.as_ref().is_some_and(is_seen)
    }
}

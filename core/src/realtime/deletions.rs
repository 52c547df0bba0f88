//! The places of deletions in the log. A replay needs them, because a new row can have the key of a deleted one.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use crate::{
    database::change_log::{EntryKey, EntryKind, LogPage, LogPoint},
    policy::RowKey,
};

/// The most deletions that are remembered before the log is read anew.
const MAX_DELETIONS: usize = 1 << 20;

/// The last deletion of each key of a table in a range of the log. The replays of a client share it, so each part of the log is
/// read once.
#[derive(Default)]
pub(super) struct Deletions {
    /// The range: after the key, up to the point.
    range: Option<(EntryKey, LogPoint)>,
    hasher: RandomState,
    /// The id of the last deletion, by the hash of the key. If two keys have the same hash, the deletion of one row counts for both.
    ids: HashMap<u64, i64>,
}

impl Deletions {
    /// Forgets every deletion, because the database may have another history now.
    pub(super) fn forget(&mut self) {
        self.range = None;
    }

    /// The point from which a reader that needs the deletions after `from` has to read on.
    pub(super) fn begin(&mut self, from: LogPoint) -> LogPoint {
        match self.range {
            Some((start, end)) if start <= from.after && from.after <= end.after && self.ids.len() < MAX_DELETIONS => {
                end
            }
            _ => {
                self.ids.clear();
                self.range = Some((from.after, from));
                from
            }
        }
    }

    pub(super) fn note(&mut self, page: &LogPage) {
        for entry in page.entries.iter().filter(|entry| entry.kind == EntryKind::Delete) {
            if let Some(key) = entry.row_key() {
                let last = self.ids.entry(self.hasher.hash_one(&key)).or_default();
                *last = entry.key.id.max(*last);
            }
        }
    }

    pub(super) fn advance_to(&mut self, end: LogPoint) {
        if let Some((_, known)) = &mut self.range {
            *known = end;
        }
    }

    /// The id of the last entry that deletes a row with this key; 0 for none.
    pub(super) fn last(&self, key: &RowKey) -> i64 {
        self.ids.get(&self.hasher.hash_one(key)).copied().unwrap_or_default()
    }
}

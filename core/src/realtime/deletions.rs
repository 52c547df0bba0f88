//! The id of the last deletion of each key, for replays: a new row can have the key of a deleted one.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use crate::{
    database::change_log::{EntryKind, LogEntry, LogPage, LogPoint, OutlinedRow},
    policy::RowKey,
};

/// The number of deletions from which on no page is remembered. Later pages are read again for each page of a replay.
const MAX_DELETIONS: usize = 1 << 20;

/// The most ids that a reader reads before its own position, so that the known deletions stay. An older replay knows the deletions up
/// to the end of the log with each of its pages: while it runs, the gap to a new reader is short. After a long gap it has ended, and
/// nobody needs what it knew.
const MAX_GAP: i64 = 1 << 14;

/// The last deletion of each key of a table in a range of the log. The replays of a client share it, so each part of the log is
/// read once.
pub(super) struct Deletions {
    /// After the first point, up to the second.
    range: Option<(LogPoint, LogPoint)>,
    hasher: RandomState,
    /// The id of the last deletion, by the hash of the key. If two keys have the same hash, the deletion of one row counts for both.
    ids: HashMap<u64, i64>,
    max: usize,
}

impl Default for Deletions {
    fn default() -> Deletions {
        Deletions { range: None, hasher: RandomState::new(), ids: HashMap::new(), max: MAX_DELETIONS }
    }
}

impl Deletions {
    /// Forgets every deletion, because the database may have another history now.
    pub(super) fn forget(&mut self) {
        self.ids = HashMap::new();
        self.range = None;
    }

    /// The range in which the deletions are known, for a reader that needs those after `from`. The reader has to read what is
    /// before the range and after it, also if that is before `from`.
    pub(super) fn known(&mut self, from: LogPoint) -> (LogPoint, LogPoint) {
        match self.range {
            Some((start, end)) if from.after <= end.after => {
                if self.is_full() && start.after < from.after {
                    self.ids.retain(|_, id| *id > from.after.id);
                    self.ids.shrink_to_fit();
                    self.range = Some((from, end));
                }
            }
            Some((_, end)) if !self.is_full() && from.after.id <= end.after.id.saturating_add(MAX_GAP) => {}
            _ => {
                self.ids = HashMap::new();
                self.range = Some((from, from));
            }
        }
        self.range.unwrap_or((from, from))
    }

    /// Remembers the deletions of a page, unless there are too many. Returns whether they are remembered.
    pub(super) fn remember(&mut self, page: &LogPage) -> bool {
        if self.is_full() {
            return false;
        }
        for (key, id) in deletions(page) {
            let last = self.ids.entry(self.hasher.hash_one(&key)).or_default();
            *last = id.max(*last);
        }
        true
    }

    /// Every deletion after `start` up to the known ones is remembered.
    pub(super) fn begin_at(&mut self, start: LogPoint) {
        if let Some((known, _)) = &mut self.range {
            *known = start;
        }
    }

    /// Every deletion after the known ones up to `end` is remembered.
    pub(super) fn advance_to(&mut self, end: LogPoint) {
        if let Some((_, known)) = &mut self.range {
            *known = end;
        }
    }

    /// Sets `last_deletion` of rows to the id of the last remembered deletion of their keys, unless a later one is known.
    pub(super) fn find(&self, rows: &mut HashMap<RowKey, OutlinedRow>) {
        for (key, row) in rows {
            let last = self.ids.get(&self.hasher.hash_one(key)).copied().unwrap_or_default();
            row.last_deletion = last.max(row.last_deletion);
        }
    }

    fn is_full(&self) -> bool {
        self.ids.len() >= self.max
    }
}

/// Sets `last_deletion` of the rows with keys that a page deletes.
pub(super) fn find_in_page(page: &LogPage, rows: &mut HashMap<RowKey, OutlinedRow>) {
    for (key, id) in deletions(page) {
        if let Some(row) = rows.get_mut(&key) {
            row.last_deletion = id.max(row.last_deletion);
        }
    }
}

/// The keys that a page deletes, with the ids of the entries.
fn deletions(page: &LogPage) -> impl Iterator<Item = (RowKey, i64)> {
    let deletions = page.entries.iter().filter(|entry| entry.kind == EntryKind::Delete);
    deletions.filter_map(|entry: &LogEntry| Some((entry.row_key()?, entry.key.id)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;
    use serde_json::Map;

    use super::*;
    use crate::{
        database::change_log::{EntryKey, EntryProof, LoggedRow},
        policy::Table,
    };

    fn point(id: i64) -> LogPoint {
        LogPoint { after: EntryKey { id, transaction: 0 }, stands_on: EntryProof { id, transaction: 0, mark: 0 } }
    }

    /// A page that deletes the row with the number of each id.
    fn page(ids: std::ops::Range<i64>) -> LogPage {
        let entry = |id: i64| LogEntry {
            key: point(id).after,
            proof: point(id).stands_on,
            table: Table::Users,
            kind: EntryKind::Delete,
            old: Some(Arc::new(LoggedRow::new(Table::Users, format!("{{\"id\":\"{id}\"}}")))),
            new: None,
            old_context: None,
            new_context: None,
            at: Timestamp::UNIX_EPOCH,
        };
        let (end, count) = (point(ids.end - 1), ids.clone().count());
        LogPage { entries: ids.map(entry).collect(), end, count, first_at: None, is_last: true }
    }

    /// The last deletion of the row with a number, as a reader finds it in `deletions`.
    fn last(deletions: &Deletions, number: i64) -> i64 {
        let row = OutlinedRow { image: Map::new(), context: None, last_deletion: 0 };
        let mut rows = HashMap::from([(vec![number.to_string()], row)]);
        deletions.find(&mut rows);
        rows.into_values().map(|row| row.last_deletion).sum()
    }

    fn known(max: usize) -> Deletions {
        let mut deletions = Deletions { max, ..Deletions::default() };
        assert_eq!(deletions.known(point(4)), (point(4), point(4)));
        assert!(deletions.remember(&page(5..9)));
        deletions.advance_to(point(8));
        deletions
    }

    #[test]
    fn a_full_memory_keeps_the_deletions_that_the_reader_needs() {
        let mut deletions = known(4);
        assert_eq!(deletions.known(point(6)), (point(6), point(8)), "nothing is read again");
        assert_eq!([5, 6, 7, 8].map(|number| last(&deletions, number)), [0, 0, 7, 8]);
        assert!(deletions.remember(&page(9..12)));
        deletions.advance_to(point(11));
        assert!(!deletions.remember(&page(12..13)), "the memory is bounded");
        assert_eq!(deletions.known(point(6)), (point(6), point(11)));
    }

    #[test]
    fn an_older_reader_reads_what_is_before_the_known_deletions() {
        let mut deletions = known(100);
        assert_eq!(deletions.known(point(1)), (point(4), point(8)));
        assert!(deletions.remember(&page(2..5)));
        deletions.begin_at(point(1));
        assert_eq!(deletions.known(point(1)), (point(1), point(8)));
        assert_eq!([2, 4, 5, 8].map(|number| last(&deletions, number)), [2, 4, 5, 8]);
        assert_eq!(deletions.known(point(9)), (point(1), point(8)), "the reader reads the gap");
        let far = point(8 + MAX_GAP + 1);
        assert_eq!(deletions.known(far), (far, far), "a long gap would cost more than it saves");
        let mut full = known(4);
        assert_eq!(full.known(point(9)), (point(9), point(9)), "a gap would stay unknown");
    }
}

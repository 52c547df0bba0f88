//! Where the log has the deletions of rows, for replays: a key says nothing of whether the row that has it now is the one of an
//! entry.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use super::{core::RealtimeCore, feed::Feed};
use crate::{
    database::change_log::{EntryKey, EntryKind, LogPage, LogPoint, OutlinedRow, TableSet},
    error::{ErrorKind, Result},
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
    /// The id of the entry, by the hash of the key. If two keys have one hash, entries of one of them count as those of a deleted
    /// row.
    ids: HashMap<u64, i64>,
}

impl Deletions {
    /// The point from which a reader that needs the deletions after `from` has to read on.
    fn begin(&mut self, from: LogPoint) -> LogPoint {
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

    fn note(&mut self, page: &LogPage) {
        for entry in page.entries.iter().filter(|entry| entry.kind == EntryKind::Delete) {
            if let Some(key) = entry.row_key() {
                let last = self.ids.entry(self.hasher.hash_one(&key)).or_default();
                *last = entry.key.id.max(*last);
            }
        }
    }

    fn advance_to(&mut self, end: LogPoint) {
        if let Some((_, known)) = &mut self.range {
            *known = end;
        }
    }

    /// The id of the last entry that deletes a row with this key; 0 for none.
    fn last(&self, key: &RowKey) -> i64 {
        self.ids.get(&self.hasher.hash_one(key)).copied().unwrap_or_default()
    }
}

impl RealtimeCore {
    /// Notes in each row of the feed's table where the log after `from` last deletes a row with its key. `rows` were read before.
    /// `head` is where the pump is.
    pub(super) async fn find_deletions(
        &self,
        feed: &Feed,
        from: LogPoint,
        head: LogPoint,
        rows: &mut HashMap<RowKey, OutlinedRow>,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut deletions = self.deletions[feed.view.table as usize].lock().await;
        match self.read_deletions(feed, from, head, &mut deletions).await {
            // What is known may be of another history of the database.
            Err(error) if error.kind() == ErrorKind::CursorExpired => {
                deletions.range = None;
                self.read_deletions(feed, from, head, &mut deletions).await?;
            }
            read => read?,
        }
        for (key, row) in rows {
            row.last_deletion = deletions.last(key);
        }
        Ok(())
    }

    /// Reads the log for the deletions after `from` that are not known yet. Stops if the feed ends.
    async fn read_deletions(
        &self,
        feed: &Feed,
        from: LogPoint,
        head: LogPoint,
        deletions: &mut Deletions,
    ) -> Result<()> {
        let tables = TableSet::from_iter([feed.view.table]);
        let mut end = deletions.begin(from);
        while end.after < head.after && !feed.has_ended() {
            let page = self.database.read_changes_up_to(end, head.after, tables).await?;
            deletions.note(&page);
            // The last page reaches the head also if no entry has the head's key.
            end = if page.is_last { page.end.max(head) } else { page.end };
            deletions.advance_to(end);
        }
        // A key that was given again was deleted in a transaction that has ended, but an entry before that one may be missing
        // yet (PostgreSQL). So the entries after the pump are read each time.
        while !feed.has_ended() {
            let page = self.database.read_changes_up_to(end, EntryKey::up_to(i64::MAX), tables).await?;
            deletions.note(&page);
            end = page.end;
            if page.is_last {
                break;
            }
        }
        Ok(())
    }
}

//! Where the log has the deletions of files, for replays: a path says nothing of whether the file that has it now is the one of an
//! entry.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
};

use super::{core::RealtimeCore, feed::Feed};
use crate::{
    database::change_log::{EntryKey, EntryKind, LogPoint, OutlinedRow, TableSet},
    error::Result,
    policy::{RowKey, Table},
};

/// The most deletions that are remembered before the log is read anew.
const MAX_DELETIONS: usize = 1 << 20;

/// The last deletion of each file in a range of the log. The replays of a client share it, so each part of the log is read once.
#[derive(Default)]
pub(super) struct DeletedFiles {
    /// The range: after the key, up to the point.
    range: Option<(EntryKey, LogPoint)>,
    hasher: RandomState,
    /// The id of the entry, by the hash of the file's key. A hash that two files share hides the entries of one of them.
    ids: HashMap<u64, i64>,
}

impl DeletedFiles {
    fn note(&mut self, key: &RowKey, id: i64) {
        let last = self.ids.entry(self.hasher.hash_one(key)).or_default();
        *last = id.max(*last);
    }

    /// The point from which a reader that begins after `from` has to read on.
    fn begin(&mut self, from: LogPoint) -> LogPoint {
        match self.range {
            Some((start, end)) if start <= from.after && from.after <= end.after && self.ids.len() < MAX_DELETIONS => end,
            _ => {
                self.ids.clear();
                self.range = Some((from.after, from));
                from
            }
        }
    }

    fn advance_to(&mut self, end: LogPoint) {
        if let Some((_, known)) = &mut self.range {
            *known = end;
        }
    }
}

impl RealtimeCore {
    /// Notes in each of the files `rows` where the log after `from` last deletes a file of that path. The rows were read before.
    pub(super) async fn find_deletions(
        &self,
        feed: &Feed,
        from: LogPoint,
        rows: &mut HashMap<RowKey, OutlinedRow>,
    ) -> Result<()> {
        if feed.view.table != Table::Files || rows.is_empty() {
            return Ok(());
        }
        let head = self.database.head().await?.point();
        let mut deleted = self.deleted_files.lock().await;
        let mut end = deleted.begin(from);
        while end.after < head.after && !feed.has_ended() {
            let page =
                self.database.read_changes_up_to(end, head.after, TableSet::from_iter([Table::Files])).await?;
            for entry in page.entries.iter().filter(|entry| entry.kind == EntryKind::Delete) {
                if let Some(key) = entry.row_key() {
                    deleted.note(&key, entry.key.id);
                }
            }
            // The last page reaches the head also if no entry has the head's key.
            end = if page.is_last { page.end.max(head) } else { page.end };
            deleted.advance_to(end);
        }
        for (key, row) in rows {
            let id = deleted.ids.get(&deleted.hasher.hash_one(key));
            row.last_deletion = id.copied().unwrap_or_default();
        }
        Ok(())
    }
}

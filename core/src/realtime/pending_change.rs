//! A change that waits for its subscriber.
//!
//! Invariant: the change holds the rows as the text that the log has. They become values when the subscriber takes the change.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{
    database::change_log::LoggedRow,
    model::{EventType, RowChange},
    policy::{Caller, RowImage, Table},
};

/// About the memory of the key of a row. Its texts are bounded.
const KEY_SIZE: usize = 4 << 10;

/// A change that waits for its subscriber.
pub(super) struct PendingChange {
    pub(super) table: Table,
    pub(super) caller: Caller,
    pub(super) event_type: EventType,
    pub(super) new: Option<PendingRow>,
    pub(super) old: Option<PendingRow>,
    pub(super) at: Timestamp,
    pub(super) cursor: Arc<str>,
}

/// A row of a [`PendingChange`].
#[derive(Clone)]
pub(super) enum PendingRow {
    Whole(Arc<LoggedRow>),
    Key(Arc<RowImage>),
}

impl PendingChange {
    /// The change for its subscriber. Reads the rows, so the caller holds no lock.
    pub(super) fn into_change(self) -> RowChange {
        let image = |row: PendingRow| row.into_image(self.table, self.caller);
        RowChange {
            schema: "public",
            table: self.table.name(),
            event_type: self.event_type,
            new: self.new.map(image),
            old: self.old.map(image),
            commit_timestamp: self.at,
            cursor: self.cursor,
        }
    }

    /// The most memory that the change takes. Several subscriptions may share it.
    pub(super) fn size(&self) -> usize {
        let row = |row: &Option<PendingRow>| match row {
            Some(PendingRow::Whole(row)) => row.size(),
            Some(PendingRow::Key(_)) => KEY_SIZE,
            None => 0,
        };
        size_of::<PendingChange>() + self.cursor.len() + row(&self.old) + row(&self.new)
    }
}

impl PendingRow {
    /// The row, with what `caller` reads of it.
    fn into_image(self, table: Table, caller: Caller) -> Arc<RowImage> {
        match self {
            PendingRow::Whole(row) if table.may_read_all(caller) => row.image(),
            PendingRow::Whole(row) => {
                let mut readable = Arc::unwrap_or_clone(row.image());
                table.hide_columns(caller, &mut readable);
                Arc::new(readable)
            }
            PendingRow::Key(key) => key,
        }
    }
}

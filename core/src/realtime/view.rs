//! The view of a subscription: which changes it gets, and as which event (DESIGN 5).

use std::{cell::OnceCell, sync::Arc};

use super::{
    filter::ChangeFilter,
    pending_change::{PendingChange, PendingRow},
};
use crate::{
    database::change_log::{CurrentRow, CursorKey, EntryKind, LogEntry, LoggedRow, Position, is_erased, read_context},
    error::{Error, Result},
    model::EventType,
    policy::{Caller, RowImage, Table, may_see},
};

/// The rows of a table that fulfil a filter, and the events that are wanted.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) table: Table,
    /// `None` for every event.
    event: Option<EventType>,
    pub(super) filter: ChangeFilter,
}

/// The parts of an entry's change that every subscription shares.
pub(super) struct SharedChange<'a> {
    pub(super) entry: &'a LogEntry,
    old: Option<JudgedRow>,
    new: Option<JudgedRow>,
    cursors: &'a CursorKey,
    /// Made when the first subscription needs it.
    cursor: OnceCell<Arc<str>>,
    key_of_old: OnceCell<Option<Arc<RowImage>>>,
    /// Whether only the key is shown: the row is deleted or hidden.
    is_key_alone: bool,
}

/// What policies and filters read of a row.
struct JudgedRow {
    row: Arc<RowImage>,
    context: Option<RowImage>,
}

impl View {
    /// # Errors
    /// `InvalidInput` for an unknown schema or table, and for a filter that does not fit what `caller` reads of the table.
    pub(super) fn new(
        schema: &str,
        table: &str,
        caller: Caller,
        event: Option<EventType>,
        filter: &str,
    ) -> Result<View> {
        let excerpt = |text: &str| text.chars().take(60).collect::<String>();
        if schema != "public" {
            let schema = excerpt(schema);
            return Err(Error::invalid_input(format!(
                "The subscription has no schema {schema:?}; its schema is public"
            )));
        }
        let found = Table::from_name(table).ok_or_else(|| {
            let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
            let table = excerpt(table);
            Error::invalid_input(format!(
                "The subscription has no table {table:?}; its tables are {}",
                names.join(", ")
            ))
        })?;
        Ok(View { table: found, event, filter: ChangeFilter::parse(found, caller, filter)? })
    }

    /// Whether `caller` sees the row in this view.
    pub(super) fn shows(&self, caller: Caller, row: &RowImage, context: Option<&RowImage>) -> bool {
        self.filter.matches(row) && may_see(self.table, caller, row, context)
    }

    /// Whether `caller` sees a row of a live query; `None` if the row cannot be read.
    pub(super) fn shows_current(&self, caller: Caller, current: &CurrentRow) -> Option<bool> {
        let row = current.row.judged()?;
        Some(self.shows(caller, &row, current.context.as_ref()))
    }

    /// The change as `caller` sees it; `None` if it does not touch the view. The row is judged as it was before and after
    /// its statement. `position` is the position of the subscription, which includes the entry.
    pub(super) fn change(
        &self,
        shared: &SharedChange<'_>,
        caller: Caller,
        position: &Position,
    ) -> Option<PendingChange> {
        let entry = shared.entry;
        if entry.table != self.table {
            return None;
        }
        let shows = |judged: &Option<JudgedRow>| {
            judged.as_ref().is_some_and(|JudgedRow { row, context }| {
                if shared.is_key_alone {
                    self.filter.may_match(self.table, row) && may_see(self.table, caller, row, context.as_ref())
                } else {
                    self.shows(caller, row, context.as_ref())
                }
            })
        };
        let (before, after) = match entry.kind {
            EntryKind::Insert => (false, shows(&shared.new)),
            EntryKind::Delete => (shows(&shared.old), false),
            EntryKind::Update | EntryKind::Visibility => (shows(&shared.old), shows(&shared.new)),
            EntryKind::SessionStarted | EntryKind::SessionEnded | EntryKind::SessionRotated => (false, false),
        };
        let whole = |row: &Option<Arc<LoggedRow>>| row.clone().map(PendingRow::Whole);
        let (event_type, old, new) = match (before, after) {
            (false, false) => return None,
            (true, true) if entry.kind == EntryKind::Visibility => return None,
            // The `DELETE` with the key comes later.
            (_, true) if shared.is_key_alone => return None,
            (true, true) => (EventType::Update, whole(&entry.old), whole(&entry.new)),
            (false, true) => (EventType::Insert, None, whole(&entry.new)),
            // The row is gone: the caller gets all that it could see.
            (true, false) if entry.kind == EntryKind::Delete && !shared.is_key_alone => {
                (EventType::Delete, whole(&entry.old), None)
            }
            // The row is hidden: the caller learns neither its values nor its earlier values.
            (true, false) => (EventType::Delete, shared.key_of_old().map(PendingRow::Key), None),
        };
        if self.event.is_some_and(|event| event != event_type) {
            return None;
        }
        let (table, at, cursor) = (self.table, entry.at, shared.cursor(position));
        Some(PendingChange { table, caller, event_type, new, old, at, cursor })
    }
}

impl<'a> SharedChange<'a> {
    /// `None` for an entry that cannot be read.
    pub(super) fn new(entry: &'a LogEntry, cursors: &'a CursorKey) -> Option<SharedChange<'a>> {
        let judged = |row: &Arc<LoggedRow>| {
            let judged = row.judged();
            if judged.is_none() {
                tracing::warn!(id = entry.key.id, "an entry of the change log cannot be read");
            }
            judged
        };
        let read = |row: &Option<Arc<LoggedRow>>| row.as_ref().map_or(Some(None), |row| judged(row).map(Some));
        let new = read(&entry.new)?;
        let old = match entry.kind {
            EntryKind::Visibility => new.clone(),
            _ => read(&entry.old)?,
        };
        let with_context = |row: Option<Arc<RowImage>>, context: &Option<Box<str>>| {
            let context = || context.as_deref().and_then(|text| read_context(entry.table, text));
            row.map(|row| JudgedRow { row, context: context() })
        };
        let (old, new) = (with_context(old, &entry.old_context), with_context(new, &entry.new_context));
        let is_key_alone = [&old, &new].into_iter().flatten().any(|judged| is_erased(&judged.row));
        let (cursor, key_of_old) = (OnceCell::new(), OnceCell::new());
        Some(SharedChange { entry, old, new, cursors, cursor, key_of_old, is_key_alone })
    }

    /// The change of a row that is deleted, or hidden from the caller.
    pub(super) fn of_gone_row(entry: &'a LogEntry, cursors: &'a CursorKey) -> Option<SharedChange<'a>> {
        Some(SharedChange { is_key_alone: true, ..SharedChange::new(entry, cursors)? })
    }

    /// What policies and filters read of the old row and of the new one.
    pub(super) fn judged(&self) -> [Option<&RowImage>; 2] {
        [&self.old, &self.new].map(|judged| judged.as_ref().map(|judged| &*judged.row))
    }

    /// The cursor after the entry, of a subscription at `position`.
    fn cursor(&self, position: &Position) -> Arc<str> {
        let mut after = position.clone();
        after.advance_to(self.entry.point());
        if after.seen.is_some() {
            // The subscription began while other transactions ran. A program that continues from here must not get again what had
            // been committed when it began.
            return self.cursors.cursor(&after).into();
        }
        Arc::clone(self.cursor.get_or_init(|| self.cursors.cursor(&after).into()))
    }

    /// The columns of the primary key of the old row.
    fn key_of_old(&self) -> Option<Arc<RowImage>> {
        let make = || {
            let old = &self.old.as_ref()?.row;
            let key = self.entry.table.key().iter();
            let values = key.map(|name| ((*name).to_owned(), old.get(*name).cloned().unwrap_or_default()));
            Some(Arc::new(values.collect()))
        };
        self.key_of_old.get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::database::change_log::{EntryKey, EntryProof, LogPoint};

    const OWNER: Uuid = Uuid::from_u128(7);

    fn image(name: &str, is_public: bool) -> Option<Arc<LoggedRow>> {
        let row = json!({ "id": "x", "name": name, "owner_id": OWNER, "is_public": is_public });
        Some(Arc::new(LoggedRow::new(Table::Spaces, row.to_string())))
    }

    fn entry(kind: EntryKind, old: Option<Arc<LoggedRow>>, new: Option<Arc<LoggedRow>>) -> LogEntry {
        let key = EntryKey { transaction: 0, id: 1 };
        let at = Timestamp::UNIX_EPOCH;
        LogEntry {
            key,
            proof: EntryProof::default(),
            table: Table::Spaces,
            kind,
            old,
            new,
            old_context: None,
            new_context: None,
            at,
        }
    }

    /// The event and the number of columns of `old` and `new`.
    fn seen(filter: &str, caller: Caller, entry: &LogEntry) -> Option<(EventType, Option<usize>, Option<usize>)> {
        let view = View::new("public", "spaces", caller, None, filter).expect("a view");
        let (start, cursors) = (LogPoint::default().into(), CursorKey::new("", ""));
        let shared = SharedChange::new(entry, &cursors).expect("an entry");
        let change = view.change(&shared, caller, &start)?.into_change();
        Some((change.event_type, change.old.map(|old| old.len()), change.new.map(|new| new.len())))
    }

    #[test]
    fn entering_and_leaving_the_view_are_an_insert_and_a_delete_with_the_key_alone() {
        use EntryKind::Update;
        use EventType::{Delete, Insert};
        let (owner, stranger) = (Caller::User(OWNER), Caller::Anonymous);
        let published = entry(Update, image("a", false), image("a", true));
        assert_eq!(seen("", stranger, &published), Some((Insert, None, Some(4))));
        assert_eq!(seen("", owner, &published), Some((EventType::Update, Some(4), Some(4))));
        let hidden = entry(Update, image("a", true), image("b", false));
        assert_eq!(seen("", stranger, &hidden), Some((Delete, Some(1), None)));
        assert_eq!(seen("name=eq.a", owner, &hidden), Some((Delete, Some(1), None)));
        assert_eq!(seen("name=eq.b", owner, &hidden), Some((Insert, None, Some(4))));
        assert_eq!(seen("name=eq.b", stranger, &hidden), None);
        let deleted = entry(EntryKind::Delete, image("a", true), None);
        assert_eq!(seen("", stranger, &deleted), Some((Delete, Some(4), None)));
        assert_eq!(seen("name=eq.b", owner, &deleted), None);
        let private = entry(EntryKind::Delete, image("a", false), None);
        assert_eq!(seen("", stranger, &private), None);
        assert_eq!(seen("", Caller::Service, &private), Some((Delete, Some(4), None)));
    }

    #[test]
    fn a_row_that_is_gone_has_an_end_with_the_key_alone() {
        use EntryKind::{Delete, Insert, Update};
        let (view, cursors) = (
            View::new("public", "spaces", Caller::Anonymous, None, "name=eq.b").expect("a view"),
            CursorKey::new("", ""),
        );
        let seen = |entry: &LogEntry| {
            let change = SharedChange::of_gone_row(entry, &cursors)?;
            let change = view.change(&change, Caller::Anonymous, &LogPoint::default().into())?.into_change();
            Some((change.event_type, change.old.map(|old| old.len()), change.new))
        };
        let end = Some((EventType::Delete, Some(1), None));
        // What the row held decides nothing.
        for name in ["a", "b"] {
            assert_eq!(seen(&entry(Delete, image(name, true), None)), end);
            assert_eq!(seen(&entry(Update, image(name, true), image("c", false))), end);
            assert_eq!(seen(&entry(Insert, None, image(name, true))), None);
            assert_eq!(seen(&entry(Update, image(name, true), image("b", true))), None);
            assert_eq!(seen(&entry(Delete, image(name, false), None)), None);
        }
    }

    #[test]
    fn other_schemas_and_tables_are_refused() {
        for (schema, table) in [("auth", "spaces"), ("public", "townsquare_sessions"), ("public", ""), ("", "spaces")] {
            let error = View::new(schema, table, Caller::Service, None, "").expect_err("no such table");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidInput, "{schema}.{table}");
        }
    }
}

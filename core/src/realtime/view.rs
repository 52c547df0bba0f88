//! The view of a subscription: which changes it gets, and as which event (DESIGN 5).

use std::{cell::OnceCell, sync::Arc};

use crate::{
    change_filter::ChangeFilter,
    database::change_log::{EntryKind, LogEntry, Position, cursor_text},
    error::{Error, Result},
    model::{EventType, RowChange},
    policy::{Caller, RowImage, Table, may_see},
};

/// The rows of a table that fulfil a filter, and the events that are wanted.
#[derive(Debug)]
pub(super) struct View {
    pub(super) table: Table,
    /// `None` for every event.
    event: Option<EventType>,
    pub(super) filter: ChangeFilter,
}

/// The parts of an entry's change that every subscription shares. They are made when the first subscription needs them.
pub(super) struct SharedChange<'a> {
    pub(super) entry: &'a LogEntry,
    incarnation: &'a str,
    cursor: OnceCell<Arc<str>>,
    key_of_old: OnceCell<Option<Arc<RowImage>>>,
}

impl View {
    /// # Errors
    /// `InvalidInput` for an unknown schema or table, and for a filter that does not fit the table.
    pub(super) fn new(schema: &str, table: &str, event: Option<EventType>, filter: &str) -> Result<View> {
        let excerpt = |text: &str| text.chars().take(60).collect::<String>();
        if schema != "public" {
            let schema = excerpt(schema);
            return Err(Error::invalid_input(format!("The feed has no schema {schema:?}; its schema is public")));
        }
        let found = Table::from_name(table).ok_or_else(|| {
            let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
            let table = excerpt(table);
            Error::invalid_input(format!("The feed has no table {table:?}; its tables are {}", names.join(", ")))
        })?;
        Ok(View { table: found, event, filter: ChangeFilter::parse(found, filter)? })
    }

    /// Whether `caller` sees the row in this view.
    pub(super) fn shows(&self, caller: Caller, row: &RowImage, context: Option<&RowImage>) -> bool {
        self.filter.matches(row) && may_see(self.table, caller, row, context)
    }

    /// The change as `caller` sees it; `None` if it does not touch the view. The row is judged as it was before and after
    /// its statement. `position` is that of the feed, which includes the entry.
    pub(super) fn change(&self, shared: &SharedChange<'_>, caller: Caller, position: &Position) -> Option<RowChange> {
        let entry = shared.entry;
        if entry.table != self.table {
            return None;
        }
        let shows = |row: Option<&Arc<RowImage>>, context: Option<&RowImage>| {
            row.is_some_and(|row| self.shows(caller, row, context))
        };
        let (old, new) = (entry.old.as_ref(), entry.new.as_ref());
        let (before, after) = match entry.kind {
            EntryKind::Insert => (false, shows(new, entry.new_context.as_ref())),
            EntryKind::Delete => (shows(old, entry.old_context.as_ref()), false),
            EntryKind::Update | EntryKind::Visibility => {
                (shows(old, entry.old_context.as_ref()), shows(new, entry.new_context.as_ref()))
            }
            EntryKind::SessionStarted | EntryKind::SessionEnded => (false, false),
        };
        let (event_type, old, new) = match (before, after) {
            (false, false) => return None,
            (true, true) if entry.kind == EntryKind::Visibility => return None,
            (true, true) => (EventType::Update, old.cloned(), new.cloned()),
            (false, true) => (EventType::Insert, None, new.cloned()),
            // The row is gone: the caller gets all that it could see.
            (true, false) if entry.kind == EntryKind::Delete => (EventType::Delete, old.cloned(), None),
            // The row is hidden: what it holds now, and what it held, is none of the caller's business.
            (true, false) => (EventType::Delete, shared.key_of_old(), None),
        };
        if self.event.is_some_and(|event| event != event_type) {
            return None;
        }
        Some(RowChange {
            schema: "public",
            table: self.table.name(),
            event_type,
            new,
            old,
            commit_timestamp: entry.at,
            cursor: shared.cursor(position),
        })
    }
}

impl<'a> SharedChange<'a> {
    pub(super) fn new(entry: &'a LogEntry, incarnation: &'a str) -> SharedChange<'a> {
        SharedChange { entry, incarnation, cursor: OnceCell::new(), key_of_old: OnceCell::new() }
    }

    /// The cursor after the entry, of a feed at `position`.
    fn cursor(&self, position: &Position) -> Arc<str> {
        let mut after = position.clone();
        after.advance_to(self.entry.key);
        if after.seen.is_some() {
            // The feed began while other transactions ran. A program that goes on from here must not get again what had been
            // committed when it began.
            return cursor_text(&after, self.incarnation).into();
        }
        Arc::clone(self.cursor.get_or_init(|| cursor_text(&after, self.incarnation).into()))
    }

    /// The columns of the primary key of the old row.
    fn key_of_old(&self) -> Option<Arc<RowImage>> {
        let make = || {
            let old = self.entry.old.as_ref()?;
            let key = self.entry.table.key().iter();
            let values = key.map(|name| ((*name).to_owned(), old.get(*name).cloned().unwrap_or_default()));
            Some(Arc::new(values.collect()))
        };
        self.key_of_old.get_or_init(make).clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::database::change_log::EntryKey;

    const OWNER: Uuid = Uuid::from_u128(7);

    fn image(name: &str, is_public: bool) -> Option<Arc<RowImage>> {
        let row = json!({ "id": "x", "name": name, "owner_id": OWNER, "is_public": is_public });
        row.as_object().cloned().map(Arc::new)
    }

    fn entry(kind: EntryKind, old: Option<Arc<RowImage>>, new: Option<Arc<RowImage>>) -> LogEntry {
        let key = EntryKey { transaction: 0, id: 1 };
        let at = jiff::Timestamp::UNIX_EPOCH;
        LogEntry { key, table: Table::Spaces, kind, old, new, old_context: None, new_context: None, at }
    }

    /// The event and the number of columns of `old` and `new`.
    fn seen(filter: &str, caller: Caller, entry: &LogEntry) -> Option<(EventType, Option<usize>, Option<usize>)> {
        let view = View::new("public", "spaces", None, filter).expect("a view");
        let start = Position::after(EntryKey::START);
        let change = view.change(&SharedChange::new(entry, "i"), caller, &start)?;
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
    fn other_schemas_and_tables_are_refused() {
        for (schema, table) in [("auth", "spaces"), ("public", "townsquare_sessions"), ("public", ""), ("", "spaces")] {
            let error = View::new(schema, table, None, "").expect_err("no such table");
            assert_eq!(error.kind(), crate::ErrorKind::InvalidInput, "{schema}.{table}");
        }
    }
}

//! The feeds of a client, and how the pump finds those that a change concerns.
//!
//! Invariant: the registry's lock guards the pump's position. The pump moves only while it holds the lock, so that a feed
//! which joins under the lock misses nothing and gets nothing twice.

use std::{
    collections::{HashMap, hash_map},
    sync::Arc,
};

use serde_json::Value as Json;
use uuid::Uuid;

use super::{
    caller::HandleCaller,
    feed::{Feed, Wake},
    view::SharedChange,
};
use crate::{
    database::{
        CurrentPrincipal,
        change_log::{EntryKey, EntryKind, LogPage, session_of},
        session_ended,
    },
    error::Error,
    policy::{RowImage, Table},
};

/// The feeds of a client.
#[derive(Default)]
pub(super) struct Registry {
    /// The key up to which every live feed has its changes; `None` while nobody watches for commits.
    pub(super) head: Option<EntryKey>,
    tables: HashMap<Table, TableFeeds>,
    /// The callers of the handles that have feeds, with the number of feeds.
    handles: Vec<(Arc<HandleCaller>, usize)>,
    /// The handles whose timeline names a session.
    sessions: HashMap<Uuid, Vec<Arc<HandleCaller>>>,
    /// The feeds that end with a session.
    fixed: HashMap<Uuid, Vec<Arc<Feed>>>,
    count: usize,
}

/// The feeds of one table.
#[derive(Default)]
struct TableFeeds {
    /// Those whose rows all have one value in a column, by column and value.
    by_value: HashMap<&'static str, HashMap<String, Vec<Arc<Feed>>>>,
    others: Vec<Arc<Feed>>,
}

impl Registry {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The caller of a handle, from which its feeds learn of changes.
    pub(super) fn handle_caller(&self, principal: &CurrentPrincipal) -> Option<Arc<HandleCaller>> {
        let found = self.handles.iter().find(|(handle, _)| handle.principal().is_of_same_handle(principal));
        found.map(|(handle, _)| Arc::clone(handle))
    }

    /// Adds a feed. The pump is at `head`.
    pub(super) fn add(&mut self, feed: &Arc<Feed>, head: EntryKey) {
        let table = self.tables.entry(feed.view.table).or_default();
        table.list(feed).push(Arc::clone(feed));
        let handle = feed.handle();
        match self.handles.iter_mut().find(|(known, _)| Arc::ptr_eq(known, handle)) {
            Some((_, count)) => *count += 1,
            None => self.handles.push((Arc::clone(handle), 1)),
        }
        self.watch_sessions(handle);
        if let Some(session_id) = feed.fixed_session() {
            self.fixed.entry(session_id).or_default().push(Arc::clone(feed));
        }
        self.count += 1;
        feed.go_live(head);
    }

    /// Removes a feed. Returns false if it was removed before.
    pub(super) fn remove(&mut self, feed: &Arc<Feed>) -> bool {
        let Some(table) = self.tables.get_mut(&feed.view.table) else { return false };
        if !table.remove(feed) {
            return false;
        }
        if let Some(session_id) = feed.fixed_session() {
            remove_from(&mut self.fixed, &session_id, feed);
        }
        let handle = feed.handle();
        if let Some(index) = self.handles.iter().position(|(known, _)| Arc::ptr_eq(known, handle)) {
            self.handles[index].1 -= 1;
            if self.handles[index].1 == 0 {
                self.handles.swap_remove(index);
                for session_id in handle.sessions() {
                    remove_from(&mut self.sessions, &session_id, handle);
                }
            }
        }
        self.count -= 1;
        true
    }

    /// Every feed, or those of one handle.
    pub(super) fn feeds(&self, of_handle: Option<&CurrentPrincipal>) -> Vec<Arc<Feed>> {
        let all = self
            .tables
            .values()
            .flat_map(|table| table.by_value.values().flat_map(HashMap::values).flatten().chain(&table.others));
        let is_wanted =
            |feed: &&Arc<Feed>| of_handle.is_none_or(|handle| feed.handle().principal().is_of_same_handle(handle));
        all.filter(is_wanted).cloned().collect()
    }

    /// The key after which the client needs the log.
    pub(super) fn needed_after(&self) -> Option<EntryKey> {
        let head = self.head?;
        let behind = self.feeds(None).into_iter().filter_map(|feed| feed.behind_at()).min();
        Some(behind.map_or(head, |behind| behind.min(head)))
    }

    /// Gives the entries of a page to the live feeds, and moves the pump to its end. Appends whom to wake to `wakes`.
    pub(super) fn dispatch(&mut self, page: &LogPage, incarnation: &str, wakes: &mut Vec<Wake>) {
        let Some(mut before) = self.head else { return };
        for entry in &page.entries {
            if entry.kind == EntryKind::SessionEnded {
                if let Some(session_id) = session_of(entry) {
                    self.end_session(session_id, entry.key, wakes);
                }
            } else if let Some(table) = self.tables.get(&entry.table) {
                let shared = SharedChange::new(entry, incarnation);
                table.for_each_candidate(entry.old.as_deref(), entry.new.as_deref(), |feed| {
                    wakes.extend(feed.offer(&shared, before));
                });
            }
            before = entry.key;
        }
        self.head = Some(page.end.max(before));
    }

    /// The handles whose caller has changed since the pump last looked.
    pub(super) fn changed_handles(&self) -> Vec<Arc<HandleCaller>> {
        let changed = self.handles.iter().filter(|(handle, _)| handle.has_changed());
        changed.map(|(handle, _)| Arc::clone(handle)).collect()
    }

    /// Ends every feed after the changes that it has: the pump has missed some.
    pub(super) fn end_all(&mut self, reason: &Error, wakes: &mut Vec<Wake>) {
        for feed in self.feeds(None) {
            wakes.extend(feed.end_after_batch(Some(reason.clone())));
        }
        // The pump may have missed the end of a session. New feeds begin with the caller that their handle has then.
        self.handles.clear();
        self.sessions.clear();
    }

    fn end_session(&self, session_id: Uuid, key: EntryKey, wakes: &mut Vec<Wake>) {
        for handle in self.sessions.get(&session_id).into_iter().flatten() {
            // The handle can have signed in anew since.
            handle.end_session(session_id, key);
        }
        for feed in self.fixed.get(&session_id).into_iter().flatten() {
            // A feed that is behind reads the entry itself.
            if feed.behind_at().is_none() {
                wakes.extend(feed.end_after_batch(Some(session_ended())));
            }
        }
    }

    /// Notes the sessions that the timeline of a handle names, so that their ends reach it.
    pub(super) fn watch_sessions(&mut self, handle: &Arc<HandleCaller>) {
        for session_id in handle.sessions() {
            let handles = self.sessions.entry(session_id).or_default();
            if !handles.iter().any(|known| Arc::ptr_eq(known, handle)) {
                handles.push(Arc::clone(handle));
            }
        }
    }
}

impl TableFeeds {
    /// The list that a feed belongs to.
    fn list(&mut self, feed: &Feed) -> &mut Vec<Arc<Feed>> {
        match feed.view.filter.equality() {
            Some((column, value)) => self.by_value.entry(column).or_default().entry(value.to_owned()).or_default(),
            None => &mut self.others,
        }
    }

    fn remove(&mut self, feed: &Arc<Feed>) -> bool {
        let list = self.list(feed);
        let Some(index) = list.iter().position(|known| Arc::ptr_eq(known, feed)) else { return false };
        list.swap_remove(index);
        let is_empty = list.is_empty();
        if let Some((column, value)) = feed.view.filter.equality().filter(|_| is_empty)
            && let Some(values) = self.by_value.get_mut(column)
        {
            values.remove(value);
        }
        true
    }

    /// Calls `visit` with each feed whose view can contain the old or the new row.
    fn for_each_candidate(&self, old: Option<&RowImage>, new: Option<&RowImage>, mut visit: impl FnMut(&Arc<Feed>)) {
        let text = |row: Option<&RowImage>, column: &str| {
            row.and_then(|row| row.get(column)).and_then(Json::as_str).map(str::to_owned)
        };
        for (column, feeds) in self.by_value.iter().filter(|(_, feeds)| !feeds.is_empty()) {
            let (before, after) = (text(old, column), text(new, column));
            let moved = before.filter(|before| Some(before) != after.as_ref());
            for value in [moved, after].into_iter().flatten() {
                feeds.get(&value).into_iter().flatten().for_each(&mut visit);
            }
        }
        self.others.iter().for_each(visit);
    }
}

/// Removes a value from the list of a key, and the list if it is empty.
fn remove_from<T>(lists: &mut HashMap<Uuid, Vec<Arc<T>>>, key: &Uuid, value: &Arc<T>) {
    if let hash_map::Entry::Occupied(mut list) = lists.entry(*key) {
        list.get_mut().retain(|known| !Arc::ptr_eq(known, value));
        if list.get().is_empty() {
            list.remove();
        }
    }
}

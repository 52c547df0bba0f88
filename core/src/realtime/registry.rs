//! The subscriptions of a client, and how the log reader finds those that a change concerns.
//!
//! Invariant: the registry's lock guards the log reader's position. The log reader moves only while it holds the lock, and takes
//! the subscriptions of that moment with it. So a subscription which joins under the lock misses nothing and gets nothing twice.
//! The subscriptions are judged under no lock: a filter that takes long holds up nobody who subscribes or unsubscribes.

use std::{
    collections::{HashMap, hash_map},
    hash::Hash,
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    caller::HandleCaller,
    subscription_state::{SubscriptionState, WokenConsumer},
    view::SharedChange,
};
use crate::{
    change_filter::{Equality, Scalar},
    database::{
        CurrentPrincipal,
        change_log::{CursorKey, EntryKey, EntryKind, LogEntry, LogPage, LogPoint, TableSet, session_of},
        session_ended,
    },
    error::Error,
    policy::{Column, RowImage, Table},
};

/// The subscriptions of a client.
#[derive(Default)]
pub(super) struct Registry {
    /// The point up to which every live subscription has its changes; `None` while nobody watches for commits.
    pub(super) head: Option<LogPoint>,
    /// The key after which the log reader gives entries to subscriptions.
    dispatching_after: Option<EntryKey>,
    tables: HashMap<Table, Arc<TableFeeds>>,
    /// The callers of the handles that have subscriptions, with the number of subscriptions.
    handles: Vec<(Arc<HandleCaller>, usize)>,
    /// The handles whose timeline names a session.
    sessions: HashMap<Uuid, Vec<Arc<HandleCaller>>>,
    /// The subscriptions that end with a session.
    fixed: HashMap<Uuid, Vec<Arc<SubscriptionState>>>,
    /// No access token of the subscriptions in `fixed` expires before this time.
    next_expiry: Option<Timestamp>,
    count: usize,
    /// How often every subscription was ended. `handles` counts the subscriptions that were added since.
    ends: u64,
}

/// A page on its way to the subscriptions that were live when the log reader moved to its end.
pub(super) struct Dispatch {
    tables: HashMap<Table, Arc<TableFeeds>>,
    /// The point before the page.
    before: LogPoint,
}

/// The subscriptions of one table. A change while the log reader uses them makes a copy.
#[derive(Default, Clone)]
struct TableFeeds {
    /// The subscriptions whose filters demand one value of a column.
    by_value: Vec<ColumnFeeds>,
    others: Vec<Arc<SubscriptionState>>,
}

/// The subscriptions whose filters demand one value of a column, by that value.
#[derive(Clone)]
struct ColumnFeeds {
    column: Column,
    subscriptions: HashMap<Scalar<'static>, Vec<Arc<SubscriptionState>>>,
}

impl Registry {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The caller of a handle, from which its subscriptions learn of changes.
    pub(super) fn handle_caller(&self, principal: &CurrentPrincipal) -> Option<Arc<HandleCaller>> {
        let found = self.handles.iter().find(|(handle, _)| handle.principal().is_of_same_handle(principal));
        found.map(|(handle, _)| Arc::clone(handle))
    }

    /// Adds a subscription. The log reader is at `head`.
    pub(super) fn add(&mut self, subscription: &Arc<SubscriptionState>, head: EntryKey) {
        Arc::make_mut(self.tables.entry(subscription.view.table).or_default()).add(subscription);
        subscription.note_ends(self.ends);
        if let Some(handle) = subscription.handle() {
            match self.handles.iter_mut().find(|(known, _)| Arc::ptr_eq(known, handle)) {
                Some((_, count)) => *count += 1,
                None => self.handles.push((Arc::clone(handle), 1)),
            }
            self.watch_sessions(handle);
        }
        if let Some(session_id) = subscription.fixed_session() {
            self.fixed.entry(session_id).or_default().push(Arc::clone(subscription));
            self.next_expiry = earlier_of(self.next_expiry, subscription.expires_at());
        }
        self.count += 1;
        subscription.go_live(head);
    }

    /// Removes a subscription. Returns false if it was removed before.
    pub(super) fn remove(&mut self, subscription: &Arc<SubscriptionState>) -> bool {
        let Some(table) = self.tables.get_mut(&subscription.view.table) else { return false };
        if !Arc::make_mut(table).remove(subscription) {
            return false;
        }
        if let Some(session_id) = subscription.fixed_session() {
            remove_from(&mut self.fixed, &session_id, subscription);
        }
        if let Some(handle) = subscription.handle()
            && subscription.was_added_after(self.ends)
            && let Some(index) = self.handles.iter().position(|(known, _)| Arc::ptr_eq(known, handle))
        {
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

    /// Every subscription, or every one of a handle.
    pub(super) fn subscriptions(&self, of_handle: Option<&CurrentPrincipal>) -> Vec<Arc<SubscriptionState>> {
        let all = self.tables.values().flat_map(|table| {
            table.by_value.iter().flat_map(|by| by.subscriptions.values()).flatten().chain(&table.others)
        });
        let is_wanted = |subscription: &&Arc<SubscriptionState>| {
            of_handle.is_none_or(|handle| subscription.principal().is_of_same_handle(handle))
        };
        all.filter(is_wanted).cloned().collect()
    }

    /// The tables that have subscriptions.
    pub(super) fn tables(&self) -> TableSet {
        self.tables.iter().filter(|(_, subscriptions)| !subscriptions.is_empty()).map(|(table, _)| *table).collect()
    }

    /// The key after which the client needs the log.
    pub(super) fn needed_after(&self) -> Option<EntryKey> {
        let head = self.head?.after;
        let behind = self.subscriptions(None).into_iter().filter_map(|subscription| subscription.behind_at()).min();
        behind.into_iter().chain(self.dispatching_after).chain([head]).min()
    }

    /// Moves the log reader to the end of a page. The caller then runs the dispatch under no lock, and calls `end_dispatch`.
    pub(super) fn begin_dispatch(&mut self, page: &LogPage) -> Option<Dispatch> {
        let before = self.head?;
        let last = page.entries.last().map_or(before, LogEntry::point);
        self.head = Some(page.end.max(last));
        self.dispatching_after = Some(before.after);
        Some(Dispatch { tables: self.tables.clone(), before })
    }

    pub(super) fn end_dispatch(&mut self) {
        self.dispatching_after = None;
    }

    /// The handles whose caller has changed since the log reader last looked.
    pub(super) fn changed_handles(&self) -> Vec<Arc<HandleCaller>> {
        let changed = self.handles.iter().filter(|(handle, _)| handle.has_changed());
        changed.map(|(handle, _)| Arc::clone(handle)).collect()
    }

    /// Ends every subscription after the changes that it has: the log reader has missed some.
    pub(super) fn end_all(&mut self, reason: &Error, wakes: &mut Vec<WokenConsumer>) {
        for subscription in self.subscriptions(None) {
            wakes.extend(subscription.end_after_batch(Some(reason.clone())));
        }
        self.ends += 1;
        // The log reader may have missed the end of a session. New subscriptions begin with the caller that their handle has then.
        self.handles.clear();
        self.sessions.clear();
    }

    /// The subscriptions that end with one of these sessions.
    pub(super) fn subscriptions_of_sessions(
        &self,
        sessions: impl IntoIterator<Item = Uuid>,
    ) -> Vec<Arc<SubscriptionState>> {
        let of_session = |session_id| self.fixed.get(&session_id).into_iter().flatten().cloned();
        sessions.into_iter().flat_map(of_session).collect()
    }

    /// Whether a subscription ends with a session.
    pub(super) fn has_sessions(&self) -> bool {
        !self.fixed.is_empty()
    }

    /// Ends the subscriptions with an access token that has expired.
    pub(super) fn end_expired(&mut self, now: Timestamp, wakes: &mut Vec<WokenConsumer>) {
        if self.next_expiry.is_none_or(|expiry| now < expiry) {
            return;
        }
        let subscriptions = || self.fixed.values().flatten();
        wakes.extend(subscriptions().filter_map(|subscription| subscription.end_if_expired(now)));
        // A handle may have got new tokens since.
        self.next_expiry =
            subscriptions().fold(None, |expiry, subscription| earlier_of(expiry, subscription.expires_at()));
    }

    fn end_session(&self, session_id: Uuid, key: EntryKey, wakes: &mut Vec<WokenConsumer>) {
        for handle in self.sessions.get(&session_id).into_iter().flatten() {
            // The handle can have signed in anew since.
            handle.end_session(session_id, key);
        }
        for subscription in self.fixed.get(&session_id).into_iter().flatten() {
            // A subscription that is behind reads the entry itself.
            if subscription.behind_at().is_none() {
                wakes.extend(subscription.end_after_batch(Some(session_ended())));
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

impl Dispatch {
    /// Gives the entries of the page to the subscriptions. Appends whom to wake to `wakes`.
    pub(super) fn run(
        mut self,
        page: &LogPage,
        cursors: &CursorKey,
        registry: &Mutex<Registry>,
        wakes: &mut Vec<WokenConsumer>,
    ) {
        for entry in &page.entries {
            if entry.kind == EntryKind::SessionEnded {
                if let Some(session_id) = session_of(entry) {
                    registry.lock().end_session(session_id, entry.key, wakes);
                }
            } else if let Some(table) = self.tables.get(&entry.table)
                && let Some(shared) = SharedChange::new(entry, cursors)
            {
                let before = self.before;
                let [old, new] = shared.judged();
                table.for_each_candidate(old, new, |subscription| wakes.extend(subscription.offer(&shared, before)));
            }
            self.before = entry.point();
        }
    }
}

impl TableFeeds {
    fn add(&mut self, subscription: &Arc<SubscriptionState>) {
        let list = match subscription.view.filter.equality() {
            Some(Equality { column, value }) => {
                let index = self.by_value.iter().position(|by| by.column == *column).unwrap_or_else(|| {
                    self.by_value.push(ColumnFeeds { column: *column, subscriptions: HashMap::new() });
                    self.by_value.len() - 1
                });
                self.by_value[index].subscriptions.entry(value.clone()).or_default()
            }
            None => &mut self.others,
        };
        list.push(Arc::clone(subscription));
    }

    fn is_empty(&self) -> bool {
        self.others.is_empty() && self.by_value.iter().all(|by| by.subscriptions.is_empty())
    }

    /// Removes a subscription. Returns false if it is not there.
    fn remove(&mut self, subscription: &Arc<SubscriptionState>) -> bool {
        match subscription.view.filter.equality() {
            Some(Equality { column, value }) => self
                .by_value
                .iter_mut()
                .find(|by| by.column == *column)
                .is_some_and(|by| remove_from(&mut by.subscriptions, value, subscription)),
            None => remove_one(&mut self.others, subscription),
        }
    }

    /// Calls `visit` with each subscription whose view can contain the old or the new row.
    fn for_each_candidate(
        &self,
        old: Option<&RowImage>,
        new: Option<&RowImage>,
        mut visit: impl FnMut(&Arc<SubscriptionState>),
    ) {
        for ColumnFeeds { column, subscriptions } in self.by_value.iter().filter(|by| !by.subscriptions.is_empty()) {
            if [old, new].into_iter().flatten().any(|row| !row.contains_key(column.name)) {
                // An erased row does not say what the column held.
                subscriptions.values().flatten().for_each(&mut visit);
                continue;
            }
            let (before, after) = (value_of(column, old), value_of(column, new));
            let moved = before.filter(|before| Some(before) != after.as_ref());
            for value in [moved, after].into_iter().flatten() {
                subscriptions.get(&value).into_iter().flatten().for_each(&mut visit);
            }
        }
        self.others.iter().for_each(visit);
    }
}

/// The earlier of two times.
fn earlier_of(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

/// The value of a column in a row.
fn value_of<'a>(column: &Column, row: Option<&'a RowImage>) -> Option<Scalar<'a>> {
    Scalar::of_image(column.column_type, row?.get(column.name)?)
}

/// Removes a value from the list of a key, and the list if it is empty. Returns false if the value is not there.
fn remove_from<K: Eq + Hash + Clone, T>(lists: &mut HashMap<K, Vec<Arc<T>>>, key: &K, value: &Arc<T>) -> bool {
    let hash_map::Entry::Occupied(mut list) = lists.entry(key.clone()) else { return false };
    let is_there = remove_one(list.get_mut(), value);
    if list.get().is_empty() {
        list.remove();
    }
    is_there
}

/// Removes a value from a list. Returns false if it is not there.
fn remove_one<T>(list: &mut Vec<Arc<T>>, value: &Arc<T>) -> bool {
    let Some(index) = list.iter().position(|known| Arc::ptr_eq(known, value)) else { return false };
    list.swap_remove(index);
    true
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::{
        database::{
            Credential, Principal,
            change_log::{LogPoint, capture_is_off},
        },
        policy::Caller,
        realtime::{subscription_state::SubscriptionCaller, view::View},
    };

    #[test]
    fn a_subscription_that_ended_with_all_others_leaves_the_handle_of_later_ones() {
        let session_id = Uuid::from_u128(1);
        let user = Principal::User(Credential {
            user_id: Uuid::from_u128(2),
            session_id,
            access_hash: String::new(),
            expires_at: Timestamp::MAX,
        });
        let principal = CurrentPrincipal::new(user, Arc::new(AtomicBool::new(false)));
        let handle = Arc::new(HandleCaller::new(principal.clone()));
        let subscription = || {
            let view = View::new("public", "spaces", Caller::Anonymous, None, "").expect("a view");
            let handle = Arc::clone(&handle);
            let caller = SubscriptionCaller::Handle { handle, began_at: EntryKey::START, began_as: Caller::Anonymous };
            Arc::new(SubscriptionState::new(view, caller, LogPoint::default().into(), None))
        };
        let (old, new) = (subscription(), subscription());
        let mut registry = Registry::default();
        registry.add(&old, EntryKey::START);
        registry.end_all(&capture_is_off(), &mut Vec::new());
        registry.add(&new, EntryKey::START);
        assert!(registry.remove(&old) && !registry.remove(&old));
        assert!(registry.handle_caller(&principal).is_some() && registry.sessions.contains_key(&session_id));
        assert!(registry.remove(&new));
        assert!(registry.handles.is_empty() && registry.sessions.is_empty() && registry.len() == 0);
    }
}

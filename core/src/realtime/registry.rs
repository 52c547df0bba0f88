//! The subscriptions of a lane, and the position of its log reader.
//!
//! Invariant: the registry's lock guards the log reader's position. The log reader moves only while it holds the lock, and takes
//! the subscriptions of that moment with it. So a subscription which joins under the lock misses nothing and gets nothing twice.
//! The subscriptions are judged under no lock: a filter that takes long holds up nobody who subscribes or unsubscribes.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use super::{
    caller::CallerTimeline,
    subscription_index::{TableSubscriptions, remove_from},
    subscription_state::{SubscriptionState, WokenConsumer},
    view::SharedChange,
};
use crate::{
    database::{
        CurrentPrincipal,
        change_log::{CursorKey, EntryKey, EntryKind, LogEnd, LogEntry, LogPage, LogPoint, TableSet, session_of},
        session_ended,
    },
    error::Error,
    policy::Table,
};

/// The subscriptions of a lane.
#[derive(Default)]
pub(super) struct Registry {
    /// The point up to which every live subscription has its changes; `None` while nobody watches for commits.
    pub(super) head: Option<LogPoint>,
    /// The key after which the log reader gives entries to subscriptions.
    dispatching_after: Option<EntryKey>,
    /// A change while the log reader uses the subscriptions of a table makes a copy.
    tables: HashMap<Table, Arc<TableSubscriptions>>,
    /// The subscriptions that wait until the log reader has reached them.
    ahead: Vec<Weak<SubscriptionState>>,
    /// The subscriptions with a position at which they end.
    ending: Vec<Arc<SubscriptionState>>,
    /// The timelines of the handles that subscriptions follow. The subscriptions own them.
    timelines: Vec<Weak<CallerTimeline>>,
    /// The subscriptions that end with a session.
    by_session: HashMap<Uuid, Vec<Arc<SubscriptionState>>>,
    /// No access token of the subscriptions in `by_session` expires before this time.
    next_expiry: Option<Timestamp>,
    count: usize,
}

/// A page on its way to the subscriptions that were live when the log reader moved to its end.
pub(super) struct Dispatch {
    tables: HashMap<Table, Arc<TableSubscriptions>>,
    /// The point before the page.
    before: LogPoint,
}

impl Registry {
    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn live_timelines(&self) -> impl Iterator<Item = Arc<CallerTimeline>> {
        self.timelines.iter().filter_map(Weak::upgrade)
    }

    /// The timeline of a handle, from which its subscriptions learn of changes.
    pub(super) fn timeline_of(&self, handle: &CurrentPrincipal) -> Option<Arc<CallerTimeline>> {
        self.live_timelines().find(|timeline| timeline.principal().is_of_same_handle(handle))
    }

    /// Adds a subscription. The log reader is at `head`. Returns the consumer if it is to be woken.
    pub(super) fn add(&mut self, subscription: &Arc<SubscriptionState>, head: LogPoint) -> Option<WokenConsumer> {
        Arc::make_mut(self.tables.entry(subscription.view.table).or_default()).add(subscription);
        if let Some(timeline) = subscription.timeline() {
            self.timelines.retain(|known| known.strong_count() > 0 && !known.ptr_eq(&Arc::downgrade(timeline)));
            self.timelines.push(Arc::downgrade(timeline));
        }
        if let Some(session_id) = subscription.fixed_session() {
            self.by_session.entry(session_id).or_default().push(Arc::clone(subscription));
            self.next_expiry = earlier_of(self.next_expiry, subscription.expires_at());
        }
        if subscription.has_end() {
            self.ending.push(Arc::clone(subscription));
        }
        self.count += 1;
        self.join(subscription, head)
    }

    /// Lets a subscription join the log reader, which is at `head`. Returns the consumer if it is to be woken.
    pub(super) fn join(&mut self, subscription: &Arc<SubscriptionState>, head: LogPoint) -> Option<WokenConsumer> {
        if subscription.join(head) {
            if self.ahead.len() == self.ahead.capacity() {
                self.ahead.retain(|subscription| subscription.strong_count() > 0);
            }
            self.ahead.push(Arc::downgrade(subscription));
        }
        // While the log reader gives a page to the subscriptions, its head is already at the end of the page.
        subscription.end_if_reached(self.dispatching_after.unwrap_or(head.after))
    }

    /// Removes a subscription. Returns false if it was removed before.
    pub(super) fn remove(&mut self, subscription: &Arc<SubscriptionState>) -> bool {
        let Some(table) = self.tables.get_mut(&subscription.view.table) else { return false };
        if !Arc::make_mut(table).remove(subscription) {
            return false;
        }
        if let Some(session_id) = subscription.fixed_session() {
            remove_from(&mut self.by_session, &session_id, subscription);
        }
        self.ending.retain(|ending| !Arc::ptr_eq(ending, subscription));
        self.count -= 1;
        true
    }

    /// Every subscription, or every one of a handle.
    pub(super) fn subscriptions(&self, of_handle: Option<&CurrentPrincipal>) -> Vec<Arc<SubscriptionState>> {
        let is_wanted = |subscription: &&Arc<SubscriptionState>| {
            of_handle.is_none_or(|handle| subscription.handle.is_of_same_handle(handle))
        };
        self.tables.values().flat_map(|table| table.iter()).filter(is_wanted).cloned().collect()
    }

    /// The tables that have subscriptions.
    pub(super) fn tables(&self) -> TableSet {
        self.tables.iter().filter(|(_, subscriptions)| !subscriptions.is_empty()).map(|(table, _)| *table).collect()
    }

    /// The key after which the client needs the log.
    pub(super) fn needed_after(&self) -> Option<EntryKey> {
        let head = self.head?.after;
        let subscriptions = self.tables.values().flat_map(|table| table.iter());
        let own = subscriptions.filter_map(|subscription| subscription.own_position());
        own.map(|position| position.needed_after()).chain(self.dispatching_after).chain([head]).min()
    }

    /// Ends the subscriptions that need an entry up to the id `pruned`, which the log no longer has.
    pub(super) fn end_pruned(&self, pruned: i64) -> Vec<WokenConsumer> {
        let subscriptions = self.tables.values().flat_map(|table| table.iter());
        subscriptions.filter_map(|subscription| subscription.end_if_pruned(pruned)).collect()
    }

    /// Moves the log reader to the end of a page. The caller then runs the dispatch under no lock, and calls `end_dispatch`.
    pub(super) fn begin_dispatch(&mut self, page: &LogPage) -> Option<Dispatch> {
        let before = self.head?;
        let last = page.entries.last().map_or(before, LogEntry::point);
        self.head = Some(page.end.max(last));
        self.dispatching_after = Some(before.after);
        Some(Dispatch { tables: self.tables.clone(), before })
    }

    /// Ends a dispatch: see `end_waits`.
    pub(super) fn end_dispatch(&mut self, end: Option<LogEnd>, woken: &mut Vec<WokenConsumer>) {
        self.dispatching_after = None;
        self.end_waits(end, woken);
    }

    /// Whether a subscription waits for the log reader to reach its start or its end.
    pub(super) fn has_waiting(&self) -> bool {
        !self.ahead.is_empty() || self.ending.iter().any(|subscription| subscription.awaits_reader())
    }

    /// Ends the waits for what the log reader has reached. Appends the consumers to wake to `woken`. With `end`, how far the log was
    /// before the log reader read its last page, moves the log reader to the end first.
    pub(super) fn end_waits(&mut self, end: Option<LogEnd>, woken: &mut Vec<WokenConsumer>) {
        let Some(head) = &mut self.head else { return };
        if let Some(end) = end {
            // The ids in between are of transactions that were rolled back. Should the end be of a history that a failover has
            // replaced, then the next entry up to it is not the one that the point stands on, and the next read fails.
            head.after = head.after.max(end.settled);
        }
        let (head, last_id) = (*head, end.map(|end| end.last_id));
        let still_waits = |subscription: &Weak<SubscriptionState>| {
            subscription.upgrade().is_some_and(|subscription| subscription.still_waits(head, last_id, woken))
        };
        self.ahead.retain(still_waits);
        woken.extend(self.ending.iter().filter_map(|subscription| subscription.end_if_reached(head.after)));
    }

    /// The timelines of the handles that have got another caller since the log reader last looked.
    pub(super) fn changed_timelines(&self) -> Vec<Arc<CallerTimeline>> {
        self.live_timelines().filter(|timeline| timeline.has_changed()).collect()
    }

    /// Ends every subscription after the changes that it has: the log reader has missed some.
    pub(super) fn end_all(&mut self, reason: &Error) -> Vec<WokenConsumer> {
        // The log reader may have missed the end of a session. New subscriptions begin with the caller that their handle has then.
        self.timelines.clear();
        let subscriptions = self.subscriptions(None);
        subscriptions.iter().filter_map(|subscription| subscription.end_after_batch(Some(reason.clone()))).collect()
    }

    /// The subscriptions that end with one of these sessions.
    pub(super) fn subscriptions_of_sessions(
        &self,
        sessions: impl IntoIterator<Item = Uuid>,
    ) -> Vec<Arc<SubscriptionState>> {
        let of_session = |session_id| self.by_session.get(&session_id).into_iter().flatten().cloned();
        sessions.into_iter().flat_map(of_session).collect()
    }

    /// Whether a subscription ends with a session.
    pub(super) fn has_sessions(&self) -> bool {
        !self.by_session.is_empty()
    }

    /// Ends the subscriptions with an access token that has expired.
    pub(super) fn end_expired(&mut self, now: Timestamp) -> Vec<WokenConsumer> {
        if self.next_expiry.is_none_or(|expiry| now < expiry) {
            return Vec::new();
        }
        let subscriptions = || self.by_session.values().flatten();
        let woken = subscriptions().filter_map(|subscription| subscription.end_if_expired(now)).collect();
        // A handle may have got new tokens since.
        self.next_expiry =
            subscriptions().fold(None, |expiry, subscription| earlier_of(expiry, subscription.expires_at()));
        woken
    }

    fn end_session(&self, session_id: Uuid, key: EntryKey, woken: &mut Vec<WokenConsumer>) {
        // A handle can have signed in anew since.
        self.live_timelines().for_each(|timeline| timeline.end_session(session_id, key));
        for subscription in self.by_session.get(&session_id).into_iter().flatten() {
            // A subscription that reads the log finds the entry itself, after those that its caller may see.
            if !subscription.read_log_unless_live(woken) {
                woken.extend(subscription.end_after_batch(Some(session_ended())));
            }
        }
    }
}

impl Dispatch {
    /// Gives the entries of the page to the subscriptions. Appends the consumers to wake to `woken`.
    pub(super) fn run(
        mut self,
        page: &LogPage,
        cursors: &CursorKey,
        registry: &Mutex<Registry>,
        woken: &mut Vec<WokenConsumer>,
    ) {
        for entry in &page.entries {
            if entry.kind == EntryKind::SessionEnded {
                if let Some(session_id) = session_of(entry) {
                    registry.lock().end_session(session_id, entry.key, woken);
                }
            } else if let Some(table) = self.tables.get(&entry.table)
                && let Some(shared) = SharedChange::new(entry, cursors)
            {
                let before = self.before;
                let [old, new] = shared.judged();
                table.for_each_candidate(old, new, |subscription| woken.extend(subscription.offer(&shared, before)));
            }
            self.before = entry.point();
        }
    }
}

/// The earlier of two times.
fn earlier_of(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::{
        database::{
            Credential, Principal,
            change_log::{EntryProof, LogPoint, LoggedRow, Position, Snapshot, capture_is_off},
        },
        policy::Caller,
        realtime::{
            caller::SessionCaller,
            subscription_state::{FollowedHandle, NextForConsumer},
            view::View,
        },
    };

    fn point(id: i64) -> LogPoint {
        let stands_on = EntryProof { id, transaction: 1, mark: id };
        LogPoint { after: EntryKey { id, transaction: 1 }, stands_on }
    }

    /// A page that ends at the id `end`, with new spaces.
    fn page(ids: impl IntoIterator<Item = i64>, end: i64) -> LogPage {
        let entry = |id| LogEntry {
            key: point(id).after,
            proof: point(id).stands_on,
            table: Table::Spaces,
            kind: EntryKind::Insert,
            old: None,
            new: Some(Arc::new(LoggedRow::new(Table::Spaces, format!(r#"{{"id":"{id}","is_public":true}}"#)))),
            old_context: None,
            new_context: None,
            at: Timestamp::UNIX_EPOCH,
        };
        let entries: Vec<_> = ids.into_iter().map(entry).collect();
        LogPage { count: entries.len(), entries, end: point(end), first_at: None, is_last: false }
    }

    /// A subscription of the service to the changes of spaces.
    fn of_service(position: Position) -> SubscriptionState {
        let view = View::new("public", "spaces", Caller::Service, None, "").expect("a view");
        let principal = CurrentPrincipal::new(Principal::Service, Arc::default());
        SubscriptionState::new(view, principal, SessionCaller::of(&Principal::Service), None, position, None)
    }

    /// Gives a page to the subscriptions. `during` runs when the log reader has moved to its end.
    fn dispatch(registry: &Mutex<Registry>, page: &LogPage, during: impl FnOnce(&mut Registry)) {
        let dispatch = registry.lock().begin_dispatch(page).expect("the log reader runs");
        during(&mut registry.lock());
        dispatch.run(page, &CursorKey::new("", ""), registry, &mut Vec::new());
        registry.lock().end_dispatch(None, &mut Vec::new());
    }

    #[test]
    fn a_subscription_approved_during_a_dispatch_gets_its_changes_before_it_ends() {
        let registry = Mutex::new(Registry { head: Some(point(0)), ..Registry::default() });
        let subscription = Arc::new(of_service(point(1).into()).ending_at(Some(point(3).into())));
        registry.lock().add(&subscription, point(0));
        dispatch(&registry, &page([1], 2), |_| ());
        assert!(subscription.is_unchecked());
        dispatch(&registry, &page([3], 3), |registry| {
            subscription.approve();
            registry.join(&subscription, point(3));
        });
        let NextForConsumer::Change(change) = subscription.take(None) else { panic!("a change comes first") };
        assert_eq!(change.new.and_then(|row| row["id"].as_str().map(str::to_owned)).as_deref(), Some("3"));
        assert!(matches!(subscription.take(None), NextForConsumer::Ended(None)));
    }

    #[test]
    fn a_subscription_that_is_ahead_again_is_listed_once() {
        let registry = Mutex::new(Registry { head: Some(point(0)), ..Registry::default() });
        // A transaction was open, and entries up to the id 1,000 were there.
        let seen =
            Snapshot { xmin: 1, xmax: 1, running: Vec::new(), last_id: 1_000, settled: 0, entries: String::new() };
        let seen = Some(Arc::new(seen));
        let subscription = Arc::new(of_service(Position { seen: seen.clone(), ..point(0).into() }));
        registry.lock().add(&subscription, point(0));
        // One more than a subscription keeps: its consumer reads the page, and is done before the log reader.
        let page = page(1..=65, 65);
        let dispatch = registry.lock().begin_dispatch(&page).expect("the log reader runs");
        dispatch.run(&page, &CursorKey::new("", ""), &registry, &mut Vec::new());
        subscription.add_read(Vec::new(), Position { seen, ..point(65).into() }, None);
        registry.lock().join(&subscription, point(65));
        registry.lock().end_dispatch(None, &mut Vec::new());
        assert_eq!(registry.lock().ahead.len(), 1);
    }

    #[test]
    fn a_subscription_that_ended_with_all_others_leaves_the_handle_of_later_ones() {
        let session_id = Uuid::from_u128(1);
        let user = Principal::User(Credential {
            user_id: Uuid::from_u128(2),
            session_id,
            access_hash: String::new(),
            expires_at: Timestamp::MAX,
        });
        let principal = CurrentPrincipal::new(user, Arc::default());
        let timeline = Arc::new(CallerTimeline::new(principal.clone()));
        let subscription = |timeline: &Arc<CallerTimeline>| {
            let view = View::new("public", "spaces", Caller::Anonymous, None, "").expect("a view");
            let follows = FollowedHandle { timeline: Arc::clone(timeline), after: EntryKey::START };
            let began_as = SessionCaller::of(&Principal::Anonymous);
            let position = LogPoint::default().into();
            Arc::new(SubscriptionState::new(view, principal.clone(), began_as, Some(follows), position, None))
        };
        let (old, new) = (subscription(&timeline), subscription(&timeline));
        drop(timeline);
        let mut registry = Registry::default();
        registry.add(&old, LogPoint::default());
        registry.end_all(&capture_is_off());
        registry.add(&new, LogPoint::default());
        assert!(registry.remove(&old) && !registry.remove(&old));
        drop(old);
        assert!(registry.timeline_of(&principal).is_some());
        assert!(registry.remove(&new));
        drop(new);
        assert!(registry.timeline_of(&principal).is_none() && registry.len() == 0);
    }
}

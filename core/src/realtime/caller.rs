//! The callers of subscriptions, by position in the log. Policies judge each entry for one caller.
//!
//! - [`Caller`] is anonymous, a user or the service. Policies know nothing else.
//! - [`Principal`] is a caller with its proof, a session's token; [`CurrentPrincipal`] is the principal of a handle, which
//!   sign-in replaces.
//! - [`SessionCaller`] is a caller with its session. When the session ends, the caller is anonymous.
//! - [`CallerTimeline`] has the callers of one handle, each with the key of the log after which it counts.
//!
//! Invariant: a sign-in and the end of a session take effect at their entries in the log, however late the log is read. If
//! the log has no such entry after the log reader, the change of caller takes effect at the log reader, at once. A session that has
//! ended never counts again.

use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    database::{
        CurrentPrincipal, Principal,
        change_log::{EntryKey, SessionEntries},
    },
    policy::Caller,
};

/// The most changes of caller that a handle remembers, for subscriptions that have fallen behind.
const MAX_CHANGES: usize = 1_024;

/// The caller of a handle with subscriptions, at every position of the log.
pub(super) struct CallerTimeline {
    principal: CurrentPrincipal,
    callers: Mutex<SeenCallers>,
}

struct SeenCallers {
    /// The handle's principal when it was last looked at.
    last_seen: Arc<Principal>,
    /// Each caller with the key after which it counts, in the order of keys. The last keys may be after the log reader. Never
    /// empty.
    callers: Vec<(EntryKey, SessionCaller)>,
}

/// A caller with its session. When the session ends, the caller is anonymous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionCaller {
    pub(super) caller: Caller,
    pub(super) session_id: Option<Uuid>,
}

impl SessionCaller {
    const ANONYMOUS: SessionCaller = SessionCaller { caller: Caller::Anonymous, session_id: None };

    pub(super) fn of(principal: &Principal) -> SessionCaller {
        let session_id = match principal {
            Principal::User(credential) => Some(credential.session_id),
            Principal::Anonymous | Principal::Vouched(_) | Principal::Service => None,
        };
        SessionCaller { caller: principal.caller(), session_id }
    }
}

impl CallerTimeline {
    pub(super) fn new(principal: CurrentPrincipal) -> CallerTimeline {
        let last_seen = principal.principal();
        let callers = vec![(EntryKey::START, SessionCaller::of(&last_seen))];
        CallerTimeline { principal, callers: Mutex::new(SeenCallers { last_seen, callers }) }
    }

    pub(super) fn principal(&self) -> &CurrentPrincipal {
        &self.principal
    }

    /// The caller for the entry with this key.
    pub(super) fn at(&self, key: EntryKey) -> Caller {
        self.callers.lock().at(key).caller
    }

    /// Whether the handle's principal is another one than when it was last looked at.
    pub(super) fn has_changed(&self) -> bool {
        !Arc::ptr_eq(&self.principal.principal(), &self.callers.lock().last_seen)
    }

    /// Takes over the principals that the handle got since it was last looked at. Each of them counts, also one that another
    /// has replaced by now: the log is read later than it is written. The log reader is at `head`. `find` finds the entries of a
    /// session after `head`.
    ///
    /// # Errors
    /// Those of `find`. The next call continues where this one failed.
    pub(super) fn follow<E>(
        &self,
        head: EntryKey,
        mut find: impl FnMut(Uuid) -> Result<SessionEntries, E>,
    ) -> Result<(), E> {
        let known = Arc::clone(&self.callers.lock().last_seen);
        for principal in self.principal.set_since(&known) {
            let (current, new) = (self.callers.lock().last(), SessionCaller::of(&principal));
            let mut changes = Vec::new();
            if new != current {
                let mut entries_of = |caller: SessionCaller| caller.session_id.map(&mut find).transpose();
                let (old_session, new_session) = (entries_of(current)?, entries_of(new)?);
                if let Some(session) = old_session
                    && (new == SessionCaller::ANONYMOUS || !session.exists)
                {
                    changes.push((session.ended.unwrap_or(head), SessionCaller::ANONYMOUS));
                }
                if new_session.is_none_or(|session| session.exists || session.ended.is_some()) {
                    changes.push((new_session.and_then(|session| session.started).unwrap_or(head), new));
                }
            }
            let mut timeline = self.callers.lock();
            changes.into_iter().for_each(|(key, caller)| timeline.push(key, caller));
            timeline.last_seen = principal;
        }
        Ok(())
    }

    /// The caller is anonymous after `key`, the end of the session, if the session is its own.
    pub(super) fn end_session(&self, session_id: Uuid, key: EntryKey) {
        self.callers.lock().end_session(session_id, key);
    }
}

impl SeenCallers {
    fn last(&self) -> SessionCaller {
        self.callers.last().map_or(SessionCaller::ANONYMOUS, |(_, caller)| *caller)
    }

    fn at(&self, key: EntryKey) -> SessionCaller {
        let counts = self.callers.iter().rev().find(|(after, _)| after.counts_for(key));
        counts.or(self.callers.first()).map_or(SessionCaller::ANONYMOUS, |(_, caller)| *caller)
    }

    /// Adds a change of caller, not before the changes that the timeline has.
    fn push(&mut self, key: EntryKey, caller: SessionCaller) {
        let (newest, last) = self.callers.last().copied().unwrap_or((EntryKey::START, SessionCaller::ANONYMOUS));
        if caller != last {
            self.insert(self.callers.len(), key.max(newest), caller);
        }
    }

    fn end_session(&mut self, session_id: Uuid, key: EntryKey) {
        let is_of_session = |(_, caller): &(EntryKey, SessionCaller)| caller.session_id == Some(session_id);
        let Some(index) = self.callers.iter().rposition(is_of_session) else { return };
        if self.callers.get(index + 1).is_none_or(|(next, _)| *next > key) {
            self.insert(index + 1, key.max(self.callers[index].0), SessionCaller::ANONYMOUS);
        }
    }

    fn insert(&mut self, index: usize, key: EntryKey, caller: SessionCaller) {
        self.callers.insert(index, (key, caller));
        if self.callers.len() > MAX_CHANGES {
            self.callers.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::database::Credential;

    fn key(id: i64) -> EntryKey {
        EntryKey { transaction: 0, id }
    }

    /// A user with one session.
    fn user(number: u128) -> Principal {
        Principal::User(Credential {
            user_id: Uuid::from_u128(number),
            session_id: session(number),
            access_hash: String::new(),
            expires_at: jiff::Timestamp::MAX,
        })
    }

    fn session(number: u128) -> Uuid {
        Uuid::from_u128(100 + number)
    }

    fn handle(principal: Principal) -> CallerTimeline {
        CallerTimeline::new(CurrentPrincipal::new(principal, Arc::default()))
    }

    /// The entries of a session that began and ended at these ids.
    fn entries(started: Option<i64>, ended: Option<i64>) -> SessionEntries {
        SessionEntries { started: started.map(key), ended: ended.map(key), exists: ended.is_none() }
    }

    /// Follows the principals of the handle while the log reader is at `head` and the log after it has these entries.
    fn follow(handle: &CallerTimeline, head: i64, log: &[(u128, SessionEntries)]) {
        let log: HashMap<Uuid, SessionEntries> = log.iter().map(|(user, found)| (session(*user), *found)).collect();
        let found =
            handle.follow(key(head), |session_id| Ok::<_, ()>(log.get(&session_id).copied().unwrap_or_default()));
        found.expect("found");
    }

    /// The user at each id; 0 is anonymous.
    fn users(handle: &CallerTimeline, ids: impl IntoIterator<Item = i64>) -> Vec<u128> {
        ids.into_iter().map(|id| handle.at(key(id)).id().map_or(0, |id| id.as_u128())).collect()
    }

    #[test]
    fn the_end_of_a_session_counts_after_its_entry() {
        let handle = handle(user(1));
        handle.end_session(session(1), key(7));
        assert_eq!(users(&handle, 5..10), [1, 1, 1, 0, 0]);
    }

    #[test]
    fn the_end_of_a_session_does_not_count_for_its_own_transaction() {
        let handle = handle(user(1));
        let of = |transaction, id| EntryKey { transaction, id };
        handle.end_session(session(1), of(4, 7));
        let callers = [of(4, 6), of(4, 8), of(5, 9), of(4, 10)].map(|key| handle.at(key).id().is_some());
        assert_eq!(callers, [true, true, false, true]);
    }

    #[test]
    fn sessions_that_are_read_late_count_from_their_entries_to_their_ends() {
        let handle = handle(Principal::Anonymous);
        for principal in [user(1), Principal::Anonymous, user(2)] {
            handle.principal.set(principal);
        }
        // The log reader is more than a page before the entries.
        follow(&handle, 1, &[(1, entries(Some(300), Some(600))), (2, entries(Some(900), None))]);
        assert_eq!(users(&handle, [2, 300, 301, 600, 601, 900, 901]), [0, 0, 1, 1, 0, 0, 2]);
        // The log reader reads the end of the first session when the second one counts already.
        handle.end_session(session(1), key(600));
        assert_eq!(users(&handle, [600, 601, 901]), [1, 0, 2]);
    }

    #[test]
    fn a_session_that_replaces_another_one_ends_it_at_its_entry() {
        let handle = handle(user(1));
        handle.principal.set(user(2));
        follow(&handle, 1, &[(1, entries(None, Some(5))), (2, entries(Some(8), None))]);
        assert_eq!(users(&handle, [5, 6, 8, 9]), [1, 0, 0, 2]);
        // The first session continues until the second one begins if nothing ended it.
        let handle = self::handle(user(1));
        handle.principal.set(user(2));
        follow(&handle, 1, &[(1, entries(None, None)), (2, entries(Some(8), None))]);
        assert_eq!(users(&handle, [8, 9]), [1, 2]);
    }

    #[test]
    fn a_change_of_caller_without_an_entry_counts_at_once() {
        let handle = handle(Principal::Anonymous);
        handle.principal.set(user(1));
        follow(&handle, 4, &[(1, entries(None, None))]);
        assert_eq!(users(&handle, [4, 5]), [0, 1]);
        // The handle forgets a session that continues.
        handle.principal.set(Principal::Anonymous);
        follow(&handle, 8, &[(1, entries(None, None))]);
        assert_eq!(users(&handle, [8, 9]), [1, 0]);
    }

    #[test]
    fn a_session_that_has_ended_never_counts_again() {
        let handle = handle(user(1));
        // New tokens of the session, which the log reader notices after the end of the session.
        handle.principal.set(user(1));
        handle.end_session(session(1), key(7));
        follow(&handle, 9, &[]);
        assert_eq!(users(&handle, [7, 8, 10]), [1, 0, 0]);
    }

    #[test]
    fn a_failure_leaves_the_change_of_caller_to_the_next_look() {
        let handle = handle(Principal::Anonymous);
        handle.principal.set(user(1));
        assert_eq!(handle.follow(key(4), |_| Err("the server is gone")), Err("the server is gone"));
        assert!(handle.has_changed());
        follow(&handle, 4, &[(1, entries(Some(6), None))]);
        assert_eq!((users(&handle, [6, 7]), handle.has_changed()), (vec![0, 1], false));
    }

    #[test]
    fn an_end_that_a_slow_subscription_reads_late_is_put_in_its_place() {
        let handle = handle(user(1));
        handle.principal.set(user(2));
        follow(&handle, 9, &[(2, entries(None, None))]);
        handle.end_session(session(1), key(5));
        assert_eq!(users(&handle, [5, 6, 9]), [1, 0, 0]);
    }

    #[test]
    fn a_timeline_is_bounded_and_ordered() {
        let handle = handle(Principal::Anonymous);
        for number in 1..2_000_u32 {
            handle.principal.set(user(u128::from(number)));
            let started = i64::from(if number == 3 { 1 } else { 2 * number });
            follow(&handle, 1, &[(u128::from(number), entries(Some(started), None))]);
            handle.end_session(session(u128::from(number)), key(started + 1));
        }
        let timeline = handle.callers.lock();
        assert_eq!(timeline.callers.len(), MAX_CHANGES);
        assert!(timeline.callers.is_sorted_by_key(|(after, _)| *after));
    }
}

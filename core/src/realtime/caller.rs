//! For whom a subscription's changes are judged: the caller of its handle, by position in the log.
//!
//! Invariant: the end of a session takes effect at its entry in the log, so that every earlier entry is judged for the user
//! and no later one is. A sign-in takes effect at the entry of the new session if that entry is still to come, else at
//! once.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::{
    database::{
        CurrentPrincipal, Principal,
        change_log::{EntryKey, EntryKind, LogPage, session_of},
    },
    policy::Caller,
};

/// The most changes of caller that a handle remembers, for subscriptions that have fallen behind.
const MAX_CHANGES: usize = 1_024;

/// The caller of a handle with subscriptions, at every position of the log.
pub(super) struct HandleCaller {
    principal: CurrentPrincipal,
    timeline: Mutex<Timeline>,
}

struct Timeline {
    /// The handle's principal when it was last looked at.
    last_seen: Arc<Principal>,
    /// Each caller with the key after which it counts, in the order of keys. Never empty.
    callers: Vec<(EntryKey, FeedCaller)>,
    /// Whether the handle was signed out and the end of its session has not been read yet.
    is_signed_out: bool,
}

/// The sessions that began and ended in a page of the log, with their entries.
#[derive(Default)]
pub(super) struct PageSessions {
    started: HashMap<Uuid, EntryKey>,
    ended: HashMap<Uuid, EntryKey>,
}

impl PageSessions {
    pub(super) fn of(page: &LogPage) -> PageSessions {
        let mut sessions = PageSessions::default();
        for entry in &page.entries {
            let list = match entry.kind {
                EntryKind::SessionStarted => &mut sessions.started,
                EntryKind::SessionEnded => &mut sessions.ended,
                EntryKind::Insert | EntryKind::Update | EntryKind::Delete | EntryKind::Visibility => continue,
            };
            list.extend(session_of(entry).map(|session_id| (session_id, entry.key)));
        }
        sessions
    }
}

/// A caller, with the session whose end makes it anonymous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FeedCaller {
    pub(super) caller: Caller,
    pub(super) session_id: Option<Uuid>,
}

impl FeedCaller {
    const ANONYMOUS: FeedCaller = FeedCaller { caller: Caller::Anonymous, session_id: None };

    pub(super) fn of(principal: &Principal) -> FeedCaller {
        let session_id = match principal {
            Principal::User(credential) => Some(credential.session_id),
            Principal::Anonymous | Principal::Vouched(_) | Principal::Service => None,
        };
        FeedCaller { caller: principal.caller(), session_id }
    }
}

impl HandleCaller {
    pub(super) fn new(principal: CurrentPrincipal) -> HandleCaller {
        let last_seen = principal.principal();
        let callers = vec![(EntryKey::START, FeedCaller::of(&last_seen))];
        HandleCaller { principal, timeline: Mutex::new(Timeline { last_seen, callers, is_signed_out: false }) }
    }

    pub(super) fn principal(&self) -> &CurrentPrincipal {
        &self.principal
    }

    /// The caller for whom the entry with this key is judged by a feed that began at `joined`. What happened before the feed
    /// began is judged for the caller that it began with.
    pub(super) fn at(&self, key: EntryKey, joined: EntryKey) -> Caller {
        self.timeline.lock().at(key, joined).caller
    }

    /// The sessions that the timeline names.
    pub(super) fn sessions(&self) -> Vec<Uuid> {
        self.timeline.lock().callers.iter().filter_map(|(_, caller)| caller.session_id).collect()
    }

    /// Takes over the changes of the handle's caller. A change counts after the entry of its session in `sessions`, else after
    /// `key`. Returns the sessions that the timeline names since this call.
    pub(super) fn refresh(&self, key: EntryKey, sessions: &PageSessions) -> Vec<Uuid> {
        let mut timeline = self.timeline.lock();
        if Arc::ptr_eq(&self.principal.principal(), &timeline.last_seen) {
            return Vec::new();
        }
        // Each of them counts, also one that another has replaced by now: the log is read later than it is written.
        let principals = self.principal.set_since(&timeline.last_seen);
        principals.into_iter().filter_map(|principal| timeline.follow(principal, key, sessions)).collect()
    }

    /// The caller is anonymous after `key` if the session was its own.
    pub(super) fn end_session(&self, session_id: Uuid, key: EntryKey) {
        let mut timeline = self.timeline.lock();
        if timeline.last().session_id == Some(session_id) {
            timeline.push(key, FeedCaller::ANONYMOUS);
        }
    }

    /// The session of a handle that was signed out, if its end has not been read yet.
    pub(super) fn signed_out_session(&self) -> Option<Uuid> {
        let mut timeline = self.timeline.lock();
        let is_signed_out = std::mem::take(&mut timeline.is_signed_out);
        timeline.last().session_id.filter(|_| is_signed_out)
    }
}

impl Timeline {
    /// Takes over the next principal of the handle. Returns its session if that is new.
    fn follow(&mut self, principal: Arc<Principal>, key: EntryKey, sessions: &PageSessions) -> Option<Uuid> {
        let (current, new) = (self.last(), FeedCaller::of(&principal));
        self.last_seen = principal;
        if new == current {
            return None;
        }
        if let Some(ended) = current.session_id.and_then(|session_id| sessions.ended.get(&session_id)) {
            self.push(*ended, FeedCaller::ANONYMOUS);
        } else if new == FeedCaller::ANONYMOUS && current.session_id.is_some() {
            self.is_signed_out = true;
            return None;
        }
        if new != FeedCaller::ANONYMOUS {
            let started = new.session_id.and_then(|session_id| sessions.started.get(&session_id));
            self.push(started.copied().unwrap_or(key), new);
        }
        new.session_id
    }

    fn last(&self) -> FeedCaller {
        self.callers.last().map_or(FeedCaller::ANONYMOUS, |(_, caller)| *caller)
    }

    fn at(&self, key: EntryKey, joined: EntryKey) -> FeedCaller {
        let counts = self.callers.iter().rev().find(|(after, _)| *after < key || *after <= joined);
        counts.or(self.callers.first()).map_or(FeedCaller::ANONYMOUS, |(_, caller)| *caller)
    }

    fn push(&mut self, key: EntryKey, caller: FeedCaller) {
        let newest = self.callers.last().map_or(EntryKey::START, |(after, _)| *after);
        self.callers.push((key.max(newest), caller));
        self.is_signed_out = false;
        if self.callers.len() > MAX_CHANGES {
            self.callers.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Credential;

    const USER: FeedCaller =
        FeedCaller { caller: Caller::User(Uuid::from_u128(1)), session_id: Some(Uuid::from_u128(2)) };

    fn key(id: i64) -> EntryKey {
        EntryKey { transaction: 0, id }
    }

    #[test]
    fn the_end_of_a_session_counts_after_its_entry() {
        let last_seen = Arc::new(Principal::Anonymous);
        let mut timeline = Timeline { last_seen, callers: vec![(EntryKey::START, USER)], is_signed_out: false };
        timeline.push(key(7), FeedCaller::ANONYMOUS);
        let users: Vec<_> = (5..10).filter(|id| timeline.at(key(*id), EntryKey::START) == USER).collect();
        assert_eq!(users, [5, 6, 7]);
        // A feed that began after the end replays the past as anonymous.
        assert!((5..10).all(|id| timeline.at(key(id), key(7)) == FeedCaller::ANONYMOUS));
    }

    #[test]
    fn a_sign_in_and_a_sign_out_that_are_read_late_count_at_their_entries() {
        let user = |id: u128| {
            let session_id = Uuid::from_u128(10 + id);
            Arc::new(Principal::User(Credential {
                user_id: Uuid::from_u128(id),
                session_id,
                access_hash: String::new(),
                expires_at: jiff::Timestamp::MAX,
            }))
        };
        let (first, second, nobody) = (user(1), user(2), Arc::new(Principal::Anonymous));
        let session = |id: u128| Uuid::from_u128(10 + id);
        let sessions = PageSessions {
            started: [(session(1), key(2)), (session(2), key(8))].into(),
            ended: [(session(1), key(5))].into(),
        };
        let callers = vec![(EntryKey::START, FeedCaller::ANONYMOUS)];
        let mut timeline = Timeline { last_seen: Arc::clone(&nobody), callers, is_signed_out: false };
        for principal in [first, nobody, second] {
            timeline.follow(principal, key(1), &sessions);
        }
        let callers: Vec<_> = [2, 3, 5, 6, 8, 9].map(|id| timeline.at(key(id), EntryKey::START).caller.id()).into();
        let (one, two) = (Some(Uuid::from_u128(1)), Some(Uuid::from_u128(2)));
        assert_eq!(callers, [None, one, one, None, None, two]);
    }

    #[test]
    fn a_timeline_is_bounded_and_ordered() {
        let last_seen = Arc::new(Principal::Anonymous);
        let callers = vec![(EntryKey::START, FeedCaller::ANONYMOUS)];
        let mut timeline = Timeline { last_seen, callers, is_signed_out: false };
        for id in [5, 3].into_iter().chain(6..3_000) {
            timeline.push(key(id), if id % 2 == 0 { USER } else { FeedCaller::ANONYMOUS });
        }
        assert_eq!(timeline.callers.len(), MAX_CHANGES);
        assert!(timeline.callers.is_sorted_by_key(|(after, _)| *after));
    }
}

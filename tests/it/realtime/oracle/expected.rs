//! What a subscriber must get, computed from the log without the library's policies and filters.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use serde_json::Value;
use townsquare::{
    Uuid,
    realtime::{EventType, RowChange},
};
use townsquare_tests::Rng;

use super::{
    log::{Entry, Image, Log, key_of},
    writers::space_id,
};
use crate::model::rights::Principal;

/// The columns of `community_configs` that only the service reads.
const SERVICE_COLUMNS: [&str; 3] = ["admin_email", "admin_identity_public_keys", "custom_domain_authorized"];

/// The caller of a subscription.
#[derive(Debug, Clone)]
pub(super) enum Who {
    Fixed(Principal),
    /// The user of each session from its beginning to its end, and nobody in between.
    Sessions(Rc<RefCell<Vec<KnownSession>>>),
    /// The user of the only session, until its end.
    Session(Rc<RefCell<Vec<KnownSession>>>),
}

/// A session of a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KnownSession {
    pub(super) user: Uuid,
    pub(super) session: Uuid,
    /// The last id when the sign-in returned. The entries between that of the session and this one may be judged for the
    /// user or for the caller before.
    pub(super) returned_at: i64,
}

/// A filter: its text, and its meaning.
pub(super) struct Filter {
    pub(super) table: &'static str,
    pub(super) text: String,
    matches: Box<dyn Fn(&Image) -> bool>,
}

/// Which changes a subscription gets.
pub(super) struct View {
    pub(super) who: Who,
    pub(super) event: Option<EventType>,
    pub(super) filter: Filter,
}

/// A change without its cursor.
#[derive(Debug, PartialEq)]
pub(super) struct Event {
    event_type: EventType,
    old: Option<Image>,
    new: Option<Image>,
    at: String,
}

/// What an entry may be for a subscriber: each event that fits, or `None` if it may be nothing.
#[derive(Debug)]
pub(super) struct Due {
    id: i64,
    alternatives: Vec<Option<Event>>,
}

/// What a callback got.
pub(super) struct Received(Vec<Event>);

/// How what a callback got agrees with what was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    /// It is everything that was due.
    Complete,
    /// It is everything that was due up to some entry.
    Prefix,
    Wrong,
}

impl Filter {
    fn new(table: &'static str, text: impl Into<String>, matches: impl Fn(&Image) -> bool + 'static) -> Filter {
        Filter { table, text: text.into(), matches: Box::new(matches) }
    }

    /// A random filter on a random table; on many rows, on few, or on all.
    pub(super) fn random(random: &mut Rng, who: &Who, users: &[Uuid]) -> Filter {
        let space = space_id(random.u128(..4)).to_string();
        let owner = users[random.usize(..users.len())].to_string();
        let text = |row: &Image, column: &str| row[column].as_str().map(str::to_owned);
        match random.u32(..16) {
            0 | 1 => Filter::new("spaces", "", |_| true),
            2 => Filter::new("spaces", format!("id=eq.{space}"), move |row| row["id"] == *space),
            3 => Filter::new("spaces", "is_public=is.true", |row| row["is_public"] == Value::Bool(true)),
            4 => Filter::new("spaces", format!("owner_id=neq.{owner}&name=like.a%"), move |row| {
                text(row, "owner_id").is_some_and(|id| id != owner)
                    && text(row, "name").is_some_and(|name| name.starts_with('a'))
            }),
            5 | 6 => Filter::new("fidgets", "", |_| true),
            7 => Filter::new("fidgets", format!("space_id=eq.{space}"), move |row| row["space_id"] == *space),
            8 => Filter::new("fidgets", "type=in.(clock,\"map\")", move |row| {
                matches!(row["type"].as_str(), Some("clock" | "map"))
            }),
            9 => Filter::new("users", "", |_| true),
            10 | 11 => Filter::new("files", "", |_| true),
            12 => Filter::new("files", "bucket=eq.private", |row| row["bucket"] == "private"),
            13 => Filter::new("files", format!("path=like.{owner}/%"), move |row| {
                text(row, "path").is_some_and(|path| path.starts_with(&format!("{owner}/")))
            }),
            15 if matches!(who, Who::Fixed(Principal::Service)) => {
                Filter::new("community_configs", "admin_email=neq.a", move |row| {
                    text(row, "admin_email").is_some_and(|address| address != "a")
                })
            }
            _ => Filter::new("community_configs", "", |_| true),
        }
    }
}

/// The rights of DESIGN 4 and 5 on a row of the feed.
fn sees(who: Principal, table: &str, row: &Image, context: Option<&Image>) -> bool {
    let id = |row: &Image, column: &str| row[column].as_str().and_then(|id| id.parse().ok());
    let sees_space = |space: &Image| who.sees_space(id(space, "owner_id"), space["is_public"].as_bool());
    match table {
        "users" => who == Principal::Service || who.is(id(row, "id")),
        "spaces" => sees_space(row),
        "fidgets" => who == Principal::Service || context.is_some_and(sees_space),
        "community_configs" => who.sees_community(row["is_published"].as_bool()),
        "files" => context.is_some_and(|context| {
            let is_own = || who.is(id(context, "first_segment")) || who.is(id(context, "holder"));
            let is_shown = match context["access"].as_str() {
                Some("spaces") => !context["owner_id"].is_null() && sees_space(context),
                Some("private") => is_own(),
                _ => true,
            };
            who == Principal::Service || is_shown
        }),
        other => panic!("{other} has no subscribers"),
    }
}

impl View {
    fn event(&self, who: Principal, entry: &Entry) -> Option<Event> {
        let shows = |row: Option<&Image>, context: Option<&Image>| {
            row.is_some_and(|row| (self.filter.matches)(row) && sees(who, &entry.table, row, context))
        };
        let (old, new) = (entry.old.as_ref(), entry.new.as_ref());
        let before = entry.kind != "insert" && shows(old, entry.old_context.as_ref());
        let after = entry.kind != "delete" && shows(new, entry.new_context.as_ref());
        let key = || old.map(|row| key_of(&entry.table, row));
        let (event_type, old, new) = match (before, after) {
            (false, false) => return None,
            (true, true) if entry.kind == "visibility" => return None,
            (true, true) => (EventType::Update, old.cloned(), new.cloned()),
            (false, true) => (EventType::Insert, None, new.cloned()),
            (true, false) if entry.kind == "delete" => (EventType::Delete, old.cloned(), None),
            (true, false) => (EventType::Delete, key(), None),
        };
        let readable = |mut row: Image| {
            if who != Principal::Service {
                row.retain(|name, _| !SERVICE_COLUMNS.contains(&name.as_str()));
            }
            row
        };
        let event = Event { event_type, old: old.map(readable), new: new.map(readable), at: entry.at.clone() };
        self.event.is_none_or(|wanted| wanted == event_type).then_some(event)
    }
}

impl Log {
    /// Everything that a subscription to `view` may get that began between two entries: those between them may have been
    /// committed before it.
    pub(super) fn expected(&self, view: &View, began: (i64, i64)) -> Vec<Due> {
        let mut caller = match &view.who {
            Who::Fixed(principal) => *principal,
            Who::Sessions(_) | Who::Session(_) => Principal::Anonymous,
        };
        let known = |entry: &Entry| {
            let session = entry.new.as_ref().or(entry.old.as_ref())?["session_id"].as_str()?.parse::<Uuid>().ok()?;
            let (Who::Sessions(sessions) | Who::Session(sessions)) = &view.who else { return None };
            sessions.borrow().iter().find(|known| known.session == session).copied()
        };
        let mut current = None;
        // The caller before the last sign-in, up to the entry at which the sign-in had returned.
        let mut before = (caller, 0);
        let mut expected = Vec::new();
        for entry in &self.0 {
            match entry.kind.as_str() {
                "session_started" => {
                    if let Some(session) = known(entry) {
                        before = (caller, session.returned_at);
                        (caller, current) = (Principal::User(session.user), Some(session));
                    }
                }
                "session_ended" if current.is_none() || known(entry) != current => {}
                "session_ended" if matches!(view.who, Who::Session(_)) => break,
                "session_ended" => {
                    before.1 = 0;
                    (caller, current) = (Principal::Anonymous, None);
                }
                _ if entry.table == view.filter.table && entry.id > began.0 => {
                    let mut alternatives = vec![view.event(caller, entry)];
                    if entry.id <= before.1 {
                        alternatives.push(view.event(before.0, entry));
                    }
                    if entry.id <= began.1 {
                        alternatives.push(None);
                    }
                    if alternatives.iter().any(Option::is_some) {
                        expected.push(Due { id: entry.id, alternatives });
                    }
                }
                _ => {}
            }
        }
        expected
    }
}

impl Received {
    pub(super) fn of(changes: &[RowChange]) -> Received {
        let events = changes.iter().map(|change| Event {
            event_type: change.event_type,
            old: change.old.as_deref().cloned(),
            new: change.new.as_deref().cloned(),
            at: format!("{:.6}", change.commit_timestamp),
        });
        Received(events.collect())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Compares the events with those that are due, and returns how many of them agree at most.
    pub(super) fn agreement(&self, expected: &[Due]) -> (Agreement, usize) {
        // The numbers of events that may have been delivered when the subscriber has passed an entry.
        let mut delivered = BTreeSet::from([0]);
        let (mut is_prefix, mut most) = (self.0.is_empty(), 0);
        for due in expected {
            let after = |count: usize| {
                due.alternatives.iter().filter_map(move |alternative| match alternative {
                    None => Some(count),
                    Some(event) => (self.0.get(count) == Some(event)).then_some(count + 1),
                })
            };
            delivered = delivered.into_iter().flat_map(after).collect();
            let Some(last) = delivered.last() else { break };
            most = most.max(*last);
            is_prefix |= most == self.0.len();
        }
        let agreement = match () {
            () if delivered.contains(&self.0.len()) => Agreement::Complete,
            () if is_prefix => Agreement::Prefix,
            () => Agreement::Wrong,
        };
        (agreement, most)
    }

    /// Checks that the events are those that are due, all of them if `is_complete`, without gap or repeat.
    pub(super) fn assert_agrees(&self, expected: &[Due], view: &View, is_complete: bool) {
        let (agreement, most) = self.agreement(expected);
        if agreement == Agreement::Complete || (agreement == Agreement::Prefix && !is_complete) {
            return;
        }
        let from = most.saturating_sub(1);
        let ids: Vec<i64> = expected.iter().map(|due| due.id).collect();
        panic!(
            "{:?}, {:?} of {} where {:?}: {agreement:?}, {most} of {} events agree; from {from}: got {:#?}, due {:#?} at {ids:?}",
            view.who,
            view.event,
            view.filter.table,
            view.filter.text,
            self.0.len(),
            self.0.iter().skip(from).take(3).collect::<Vec<_>>(),
            expected.iter().skip(from).take(4).collect::<Vec<_>>(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at: &str) -> Event {
        Event { event_type: EventType::Insert, old: None, new: None, at: at.to_owned() }
    }

    /// The agreement of the received letters with the due ones; `?` follows a letter that may be nothing.
    fn agreement(received: &str, due: &[&str]) -> Agreement {
        let received = Received(received.split_terminator("").skip(1).map(event).collect());
        let due: Vec<_> = due
            .iter()
            .map(|letters| {
                let alternatives = letters.split_terminator("").skip(1);
                let alternatives = alternatives.map(|letter| (letter != "?").then(|| event(letter))).collect();
                Due { id: 0, alternatives }
            })
            .collect();
        received.agreement(&due).0
    }

    #[test]
    fn the_oracle_notices_gaps_repeats_and_a_wrong_order() {
        assert_eq!(agreement("abc", &["a", "b", "c"]), Agreement::Complete);
        assert_eq!(agreement("bc", &["a?", "b?", "c"]), Agreement::Complete);
        assert_eq!(agreement("ac", &["ab", "c"]), Agreement::Complete);
        for prefix in ["", "a", "ab"] {
            assert_eq!(agreement(prefix, &["a", "b", "c"]), Agreement::Prefix);
        }
        for wrong in ["b", "ac", "aabc", "abb", "bac", "abcd"] {
            assert_eq!(agreement(wrong, &["a", "b", "c"]), Agreement::Wrong, "{wrong}");
        }
    }
}

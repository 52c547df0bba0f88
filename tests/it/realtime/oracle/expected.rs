//! What a subscriber must get, computed from the log without the library's policies and filters.

use serde_json::Value;
use townsquare::{
    Uuid,
    realtime::{EventType, RowChange},
};
use townsquare_tests::Rng;

use super::{
    log::{Entry, Image, Log},
    writers::space_id,
};
use crate::model::rights::Principal;

/// The caller of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Fixed(Principal),
    /// A user until the end of the session, then nobody.
    User { user: Uuid, session: Uuid },
}

impl Who {
    pub(super) fn of(user: Uuid, session: Uuid) -> Who {
        Who::User { user, session }
    }
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

/// An event with the id of its entry.
pub(super) type Expected = Vec<(i64, Event)>;

/// What a callback got, and the ids between which its subscription began.
pub(super) struct Received {
    events: Vec<Event>,
    began: (i64, i64),
}

impl Filter {
    fn new(table: &'static str, text: impl Into<String>, matches: impl Fn(&Image) -> bool + 'static) -> Filter {
        Filter { table, text: text.into(), matches: Box::new(matches) }
    }

    /// A random filter on a random table; on many rows, on few, or on all.
    pub(super) fn random(random: &mut Rng, users: &[Uuid]) -> Filter {
        let space = space_id(random.u128(..4)).to_string();
        let owner = users[random.usize(..users.len())].to_string();
        let text = |row: &Image, column: &str| row[column].as_str().map(str::to_owned);
        match random.u32(..10) {
            0 | 1 => Filter::new("spaces", "", |_| true),
            2 => Filter::new("spaces", format!("id=eq.{space}"), move |row| row["id"] == *space),
            3 => Filter::new("spaces", "is_public=is.true", |row| row["is_public"] == Value::Bool(true)),
            4 => Filter::new("spaces", format!("owner_id=neq.{owner}&name=like.a%"), move |row| {
                text(row, "owner_id").is_some_and(|id| id != owner) && text(row, "name").is_some_and(|name| name.starts_with('a'))
            }),
            5 | 6 => Filter::new("fidgets", "", |_| true),
            7 => Filter::new("fidgets", format!("space_id=eq.{space}"), move |row| row["space_id"] == *space),
            8 => Filter::new("fidgets", "type=in.(clock,\"map\")", move |row| {
                matches!(row["type"].as_str(), Some("clock" | "map"))
            }),
            _ => Filter::new("users", "", |_| true),
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
        let key = || old.map(|row| Image::from_iter([("id".to_owned(), row["id"].clone())]));
        let (event_type, old, new) = match (before, after) {
            (false, false) => return None,
            (true, true) if entry.kind == "visibility" => return None,
            (true, true) => (EventType::Update, old.cloned(), new.cloned()),
            (false, true) => (EventType::Insert, None, new.cloned()),
            (true, false) if entry.kind == "delete" => (EventType::Delete, old.cloned(), None),
            (true, false) => (EventType::Delete, key(), None),
        };
        let event = Event { event_type, old, new, at: entry.at.clone() };
        self.event.is_none_or(|wanted| wanted == event_type).then_some(event)
    }
}

impl Log {
    /// Everything that a subscription to `view` gets that begins before the first entry.
    pub(super) fn expected(&self, view: &View) -> Expected {
        let mut who = match view.who {
            Who::Fixed(principal) => principal,
            Who::User { user, .. } => Principal::User(user),
        };
        let mut expected = Expected::new();
        for entry in &self.0 {
            match (entry.kind.as_str(), view.who) {
                ("session_ended", Who::User { session, .. }) => {
                    let ended = entry.old.as_ref().expect("a session")["session_id"].as_str();
                    if ended == Some(session.to_string().as_str()) {
                        who = Principal::Anonymous;
                    }
                }
                ("session_started" | "session_ended", _) => {}
                _ if entry.table == view.filter.table => {
                    expected.extend(view.event(who, entry).map(|event| (entry.id, event)));
                }
                _ => {}
            }
        }
        expected
    }
}

impl Received {
    pub(super) fn of(changes: &[RowChange], began: (i64, i64)) -> Received {
        let events = changes.iter().map(|change| Event {
            event_type: change.event_type,
            old: change.old.as_deref().cloned(),
            new: change.new.as_deref().cloned(),
            at: format!("{:.6}", change.commit_timestamp),
        });
        Received { events: events.collect(), began }
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The events that were committed after the subscription began, and those that may have been.
    fn due<'a>(&self, expected: &'a Expected) -> (Vec<&'a Event>, Vec<&'a Event>) {
        let (before, after) = self.began;
        let of = |from: i64, to: i64| {
            expected.iter().filter(move |(id, _)| from < *id && *id <= to).map(|(_, event)| event).collect()
        };
        (of(before, after), of(after, i64::MAX))
    }

    /// Whether everything that is due has arrived. (The last event is compared, because equal counts do not tell.)
    pub(super) fn is_complete(&self, expected: &Expected) -> bool {
        let (_, due) = self.due(expected);
        self.events.len() >= due.len() && due.last().is_none_or(|last| self.events.last() == Some(*last))
    }

    /// Checks that the events are some of those during the beginning and then, without gap or repeat, those after it: all of
    /// them if the subscription has not ended.
    pub(super) fn assert_equals(&self, expected: &Expected, view: &View, is_complete: bool) {
        let (optional, due) = self.due(expected);
        let fits = |split: usize| {
            let (first, rest) = self.events.split_at(split);
            let mut left = optional.iter();
            let is_subsequence = first.iter().all(|event| left.any(|other| *other == event));
            let is_prefix = rest.len() <= due.len() && rest.iter().zip(&due).all(|(event, due)| event == *due);
            is_subsequence && is_prefix && (!is_complete || rest.len() == due.len())
        };
        if (0..=self.events.len().min(optional.len())).any(fits) {
            return;
        }
        let different = self.events.iter().zip(&due).position(|(event, due)| event != *due);
        let place = different.unwrap_or(self.events.len().min(due.len()));
        panic!(
            "{:?}, {:?} of {} where {:?}, began in {:?}: got {} events, due are {} after {} that may be; from {place}: got {:#?}, due {:#?}",
            view.who,
            view.event,
            view.filter.table,
            view.filter.text,
            self.began,
            self.events.len(),
            due.len(),
            optional.len(),
            self.events.iter().skip(place).take(2).collect::<Vec<_>>(),
            due.iter().skip(place).take(2).collect::<Vec<_>>(),
        );
    }
}

//! The oracle of filters: every operator on every column of every table, in every way to receive changes, on both engines.
//! The database itself says, in SQL, which rows fulfil a condition; so the expected changes do not come from the library.
//!
//! One row of a table goes through [`STEPS`]. Its events follow from whether its values before and after each step
//! fulfil the condition.

mod conditions;
mod rows;

use std::time::{Duration, Instant};

use serde_json::Value;
use townsquare::{
    Config,
    blocking::{ChangeStream, EventBody},
    realtime::{ChangeRequest, LiveRequest},
};
use townsquare_tests::{
    test_database::{Engine, TestDatabase},
    wait::DEADLINE,
};

use self::{
    conditions::{Condition, conditions},
    rows::TableRows,
};
use super::fixture::{Recorder, next, stream};

/// The values of the row after each step: the first or the second value of every column, or NULL in each column that
/// allows it; `None` if there is no row.
const STEPS: [Option<RowVersion>; 9] = [
    Some(RowVersion::First),
    Some(RowVersion::Second),
    Some(RowVersion::Nulls),
    Some(RowVersion::Second),
    Some(RowVersion::First),
    None,
    Some(RowVersion::Nulls),
    Some(RowVersion::First),
    None,
];

/// The steps after which live queries begin.
const LIVE_AFTER: [usize; 3] = [0, 1, 2];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowVersion {
    First,
    Second,
    Nulls,
}

/// Whether the row is in a view after each step.
type Membership = Vec<bool>;

/// One condition, and what subscribes with it.
struct Subscribed {
    condition: Condition,
    callback: Recorder,
    stream: ChangeStream,
    /// The body and the events that were read from it; `None` for a column that anonymous callers may not filter by.
    events: Option<(EventBody, Vec<String>)>,
    /// The step after which the query began, whether it found the row, and its changes.
    live: Vec<(usize, bool, ChangeStream)>,
    /// For the service, and for an anonymous caller.
    members: [Membership; 2],
}

fn check(engine: Engine, rows: &TableRows) {
    let heartbeat = |config: Config| config.event_heartbeat(Duration::from_millis(20));
    let Some(db) = TestDatabase::with(engine, heartbeat) else { return };
    if engine == Engine::Sqlite {
        // As LIKE of standard SQL.
        db.raw.run("PRAGMA case_sensitive_like = ON");
    }
    rows.write_referenced(&db);
    let cursor = db.service.realtime().cursor().expect("a cursor");
    let request = |condition: &Condition| ChangeRequest::table(rows.table).filter(&condition.filter);
    let anonymous = &db.client;
    let service = &db.service;
    let mut all: Vec<Subscribed> = conditions(engine, rows)
        .into_iter()
        .map(|condition| Subscribed {
            callback: Recorder::subscribe(&db.service, request(&condition)),
            stream: stream(&db.service, request(&condition)),
            events: rows.is_filtered_by_anonymous(condition.column).then(|| {
                let target = format!("/events?table={}&filter={}", rows.table, percent_encoded(&condition.filter));
                let response = anonymous.realtime().handle_events(&target, &[]).expect("a response");
                assert_eq!(response.status, 200, "{}", condition.filter);
                (response.body, Vec::new())
            }),
            live: Vec::new(),
            members: [Vec::new(), Vec::new()],
            condition,
        })
        .collect();
    for (step, version) in STEPS.into_iter().enumerate() {
        rows.write(&db, step.checked_sub(1).and_then(|before| STEPS[before]), version);
        note_members(&db, rows, &mut all, version.is_some());
        if LIVE_AFTER.contains(&step) {
            for subscribed in &mut all {
                let query = LiveRequest::table(rows.table).filter(&subscribed.condition.filter);
                let live = service.realtime().live(query).expect("a live query");
                subscribed.live.push((step, !rows.own(&live.rows).is_empty(), live.changes));
            }
        }
    }
    let (mut wrong, end) = (Vec::new(), Instant::now() + DEADLINE);
    for subscribed in &mut all {
        let mut replayed = stream(&db.service, request(&subscribed.condition).since(&cursor));
        wrong.extend(subscribed.differences(rows, &mut replayed, end));
    }
    let total = all.len();
    assert!(wrong.is_empty(), "{} of {total} conditions:\n{}", wrong.len(), wrong.join("\n"));
    // Both answers occur often enough that a filter without effect would be found.
    let matching = all.iter().filter(|subscribed| subscribed.members[0].contains(&true)).count();
    assert!(matching * 4 > total && all.iter().any(|subscribed| subscribed.members[0].contains(&false)), "{matching}");
}

/// Asks the database for which conditions the row is in the view.
fn note_members(db: &TestDatabase, rows: &TableRows, all: &mut [Subscribed], exists: bool) {
    if !exists {
        all.iter_mut().for_each(|subscribed| subscribed.members.iter_mut().for_each(|members| members.push(false)));
        return;
    }
    let columns: Vec<_> = all
        .iter()
        .map(|subscribed| subscribed.condition.sql.as_str())
        .chain([rows.visible_to_all])
        .enumerate()
        .map(|(number, sql)| format!("({sql}) IS TRUE AS is_{number}"))
        .collect();
    let sql = format!("SELECT {} FROM {} WHERE {}", columns.join(", "), rows.name(db.engine), rows.is_own());
    let [found] = &db.raw.rows(&sql)[..] else { panic!("one row: {sql}") };
    let is_true = |number: usize| found[number].as_deref() == Some("t");
    let is_visible = is_true(all.len());
    for (number, subscribed) in all.iter_mut().enumerate() {
        subscribed.members[0].push(is_true(number));
        subscribed.members[1].push(is_true(number) && is_visible);
    }
}

/// The events of a view from a step on.
fn expected(rows: &TableRows, members: &Membership, from: usize) -> Vec<String> {
    let mut events = Vec::new();
    for step in from..STEPS.len() {
        let (was_member, before) = step.checked_sub(1).map_or((false, None), |before| (members[before], STEPS[before]));
        match (was_member, members[step]) {
            (false, false) => {}
            (false, true) => events.push("INSERT"),
            (true, false) => events.push("DELETE"),
            (true, true) if rows.is_move(before, STEPS[step]) => events.extend(["DELETE", "INSERT"]),
            (true, true) => events.push("UPDATE"),
        }
    }
    events.into_iter().map(str::to_owned).collect()
}

impl Subscribed {
    /// The differences between the events that the subscriptions got and the expected ones.
    /// Waits for them until `end`.
    fn differences(&mut self, rows: &TableRows, replayed: &mut ChangeStream, end: Instant) -> Vec<String> {
        let due = expected(rows, &self.members[0], 0);
        let mut found = vec![
            ("stream", due.clone(), read(&mut self.stream, due.len(), end)),
            ("replay", due.clone(), read(replayed, due.len(), Instant::now() + DEADLINE)),
            ("callback", due.clone(), read_callback(&self.callback, due.len(), end)),
        ];
        for (step, had_row, changes) in &mut self.live {
            let due = expected(rows, &self.members[0], *step + 1);
            let first = |is_there: bool| if is_there { "row" } else { "no row" }.to_owned();
            let with = |first: String, events: Vec<String>| [vec![first], events].concat();
            let got = with(first(*had_row), read(changes, due.len(), end));
            found.push(("live", with(first(self.members[0][*step]), due), got));
        }
        if let Some((body, events)) = &mut self.events {
            let due = expected(rows, &self.members[1], 0);
            read_events(body, events, due.len(), end);
            found.push(("events", due, events.clone()));
        }
        let differs = found.into_iter().filter(|(_, due, got)| due != got);
        differs.map(|(way, due, got)| format!("{way} {}: {got:?}, not {due:?}", self.condition.filter)).collect()
    }
}

/// Reads so many events of a stream, and those that are there already.
fn read(changes: &mut ChangeStream, count: usize, end: Instant) -> Vec<String> {
    let mut events = Vec::new();
    let patience =
        |read: usize| if read < count { end.saturating_duration_since(Instant::now()) } else { Duration::ZERO };
    while let Some(change) = changes.next_within(patience(events.len())) {
        events.push(change.expect("a change").event_type.to_string());
    }
    events
}

fn read_callback(recorder: &Recorder, count: usize, end: Instant) -> Vec<String> {
    while recorder.changes().len() < count && Instant::now() < end {
        std::thread::yield_now();
    }
    recorder.changes().iter().map(|change| change.event_type.to_string()).collect()
}

/// Reads events until so many have come and a heartbeat says that there is no other.
fn read_events(body: &mut EventBody, events: &mut Vec<String>, count: usize, end: Instant) {
    loop {
        let chunk = body.next().expect("the stream goes on");
        let text = String::from_utf8(chunk.to_vec()).expect("UTF-8");
        for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let change: Value = serde_json::from_str(data).expect("JSON");
            events.push(change["eventType"].as_str().expect("an event").to_owned());
        }
        if text.starts_with(':') && (events.len() >= count || Instant::now() >= end) {
            return;
        }
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// One test for each table and engine, so that they run at the same time.
macro_rules! on_each_table {
    ($($test:ident: $table:literal;)+) => {
        on_each_table! { @engine sqlite Sqlite $($test $table)+ }
        on_each_table! { @engine postgres Postgres $($test $table)+ }
    };
    (@engine $module:ident $engine:ident $($test:ident $table:literal)+) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    super::check(townsquare_tests::test_database::Engine::$engine, &super::rows::of($table));
                }
            )+
        }
    };
}

on_each_table! {
    filters_of_community_configs_agree_with_sql: "community_configs";
    filters_of_community_domains_agree_with_sql: "community_domains";
    filters_of_space_registrations_agree_with_sql: "spaceRegistrations";
    filters_of_users_agree_with_sql: "users";
    filters_of_spaces_agree_with_sql: "spaces";
    filters_of_fidgets_agree_with_sql: "fidgets";
    filters_of_files_agree_with_sql: "files";
}

#[test]
fn the_oracle_has_every_column_that_the_feed_delivers() {
    let db = TestDatabase::on(Engine::Sqlite).expect("built in");
    for table in rows::TABLES {
        let rows = rows::of(table);
        rows.write_referenced(&db);
        let mut changes = stream(&db.service, ChangeRequest::table(table));
        rows.write(&db, None, Some(RowVersion::First));
        let delivered = next(&mut changes).new.expect("a row");
        let mut columns: Vec<_> = rows.columns.iter().map(|column| column.name).collect();
        columns.sort_unstable();
        let mut names: Vec<_> = delivered.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(columns, names, "{table}");
        rows.write(&db, Some(RowVersion::First), None);
    }
}

/// A row that another program wrote as a BLOB is delivered with its text, so a live query finds it, too.
#[test]
fn a_live_query_finds_a_text_that_is_stored_as_a_blob() {
    let db = TestDatabase::on(Engine::Sqlite).expect("built in");
    db.raw.run("INSERT INTO spaces (name) VALUES (CAST('harbor' AS BLOB))");
    let client = &db.service;
    for filter in ["name=eq.harbor", "name=in.(harbor)", "name=like.harbor"] {
        let live = client.realtime().live(LiveRequest::table("spaces").filter(filter)).expect("a live query");
        assert_eq!(live.rows.len(), 1, "{filter}");
    }
}

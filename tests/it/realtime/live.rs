//! Live queries: the rows now and every change after them, with no gap and no repeat.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use townsquare::{
    Uuid,
    realtime::{EventType, LiveRequest},
    spaces::{NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{Rng, on_both_engines, setting::seed};

use super::fixture::next;

on_both_engines! {
    fn rows_and_changes_together_give_the_table(db: &TestDatabase) {
        let client = &db.service;
        let writes = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut random = Rng::with_seed(seed(12));
                let mut ids = Vec::new();
                for number in 0..150 {
                    match random.u32(..4) {
                        0 if !ids.is_empty() => {
                            let id = ids.swap_remove(random.usize(..ids.len()));
                            db.service.spaces().delete_space(id).expect("deleted");
                        }
                        1 if !ids.is_empty() => {
                            let patch = SpacePatch::new().name(format!("renamed {number}"));
                            db.service.spaces().update_space(ids[random.usize(..ids.len())], patch).expect("renamed");
                        }
                        _ => ids.push(db.service.spaces().create_space(NewSpace::named(format!("{number}"))).expect("created").id),
                    }
                }
                db.service.spaces().create_space(NewSpace::named("last")).expect("created");
            });
            let queries: Vec<_> = (0..4).map(|_| client.realtime().live(LiveRequest::table("spaces")).expect("a live query")).collect();
            writer.join().expect("no panic");
            queries
        });
        let name = |row: &serde_json::Map<String, Value>| (row["id"].clone().to_string(), row["name"].clone());
        let expected: BTreeMap<_, _> = db.raw.rows("SELECT id, name FROM spaces").into_iter()
            .map(|row| (format!("\"{}\"", row[0].as_deref().expect("an id")), Value::from(row[1].clone().expect("a name")))).collect();
        for mut live in writes {
            let mut table: BTreeMap<_, _> = live.rows.iter().map(&name).collect();
            while !table.values().any(|name| name == "last") {
                let change = next(&mut live.changes);
                let row = change.new.as_ref().or(change.old.as_ref()).expect("a row");
                let (id, value) = name(row);
                let before = if change.event_type == EventType::Delete { table.remove(&id) } else { table.insert(id, value) };
                assert_eq!(before.is_none(), change.event_type == EventType::Insert, "no gap and no repeat: {change:?}");
            }
            assert_eq!(table, expected);
        }
    }

    fn the_rows_have_the_order_of_lists(db: &TestDatabase) {
        let created = [3, 1, 2].map(Uuid::from_u128);
        let home = db.space();
        for id in created {
            db.clock.advance(Duration::from_secs(1));
            db.service.spaces().create_space(NewSpace::named("harbor").with_id(id)).expect("created");
            db.service.fidgets().create_fidget(home.id, NewFidget::of_type("text").with_id(id)).expect("created");
        }
        let rows = |table: &str, column: &str| -> Vec<String> {
            let live = db.service.realtime().live(LiveRequest::table(table)).expect("a live query");
            live.rows.iter().map(|row| row[column].as_str().expect("text").to_owned()).collect()
        };
        let texts = |numbers: [u128; 3]| numbers.map(|number| Uuid::from_u128(number).to_string());
        assert_eq!(rows("spaces", "id")[..3], texts([2, 1, 3]), "newest first");
        assert_eq!(rows("fidgets", "id"), texts([3, 1, 2]), "oldest first");
    }

    fn a_live_query_shows_what_its_caller_and_filter_allow(db: &TestDatabase) {
        let owner = db.user();
        let (one, two) = (db.public_space(owner, "one"), db.public_space(owner, "two"));
        let hidden = db.space();
        for (space, kind) in [(one.id, "a"), (one.id, "b"), (two.id, "a"), (hidden.id, "a")] {
            db.fidget(space, kind);
        }
        let client = &db.client;
        let count = |request| client.realtime().live(request).expect("a live query").rows.len();
        assert_eq!(count(LiveRequest::table("spaces")), 2);
        assert_eq!(count(LiveRequest::table("fidgets")), 3);
        assert_eq!(count(LiveRequest::table("fidgets").filter(format!("space_id=eq.{}", one.id))), 2);
        assert_eq!(count(LiveRequest::table("fidgets").filter("type=in.(a)")), 2);
        assert_eq!(count(LiveRequest::table("users")), 0);
        let service = &db.service;
        let all = service.realtime().live(LiveRequest::table("spaces")).expect("a live query");
        assert_eq!(all.rows.len(), 3);
    }
}

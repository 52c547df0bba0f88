//! What is delivered, and in which order.

use std::{
    collections::BTreeSet,
    sync::Arc,
    task::{Context, Wake, Waker},
    thread,
};

use serde_json::{Value, json};
use townsquare::{
    ErrorKind, Uuid,
    blocking::wait,
    realtime::{ChangeRequest, EventType},
    spaces::{NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{fixture::assert_kind, on_both_engines, test_database::Engine};

use super::fixture::{Recorder, assert_silent, next, next_short, short, stream};

const ID: &str = "6f2c1f4e-7d1a-4a53-9d55-0c1f3a4b5c6d";
const TIME: &str = "2026-01-02T03:04:05.678901Z";

/// For each table: the statement that inserts a row, a change of it, its key, and the image of the row.
fn rows() -> Vec<(&'static str, String, &'static str, &'static str, Value)> {
    let community = json!({
        "id": ID, "community_id": "town", "updated_at": TIME, "brand_config": {"a": [1, 2.5, null]}, "assets_config": 1,
        "community_config": "text", "fidgets_config": [], "navigation_config": null, "ui_config": false,
        "admin_identity_public_keys": null, "is_published": true, "custom_domain_authorized": false, "admin_email": null,
    });
    let domain = json!({ "id": ID, "community_id": "town", "domain": "a.example", "domain_type": "custom",
        "created_at": TIME, "updated_at": TIME });
    let registration = json!({ "spaceId": ID, "fid": 7, "spaceName": "n", "spaceType": "profile",
        "identityPublicKey": null, "signature": null, "timestamp": TIME });
    let user = json!({ "id": ID, "email": "ann@town.example", "created_at": TIME, "updated_at": TIME });
    let space = json!({ "id": ID, "name": "ä\"\\\u{1f600}", "description": null, "owner_id": ID, "is_public": true,
        "created_at": TIME, "updated_at": TIME });
    let fidget = json!({ "id": ID, "space_id": ID, "type": "clock", "config": {"deep": {"er": [true]}}, "position": [0, 1],
        "created_at": TIME, "updated_at": TIME });
    vec![
        ("community_configs", format!("INSERT INTO community_configs (id, community_id, updated_at, brand_config, assets_config,
            community_config, fidgets_config, ui_config) VALUES ('{ID}', 'town', '{TIME}', '{{\"a\": [1, 2.5, null]}}', '1',
            '\"text\"', '[]', 'false')"), "admin_email = 'x'", "id", community),
        ("community_domains", format!("INSERT INTO community_domains VALUES ('{ID}', 'town', 'a.example', 'custom', '{TIME}', '{TIME}')"),
            "domain = 'b.example'", "id", domain),
        ("spaceRegistrations", format!("INSERT INTO \"spaceRegistrations\" VALUES ('{ID}', 7, 'n', 'profile', NULL, NULL, '{TIME}')"),
            "fid = NULL", "spaceId", registration),
        ("users", format!("INSERT INTO users VALUES ('{ID}', 'ann@town.example', '{TIME}', '{TIME}')"), "email = 'b'", "id", user),
        ("spaces", format!("INSERT INTO spaces VALUES ('{ID}', 'ä\"\\\u{1f600}', NULL, '{ID}', true, '{TIME}', '{TIME}')"),
            "name = 'b'", "id", space),
        ("fidgets", format!("INSERT INTO fidgets VALUES ('{ID}', '{ID}', 'clock', '{{\"deep\": {{\"er\": [true]}}}}', '[0, 1]', '{TIME}', '{TIME}')"),
            "config = NULL", "id", fidget),
    ]
}

/// A waker of a faulty host.
struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("the waker of a test");
    }
}

on_both_engines! {
    fn a_waker_that_panics_stops_no_other_stream(db: &TestDatabase) {
        let waker = Waker::from(Arc::new(PanickingWaker));
        let spaces = || ChangeRequest::table("spaces");
        let mut broken = wait(db.async_service().realtime().changes(spaces())).expect("a stream");
        let mut changes = stream(&db.service, spaces());
        for number in 0..3 {
            while Box::pin(broken.next()).as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {}
            db.public_space(db.user(), &format!("{number}"));
            assert_eq!(short(&next(&mut changes)), format!("INSERT {number}"));
        }
    }

    fn every_table_delivers_its_rows_in_the_same_form(db: &TestDatabase) {
        for (table, insert, change, key, image) in rows() {
            let mut changes = stream(&db.service, ChangeRequest::table(table));
            db.raw.run(&insert);
            let inserted = next(&mut changes);
            assert_eq!((inserted.schema, inserted.table, inserted.event_type), ("public", table, EventType::Insert));
            assert_eq!(inserted.new.as_deref().cloned().map(Value::Object), Some(image.clone()), "{table}");
            assert_eq!(inserted.old, None);
            db.raw.run(&format!("UPDATE \"{table}\" SET {change} WHERE \"{key}\" = '{ID}'"));
            let updated = next(&mut changes);
            assert_eq!(updated.event_type, EventType::Update, "{table}");
            assert_eq!(updated.old, inserted.new, "{table}");
            assert_ne!(updated.new, inserted.new, "{table}");
            assert_eq!(updated.new.as_ref().expect("a row").len(), inserted.new.as_ref().expect("a row").len());
        }
        let mut changes: Vec<_> =
            rows().into_iter().rev().map(|(table, ..)| (table, stream(&db.service, ChangeRequest::table(table)))).collect();
        for (table, _, _, key, image) in rows().into_iter().rev() {
            db.raw.run(&format!("DELETE FROM \"{table}\" WHERE \"{key}\" = '{ID}'"));
            let (_, changes) = changes.iter_mut().find(|(name, _)| *name == table).expect("a stream");
            let deleted = next(changes);
            assert_eq!((deleted.event_type, &deleted.new), (EventType::Delete, &None), "{table}");
            let old = deleted.old.expect("the row");
            assert_eq!((&old[key], old.len()), (&json!(ID), image.as_object().expect("an object").len()), "{table}");
        }
    }

    fn a_payload_has_the_names_of_the_specification(db: &TestDatabase) {
        let mut changes = stream(&db.service, ChangeRequest::table("spaces"));
        let space = db.space();
        let change = next(&mut changes);
        let payload = serde_json::to_value(&change).expect("JSON");
        let names: Vec<_> = payload.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(names, ["commit_timestamp", "cursor", "eventType", "new", "old", "schema", "table"]);
        assert_eq!((&payload["eventType"], &payload["new"]["id"], &payload["old"]), (&json!("INSERT"), &json!(space.id), &Value::Null));
        assert_eq!(payload["commit_timestamp"].as_str().map(str::len), Some(TIME.len()));
        assert_eq!(payload["cursor"], json!(&*change.cursor));
    }

    fn a_change_after_subscribe_returned_is_delivered(db: &TestDatabase) {
        for round in 0..30 {
            let mut changes = stream(&db.service, ChangeRequest::table("spaces"));
            let recorder = Recorder::subscribe(&db.service, ChangeRequest::table("spaces"));
            db.service.spaces().create_space(NewSpace::named(format!("{round}"))).expect("created");
            assert_eq!(short(&next(&mut changes)), format!("INSERT {round}"));
            assert_eq!(recorder.wait_for(1), [format!("INSERT {round}")]);
            recorder.subscription.unsubscribe();
        }
    }

    fn concurrent_writes_are_delivered_once_and_in_one_order(db: &TestDatabase) {
        let (writers, each) = (6, 40);
        let mut streams: Vec<_> = (0..3).map(|_| stream(&db.service, ChangeRequest::table("spaces"))).collect();
        let recorders: Vec<_> = (0..3).map(|_| Recorder::subscribe(&db.service, ChangeRequest::table("spaces"))).collect();
        thread::scope(|scope| {
            for writer in 0..writers {
                scope.spawn(move || {
                    for number in 0..each {
                        let name = format!("{writer}/{number:03}");
                        db.service.spaces().create_space(NewSpace::named(name)).expect("created");
                    }
                });
            }
        });
        let count = writers * each;
        let first = next_short(&mut streams[0], count);
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), count, "each is delivered once");
        for writer in 0..writers {
            let own: Vec<_> = first.iter().filter(|name| name.starts_with(&format!("INSERT {writer}/"))).collect();
            assert!(own.is_sorted() && own.len() == each, "the order of a writer's commits: {own:?}");
        }
        for stream in &mut streams[1..] {
            assert_eq!(next_short(stream, count), first);
        }
        for recorder in &recorders {
            assert_eq!(recorder.wait_for(count), first);
        }
    }

    fn what_was_rolled_back_is_not_delivered(db: &TestDatabase) {
        let mut changes = stream(&db.service, ChangeRequest::table("spaces"));
        db.raw.run("BEGIN; INSERT INTO spaces (name) VALUES ('undone'); ROLLBACK");
        let mut fidgets = vec![NewFidget::of_type("x"); 3];
        fidgets[2].kind = None;
        let space = db.space();
        next(&mut changes);
        let mut of_space = stream(&db.service, ChangeRequest::table("fidgets"));
        db.service.fidgets().create_fidgets(space.id, fidgets).expect_err("the third has no type");
        assert_silent(db, &mut changes);
        assert_eq!(next_short(&mut of_space, 1), ["INSERT mark"]);
    }

    fn event_and_filter_select_what_is_delivered(db: &TestDatabase) {
        let (one, other) = (db.space(), db.space());
        let request = || ChangeRequest::table("spaces");
        let mut deleted = stream(&db.service, request().event(EventType::Delete));
        let mut of_one = stream(&db.service, request().filter(format!("id=eq.{}", one.id)));
        let mut named = stream(&db.service, request().filter("name=like.b%"));
        for space in [&one, &other] {
            db.service.spaces().update_space(space.id, SpacePatch::new().name("b")).expect("renamed");
        }
        db.service.spaces().update_space(one.id, SpacePatch::new().name("c")).expect("renamed");
        db.service.spaces().delete_space(one.id).expect("deleted");
        assert_eq!(next_short(&mut of_one, 3), ["UPDATE b", "UPDATE c", "DELETE c"]);
        // A row that leaves the view is a DELETE with its key.
        assert_eq!(next_short(&mut named, 3), ["INSERT b", "INSERT b", "DELETE 1 columns"]);
        assert_eq!(next_short(&mut deleted, 1), ["DELETE c"]);
    }

    fn the_subscriptions_of_the_specification_follow_a_space_and_its_fidgets(db: &TestDatabase) {
        let (space, other) = (db.space(), db.space());
        let (sender, receiver) = std::sync::mpsc::channel();
        let of_fidgets = sender.clone();
        let realtime = db.service.realtime();
        let record = move |change: townsquare::realtime::RowChange| sender.send(short(&change)).expect("the test receives");
        realtime.on_space_changes(space.id, record).expect("subscribed");
        let record = move |change: townsquare::realtime::RowChange| of_fidgets.send(short(&change)).expect("the test receives");
        realtime.on_fidget_changes(space.id, record).expect("subscribed");
        let expect = |expected: &str| assert_eq!(receiver.recv().as_deref(), Ok(expected));
        db.fidget(other.id, "elsewhere");
        db.fidget(space.id, "clock");
        expect("INSERT clock");
        db.service.spaces().update_space(other.id, SpacePatch::new().name("x")).expect("renamed");
        db.service.spaces().update_space(space.id, SpacePatch::new().name("y")).expect("renamed");
        expect("UPDATE y");
    }

    fn a_malformed_request_is_refused_and_leaves_nothing(db: &TestDatabase) {
        let table = ChangeRequest::table;
        for request in [
            table("nothing"), table(""), table("townsquare_sessions"), table("spaces").schema("auth"),
            table("spaces").filter("colour=eq.red"), table("spaces").filter("id=eq.1"), table("spaces").filter("name"),
            table("spaces").since("x"), table("spaces").since(""), table("spaces").since("0.0.0"),
        ] {
            assert_kind(ErrorKind::InvalidInput, db.client.realtime().changes(request));
        }
        let no_name = db.client.realtime().subscribe("a\0b", table("spaces"), |_| {});
        assert_kind(ErrorKind::InvalidInput, no_name);
        assert_eq!(db.client.realtime().stats().expect("figures").subscriptions, 0);
    }

    fn nothing_is_captured_before_the_feed_is_used(db: &TestDatabase) {
        db.space();
        let log = if db.engine == Engine::Sqlite { "townsquare_changes" } else { "townsquare.changes" };
        assert_eq!(db.raw.count(log), 0);
        assert_eq!(db.client.realtime().stats().expect("figures").retained, 0);
        assert_eq!(db.raw.count(log), 0);
        db.client.realtime().cursor().expect("a cursor");
        db.space();
        assert!(db.raw.count(log) > 0);
    }

    fn a_value_of_another_program_does_not_stop_the_feed(db: &TestDatabase) {
        let mut changes = stream(&db.service, ChangeRequest::table("fidgets"));
        let space = db.space();
        let deep = format!("{}{}", "[".repeat(900), "]".repeat(900));
        db.raw.run(&format!("INSERT INTO fidgets (space_id, type, config) VALUES ('{}', 'deep', '{deep}')", space.id));
        db.raw.run(&format!("INSERT INTO fidgets (space_id, type, created_at) VALUES ('{}', 'timeless', NULL)", space.id));
        let after: Vec<_> = std::iter::from_fn(|| Some(short(&next(&mut changes))))
            .skip_while(|name| name.ends_with("deep")).take(1).collect();
        assert_eq!(after, ["INSERT timeless"]);
        assert_ne!(space.id, Uuid::nil());
    }
}

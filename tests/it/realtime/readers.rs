//! The columns that callers read: in payloads, in rows of live queries, and in filters (DESIGN 4).

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    communities::{Change, CommunityPatch},
    realtime::{ChangeRequest, LiveRequest},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{TestDatabase, required},
};

use super::fixture::{Recorder, next, stream};

const HIDDEN: [&str; 3] = ["admin_email", "admin_identity_public_keys", "custom_domain_authorized"];
const KEY: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const PASSWORD: &str = "correct horse";

fn configs() -> ChangeRequest {
    ChangeRequest::table("community_configs")
}

fn save(db: &TestDatabase, ui: &str) {
    let mut patch: CommunityPatch = required();
    patch.admin_email = Change::Set("mayor@town.example".to_owned());
    patch.admin_identity_public_keys = Change::Set(vec![KEY.to_owned()]);
    patch.custom_domain_authorized = Change::Set(true);
    patch.ui_config = Change::Set(ui.into());
    db.service.communities().save_community_config("town", patch).expect("saved");
}

/// A user who has linked the key of the community, and a handle that acts for the user.
fn key_holder(db: &TestDatabase) -> (Uuid, Client) {
    let id = db.service.auth().sign_up("ann@town.example", PASSWORD).expect("signed up").id;
    let session = db.service.auth().sign_in("ann@town.example", PASSWORD).expect("a session");
    let schema =
        if db.engine == townsquare_tests::test_database::Engine::Sqlite { "townsquare_" } else { "townsquare." };
    db.raw.run(&format!(
        "INSERT INTO {schema}identities (public_key, user_id, linked_at) VALUES ('{KEY}', '{id}', '2026-01-01T00:00:00.000000Z')"
    ));
    (id, db.client.as_user(&session.access_token).expect("a handle"))
}

#[track_caller]
fn assert_is_readable(row: Option<&Map<String, Value>>, is_service: bool) {
    let row = row.expect("a row");
    let names: BTreeSet<&str> = row.keys().map(String::as_str).collect();
    assert_eq!(names.len(), if is_service { 13 } else { 10 }, "{names:?}");
    assert_eq!(HIDDEN.iter().all(|column| names.contains(column)), is_service, "{names:?}");
    assert!(is_service || !Value::Object(row.clone()).to_string().contains("mayor"), "{row:?}");
    assert!(["id", "updated_at", "brand_config", "ui_config"].iter().all(|column| names.contains(column)), "{names:?}");
}

/// The changes in the events of a response.
fn events(db: &TestDatabase, count: usize, write: impl FnOnce()) -> Vec<Value> {
    let client = &db.client;
    let mut response = client.realtime().handle_events("/events?table=community_configs", &[]).expect("a response");
    assert_eq!(response.status, 200);
    write();
    let mut found: Vec<Value> = Vec::new();
    while found.len() < count {
        let chunk = response.body.next().expect("the stream goes on").to_vec();
        let text = String::from_utf8(chunk).expect("UTF-8");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        found.extend(data.map(|data| serde_json::from_str::<Value>(data).expect("JSON")));
    }
    found
}

on_both_engines! {
    fn the_services_columns_reach_no_other_caller(db: &TestDatabase) {
        let (_, holder) = key_holder(db);
        let callers = [(&db.client, false), (&holder, false), (&db.service, true)];
        let cursor = db.service.realtime().cursor().expect("a cursor");
        let mut streams = callers.map(|(client, is_service)| (stream(client, configs()), is_service));
        let recorders = callers.map(|(client, is_service)| (Recorder::subscribe(client, configs()), is_service));
        save(db, "dark");
        save(db, "light");
        db.service.communities().save_community_config("town", {
            let mut patch = CommunityPatch::new();
            patch.is_published = Change::Set(false);
            patch
        }).expect("hidden");
        save(db, "dark");
        db.raw.run("UPDATE community_configs SET is_published = true");
        for (changes, is_service) in &mut streams {
            let (inserted, updated, hidden) = (next(changes), next(changes), next(changes));
            assert_is_readable(inserted.new.as_deref(), *is_service);
            assert_is_readable(updated.new.as_deref(), *is_service);
            assert_is_readable(updated.old.as_deref(), *is_service);
            assert_eq!(hidden.old.expect("a row").len(), if *is_service { 13 } else { 1 });
        }
        for (recorder, is_service) in &recorders {
            recorder.wait_for(2);
            assert_is_readable(recorder.changes()[1].old.as_deref(), *is_service);
            recorder.subscription.unsubscribe();
        }
        for (client, is_service) in callers {
            let mut replayed = stream(client, configs().since(&*cursor));
            assert_is_readable(next(&mut replayed).new.as_deref(), is_service);
            let live = client.realtime().live(LiveRequest::table("community_configs"));
            let mut live = live.expect("a live query");
            assert_is_readable(live.rows.first(), is_service);
            db.raw.run("UPDATE community_configs SET navigation_config = '[1]'");
            assert_is_readable(next(&mut live.changes).new.as_deref(), is_service);
        }
        for change in events(db, 1, || save(db, "events")) {
            assert_is_readable(change["new"].as_object(), false);
            assert_is_readable(change["old"].as_object(), false);
        }
        // A deletion carries what the caller could read.
        db.raw.run("DELETE FROM community_configs");
        let (mut of_stranger, _) = streams.into_iter().next().expect("a stream");
        let deleted = loop {
            let change = next(&mut of_stranger);
            if change.event_type.to_string() == "DELETE" && change.old.as_ref().is_some_and(|old| old.len() > 1) {
                break change;
            }
        };
        assert_is_readable(deleted.old.as_deref(), false);
    }

    fn a_hidden_column_is_filtered_on_like_an_unknown_one(db: &TestDatabase) {
        let (_, holder) = key_holder(db);
        save(db, "dark");
        for column in HIDDEN {
            let filter = |column: &str| format!("{column}=is.null");
            for client in [&db.client, &holder] {
                let refusal = |column: &str| {
                    let changes = client.realtime().changes(configs().filter(filter(column)));
                    let live = client.realtime().live(LiveRequest::table("community_configs").filter(filter(column)));
                    let subscribed = client.realtime().subscribe("x", configs().filter(filter(column)), |_| {});
                    let errors = [
                        assert_kind(ErrorKind::InvalidInput, changes.map(drop)),
                        assert_kind(ErrorKind::InvalidInput, live.map(drop)),
                        assert_kind(ErrorKind::InvalidInput, subscribed.map(drop)),
                    ];
                    errors.map(|error| error.to_string().replace(column, "x"))
                };
                assert_eq!(refusal(column), refusal("unknown"));
            }
            let live = db.service.realtime().live(LiveRequest::table("community_configs").filter(format!("{column}=is.null")));
            assert!(live.expect("a live query").rows.is_empty(), "{column}");
            let target = format!("/events?table=community_configs&filter={column}=is.null");
            let http = &db.service;
            assert_eq!(http.realtime().handle_events(&target, &[]).expect("a response").status, 400, "no bearer is anonymous");
        }
    }
}

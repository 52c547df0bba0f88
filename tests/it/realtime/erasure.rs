//! The deletion of a user erases what the change log holds of the user (DESIGN 5).

use serde_json::json;
use townsquare::{
    Uuid,
    blocking::Client,
    realtime::{ChangeRequest, EventType, RowChange},
    spaces::{NewFidget, NewSpace, SpacePatch},
    storage::UploadOptions,
};
use townsquare_tests::{
    on_both_engines,
    raw_sql::RawConnection,
    test_database::{Engine, TestDatabase},
};

use super::fixture::{PASSWORD, Recorder, assert_silent, next, next_short, stream, user};

/// Every text of the log.
fn log(db: &TestDatabase) -> String {
    let columns = match db.engine {
        Engine::Sqlite => "old, new, old_context, new_context FROM townsquare_changes",
        Engine::Postgres => {
            "old_row::text, new_row::text, old_context::text, new_context::text FROM townsquare.changes"
        }
    };
    db.raw.rows(&format!("SELECT {columns}")).into_iter().flatten().flatten().collect::<Vec<_>>().join("\n")
}

/// Writes rows of a user: an address that changes, spaces, fidgets, files.
fn write_rows(db: &TestDatabase, id: Uuid, client: &Client) {
    db.raw.run(&format!("UPDATE users SET email = 'secret-address@town.example' WHERE id = '{id}'"));
    let space = db.public_space(id, "secret plan");
    db.service.spaces().update_space(space.id, SpacePatch::new().name("secret name").hidden()).expect("updated");
    let mut fidget = NewFidget::of_type("clock");
    fidget.config = Some(json!({ "note": "secret config", "(erased)": false }));
    db.service.fidgets().create_fidget(space.id, fidget).expect("a fidget");
    db.service.spaces().update_space(space.id, SpacePatch::new().published()).expect("updated");
    let options = || UploadOptions::new().content_type("text/secret");
    client.storage().upload("private", &format!("{id}/note"), "x", options()).expect("uploaded");
    client.storage().upload("assets", "gone.txt", "x", options()).expect("uploaded");
    client.storage().delete("assets", "gone.txt").expect("deleted");
    let gone = db.public_space(id, "secret and deleted before");
    db.service.spaces().delete_space(gone.id).expect("deleted");
}

#[track_caller]
fn assert_key_alone(change: &RowChange) {
    let old = change.old.as_ref().expect("a key");
    assert_eq!((change.event_type, &change.new), (EventType::Delete, &None), "{old:?}");
    let key: &[&str] = if change.table == "files" { &["bucket", "path"] } else { &["id"] };
    assert_eq!(old.keys().map(String::as_str).collect::<Vec<_>>(), key);
}

on_both_engines! {
    fn the_log_keeps_the_keys_of_a_deleted_user(db: &TestDatabase) {
        let start = db.service.realtime().cursor().expect("a cursor");
        let ((ann_id, ann), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        for (name, id, client) in [("ann", ann_id, &ann), ("bob", bob_id, &bob)] {
            write_rows(db, id, client);
            let found = log(db);
            assert!(["secret-address", "secret plan", "secret config", "text/secret"].iter().all(|text| found.contains(text)));
            if id == ann_id {
                db.service.auth().delete_user(ann_id).expect("deleted");
            } else {
                db.raw.run(&format!("UPDATE users SET email = 'bob@town.example' WHERE id = '{id}'"));
                db.client.auth().sign_in("bob@town.example", PASSWORD).expect("signed in");
                db.client.auth().delete_own_user(PASSWORD).expect("deleted");
            }
            let found = log(db);
            for text in [&format!("{name}@town.example"), "secret"] {
                assert!(!found.contains(text), "{text}: {found}");
            }
        }
        // The service gets the ends.
        for (table, count) in [("users", 2), ("spaces", 4), ("fidgets", 2), ("files", 4)] {
            let mut changes = stream(&db.service, ChangeRequest::table(table).since(&*start));
            (0..count).for_each(|_| assert_key_alone(&next(&mut changes)));
            if table == "spaces" {
                assert_silent(db, &mut changes);
            }
        }
    }

    fn rows_whose_keys_others_use_now_are_erased_too(db: &TestDatabase) {
        let start = db.service.realtime().cursor().expect("a cursor");
        let ((ann_id, ann), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        let fidget = |id: Option<Uuid>, note: &str| {
            let mut fidget = NewFidget::of_type("clock");
            (fidget.id, fidget.config) = (id, Some(json!({ "note": note })));
            fidget
        };
        let space = |id: Uuid, owner: Uuid, name: &str| {
            db.service.spaces().create_space(NewSpace::named(name).owned_by(owner).with_id(id)).expect("a space")
        };
        // Each key is the user's twice before another user has it.
        let (reused, options) = (Uuid::new_v4(), || UploadOptions::new().content_type("text/secret"));
        for _ in 0..2 {
            let bobs = space(reused, bob_id, "secret plan");
            let created = db.service.fidgets().create_fidget(bobs.id, fidget(None, "secret config")).expect("a fidget");
            db.service.fidgets().delete_fidget(created.id).expect("deleted");
            db.service.fidgets().create_fidget(bobs.id, fidget(Some(reused), "secret config")).expect("a fidget");
            db.service.spaces().update_space(bobs.id, SpacePatch::new().name("secret name")).expect("updated");
            db.service.spaces().delete_space(bobs.id).expect("deleted");
            bob.storage().upload("assets", "logo.png", "x", options()).expect("uploaded");
            bob.storage().delete("assets", "logo.png").expect("deleted");
        }
        let anns = space(reused, ann_id, "harbor");
        db.service.fidgets().create_fidget(anns.id, fidget(Some(reused), "boats")).expect("a fidget");
        ann.storage().upload("assets", "logo.png", "y", UploadOptions::new().content_type("text/anns")).expect("uploaded");
        // A row that the user gave away is not the user's any more.
        let given = db.public_space(bob_id, "gift");
        db.raw.run(&format!("UPDATE spaces SET owner_id = '{ann_id}' WHERE id = '{}'", given.id));
        db.service.auth().delete_user(bob_id).expect("deleted");
        let found = log(db);
        assert!(!found.contains("secret") && !found.contains("bob@town.example"), "{found}");
        for text in ["harbor", "boats", "text/anns", "gift"] {
            assert!(found.contains(text), "{text}: {found}");
        }
        // A mirror of the log has what there is.
        let mut changes = stream(&db.service, ChangeRequest::table("fidgets").since(&*start));
        let mut rows = std::collections::BTreeMap::new();
        loop {
            let change = next(&mut changes);
            let id = |row: &serde_json::Map<String, serde_json::Value>| row["id"].to_string();
            match (change.event_type, change.new, change.old) {
                (EventType::Delete, _, Some(old)) => drop(rows.remove(&id(&old))),
                (_, Some(new), _) => drop(rows.insert(id(&new), new)),
                other => panic!("{other:?}"),
            }
            if rows.values().any(|row| row["config"] == json!({ "note": "boats" })) {
                break;
            }
        }
        assert_eq!(rows.len(), 1, "{rows:?}");
    }

    fn a_long_history_of_rows_that_are_left_is_erased(db: &TestDatabase) {
        let start = db.service.realtime().cursor().expect("a cursor");
        let (ann_id, _) = user(db, "ann");
        let space = db.public_space(ann_id, "secret plan");
        for n in 0..300 {
            db.service.spaces().update_space(space.id, SpacePatch::new().name(format!("secret {n}"))).expect("updated");
        }
        assert!(log(db).matches("secret").count() > 300);
        db.service.auth().delete_user(ann_id).expect("deleted");
        let found = log(db);
        assert!(!found.contains("secret") && !found.contains("ann@town.example"), "{found}");
        assert_key_alone(&next(&mut stream(&db.service, ChangeRequest::table("spaces").since(&*start))));
    }

    fn a_write_that_commits_during_the_deletion_is_erased(db: &TestDatabase) {
        db.service.realtime().start().expect("started");
        let (ann_id, _) = user(db, "ann");
        let (space, other) = (db.public_space(ann_id, "plan"), db.user());
        // The entry has an id before the deletion reads the log, and is committed after.
        let update = format!("UPDATE spaces SET name = 'secret' WHERE id = '{}'", space.id);
        let (writer, begin) = match db.engine {
            Engine::Sqlite => (RawConnection::sqlite(&db.file()), "BEGIN IMMEDIATE"),
            Engine::Postgres => (RawConnection::postgres(&db.url()).expect("the server runs"), "BEGIN"),
        };
        writer.run(&format!("{begin}; {update}"));
        std::thread::scope(|scope| {
            let deletion = scope.spawn(|| db.service.auth().delete_user(ann_id));
            // Later entries: what was written before them has to be found all the same.
            if db.engine == Engine::Postgres {
                db.public_space(other, "of another");
                db.wait_for_a_waiting_connection();
            }
            writer.run("COMMIT");
            deletion.join().expect("no panic").expect("deleted");
        });
        let found = log(db);
        assert!(!found.contains("secret") && !found.contains("ann@town.example"), "{found}");
    }

    fn the_end_of_an_erased_row_reaches_everybody_who_saw_it(db: &TestDatabase) {
        let (ann_id, _) = user(db, "ann");
        let space = db.public_space(ann_id, "harbor");
        db.fidget(space.id, "clock");
        let spaces = |filter: &str| ChangeRequest::table("spaces").filter(filter);
        let mut live = ["", "name=eq.harbor", "name=like.har%"].map(|filter| stream(&db.client, spaces(filter)));
        let mut of_fidgets = stream(&db.client, ChangeRequest::table("fidgets").filter("type=eq.clock"));
        let callback = Recorder::subscribe(&db.client, spaces("name=eq.harbor"));
        let mut elsewhere = stream(&db.client, spaces(&format!("id=eq.{}", Uuid::nil())));
        db.service.auth().delete_user(ann_id).expect("deleted");
        for changes in live.iter_mut().chain([&mut of_fidgets]) {
            assert_key_alone(&next(changes));
        }
        assert_eq!(callback.wait_for(1), ["DELETE 1 columns"]);
        db.public_space(db.user(), "later");
        assert!(elsewhere.next_within(std::time::Duration::ZERO).is_none());
    }

    fn rows_that_stay_keep_their_history(db: &TestDatabase) {
        let ((ann_id, ann), (bob_id, _)) = (user(db, "ann"), user(db, "bob"));
        let start = db.client.realtime().cursor().expect("a cursor");
        let handed = db.public_space(ann_id, "handed over");
        db.fidget(handed.id, "clock");
        db.public_space(bob_id, "of bob");
        ann.storage().upload("assets", "stays.txt", "x", UploadOptions::new()).expect("uploaded");
        db.raw.run(&format!("UPDATE spaces SET owner_id = '{bob_id}' WHERE id = '{}'", handed.id));
        db.service.auth().delete_user(ann_id).expect("deleted");
        let since = |table: &str| stream(&db.client, ChangeRequest::table(table).since(&*start));
        assert_eq!(next_short(&mut since("spaces"), 3), ["INSERT handed over", "INSERT of bob", "UPDATE handed over"]);
        assert_eq!(next_short(&mut since("fidgets"), 1), ["INSERT clock"]);
        assert_eq!(next_short(&mut since("files"), 1), ["INSERT stays.txt"]);
    }

    fn a_row_that_only_looks_erased_is_whole(db: &TestDatabase) {
        let space = db.public_space(db.user(), "harbor");
        let mut changes = stream(&db.client, ChangeRequest::table("fidgets"));
        let mut fidget = NewFidget::of_type("\"(erased)\"");
        fidget.config = Some(json!({ "(erased)": true }));
        db.service.fidgets().create_fidget(space.id, fidget).expect("a fidget");
        assert_eq!(next(&mut changes).new.expect("a row").len(), 7);
    }
}

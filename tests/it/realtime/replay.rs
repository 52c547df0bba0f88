//! A subscription that begins with a cursor shows callers other than the service only the keys of deleted and hidden rows
//! (DESIGN 5).

use serde_json::{Value, json};
use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    realtime::{ChangeRequest, RowChange},
    spaces::{FidgetPatch, NewFidget, SpacePatch},
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

use super::fixture::{PausedReader, Recorder, next, next_short, short, stream, user};

fn cursor(db: &TestDatabase) -> String {
    db.client.realtime().cursor().expect("a cursor")
}

fn update(db: &TestDatabase, space: Uuid, patch: SpacePatch) {
    db.service.spaces().update_space(space, patch).expect("updated");
}

/// Creates the public space `end`, and reads the changes after the cursor up to it.
#[track_caller]
fn replay_to_end(db: &TestDatabase, client: &Client, request: ChangeRequest, end: &str) -> Vec<RowChange> {
    let mut changes = stream(client, request);
    let space = db.public_space(db.user(), end);
    db.fidget(space.id, end);
    let mut found = Vec::new();
    loop {
        let change = next(&mut changes);
        let new = change.new.clone().unwrap_or_default();
        if new.get("name").or_else(|| new.get("type")) == Some(&json!(end)) {
            return found;
        }
        found.push(change);
    }
}

/// The change without cursor and time: event, old and new row.
fn content(change: &RowChange) -> Value {
    json!([change.event_type.to_string(), change.old.as_deref(), change.new.as_deref()])
}

fn contents(changes: &[RowChange]) -> Vec<Value> {
    changes.iter().map(content).collect()
}

/// The events of an anonymous request, up to the one that has the word `mark`.
fn events_to_mark(db: &TestDatabase, target: &str) -> String {
    let client = &db.client;
    let mut response = client.realtime().handle_events(target, &[]).expect("a response");
    let mut text = String::new();
    while !text.contains("mark") {
        text.push_str(std::str::from_utf8(&response.body.next().expect("an event")).expect("UTF-8"));
    }
    text
}

fn end_of(id: Uuid) -> Value {
    json!(["DELETE", { "id": id }, null])
}

on_both_engines! {
    fn a_stranger_gets_only_the_key_of_a_row_that_was_public_for_a_moment(db: &TestDatabase) {
        let ((ann_id, ann), (_, bob)) = (user(db, "ann"), user(db, "bob"));
        let start = cursor(db);
        let space = db.public_space(ann_id, "secret plan");
        db.fidget(space.id, "secret fidget");
        update(db, space.id, SpacePatch::new().name("secret name"));
        update(db, space.id, SpacePatch::new().hidden());
        for client in [&db.client, &bob] {
            let spaces = replay_to_end(db, client, ChangeRequest::table("spaces").since(&*start), "end");
            let own: Vec<_> = contents(&spaces).into_iter().filter(|change| change.to_string().contains(&space.id.to_string())).collect();
            assert_eq!(own, [end_of(space.id)]);
            let fidgets = replay_to_end(db, client, ChangeRequest::table("fidgets").since(&*start), "end");
            assert!(fidgets.iter().any(|change| change.event_type.to_string() == "DELETE"));
            assert!(!json!([contents(&spaces), contents(&fidgets)]).to_string().contains("secret"));
        }
        // The owner sees the changes, and so does the service.
        for client in [&ann, &db.service] {
            let names = next_short(&mut stream(client, ChangeRequest::table("spaces").since(&*start)), 3);
            assert_eq!(names, ["INSERT secret plan", "UPDATE secret name", "UPDATE secret name"]);
        }
        // It is public again: what was shown then is shown again.
        update(db, space.id, SpacePatch::new().published());
        let names = next_short(&mut stream(&db.client, ChangeRequest::table("spaces").since(&*start)), 2);
        assert_eq!(names, ["INSERT secret plan", "UPDATE secret name"]);
    }

    fn callers_get_only_the_key_of_a_deleted_row(db: &TestDatabase) {
        let (ann_id, ann) = user(db, "ann");
        let start = cursor(db);
        let space = db.public_space(ann_id, "secret plan");
        db.fidget(space.id, "secret fidget");
        db.service.communities().save_community_config("town", townsquare_tests::test_database::required()).expect("saved");
        db.raw.run("UPDATE community_configs SET ui_config = '\"secret\"'");
        db.raw.run("DELETE FROM community_configs");
        db.service.spaces().delete_space(space.id).expect("deleted");
        for client in [&db.client, &ann] {
            let spaces = replay_to_end(db, client, ChangeRequest::table("spaces").since(&*start), "end");
            assert_eq!(contents(&spaces)[0], end_of(space.id));
            let fidgets = replay_to_end(db, client, ChangeRequest::table("fidgets").since(&*start), "end");
            let configs = next(&mut stream(client, ChangeRequest::table("community_configs").since(&*start)));
            assert_eq!((configs.event_type.to_string().as_str(), configs.old.as_ref().map(|row| row.len())), ("DELETE", Some(1)));
            assert!(!json!([contents(&spaces), contents(&fidgets), content(&configs)]).to_string().contains("secret"));
        }
        let all = next_short(&mut stream(&db.service, ChangeRequest::table("spaces").since(&*start)), 2);
        assert_eq!(all, ["INSERT secret plan", "DELETE secret plan"]);
        // Whoever listened at the time got the row.
        let mut live = stream(&db.client, ChangeRequest::table("spaces"));
        let space = db.public_space(ann_id, "seen");
        db.service.spaces().delete_space(space.id).expect("deleted");
        assert_eq!(next_short(&mut live, 2), ["INSERT seen", "DELETE seen"]);
    }

    fn filters_reveal_nothing_about_rows_that_are_gone(db: &TestDatabase) {
        let (ann_id, _) = user(db, "ann");
        let start = cursor(db);
        let (space, other) = (db.public_space(ann_id, "secret plan"), db.public_space(ann_id, "other"));
        let fidget = db.fidget(space.id, "secret fidget");
        db.fidget(other.id, "other");
        db.service.spaces().delete_space(space.id).expect("deleted");
        let seen = |table: &str, filter: &str| {
            let request = ChangeRequest::table(table).filter(filter).since(&*start);
            let mut changes = stream(&db.client, request);
            // The row is public and matches every filter of `spaces` here.
            let change = next(&mut changes);
            content(&change)
        };
        for filter in ["name=like.secret%", "name=like.zzz%", "description=is.null&name=eq.x", &format!("owner_id=eq.{}", Uuid::nil()), &format!("id=eq.{}", space.id)] {
            assert_eq!(seen("spaces", filter), end_of(space.id), "{filter}");
        }
        for filter in ["type=eq.x".to_owned(), format!("space_id=eq.{}&type=neq.y", space.id)] {
            assert_eq!(seen("fidgets", &filter), end_of(fidget.id), "{filter}");
        }
        // The key and the space of a fidget are compared.
        let mut changes = stream(&db.client, ChangeRequest::table("fidgets").filter(format!("space_id=eq.{}", other.id)).since(&*start));
        assert_eq!(next_short(&mut changes, 1), ["INSERT other"]);
        let mut changes = stream(&db.client, ChangeRequest::table("spaces").filter(format!("id=eq.{}", other.id)).since(&*start));
        assert_eq!(next_short(&mut changes, 1), ["INSERT other"]);
    }

    fn rows_that_are_visible_are_replayed_whole(db: &TestDatabase) {
        let (ann_id, ann) = user(db, "ann");
        let start = cursor(db);
        db.raw.run(&format!("UPDATE users SET email = 'new@town.example' WHERE id = '{ann_id}'"));
        let space = db.public_space(ann_id, "harbor");
        db.fidget(space.id, "clock");
        db.community("town");
        let own_row = |table: &str| stream(&ann, ChangeRequest::table(table).since(&*start));
        db.service.communities().save_community_domain("town", "town.example", townsquare::communities::DomainType::Custom).expect("saved");
        let registration = townsquare::communities::NewRegistration::new(space.id, "harbor", townsquare::communities::SpaceType::Profile);
        db.service.communities().register_space(registration).expect("registered");
        ann.storage().upload("private", &format!("{ann_id}/note"), "x", UploadOptions::new()).expect("uploaded");
        for (table, columns) in [
            ("users", 4), ("spaces", 7), ("fidgets", 7), ("community_configs", 10), ("community_domains", 6),
            ("spaceRegistrations", 7), ("files", 9),
        ] {
            assert_eq!(next(&mut own_row(table)).new.expect("a row").len(), columns, "{table}");
        }
    }

    fn callers_get_only_the_keys_of_deleted_and_moved_files(db: &TestDatabase) {
        let (_, ann) = user(db, "ann");
        let start = cursor(db);
        let upload = |path: &str, bytes: &'static str| {
            ann.storage().upload("assets", path, bytes, UploadOptions::new().content_type("text/secret")).expect("uploaded")
        };
        upload("a.txt", "one");
        ann.storage().delete("assets", "a.txt").expect("deleted");
        upload("b.txt", "two");
        ann.storage().move_file("assets", "b.txt", "c.txt", Overwrite::Refuse).expect("moved");
        ann.storage().delete("assets", "c.txt").expect("deleted");
        ann.storage().upload("assets", "mark", "x", UploadOptions::new()).expect("uploaded");
        let mut changes = stream(&db.client, ChangeRequest::table("files").since(&*start));
        let mut paths: Vec<_> = (0..3).map(|_| content(&next(&mut changes)).to_string()).collect();
        paths.sort_unstable();
        let key = |path: &str| json!(["DELETE", { "bucket": "assets", "path": path }, null]).to_string();
        assert_eq!(paths, ["a.txt", "b.txt", "c.txt"].map(key));
        assert_eq!(next_short(&mut changes, 1), ["INSERT mark"]);
    }

    fn of_a_fidget_whose_id_was_given_again_a_stranger_gets_the_key(db: &TestDatabase) {
        let ((ann_id, _), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        let start = cursor(db);
        let space = db.public_space(ann_id, "harbor");
        let fidget = db.fidget(space.id, "secret fidget");
        db.service.fidgets().update_fidget(fidget.id, FidgetPatch::new().kind("secret kind")).expect("updated");
        db.service.fidgets().delete_fidget(fidget.id).expect("deleted");
        let own = db.public_space(bob_id, "own");
        bob.fidgets().create_fidget(own.id, NewFidget::of_type("own").with_id(fidget.id)).expect("created");
        bob.fidgets().update_fidget(fidget.id, FidgetPatch::new().kind("mark")).expect("updated");
        let request = || ChangeRequest::table("fidgets").since(&*start);
        for client in [&db.client, &bob] {
            let mut changes = stream(client, request());
            assert_eq!(content(&next(&mut changes)), end_of(fidget.id));
            assert_eq!(next_short(&mut changes, 2), ["INSERT own", "UPDATE mark"]);
        }
        let text = events_to_mark(db, &format!("/events?table=fidgets&since={start}"));
        assert!(text.contains("DELETE") && text.contains("own") && !text.contains("secret"), "{text}");
        let all = next_short(&mut stream(&db.service, request()), 5);
        assert_eq!(
            all,
            ["INSERT secret fidget", "UPDATE secret kind", "DELETE secret kind", "INSERT own", "UPDATE mark"]
        );
    }

    fn of_many_fidgets_whose_ids_were_given_again_strangers_get_the_keys(db: &TestDatabase) {
        let (ann, bob) = (db.public_space(db.user(), "harbor").id, db.public_space(db.user(), "market").id);
        // More than two pages of each kind of entry.
        let make = |space: Uuid, kind: &str| {
            let row = |number: u32| format!("('{}', '{space}', '{kind}')", Uuid::from_u128(u128::from(number)));
            let rows: Vec<_> = (1..=600).map(row).collect();
            db.raw.run(&format!("INSERT INTO fidgets (id, space_id, type) VALUES {}", rows.join(", ")));
        };
        let first = cursor(db);
        make(ann, "secret");
        let second = cursor(db);
        db.raw.run("DELETE FROM fidgets");
        let third = cursor(db);
        make(bob, "plain");
        let last = cursor(db);
        let request = |cursor: &String| ChangeRequest::table("fidgets").since(&**cursor);
        // What one replay has learnt of the log, the next one of the client uses.
        let mut number = 0;
        for order in [[&first, &second, &third, &last], [&last, &third, &second, &first], [&second, &last, &first, &third]] {
            let client = db.another();
            for cursor in order {
                number += 1;
                let changes = replay_to_end(db, &client, request(cursor), &format!("end {number}"));
                let count = |kind: &str| changes.iter().filter(|change| short(change) == kind).count();
                let ends = if [&first, &second].contains(&cursor) { 600 } else { 0 };
                assert_eq!(count("INSERT plain"), if cursor == &last { 0 } else { 600 });
                assert_eq!(count("DELETE 1 columns"), ends);
                assert!(!json!(contents(&changes)).to_string().contains("secret"));
            }
            client.close();
        }
    }

    fn of_a_fidget_whose_id_was_given_again_after_the_log_reader_a_stranger_gets_the_key(db: &TestDatabase) {
        let ((ann_id, _), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        let (space, own) = (db.public_space(ann_id, "harbor"), db.public_space(bob_id, "market"));
        let lasting = Recorder::subscribe(&db.client, ChangeRequest::table("fidgets"));
        let start = cursor(db);
        let fidget = db.fidget(space.id, "secret");
        assert_eq!(lasting.wait_for(1), ["INSERT secret"]);
        let reader = PausedReader::pause(&db.service);
        // The log reader has read neither the end of the fidget nor the other one with its id.
        db.service.fidgets().delete_fidget(fidget.id).expect("deleted");
        bob.fidgets().create_fidget(own.id, NewFidget::of_type("plain").with_id(fidget.id)).expect("created");
        let replayed = Recorder::subscribe(&db.client, ChangeRequest::table("fidgets").since(&*start));
        reader.release();
        assert_eq!(replayed.wait_for(2), ["DELETE 1 columns", "INSERT plain"]);
    }

    fn of_a_file_whose_path_was_uploaded_again_a_stranger_gets_the_key(db: &TestDatabase) {
        let ((_, ann), (_, bob)) = (user(db, "ann"), user(db, "bob"));
        let start = cursor(db);
        let upload = |client: &Client, path: &str, kind: &str| {
            let options = UploadOptions::new().content_type(format!("text/{kind}"));
            client.storage().upload("assets", path, "x", options).expect("uploaded")
        };
        for path in ["theirs", "again", "moved"] {
            upload(&ann, path, "secret");
            upload(&ann, path, "secret-too");
        }
        for path in ["theirs", "again"] {
            ann.storage().delete("assets", path).expect("deleted");
        }
        ann.storage().move_file("assets", "moved", "away", Overwrite::Refuse).expect("moved");
        ann.storage().delete("assets", "away").expect("deleted");
        upload(&bob, "theirs", "mine");
        upload(&ann, "again", "plain");
        upload(&bob, "moved", "mine");
        // It was never deleted.
        upload(&ann, "kept", "one");
        upload(&db.service, "kept", "two");
        upload(&ann, "mark", "x");
        let request = || ChangeRequest::table("files").since(&*start);
        for client in [&db.client, &bob, &ann] {
            let mut changes = stream(client, request());
            let mut ends = contents(&(0..4).map(|_| next(&mut changes)).collect::<Vec<_>>());
            ends.sort_unstable_by_key(Value::to_string);
            let end = |path: &str| json!(["DELETE", { "bucket": "assets", "path": path }, null]);
            assert_eq!(ends, ["again", "away", "moved", "theirs"].map(end));
            let mut rest: Vec<_> = (0..6).map(|_| next(&mut changes)).collect();
            assert!(!json!(contents(&rest)).to_string().contains("secret"));
            let rest: Vec<_> = rest.drain(..).map(|change| short(&change)).collect();
            assert_eq!(
                rest,
                ["INSERT theirs", "INSERT again", "INSERT moved", "INSERT kept", "UPDATE kept", "INSERT mark"]
            );
        }
        let text = events_to_mark(db, &format!("/events?table=files&since={start}"));
        assert!(text.contains("DELETE") && text.contains("text/mine") && !text.contains("secret"), "{text}");
        // A later replay reads what was deleted since the first one, and an earlier one what was deleted before.
        let later = cursor(db);
        upload(&ann, "later", "secret");
        ann.storage().delete("assets", "later").expect("deleted");
        upload(&bob, "later", "mark");
        for cursor in [&later, &start] {
            let text = events_to_mark(db, &format!("/events?table=files&since={cursor}"));
            assert!(text.contains("DELETE") && !text.contains("secret"), "{text}");
        }
        let mut all = stream(&db.service, request());
        let secrets = (0..10).map(|_| content(&next(&mut all)).to_string()).filter(|change| change.contains("secret"));
        assert_eq!(secrets.count(), 10);
    }

    fn a_browser_that_reconnects_gets_only_the_keys_of_rows_that_are_gone(db: &TestDatabase) {
        let (ann_id, _) = user(db, "ann");
        let start = cursor(db);
        let space = db.public_space(ann_id, "secret plan");
        update(db, space.id, SpacePatch::new().hidden());
        let client = &db.client;
        let by_header = vec![("last-event-id".to_owned(), start.clone())];
        for (target, headers) in [(format!("/events?table=spaces&since={start}"), Vec::new()), ("/events?table=spaces".to_owned(), by_header)] {
            let mut response = client.realtime().handle_events(&target, &headers).expect("a response");
            let mut text = String::new();
            while !text.contains("data: ") {
                text.push_str(std::str::from_utf8(&response.body.next().expect("an event")).expect("UTF-8"));
            }
            assert!(text.contains(&space.id.to_string()) && text.contains("DELETE") && !text.contains("secret"), "{text}");
        }
    }

    fn a_replay_that_the_log_reader_delivers_is_judged_the_same(db: &TestDatabase) {
        let (ann_id, _) = user(db, "ann");
        let lasting = Recorder::subscribe(&db.client, ChangeRequest::table("spaces"));
        let start = cursor(db);
        let reader = PausedReader::pause(&db.service);
        let space = db.public_space(ann_id, "secret plan");
        update(db, space.id, SpacePatch::new().hidden());
        // The log reader has not read these changes, and the cursor is where it stands.
        let mut changes = stream(&db.client, ChangeRequest::table("spaces").since(&*start));
        let replayed = Recorder::subscribe(&db.client, ChangeRequest::table("spaces").since(&*start));
        let later = db.public_space(ann_id, "later");
        db.service.spaces().delete_space(later.id).expect("deleted");
        reader.release();
        assert_eq!(content(&next(&mut changes)), end_of(space.id));
        assert_eq!(next_short(&mut changes, 2), ["INSERT later", "DELETE later"]);
        assert_eq!(replayed.wait_for(3), ["DELETE 1 columns", "INSERT later", "DELETE later"]);
        assert_eq!(lasting.wait_for(4), ["INSERT secret plan", "DELETE 1 columns", "INSERT later", "DELETE later"]);
    }

    fn a_long_replay_of_rows_that_are_gone_ends_and_misses_none(db: &TestDatabase) {
        let start = cursor(db);
        let rows: Vec<_> = (0..700).map(|number| format!("('secret {number}', true)")).collect();
        db.raw.run(&format!("INSERT INTO spaces (name, is_public) VALUES {}", rows.join(", ")));
        db.raw.run("UPDATE spaces SET is_public = false");
        let changes = replay_to_end(db, &db.client, ChangeRequest::table("spaces").since(&*start), "end");
        assert_eq!(changes.len(), 700);
        assert!(!json!(contents(&changes)).to_string().contains("secret"));
    }

    fn a_cursor_is_valid_in_every_process_of_its_database_and_reveals_nothing(db: &TestDatabase) {
        let other = db.another();
        let (here, there) = (cursor(db), other.realtime().cursor().expect("a cursor"));
        db.public_space(db.user(), "harbor");
        for client in [&db.client, &other] {
            for start in [&here, &there] {
                let names = next_short(&mut stream(client, ChangeRequest::table("spaces").since(&**start)), 1);
                assert_eq!(names, ["INSERT harbor"]);
            }
        }
        let later = cursor(db);
        let (changed, common): (Vec<_>, Vec<_>) = here.bytes().zip(later.bytes()).partition(|(one, other)| one != other);
        assert!(changed.len() > common.len() * 4, "{here} {later}: positions are not readable");
        // A changed cursor, and the form of older versions, with the incarnation of this database.
        let table = if db.engine == Engine::Sqlite { "townsquare_database" } else { "townsquare.database" };
        let incarnation = db.raw.value(&format!("SELECT incarnation FROM {table}"));
        let mut forged = here.clone();
        forged.replace_range(40..41, if &here[40..41] == "0" { "1" } else { "0" });
        for text in [forged, format!("{incarnation}.0.0"), format!("{incarnation}.5.7.1:2:@3")] {
            for client in [&db.client, &db.service] {
                assert_kind(ErrorKind::CursorExpired, client.realtime().changes(ChangeRequest::table("spaces").since(&*text)));
            }
        }
        other.close();
    }
}

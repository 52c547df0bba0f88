//! Who sees what: entering and leaving a view, visibility of fidgets, cascades, files.

use serde_json::json;
use townsquare::{
    Uuid,
    blocking::{ChangeStream, Client},
    realtime::{ChangeRequest, EventType, LiveRequest},
    spaces::{NewSpace, SpacePatch},
    storage::UploadOptions,
};
use townsquare_tests::{on_both_engines, test_database::TestDatabase};

use super::fixture::{assert_silent, next, next_short, short, stream, user};

fn fidgets(client: &Client) -> ChangeStream {
    stream(client, ChangeRequest::table("fidgets"))
}

fn update(db: &TestDatabase, space: Uuid, patch: SpacePatch) {
    db.service.spaces().update_space(space, patch).expect("updated");
}

on_both_engines! {
    fn publishing_and_hiding_a_space_shows_and_hides_its_fidgets(db: &TestDatabase) {
        let (owner, ann) = user(db, "ann");
        let space = db.public_space(owner, "harbor");
        update(db, space.id, SpacePatch::new().hidden());
        db.fidget(space.id, "clock");
        let (mut stranger, mut own, mut service) = (fidgets(&db.client), fidgets(&ann), fidgets(&db.service));
        update(db, space.id, SpacePatch::new().published());
        let shown = next(&mut stranger);
        assert_eq!((short(&shown).as_str(), shown.new.as_ref().map(|row| row.len())), ("INSERT clock", Some(7)));
        update(db, space.id, SpacePatch::new().name("no change of visibility"));
        update(db, space.id, SpacePatch::new().hidden());
        let hidden = next(&mut stranger);
        assert_eq!(hidden.old.as_deref().cloned().map(serde_json::Value::Object), Some(json!({ "id": shown.new.expect("a row")["id"] })));
        // What happens to a hidden fidget is not delivered, also after it is shown again.
        db.fidget(space.id, "secret");
        assert_silent(db, &mut stranger);
        // The owner and the service saw them all the time.
        assert_eq!(next_short(&mut own, 2), ["INSERT secret", "INSERT mark"]);
        assert_eq!(next_short(&mut service, 2), ["INSERT secret", "INSERT mark"]);
    }

    fn a_space_that_gets_another_id_and_owner_shows_the_files_of_that_id_once(db: &TestDatabase) {
        let ((ann_id, ann), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        let (space, id) = (db.public_space(ann_id, "harbor"), Uuid::new_v4());
        update(db, space.id, SpacePatch::new().hidden());
        let upload = |bucket: &str, path: &str| {
            db.service.storage().upload(bucket, path, "x", UploadOptions::new()).expect("uploaded");
        };
        upload("spaces", &format!("{id}/tabs/Home"));
        let files = |client| stream(client, ChangeRequest::table("files"));
        let (mut of_ann, mut of_bob) = (files(&ann), files(&bob));
        db.raw.run(&format!("UPDATE spaces SET id = '{id}', owner_id = '{bob_id}' WHERE id = '{}'", space.id));
        upload("assets", "mark");
        assert_eq!(next_short(&mut of_ann, 1), ["INSERT mark"]);
        assert_eq!(next_short(&mut of_bob, 2), [format!("INSERT {id}/tabs/Home"), "INSERT mark".to_owned()]);
    }

    fn a_hand_over_moves_the_fidgets_from_one_user_to_the_other(db: &TestDatabase) {
        let ((ann_id, ann), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        let space = db.public_space(ann_id, "harbor");
        update(db, space.id, SpacePatch::new().hidden());
        db.fidget(space.id, "clock");
        let (mut of_ann, mut of_bob, mut stranger) = (fidgets(&ann), fidgets(&bob), fidgets(&db.client));
        let mut spaces = stream(&ann, ChangeRequest::table("spaces"));
        db.raw.run(&format!("UPDATE spaces SET owner_id = '{bob_id}' WHERE id = '{}'", space.id));
        assert_eq!(next_short(&mut of_ann, 1), ["DELETE 1 columns"]);
        assert_eq!(next_short(&mut spaces, 1), ["DELETE 1 columns"]);
        assert_eq!(next_short(&mut of_bob, 1), ["INSERT clock"]);
        assert_silent(db, &mut stranger);
    }

    fn a_row_is_judged_as_it_was_and_not_as_it_is(db: &TestDatabase) {
        let (owner, _) = user(db, "ann");
        let mut changes = fidgets(&db.client);
        let space = db.public_space(owner, "harbor");
        db.fidget(space.id, "seen");
        update(db, space.id, SpacePatch::new().hidden());
        db.fidget(space.id, "unseen");
        update(db, space.id, SpacePatch::new().published());
        db.service.spaces().delete_space(space.id).expect("deleted");
        let mut found = next_short(&mut changes, 6);
        // The order of the cascade's rows is the engine's.
        found[2..4].sort_unstable();
        found[4..].sort_unstable();
        let expected = ["INSERT seen", "DELETE 1 columns", "INSERT seen", "INSERT unseen", "DELETE seen", "DELETE unseen"];
        assert_eq!(found, expected);
    }

    fn a_cascade_delivers_each_row_to_those_who_could_see_it(db: &TestDatabase) {
        let (owner, _) = user(db, "ann");
        let (public, private) = (db.public_space(owner, "public"), db.public_space(owner, "private"));
        update(db, private.id, SpacePatch::new().hidden());
        db.fidget(public.id, "shown");
        db.fidget(private.id, "hidden");
        let (mut stranger, mut service) = (fidgets(&db.client), fidgets(&db.service));
        let mut spaces = stream(&db.client, ChangeRequest::table("spaces"));
        db.service.auth().delete_user(owner).expect("deleted");
        let deleted = next(&mut stranger);
        // The rows went with their owner.
        assert_eq!((deleted.event_type, deleted.old.map(|row| row.len())), (EventType::Delete, Some(1)));
        assert_silent(db, &mut stranger);
        assert_eq!(next_short(&mut service, 2), ["DELETE 1 columns", "DELETE 1 columns"]);
        assert_eq!(next_short(&mut spaces, 2), ["DELETE 1 columns", "INSERT mark"]);
    }

    fn a_user_is_shown_to_that_user_and_the_service_alone(db: &TestDatabase) {
        let ((ann_id, ann), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        db.public_space(ann_id, "public");
        let users = || ChangeRequest::table("users");
        let (mut of_ann, mut of_bob) = (stream(&ann, users()), stream(&bob, users()));
        let (mut service, mut stranger) = (stream(&db.service, users()), stream(&db.client, users()));
        for id in [ann_id, bob_id] {
            db.raw.run(&format!("UPDATE users SET email = 'new-{id}' WHERE id = '{id}'"));
        }
        assert_eq!(next(&mut of_ann).new.expect("a row")["id"], json!(ann_id));
        assert_eq!(next(&mut of_bob).new.expect("a row")["id"], json!(bob_id));
        let all = [next(&mut service), next(&mut service)].map(|change| change.new.expect("a row")["id"].clone());
        assert_eq!(all, [json!(ann_id), json!(bob_id)]);
        db.space();
        assert!(stranger.next_within(std::time::Duration::from_millis(50)).is_none(), "no user is shown to a stranger");
        assert!(of_ann.next_within(std::time::Duration::ZERO).is_none());
    }

    fn files_of_a_space_are_a_feed_for_those_who_may_see_the_space(db: &TestDatabase) {
        let ((_, ann), (bob_id, bob)) = (user(db, "ann"), user(db, "bob"));
        let space = ann.spaces().create_space(NewSpace::named("plaza")).expect("a space").id;
        let page = Uuid::new_v4();
        let files = |client: &Client| stream(client, ChangeRequest::table("files"));
        let (mut of_ann, mut of_bob, mut stranger, mut service) = (files(&ann), files(&bob), files(&db.client), files(&db.service));
        let (order, home) = (format!("{space}/tabOrder"), format!("{space}/tabs/Home"));
        let upload = |client: &Client, path: &str| {
            client.storage().upload("spaces", path, path.to_owned(), UploadOptions::new()).expect("uploaded");
        };
        let live = |client: &Client| {
            let rows = client.realtime().live(LiveRequest::table("files")).expect("a live query").rows;
            rows.into_iter().map(|row| row["path"].as_str().expect("a path").to_owned()).collect::<Vec<_>>()
        };
        let mark = |name: &str| {
            db.service.storage().upload("assets", name, "x", UploadOptions::new()).expect("uploaded");
            format!("INSERT {name}")
        };
        // A private space, and a page without a space.
        upload(&ann, &order);
        upload(&db.service, &format!("{page}/tabOrder"));
        let first = mark("first");
        assert_eq!(next_short(&mut of_ann, 2), [format!("INSERT {order}"), first.clone()]);
        assert_eq!(next_short(&mut service, 3)[1], format!("INSERT {page}/tabOrder"));
        for other in [&mut of_bob, &mut stranger] {
            assert_eq!(next_short(other, 1), std::slice::from_ref(&first));
        }
        assert_eq!(live(&ann), ["first", &order]);
        assert_eq!(live(&db.client), ["first"]);
        assert_eq!(live(&db.service).len(), 3);
        // A public one.
        update(db, space, SpacePatch::new().published());
        upload(&ann, &home);
        for other in [&mut of_bob, &mut stranger] {
            assert_eq!(next_short(other, 2), [format!("INSERT {order}"), format!("INSERT {home}")]);
        }
        assert_eq!(next_short(&mut of_ann, 1), [format!("INSERT {home}")]);
        assert_eq!(live(&db.client), ["first", &order, &home]);
        update(db, space, SpacePatch::new().hidden());
        for other in [&mut of_bob, &mut stranger] {
            let hidden = [next(other), next(other)];
            let paths = hidden.each_ref().map(|change| change.old.as_ref().expect("a key")["path"].clone());
            assert_eq!(paths, [json!(order), json!(home)]);
            assert!(hidden.iter().all(|change| change.old.as_ref().expect("a key").len() == 2), "the key alone");
        }
        // Handed over, and the page gets an owner.
        db.raw.run(&format!("UPDATE spaces SET owner_id = '{bob_id}' WHERE id = '{space}'"));
        assert_eq!(next_short(&mut of_ann, 2), [format!("DELETE {order}"), format!("DELETE {home}")]);
        db.service.spaces().create_space(NewSpace::named("page").owned_by(bob_id).with_id(page)).expect("a space");
        let gained = [format!("INSERT {order}"), format!("INSERT {home}")];
        assert_eq!(next_short(&mut of_bob, 2), gained);
        // The files pass to Bob with the space.
        assert_eq!(next_short(&mut of_bob, 2), [format!("UPDATE {order}"), format!("UPDATE {home}")]);
        assert_eq!(next_short(&mut of_bob, 1), [format!("INSERT {page}/tabOrder")]);
        assert_eq!(live(&bob).len(), 4);
        // Deleted with the space and with the user.
        bob.spaces().delete_space(space).expect("deleted");
        assert_eq!(next_short(&mut of_bob, 2), [format!("DELETE {order}"), format!("DELETE {home}")]);
        db.service.auth().delete_user(bob_id).expect("deleted");
        assert_eq!(next_short(&mut of_bob, 1), [format!("DELETE {page}/tabOrder")]);
        let last = mark("last");
        for other in [&mut of_ann, &mut stranger] {
            assert_eq!(next_short(other, 1), std::slice::from_ref(&last), "nothing else was shown");
        }
    }

    fn files_are_a_feed_under_the_policies_of_their_buckets(db: &TestDatabase) {
        let ((ann_id, ann), (_, bob)) = (user(db, "ann"), user(db, "bob"));
        let files = || ChangeRequest::table("files");
        let mut of_ann = stream(&ann, files());
        let (mut of_bob, mut stranger) = (stream(&bob, files()), stream(&db.client, files().filter("bucket=eq.assets")));
        let upload = |bucket: &str, path: &str, bytes: &'static str| {
            ann.storage().upload(bucket, path, bytes, UploadOptions::new()).expect("uploaded")
        };
        upload("private", &format!("{ann_id}/homebase"), "secret");
        upload("assets", "icons/a.png", "one");
        upload("assets", "icons/a.png", "two");
        ann.storage().move_file("assets", "icons/a.png", "icons/b.png", townsquare::storage::Overwrite::Refuse).expect("moved");
        ann.storage().delete("assets", "icons/b.png").expect("deleted");
        let public = ["INSERT icons/a.png", "UPDATE icons/a.png", "DELETE icons/a.png", "INSERT icons/b.png", "DELETE icons/b.png"];
        let own = next(&mut of_ann);
        assert_eq!(short(&own), format!("INSERT {ann_id}/homebase"));
        let columns: Vec<_> = own.new.as_ref().expect("a row").keys().map(String::as_str).collect();
        let expected = ["bucket", "cache_control", "content_type", "etag", "metadata", "owner_id", "path", "size", "updated_at"];
        assert_eq!(columns, expected);
        // A move is a DELETE and an INSERT, in either order.
        let sorted = |mut names: Vec<String>| {
            names[2..4].sort_unstable();
            names
        };
        assert_eq!(sorted(next_short(&mut of_ann, 5)), public);
        assert_eq!(sorted(next_short(&mut of_bob, 5)), public);
        assert_eq!(sorted(next_short(&mut stranger, 5)), public);
    }
}

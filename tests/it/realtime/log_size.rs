//! The size of the change log: what an update of a large row writes, and the limit in bytes.

use serde_json::{Value, json};
use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    communities::Change,
    realtime::ChangeRequest,
    spaces::{FidgetPatch, NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase, required},
    wait::wait_until,
};

use super::fixture::{next, stream};

const LARGE: usize = 200 << 10;

/// The bytes of the images in the log.
fn log_bytes(db: &TestDatabase) -> u64 {
    let sql = match db.engine {
        Engine::Sqlite => "SELECT coalesce(sum(coalesce(length(CAST(old AS BLOB)), 0) + coalesce(length(CAST(new AS BLOB)), 0)), 0)
            FROM townsquare_changes",
        Engine::Postgres => "SELECT coalesce(sum(coalesce(octet_length(old_row::text), 0) + coalesce(octet_length(new_row::text), 0)), 0)
            FROM townsquare.changes",
    };
    db.raw.value(sql).parse().expect("a number")
}

fn large() -> Value {
    json!({ "text": "x".repeat(LARGE) })
}

fn move_fidget(client: &Client, id: Uuid, x: usize) {
    let patch = FidgetPatch::new().position(Some(json!([x, 0, 1, 1])));
    client.fidgets().update_fidget(id, patch).expect("moved");
}

on_both_engines! {
    fn an_update_writes_an_unchanged_large_column_once(db: &TestDatabase) {
        let space = db.public_space(db.user(), "a space");
        let fidget = NewFidget::of_type("note").config(large()).position(json!([0, 0, 1, 1]));
        let fidget = db.service.fidgets().create_fidget(space.id, fidget).expect("created");
        let mut changes = stream(&db.service, ChangeRequest::table("fidgets"));
        for x in 1..=60 {
            move_fidget(&db.service, fidget.id, x);
        }
        let bytes = log_bytes(db);
        assert!(bytes < 60 * (LARGE as u64 + 2_048), "{bytes} bytes for 60 updates, one image each");
        for x in 1..=60 {
            let change = next(&mut changes);
            let (old, new) = (change.old.expect("an old row"), change.new.expect("a new row"));
            // A subscriber gets both rows complete.
            assert_eq!((&old["config"], &new["config"]), (&large(), &large()));
            assert_eq!((&old["position"], &new["position"]), (&json!([x - 1, 0, 1, 1]), &json!([x, 0, 1, 1])));
            assert_eq!((old.len(), new.len()), (7, 7));
        }
        let patch = FidgetPatch::new().config(Some(json!({ "text": "small" })));
        db.service.fidgets().update_fidget(fidget.id, patch).expect("changed");
        let change = next(&mut changes);
        assert_eq!(change.old.expect("an old row")["config"], large(), "a changed column has its old value");
        let patch = FidgetPatch::new().config(None);
        db.service.fidgets().update_fidget(fidget.id, patch).expect("cleared");
        let change = next(&mut changes);
        assert_eq!(change.old.expect("an old row")["config"], json!({ "text": "small" }));
        assert_eq!(change.new.expect("a new row")["config"], Value::Null);
    }

    fn updates_of_spaces_and_communities_write_unchanged_large_columns_once(db: &TestDatabase) {
        let text = "x".repeat(LARGE);
        let space = NewSpace::named("a space").description(&*text).public();
        let space = db.service.spaces().create_space(space).expect("created");
        let mut config = required();
        config.ui_config = Change::Set(large());
        db.service.communities().save_community_config("town", config).expect("saved");
        let mut of_spaces = stream(&db.service, ChangeRequest::table("spaces"));
        let mut of_configs = stream(&db.service, ChangeRequest::table("community_configs"));
        for number in 0..10 {
            let name = format!("space {number}");
            db.service.spaces().update_space(space.id, SpacePatch::new().name(name)).expect("renamed");
            let navigation = Some(json!({ "number": number }));
            db.service.communities().update_navigation("town", navigation).expect("updated");
        }
        let bytes = log_bytes(db);
        assert!(bytes < 20 * (LARGE as u64 + 4_096), "{bytes} bytes for 20 updates, one image each");
        for _ in 0..10 {
            let change = next(&mut of_spaces);
            for row in [change.old, change.new] {
                assert_eq!(row.expect("a row")["description"], *text);
            }
            let change = next(&mut of_configs);
            for row in [change.old, change.new] {
                let row = row.expect("a row");
                assert_eq!((&row["ui_config"], row.len()), (&large(), 13));
            }
        }
    }

    fn a_deleted_user_leaves_no_bytes_in_the_count_of_the_log(db: &TestDatabase) {
        const LIMIT: u64 = 4 << 20;
        let client = Client::open(db.config().change_retention_bytes(LIMIT)).expect("opens").as_service();
        let cursor = client.realtime().cursor().expect("a cursor");
        let user = db.user();
        let space = db.public_space(user, "a space");
        for _ in 0..12 {
            client.fidgets().create_fidget(space.id, NewFidget::of_type("note").config(large())).expect("created");
        }
        let counted = || -> u64 {
            let schema = if db.engine == Engine::Sqlite { "townsquare_" } else { "townsquare." };
            db.raw.value(&format!("SELECT counted_bytes FROM {schema}feed")).parse().expect("a number")
        };
        // PostgreSQL compresses the texts, which are of one letter.
        let large = if db.engine == Engine::Sqlite { 12 * LARGE as u64 } else { 12 * 2_000 };
        wait_until("the log is counted", || counted() >= large);
        client.auth().delete_user(user).expect("deleted");
        wait_until("the log is counted again", || (1..large / 2).contains(&counted()));
        drop(client.realtime().changes(ChangeRequest::table("fidgets").since(cursor)).expect("nothing was pruned"));
        client.close();
    }

    fn the_log_is_pruned_by_its_bytes(db: &TestDatabase) {
        const LIMIT: u64 = 2 << 20;
        let space = db.public_space(db.user(), "a space");
        let fidget = NewFidget::of_type("note").config(large());
        let fidget = db.service.fidgets().create_fidget(space.id, fidget).expect("created");
        let client = Client::open(db.config().change_retention_bytes(LIMIT)).expect("opens").as_service();
        let cursor = client.realtime().cursor().expect("a cursor");
        let mut x = 0;
        for _ in 0..2 {
            // The client may prune the log between two updates.
            while log_bytes(db) <= 3 * LIMIT {
                move_fidget(&db.service, fidget.id, x);
                x += 1;
                assert!(x < 2_000, "the log has only {} bytes", log_bytes(db));
            }
            wait_until("the log is pruned", || log_bytes(db) <= LIMIT);
            assert!(log_bytes(db) > LIMIT / 2, "not more than needed: {} bytes", log_bytes(db));
        }
        let since = ChangeRequest::table("fidgets").since(cursor);
        assert_kind(ErrorKind::CursorExpired, client.realtime().changes(since));
        client.close();
    }
}

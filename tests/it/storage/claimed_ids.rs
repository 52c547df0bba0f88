//! A caller who chooses the id of a new space does not take over what was there before (DESIGN 4): registered pages, files
//! without a space, deleted spaces.

use std::time::Duration;

use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    communities::{NewRegistration, SpaceType},
    spaces::NewSpace,
};
use townsquare_tests::{
    on_both_engines, on_engine,
    postgres::{callers_role, insert_session},
    raw_sql::RawConnection,
    test_database::{Engine, assert_fails},
};

use super::{
    fixture::{Store, bytes, put},
    requests::{Sender, send, store},
};

const REFUSED: &str =
    "Create space failed: Database error: new row violates row-level security policy for table \"spaces\"";

fn with_id(id: Uuid) -> NewSpace {
    NewSpace::named("mine").with_id(id)
}

/// Checks that a caller other than the service can create no space with the id, alone or among others.
#[track_caller]
fn assert_claimed(client: &Client, id: Uuid) {
    for _ in 0..2 {
        let refused = client.spaces().create_space(with_id(id));
        assert_fails(refused, ErrorKind::Forbidden, Some("42501"), REFUSED);
    }
    let before = client.spaces().get_user_spaces(id).expect("a list");
    let many = vec![NewSpace::named("other"), with_id(id)];
    let error = client.spaces().create_spaces(many).expect_err("refused");
    assert_eq!((error.kind(), error.code(), error.row()), (ErrorKind::Forbidden, Some("42501"), Some(1)));
    assert_eq!(client.spaces().get_user_spaces(id).expect("a list"), before);
}

fn register(client: &Client, id: Uuid) {
    let page = NewRegistration::new(id, "Home", SpaceType::NavPage);
    client.communities().register_space(page).expect("registered");
}

on_both_engines! {
    fn a_page_is_not_taken_over_by_a_space_with_its_id(db: &TestDatabase) {
        let (mallory, page) = (Sender::new(db, "mallory"), Uuid::new_v4());
        let (path, target) = (format!("{page}/tabs/Home"), format!("/spaces/{page}/tabs/Home"));
        register(&db.service, page);
        store(db, "spaces", &path, b"the page");
        assert_claimed(&mallory.client, page);
        for (method, body) in [("PUT", &b"mine"[..]), ("DELETE", b"")] {
            let answer = send(&mallory.client, method, &target, &[mallory.bearer()], body);
            assert_eq!(answer.status, 403, "{method}");
        }
        assert_eq!(send(&db.client, "GET", &target, &[], b"").body, b"the page");
        // The service may give the page an owner.
        let given = db.service.spaces().create_space(with_id(page).owned_by(mallory.id)).expect("the service");
        assert_eq!(given.owner_id, Some(mallory.id));
        let answer = send(&mallory.client, "PUT", &target, &[mallory.bearer()], b"mine");
        assert_eq!(answer.status, 204);
    }

    fn a_registration_or_a_file_alone_claims_an_id(db: &TestDatabase) {
        let mallory = Sender::new(db, "mallory");
        let registered = Uuid::new_v4();
        register(&db.service, registered);
        assert_claimed(&mallory.client, registered);
        for inside in ["/tabOrder", "/tabs/Home", ""] {
            let page = Uuid::new_v4();
            let path = format!("{page}{inside}");
            store(db, "spaces", &path, b"x");
            assert_claimed(&mallory.client, page);
            // Nothing remembers a deleted file.
            db.service.storage().delete("spaces", &path).expect("deleted");
            mallory.client.spaces().create_space(with_id(page)).expect("nothing is there");
        }
        // Files of other folders and other buckets claim nothing.
        let free = Uuid::new_v4();
        store(db, "spaces", &format!("{free}-2/tabOrder"), b"x");
        store(db, "spaces", &format!("pages/{free}"), b"x");
        store(db, "private", &format!("{free}/homebase"), b"x");
        mallory.client.spaces().create_space(with_id(free)).expect("free");
    }

    fn an_unfinished_upload_claims_an_id(db: &TestDatabase) {
        let (mallory, page) = (Sender::new(db, "mallory"), Uuid::new_v4());
        let table = if db.engine == Engine::Sqlite { "townsquare_file_intents" } else { "townsquare.file_intents" };
        db.raw.run(&format!(
            "INSERT INTO {table} (bucket, path, access, space_id, first_segment, size, content_type, cache_control, etag,
                metadata, digest, staged, base_etag, created_at)
             VALUES ('spaces', '{page}/tabs/Home', 'spaces', '{page}', '{page}', 1, 'a/b', 1, 'e', '{{}}', 'd', '0123456789abcdef0123456789abcdef', '',
                '2026-01-01T00:00:00.000000Z')"
        ));
        assert_claimed(&mallory.client, page);
    }

    fn the_id_of_a_deleted_space_stays_claimed(db: &TestDatabase) {
        let (ann, mallory) = (Sender::new(db, "ann"), Sender::new(db, "mallory"));
        let id = Uuid::new_v4();
        ann.client.spaces().create_space(with_id(id)).expect("created");
        ann.client.spaces().delete_space(id).expect("deleted");
        assert_claimed(&mallory.client, id);
        // A late repetition of her create does not bring the space back.
        assert_claimed(&ann.client, id);
        db.service.spaces().create_space(with_id(id).owned_by(ann.id)).expect("the service");
        db.service.spaces().delete_space(id).expect("deleted again");
        assert_claimed(&mallory.client, id);
        // For good: neither time nor housekeeping forgets it.
        db.clock.advance(Duration::from_secs(100 * 366 * 86_400));
        db.service.storage().repair().expect("repaired");
        db.another().close();
        assert_claimed(&Sender::new(db, "eve").client, id);
    }

    fn the_spaces_of_a_deleted_user_stay_claimed(db: &TestDatabase) {
        let (ann, ben, mallory) = (Sender::new(db, "ann"), Sender::new(db, "ben"), Sender::new(db, "mallory"));
        let spaces = [&ann, &ann, &ben].map(|user| user.client.spaces().create_space(NewSpace::named("x")).expect("created").id);
        db.service.auth().delete_user(ann.id).expect("deleted");
        // Another program, by SQL.
        db.raw.run(&format!("DELETE FROM users WHERE id = '{}'", ben.id));
        for id in spaces {
            assert_claimed(&mallory.client, id);
        }
    }

    fn another_program_that_deletes_or_renames_spaces_leaves_their_ids_claimed(db: &TestDatabase) {
        let (ann, mallory) = (Sender::new(db, "ann"), Sender::new(db, "mallory"));
        let create = || ann.client.spaces().create_space(NewSpace::named("x")).expect("created").id;
        let (deleted, renamed, emptied) = (create(), create(), create());
        db.raw.run(&format!("DELETE FROM spaces WHERE id = '{deleted}'"));
        db.raw.run(&format!("UPDATE spaces SET id = '{}' WHERE id = '{renamed}'", Uuid::new_v4()));
        db.raw.run(if db.engine == Engine::Sqlite { "DELETE FROM spaces" } else { "TRUNCATE spaces CASCADE" });
        for id in [deleted, renamed, emptied] {
            assert_claimed(&mallory.client, id);
        }
    }

    fn an_owner_repeats_a_create_also_after_files_and_a_registration(db: &TestDatabase) {
        let (ann, mallory) = (Sender::new(db, "ann"), Sender::new(db, "mallory"));
        let id = Uuid::new_v4();
        let space = ann.client.spaces().create_space(with_id(id)).expect("created");
        register(&ann.client, id);
        put(&ann.client, "spaces", &format!("{id}/tabOrder"), "x").expect("her file");
        assert_eq!(ann.client.spaces().create_space(with_id(id)).expect("the same"), space);
        let again = ann.client.spaces().create_spaces(vec![with_id(id)]).expect("the same");
        assert_eq!(again, [space]);
        // The space exists, so its id is taken, whatever it has.
        for (client, new) in [(&ann.client, with_id(id).public()), (&mallory.client, with_id(id))] {
            let taken = client.spaces().create_space(new);
            assert_fails(taken, ErrorKind::AlreadyExists, Some("23505"), "Create space failed: Record already exists");
        }
    }
}

on_engine! { Postgres in postgres_only;
    /// What the role of the callers may write by SQL, without the library.
    fn the_policies_refuse_a_take_over_by_plain_sql(db: &TestDatabase) {
        let (ann, mallory) = (Sender::new(db, "ann"), Sender::new(db, "mallory"));
        let own = mallory.client.spaces().create_space(NewSpace::named("x")).expect("created").id;
        let deleted = ann.client.spaces().create_space(NewSpace::named("x")).expect("created").id;
        ann.client.spaces().delete_space(deleted).expect("deleted");
        let (registered, page) = (Uuid::new_v4(), Uuid::new_v4());
        register(&db.service, registered);
        store(db, "spaces", &format!("{page}/tabs/Home"), b"the page");
        store(db, "spaces", &format!("{own}/tabs/Home"), b"mine");
        let (role, session) = (callers_role(&db.raw), insert_session(&db.raw, mallory.id));
        let as_caller = |isolation: &str, sql: &str| {
            db.raw.run(&format!(
                "BEGIN ISOLATION LEVEL {isolation}; SET LOCAL ROLE {role};
                 SELECT set_config('townsquare.session', '{session}', true)"
            ));
            let result = db.raw.try_rows(sql);
            db.raw.run("ROLLBACK");
            result.map(|rows| rows.len())
        };
        let create = |id: Uuid| {
            format!("INSERT INTO spaces (id, name, owner_id) VALUES ('{id}', 'x', '{}') RETURNING id", mallory.id)
        };
        assert_eq!(as_caller("READ COMMITTED", &create(Uuid::new_v4())), Ok(1));
        for id in [registered, page, deleted] {
            for isolation in ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"] {
                let refused = as_caller(isolation, &create(id)).expect_err("a claimed id");
                assert!(refused.contains("row-level security policy"), "{refused}");
            }
            let renamed = as_caller("READ COMMITTED", &format!("UPDATE spaces SET id = '{id}' WHERE id = '{own}'"));
            assert!(renamed.expect_err("another id").contains("permission denied"));
        }
        let to_ann = as_caller("READ COMMITTED", &format!("UPDATE spaces SET owner_id = '{}' WHERE id = '{own}'", ann.id));
        assert!(to_ann.expect_err("a hand-over").contains("row-level security policy"));
        // A row that names the own space beside the path of the page.
        let insert = |table: &str, columns: &str, values: &str| {
            format!(
                "INSERT INTO townsquare.{table} (bucket, path, access, space_id, first_segment, size, content_type,
                    cache_control, etag, metadata, {columns})
                 VALUES ('spaces', '{page}/tabs/New', 'spaces', '{own}', '{own}', 1, 'a/b', 1, 'e', '{{}}', {values})"
            )
        };
        for forged in [
            insert("files", "is_inline, updated_at", "true, now()"),
            insert("file_intents", "digest, staged, base_etag, created_at", "'d', '0123456789abcdef0123456789abcdef', '', now()"),
            format!("UPDATE townsquare.files SET path = '{page}/tabs/New' WHERE space_id = '{own}'"),
        ] {
            assert!(as_caller("READ COMMITTED", &forged).expect_err("forged").contains("_place"), "{forged}");
        }
        // The shared folders are the service's, also for a file of hers that moves.
        let asset = |segment: &str| {
            format!(
                "INSERT INTO townsquare.files (bucket, path, access, first_segment, owner_id, size, content_type,
                    cache_control, etag, metadata, is_inline, updated_at)
                 VALUES ('assets', '{segment}/a', 'public', '{segment}', '{}', 1, 'a/b', 1, 'e', '{{}}', true, now())",
                mallory.id
            )
        };
        let moved = "UPDATE townsquare.files SET path = 'images', first_segment = 'images' WHERE path = 'icons/a' RETURNING 1";
        let renamed = "UPDATE townsquare.files SET path = 'photos', first_segment = 'photos' WHERE path = 'icons/a' RETURNING 1";
        assert_eq!(as_caller("READ COMMITTED", &format!("{}; {renamed}", asset("icons"))), Ok(1));
        for refused in [asset("images"), asset("videos"), format!("{}; {moved}", asset("icons"))] {
            let refused = as_caller("READ COMMITTED", &refused).expect_err("a shared folder");
            assert!(refused.contains("row-level security policy"), "{refused}");
        }
        // A move from the page into the own space deletes the page's file at its end.
        let intent = |from: &str| {
            format!(
                "INSERT INTO townsquare.file_intents (bucket, path, access, space_id, first_segment, size, content_type,
                    cache_control, etag, metadata, digest, staged, base_etag, created_at, moved_from, moved_etag)
                 VALUES ('spaces', '{own}/tabs/New', 'spaces', '{own}', '{own}', 1, 'a/b', 1, 'e', '{{}}', 'd', '0123456789abcdef0123456789abcdef', '',
                    now(), '{from}/tabs/Home', 'e') RETURNING path"
            )
        };
        assert_eq!(as_caller("READ COMMITTED", &intent(&own.to_string())), Ok(1));
        let refused = as_caller("READ COMMITTED", &intent(&page.to_string())).expect_err("the page's file");
        assert!(refused.contains("row-level security policy"), "{refused}");
    }

    /// The caller's insert begins while the space exists, and goes on when its deletion commits.
    fn a_create_that_waits_for_a_deletion_is_refused(db: &TestDatabase) {
        let (ann, mallory) = (Sender::new(db, "ann"), Sender::new(db, "mallory"));
        let id = ann.client.spaces().create_space(NewSpace::named("x")).expect("created").id;
        let other = RawConnection::postgres(&db.url()).expect("the server runs");
        other.run(&format!("BEGIN; DELETE FROM spaces WHERE id = '{id}'"));
        std::thread::scope(|scope| {
            let created = scope.spawn(|| mallory.client.spaces().create_space(with_id(id)));
            db.wait_for_a_waiting_connection();
            other.run("COMMIT");
            assert_fails(created.join().expect("a result"), ErrorKind::Forbidden, Some("42501"), REFUSED);
        });
    }
}

/// A large file that the service is writing claims the id as a small one does.
#[test]
fn a_large_file_claims_an_id() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = super::fixture::Fixture::on(engine, Store::Folder(0)) else { continue };
        let (mallory, page) = (fixture.signed_in_user("mallory"), Uuid::new_v4());
        fixture.put("spaces", &format!("{page}/assets/logo.png"), bytes(100_000, 1));
        assert_claimed(&mallory.client, page);
    }
}

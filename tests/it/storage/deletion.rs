//! What a deleted space or user leaves (DESIGN 7), also by plain SQL: nothing of a space, no private file of a user, and
//! public files without owner.

use std::{
    collections::BTreeSet,
    fs::File,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use townsquare::{
    ErrorKind,
    spaces::{NewFidget, NewSpace},
    storage::{ListFiles, Overwrite},
};
use townsquare_tests::{
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    test_database::Engine,
    wait::wait_until,
};

use super::{
    files::own,
    fixture::{Fixture, SMALL, Store, bytes, on_every_store, paths, put},
    requests::{Sender, send},
};

on_every_store! {
    fn a_deleted_space_takes_its_files_along(fixture: &Fixture) {
        let ann = fixture.signed_in_user("ann");
        let [first, second] = ["Plaza", "Harbor"].map(|name| {
            ann.client.spaces().create_space(NewSpace::named(name)).expect("a space").id
        });
        for id in [first, second] {
            put(&ann.client, "spaces", &format!("{id}/tabOrder"), "[]").expect("uploaded");
            put(&ann.client, "spaces", &format!("{id}/tabs/Home"), bytes(100_000, 1)).expect("uploaded");
        }
        ann.client.spaces().delete_space(first).expect("deleted");
        let rest = [format!("{second}/tabOrder"), format!("{second}/tabs/Home")];
        assert_eq!(paths(&fixture.db.service, "spaces"), rest);
        fixture.db.service.storage().repair().expect("repaired");
        let objects: Vec<_> = fixture.objects().unwrap_or_default();
        assert!(!objects.iter().any(|object| object.contains(&first.to_string())), "{objects:?}");
        fixture.db.raw.run(&format!("DELETE FROM spaces WHERE id = '{second}'"));
        assert!(paths(&fixture.db.service, "spaces").is_empty(), "also by plain SQL");
        fixture.db.service.storage().repair().expect("repaired");
        assert_eq!(fixture.objects(), fixture.expected_objects(&[""; 0], 0));
        let left = own(fixture, "SELECT count(*) FROM townsquare.file_outbox");
        assert_eq!(fixture.db.raw.value(&left), "0");
    }

    fn a_deleted_user_leaves_public_files_without_owner_and_no_private_ones(fixture: &Fixture) {
        const SEED: &str = "0101010101010101010101010101010101010101010101010101010101010101";
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let audience = ann.client.auth().identity_audience().expect("the audience");
        let now = fixture.db.now();
        let claim = townsquare::auth::identity_claim(ann.id, SEED, &audience, now).expect("a claim");
        ann.client.auth().link_identity(&claim).expect("linked");
        let key = claim["publicKey"].as_str().expect("a key");
        let space = ann.client.spaces().create_space(NewSpace::named("Plaza")).expect("a space").id;
        for size in [10, 100_000] {
            for (bucket, path) in [
                ("private", format!("{}/{size}", ann.id)),
                ("private", format!("{key}/{size}")),
                ("spaces", format!("{space}/{size}")),
                ("assets", format!("icons/{size}")),
            ] {
                put(&ann.client, bucket, &path, bytes(size, 1)).expect("uploaded");
            }
            put(&bob.client, "private", &format!("{}/{size}", bob.id), bytes(size, 2)).expect("uploaded");
        }
        // Below a key that is not linked any more.
        let other = format!("{:064x}", 7);
        let claim = townsquare::auth::identity_claim(ann.id, &other, &audience, now).expect("a claim");
        ann.client.auth().link_identity(&claim).expect("linked");
        let former = claim["publicKey"].as_str().expect("a key");
        for size in [10, 100_000] {
            put(&ann.client, "private", &format!("{former}/{size}"), bytes(size, 1)).expect("uploaded");
        }
        ann.client.auth().unlink_identity(former).expect("unlinked");
        // Written by Ann, but in folders that are Bob's: the service moved a file there, and Bob links a key that was hers.
        let lent = format!("{:064x}", 8);
        let claim = |user| townsquare::auth::identity_claim(user, &lent, &audience, now).expect("a claim");
        ann.client.auth().link_identity(&claim(ann.id)).expect("linked");
        let lent_key = claim(ann.id)["publicKey"].as_str().expect("a key").to_owned();
        for size in [10, 100_000] {
            let (from, to) = (format!("{lent_key}/moved-{size}"), format!("{}/moved-{size}", bob.id));
            put(&ann.client, "private", &from, bytes(size, 3)).expect("uploaded");
            fixture.db.service.storage().move_file("private", &from, &to, Overwrite::Refuse).expect("moved");
            put(&ann.client, "private", &format!("{lent_key}/{size}"), bytes(size, 3)).expect("uploaded");
        }
        ann.client.auth().unlink_identity(&lent_key).expect("unlinked");
        bob.client.auth().link_identity(&claim(bob.id)).expect("linked");
        fixture.db.service.auth().delete_user(ann.id).expect("deleted");
        let of_bob = [10, 100_000].into_iter().flat_map(|size| {
            [format!("{}/{size}", bob.id), format!("{}/moved-{size}", bob.id), format!("{lent_key}/{size}")]
        });
        assert_eq!(BTreeSet::from_iter(paths(&fixture.db.service, "private")), of_bob.collect());
        for size in [10, 100_000] {
            for path in [format!("{}/moved-{size}", bob.id), format!("{lent_key}/{size}")] {
                let found = bob.client.storage().download("private", &path).expect("it is Bob's");
                assert!(found == bytes(size, 3), "{path}");
            }
        }
        assert!(paths(&fixture.db.service, "spaces").is_empty(), "the space went by cascade");
        for size in [10, 100_000] {
            let info = fixture.db.service.storage().stat("assets", &format!("icons/{size}")).expect("it stays");
            assert_eq!(info.owner_id, None);
            assert!(fixture.get("assets", &format!("icons/{size}")) == bytes(size, 1));
        }
        fixture.db.service.storage().repair().expect("repaired");
        let objects = fixture.objects().unwrap_or_default();
        let of_ann = |object: &&String| object.contains(&ann.id.to_string()) || object.contains(key) || object.starts_with("spaces/");
        assert_eq!(objects.iter().find(of_ann), None, "{objects:?}");
    }

    fn a_large_space_is_deleted_whole(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let space = ann.client.spaces().create_space(NewSpace::named("Plaza").public()).expect("a space").id;
        let fill = |count: usize| (0..count).map(|_| NewFidget::of_type("clock")).collect::<Vec<_>>();
        ann.client.fidgets().create_fidgets(space, fill(75)).expect("fidgets");
        for number in 0..210 {
            let size = if number % 70 == 0 { 100_000 } else { 1 };
            put(&ann.client, "spaces", &format!("{space}/tabs/{number}"), bytes(size, 1)).expect("uploaded");
        }
        for other in [&bob.client, &fixture.db.client] {
            let refused = other.spaces().delete_space(space).expect_err("the space is not the caller's");
            assert_eq!(refused.kind(), ErrorKind::NotFound, "{refused:?}");
        }
        assert_eq!(ann.client.fidgets().get_space_fidgets(space).expect("fidgets").len(), 75, "strangers delete nothing");
        assert_eq!(paths(&ann.client, "spaces").len(), 210);
        ann.client.spaces().delete_space(space).expect("deleted");
        assert_eq!((fixture.db.raw.count("spaces"), fixture.db.raw.count("fidgets")), (0, 0));
        assert!(paths(&fixture.db.service, "spaces").is_empty());
        let left = own(fixture, "SELECT count(*) FROM townsquare.file_outbox");
        wait_until("the objects are removed", || fixture.db.raw.value(&left) == "0");
        assert_eq!(fixture.objects(), fixture.expected_objects(&[""; 0], 0));
    }

    fn a_large_account_is_deleted_whole(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let names = (0..130).map(|number| NewSpace::named(format!("Plaza {number}"))).collect();
        let spaces = ann.client.spaces().create_spaces(names).expect("spaces");
        for space in &spaces[..2] {
            let fidgets = (0..40).map(|_| NewFidget::of_type("clock")).collect();
            ann.client.fidgets().create_fidgets(space.id, fidgets).expect("fidgets");
        }
        for number in 0..150 {
            let (space, size) = (spaces[number % 3].id, if number % 50 == 0 { 100_000 } else { 1 });
            for (bucket, path) in [
                ("spaces", format!("{space}/{number}")),
                ("private", format!("{}/{number}", ann.id)),
                ("assets", format!("icons/{number}")),
            ] {
                put(&ann.client, bucket, &path, bytes(size, 1)).expect("uploaded");
            }
        }
        put(&bob.client, "private", &format!("{}/note", bob.id), "x").expect("uploaded");
        let of_bob = bob.client.spaces().create_space(NewSpace::named("Harbor")).expect("a space");
        bob.client.fidgets().create_fidget(of_bob.id, NewFidget::of_type("clock")).expect("a fidget");
        match fixture.db.engine {
            Engine::Sqlite => ann.client.auth().delete_own_user("correct horse").expect("deleted"),
            Engine::Postgres => fixture.db.service.auth().delete_user(ann.id).expect("deleted"),
        }
        assert_eq!((fixture.db.raw.count("spaces"), fixture.db.raw.count("fidgets")), (1, 1), "those of Bob stay");
        assert!(paths(&fixture.db.service, "spaces").is_empty());
        assert_eq!(paths(&fixture.db.service, "private"), [format!("{}/note", bob.id)]);
        let public = fixture.db.service.storage().list("assets", ListFiles::new().limit(1_000)).expect("listed");
        assert_eq!(public.iter().filter(|file| file.owner_id.is_none()).count(), 150, "without an owner");
        let left = own(fixture, "SELECT count(*) FROM townsquare.file_outbox");
        wait_until("the objects are removed", || fixture.db.raw.value(&left) == "0");
    }

    fn others_write_while_a_large_account_is_deleted(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        fixture.db.service.realtime().start().expect("the log is on");
        let space = ann.client.spaces().create_space(NewSpace::named("Plaza")).expect("a space").id;
        let mut fidget = NewFidget::of_type("clock");
        fidget.config = Some(serde_json::Value::from("x".repeat(50_000)));
        for _ in 0..8 {
            ann.client.fidgets().create_fidgets(space, vec![fidget.clone(); 50]).expect("fidgets");
        }
        let is_deleted = AtomicBool::new(false);
        let written = thread::scope(|scope| {
            scope.spawn(|| {
                let deleted = fixture.db.service.auth().delete_user(ann.id);
                is_deleted.store(true, Ordering::SeqCst);
                deleted.expect("deleted");
            });
            let mut written = 0;
            while !is_deleted.load(Ordering::SeqCst) {
                bob.client.spaces().create_space(NewSpace::named("Harbor")).expect("a space");
                written += 1;
            }
            written
        });
        // In one transaction it would be the write that the deletion waits for, and the one that waits for it.
        assert!(written > 5, "only {written} writes");
        assert_eq!(fixture.db.raw.count("fidgets"), 0);
    }

    fn a_name_is_free_before_the_object_of_its_deleted_file_is_removed(fixture: &Fixture) {
        let assert_files = |files: &[&str]| {
            assert_eq!(paths(&fixture.db.service, "assets"), files);
            let objects: Vec<_> = files.iter().map(|path| format!("assets/{path}")).collect();
            assert_eq!(fixture.objects(), fixture.expected_objects(&objects, 100_000));
        };
        let delete_all = || fixture.db.raw.run(&own(fixture, "DELETE FROM townsquare.files"));
        fixture.put("assets", "a/b/c", bytes(100_000, 1));
        fixture.put("assets", "a/d", bytes(100_000, 2));
        delete_all();
        fixture.put("assets", "a", bytes(100_000, 3));
        assert_files(&["a"]);
        delete_all();
        fixture.put("assets", "a/b/c", bytes(100_000, 4));
        assert_files(&["a/b/c"]);
        fixture.put("assets", "source", bytes(100_000, 5));
        fixture.db.raw.run(&own(fixture, "DELETE FROM townsquare.files WHERE path = 'a/b/c'"));
        fixture.db.service.storage().move_file("assets", "source", "a/b", Overwrite::Refuse).expect("moved");
        assert!(fixture.get("assets", "a/b") == bytes(100_000, 5));
        assert_files(&["a/b"]);
    }
}

#[test]
fn an_upload_waits_for_the_transaction_that_deletes_its_space() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::Folder(SMALL)) else { return };
    let ann = fixture.signed_in_user("ann");
    let deletes = RawConnection::postgres(&fixture.db.url()).expect("the server runs");
    for size in [10, 100_000] {
        let space = ann.client.spaces().create_space(NewSpace::named("Plaza")).expect("a space").id;
        let path = format!("{space}/tabs/Home");
        let upload_during = |end: &str| {
            deletes.run(&format!("BEGIN; DELETE FROM spaces WHERE id = '{space}'"));
            thread::scope(|scope| {
                let upload = scope.spawn(|| put(&ann.client, "spaces", &path, bytes(size, 1)));
                fixture.db.wait_for_a_waiting_connection();
                deletes.run(end);
                upload.join().expect("no panic")
            })
        };
        upload_during("ROLLBACK").expect("uploaded, as the space is there");
        assert_eq!(paths(&fixture.db.service, "spaces"), [path.as_str()]);
        let refused = upload_during("COMMIT").expect_err("the space is gone");
        assert_eq!(refused.kind(), ErrorKind::Forbidden, "{refused:?}");
        assert!(paths(&fixture.db.service, "spaces").is_empty());
        assert_eq!(fixture.db.raw.count("townsquare.file_intents"), 0);
    }
}

#[test]
fn a_space_is_deleted_beside_uploads_that_never_pause() {
    let Some(fixture) = Fixture::on(Engine::Postgres, Store::Folder(SMALL)) else { return };
    let ann = fixture.signed_in_user("ann");
    let space = ann.client.spaces().create_space(NewSpace::named("Plaza")).expect("a space").id;
    let is_deleted = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..8 {
            let (client, is_deleted) = (&ann.client, &is_deleted);
            scope.spawn(move || {
                while !is_deleted.load(Ordering::Relaxed) {
                    // Refused once the space is gone.
                    drop(put(client, "spaces", &format!("{space}/{writer}"), "x"));
                }
            });
        }
        wait_until("files are written", || paths(&fixture.db.service, "spaces").len() == 8);
        let deleted = ann.client.spaces().delete_space(space);
        is_deleted.store(true, Ordering::Relaxed);
        deleted.expect("deleted");
    });
    assert!(paths(&fixture.db.service, "spaces").is_empty());
}

#[test]
fn a_user_with_many_spaces_is_deleted_on_a_server_with_room_for_few_locks() {
    let Some(server) = Server::with_settings(&["max_locks_per_transaction=10"]) else { return };
    let database = server.new_database();
    let client =
        townsquare::blocking::Client::open(townsquare::Config::new().database_url(server.url(APP_ROLE, &database)))
            .expect("open");
    let service = client.as_service();
    let ann = client.auth().sign_up("ann@town.example", "correct horse battery").expect("signed up").id;
    let administrator = server.administrator(&database);
    administrator.run(&format!(
        "INSERT INTO spaces (name, owner_id) SELECT 'space ' || number, '{ann}' FROM generate_series(1, 20000) AS number"
    ));
    service.auth().delete_user(ann).expect("deleted");
    assert_eq!(administrator.count("spaces"), 0);
    client.close();
}

/// Holds every lock of the paths of a folder. Another client waits for them.
struct HeldLocks {
    turns: Vec<File>,
    held: Vec<File>,
}

impl HeldLocks {
    fn of(fixture: &Fixture) -> HeldLocks {
        let folder = fixture.files_folder().join(".townsquare/locks");
        let open = |name: String| {
            File::options().write(true).create(true).truncate(false).open(folder.join(name)).expect("a lock file")
        };
        let turns = (0..256).map(|stripe| open(format!("{stripe:02x}.turn"))).collect();
        let held: Vec<_> = (0..256).map(|stripe| open(format!("{stripe:02x}"))).collect();
        held.iter().for_each(|file| file.lock().expect("locked"));
        HeldLocks { turns, held }
    }

    /// Waits until a client waits for one of the locks: it holds the file with the turn meanwhile.
    fn wait_for_waiter(&self) {
        let is_taken = |turn: &File| match turn.try_lock() {
            Ok(()) => {
                turn.unlock().expect("unlocked");
                false
            }
            Err(_) => true,
        };
        wait_until("a client waits for a lock", || self.turns.iter().any(is_taken));
    }

    fn release(self) {
        self.held.iter().for_each(|file| file.unlock().expect("unlocked"));
    }
}

#[test]
fn a_delete_that_lost_a_race_says_that_the_file_is_gone_or_changed() {
    let delete = "DELETE FROM townsquare.files WHERE path = 'a'";
    let change = "UPDATE townsquare.files SET etag = 'another' WHERE path = 'a'";
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = Fixture::on(engine, Store::Folder(0)) else { continue };
        let ann = Sender::new(&fixture.db, "ann");
        for (client, is_over_http, sql, status) in [
            (&fixture.db.service, false, delete, 404),
            (&ann.client, false, delete, 404),
            (&ann.client, true, delete, 404),
            (&ann.client, true, change, 412),
        ] {
            let etag = put(&ann.client, "assets", "a", bytes(1_000, 1)).expect("uploaded").etag;
            let locks = HeldLocks::of(&fixture);
            let found = thread::scope(|scope| {
                let deleter = scope.spawn(|| {
                    if is_over_http {
                        let version = format!("\"{etag}\"");
                        return send(client, "DELETE", "/assets/a", &[("If-Match", &version), ann.bearer()], b"")
                            .status;
                    }
                    let refused = client.storage().delete("assets", "a").expect_err("another was faster");
                    refused.status()
                });
                locks.wait_for_waiter();
                fixture.db.raw.run(&own(&fixture, sql));
                locks.release();
                deleter.join().expect("no panic")
            });
            assert_eq!(found, status, "{sql}");
            let _ = fixture.db.service.storage().delete("assets", "a");
        }
    }
}

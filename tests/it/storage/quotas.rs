//! Quotas of an owner: bytes and files, spaces, and the fidgets of a space. They hold for concurrent writes, too.

use std::{io::Write as _, sync::Barrier, thread};

use townsquare::{
    Config, ErrorKind, Uuid,
    blocking::Client,
    spaces::{NewFidget, NewSpace},
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase},
};

use super::requests::{Sender, send};

/// Files of at most this size are inline.
const INLINE: usize = 1_000;

fn with_quotas(engine: Engine, options: impl Fn(Config) -> Config) -> TestDatabase {
    let options = |config: Config| options(config.inline_file_limit(INLINE as u64));
    TestDatabase::with(engine, options).expect("the engine is there")
}

fn put(client: &Client, path: &str, size: usize) -> Result<(), townsquare::Error> {
    client.storage().upload("assets", path, vec![7; size], UploadOptions::new()).map(drop)
}

/// The files and bytes of an owner.
fn owned(db: &TestDatabase, owner: Uuid) -> (String, String) {
    let files = if db.engine == Engine::Sqlite { "townsquare_files" } else { "townsquare.files" };
    let value = |what| db.raw.value(&format!("SELECT {what} FROM {files} WHERE owner_id = '{owner}'"));
    (value("count(*)"), value("coalesce(sum(size), 0)"))
}

on_both_engines! {
    fn an_owner_has_at_most_max_owner_bytes(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_owner_bytes(10_000));
        let (ann, bob) = (Sender::new(&db, "ann"), Sender::new(&db, "bob"));
        put(&ann.client, "small", 500).expect("an inline file");
        put(&ann.client, "large", 9_500).expect("an object; all of it");
        for (path, size) in [("one", 1), ("more", 5_000), ("small", 501), ("large", 9_501)] {
            let error = assert_kind(ErrorKind::QuotaExceeded, put(&ann.client, path, size));
            assert_eq!(error.status(), 413, "{path}");
            assert!(error.to_string().starts_with("Upload failed: Quota exceeded: "), "{error}");
            assert!(error.message().contains("max_owner_bytes, is 10000"), "{error}");
        }
        assert_eq!(owned(&db, ann.id), ("2".to_owned(), "10000".to_owned()), "a refused write changes nothing");
        let answer = send(&ann.client, "PUT", "/assets/by-http", &[ann.bearer()], &[7; 10]);
        assert_eq!(answer.status, 413);
        assert!(answer.error().starts_with("Quota exceeded"), "{}", answer.error());
        // An overwrite counts with what it adds, from inline to object and back.
        put(&ann.client, "large", 9_500).expect("the same size");
        put(&ann.client, "large", 900).expect("smaller, inline");
        put(&ann.client, "large", 9_500).expect("an object again");
        // The bytes of a file that alone is over the quota do not reach the disk.
        let mut writer = bob.client.storage().writer("assets", "grows", UploadOptions::new()).expect("a writer");
        writer.write_all(&[7; 9_000]).expect("within the quota");
        let error = writer.write_all(&[7; 2_000]).expect_err("over the quota").into_inner().expect("the library's error");
        let error = error.downcast::<townsquare::Error>().expect("the library's error");
        assert_eq!((error.kind(), error.status()), (ErrorKind::QuotaExceeded, 413));
        drop(writer);
        put(&bob.client, "of-bob", 10_000).expect("the quota is each owner's");
        put(&db.service, "of-nobody", 50_000).expect("the service has no quota");
        ann.client.storage().move_file("assets", "large", "moved", Overwrite::Refuse).expect("a move adds nothing");
        ann.client.storage().move_file("assets", "small", "moved-small", Overwrite::Refuse).expect("nor an inline one");
        let copied = ann.client.storage().copy("assets", "moved", "copied", Overwrite::Refuse);
        assert_eq!(assert_kind(ErrorKind::QuotaExceeded, copied).status(), 413);
        ann.client.storage().delete("assets", "moved").expect("deleted");
        put(&ann.client, "again", 9_500).expect("a deleted file does not count");
        assert_eq!(owned(&db, ann.id), ("2".to_owned(), "10000".to_owned()));
    }

    fn an_owner_has_at_most_max_owner_files(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_owner_files(2));
        let ann = Sender::new(&db, "ann");
        put(&ann.client, "inline", 1).expect("one");
        put(&ann.client, "object", 2_000).expect("two");
        for size in [0, 5_000] {
            let error = assert_kind(ErrorKind::QuotaExceeded, put(&ann.client, "third", size));
            assert_eq!(error.status(), 409);
        }
        put(&ann.client, "inline", 3_000).expect("an overwrite adds no file");
        let answer = send(&ann.client, "PUT", "/assets/third", &[ann.bearer()], b"x");
        assert_eq!(answer.status, 409);
        assert_eq!(owned(&db, ann.id).0, "2");
    }

    fn concurrent_uploads_do_not_exceed_a_quota(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_owner_files(5).max_owner_bytes(20_000));
        let ann = Sender::new(&db, "ann");
        // Another process of the host.
        let other = Client::open(db.config().inline_file_limit(INLINE as u64).max_owner_files(5).max_owner_bytes(20_000));
        let other = other.expect("opens");
        let token = ann.bearer().1.trim_start_matches("Bearer ").to_owned();
        let clients = [ann.client.clone(), other.as_user(&token).expect("a handle")];
        let start = Barrier::new(16);
        let stored: usize = thread::scope(|scope| {
            let write = |number: usize| {
                let (client, start) = (&clients[number % 2], &start);
                scope.spawn(move || {
                    start.wait();
                    put(client, &format!("file {number}"), if number < 8 { 100 } else { 2_000 })
                })
            };
            let writers: Vec<_> = (0..16).map(write).collect();
            let results = writers.into_iter().map(|writer| writer.join().expect("no panic"));
            results.map(|result| result.map_or_else(|error| {
                assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{error}");
                0
            }, |()| 1)).sum()
        });
        assert_eq!(owned(&db, ann.id).0, stored.to_string());
        assert!((1..=5).contains(&stored), "{stored} files");
        // What was refused does not count.
        while owned(&db, ann.id).0 != "5" {
            put(&ann.client, &format!("more {}", owned(&db, ann.id).0), 1).expect("room");
        }
        other.close();
    }

    fn an_owner_has_at_most_max_owner_spaces(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_owner_spaces(3));
        let (ann, bob) = (Sender::new(&db, "ann"), Sender::new(&db, "bob"));
        let spaces = ann.client.spaces();
        let id = Uuid::new_v4();
        let given = || NewSpace::named("given").with_id(id);
        spaces.create_space(given()).expect("one");
        let error = assert_kind(ErrorKind::QuotaExceeded, spaces.create_spaces(vec![NewSpace::named("x"); 3]));
        assert_eq!(error.status(), 409);
        assert_eq!(db.raw.count("spaces"), 1, "all or none");
        spaces.create_spaces(vec![NewSpace::named("x"); 2]).expect("three");
        for new in [NewSpace::named("fourth"), NewSpace::named("fourth").with_id(Uuid::new_v4())] {
            let error = assert_kind(ErrorKind::QuotaExceeded, spaces.create_space(new));
            assert_eq!(error.to_string(), "Create space failed: Quota exceeded: the owner would have 4 spaces; the limit, option max_owner_spaces, is 3");
        }
        assert_eq!(spaces.create_space(given()).expect("a repeated call creates nothing").id, id);
        bob.client.spaces().create_space(NewSpace::named("of bob")).expect("the quota is each owner's");
        db.service.spaces().create_space(NewSpace::named("fourth").owned_by(ann.id)).expect("the service has none");
        spaces.delete_space(id).expect("deleted");
        assert_kind(ErrorKind::QuotaExceeded, spaces.create_space(NewSpace::named("fourth")));
    }

    fn concurrent_creates_do_not_exceed_the_quota_of_spaces(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_owner_spaces(4));
        let ann = Sender::new(&db, "ann");
        let start = Barrier::new(12);
        let created: usize = thread::scope(|scope| {
            let create = |number: usize| {
                let (client, start) = (&ann.client, &start);
                scope.spawn(move || {
                    start.wait();
                    let new = NewSpace::named(format!("space {number}"));
                    client.spaces().create_space(if number.is_multiple_of(2) { new } else { new.with_id(Uuid::new_v4()) })
                })
            };
            let creators: Vec<_> = (0..12).map(create).collect();
            creators.into_iter().map(|creator| usize::from(creator.join().expect("no panic").is_ok())).sum()
        });
        assert_eq!((created, db.raw.count("spaces")), (4, 4));
    }

    fn a_space_has_at_most_max_space_fidgets(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_space_fidgets(3));
        let (ann, bob) = (Sender::new(&db, "ann"), Sender::new(&db, "bob"));
        let space_of = |sender: &Sender| sender.client.spaces().create_space(NewSpace::named("town")).expect("a space").id;
        let (space, other, of_bob) = (space_of(&ann), space_of(&ann), space_of(&bob));
        let (fidgets, id) = (ann.client.fidgets(), Uuid::new_v4());
        let given = || NewFidget::of_type("given").with_id(id);
        fidgets.create_fidget(space, given()).expect("one");
        let error = assert_kind(ErrorKind::QuotaExceeded, fidgets.create_fidgets(space, vec![NewFidget::of_type("x"); 3]));
        assert_eq!((error.status(), error.code()), (409, None));
        assert_eq!(db.raw.count("fidgets"), 1, "all or none");
        fidgets.create_fidgets(space, vec![NewFidget::of_type("x"); 2]).expect("three");
        for new in [NewFidget::of_type("fourth"), NewFidget::of_type("fourth").with_id(Uuid::new_v4())] {
            let error = assert_kind(ErrorKind::QuotaExceeded, fidgets.create_fidget(space, new));
            assert_eq!(error.to_string(), "Create fidget failed: Quota exceeded: the space would have more than 3 fidgets; the limit is the option max_space_fidgets");
        }
        assert_eq!(fidgets.create_fidget(space, given()).expect("a repeated call creates nothing").id, id);
        assert_eq!(fidgets.create_fidgets(space, vec![given()]).expect("nor does this one").len(), 1);
        // The quota is that of each space.
        fidgets.create_fidgets(other, vec![NewFidget::of_type("x"); 3]).expect("another space");
        bob.client.fidgets().create_fidgets(of_bob, vec![NewFidget::of_type("x"); 3]).expect("a space of Bob");
        assert_kind(ErrorKind::Forbidden, bob.client.fidgets().create_fidget(space, NewFidget::of_type("x")));
        assert_kind(ErrorKind::Forbidden, db.client.fidgets().create_fidget(space, NewFidget::of_type("x")));
        // The service has none, and its fidgets count.
        db.service.fidgets().create_fidgets(space, vec![NewFidget::of_type("x"); 5]).expect("the service");
        assert_kind(ErrorKind::QuotaExceeded, fidgets.create_fidget(space, NewFidget::of_type("x")));
        assert_eq!(fidgets.create_fidget(space, given()).expect("beyond the limit, too").id, id);
        let all = fidgets.get_space_fidgets(space).expect("fidgets");
        all.iter().skip(2).for_each(|fidget| fidgets.delete_fidget(fidget.id).expect("deleted"));
        fidgets.create_fidget(space, NewFidget::of_type("third")).expect("a deleted fidget does not count");
        assert_kind(ErrorKind::QuotaExceeded, fidgets.create_fidget(space, NewFidget::of_type("x")));
    }

    fn concurrent_creates_do_not_exceed_the_quota_of_fidgets(db: &TestDatabase) {
        let db = with_quotas(db.engine, |config| config.max_space_fidgets(4));
        let ann = Sender::new(&db, "ann");
        let space = ann.client.spaces().create_space(NewSpace::named("town")).expect("a space").id;
        // Another process of the host.
        let other = Client::open(db.config().max_space_fidgets(4)).expect("opens");
        let token = ann.bearer().1.trim_start_matches("Bearer ").to_owned();
        let clients = [ann.client.clone(), other.as_user(&token).expect("a handle")];
        let start = Barrier::new(12);
        let created: usize = thread::scope(|scope| {
            let create = |number: usize| {
                let (client, start) = (&clients[number % 2], &start);
                scope.spawn(move || {
                    start.wait();
                    let new = NewFidget::of_type("x");
                    let new = if number < 6 { new } else { new.with_id(Uuid::new_v4()) };
                    client.fidgets().create_fidget(space, new)
                })
            };
            let creators: Vec<_> = (0..12).map(create).collect();
            let results = creators.into_iter().map(|creator| creator.join().expect("no panic"));
            results.map(|result| result.map_or_else(|error| {
                assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "{error}");
                0
            }, |_| 1)).sum()
        });
        other.close();
        assert_eq!((created, db.raw.count("fidgets")), (4, 4));
    }
}

/// The function that counts is executable by the callers' role. It says nothing about others, and takes no lock of theirs.
#[test]
fn a_caller_counts_only_what_is_their_own() {
    let Some(db) = TestDatabase::on(Engine::Postgres) else { return };
    let ann = Sender::new(&db, "ann");
    let space = ann.client.spaces().create_space(NewSpace::named("town").public()).expect("a space").id;
    let callers =
        db.raw.value("SELECT 'townsquare_caller_' || oid FROM pg_database WHERE datname = current_database()");
    db.raw.run(&format!("SET ROLE {callers}"));
    let error = db.raw.try_rows(&format!("SELECT * FROM townsquare.owner_usage('{}')", ann.id)).expect_err("refused");
    assert!(error.contains("permission denied"), "{error}");
    let error =
        db.raw.try_rows(&format!("SELECT * FROM townsquare.space_fidgets('{space}', 10)")).expect_err("refused");
    assert!(error.contains("permission denied"), "{error}");
    db.raw.run("RESET ROLE");
}

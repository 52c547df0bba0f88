//! Rows of files that a caller forges by SQL, and that the service then acts upon (DESIGN 4, 7).

use std::{fs, ops::ControlFlow};

use townsquare::{
    Config, ErrorKind, Uuid,
    spaces::NewSpace,
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{
    on_both_engines, on_engine,
    postgres::{callers_role, insert_session},
    raw_sql::RawConnection,
    temp_dir,
    test_database::{Engine, TestDatabase},
    wait::wait_until,
};

use super::{
    fixture::{bytes, put},
    requests::Sender,
};

const POLICY: &str = "violates row-level security policy";

/// A database with a declared bucket. Files over 1000 bytes are objects.
fn with_vault(engine: Engine) -> TestDatabase {
    let options = |config: Config| config.inline_file_limit(1_000).buckets("vault=private");
    TestDatabase::with(engine, options).expect("the engine is there")
}

/// Connects as the user, with the role of the callers.
fn connect_as(db: &TestDatabase, user: Uuid) -> RawConnection {
    let raw = RawConnection::postgres(&db.url()).expect("the server runs");
    let session = insert_session(&db.raw, user);
    raw.run(&format!("SET ROLE {}; SELECT set_config('townsquare.session', '{session}', false)", callers_role(&raw)));
    raw
}

/// A row of `files` or `file_intents`. Empty texts are NULL.
struct Forged<'a> {
    bucket: &'a str,
    path: &'a str,
    access: &'a str,
    space: &'a str,
    owner: &'a str,
    etag: &'a str,
    digest: &'a str,
    size: usize,
}

impl<'a> Forged<'a> {
    fn new(bucket: &'a str, path: &'a str, access: &'a str, owner: &'a str) -> Forged<'a> {
        Forged { bucket, path, access, space: "", owner, etag: "e", digest: "d", size: 1 }
    }

    /// The statement that inserts the row in `files`.
    fn file(&self) -> String {
        self.insert("townsquare.files", "digest, is_inline, updated_at", &format!("'{}', true, now()", self.digest))
    }

    /// The statement that inserts the row of an object in `files`.
    fn object(&self) -> String {
        self.file().replace("true, now()", "false, now()")
    }

    /// The statement that inserts the row in `file_intents`, over a file of the same version.
    fn intent(&self) -> String {
        let values = format!("'{}', '{}', '{}', now()", self.digest, "0".repeat(32), self.etag);
        self.insert("townsquare.file_intents", "digest, staged, base_etag, created_at", &values)
    }

    fn insert(&self, table: &str, columns: &str, values: &str) -> String {
        let Forged { bucket, path, access, space, owner, etag, size, .. } = self;
        let first = path.split('/').next().unwrap_or_default();
        format!(
            "INSERT INTO {table} (bucket, path, access, space_id, first_segment, owner_id, size, content_type, cache_control,
                etag, metadata, {columns})
             VALUES ('{bucket}', '{path}', '{access}', NULLIF('{space}', '')::uuid, '{first}', NULLIF('{owner}', '')::uuid, {size},
                'text/plain', 60, '{etag}', '{{}}', {values}) RETURNING path"
        )
    }
}

#[track_caller]
fn assert_refused(raw: &RawConnection, sql: &str, words: &str) {
    let error = raw.try_rows(sql).expect_err(sql);
    assert!(error.contains(words), "{sql}: {error}");
}

fn owner_of(db: &TestDatabase, path: &str) -> String {
    db.raw.value(&format!("SELECT owner_id FROM townsquare.files WHERE path = '{path}'"))
}

on_engine! { Postgres in postgres_only;
    fn a_row_has_a_bucket_of_the_database_and_its_access(db: &TestDatabase) {
        let db = with_vault(db.engine);
        let (ann, mallory) = (Sender::new(&db, "ann"), Sender::new(&db, "mallory"));
        let space = ann.client.spaces().create_space(NewSpace::named("x")).expect("created").id;
        let raw = connect_as(&db, mallory.id);
        let owner = mallory.id.to_string();
        let (home, tab) = (format!("{}/home", ann.id), format!("{space}/tab"));
        for (bucket, path) in [("/tmp/outside", "a"), ("..", "a"), ("other", "a"), ("vault", &*home)] {
            let forged = Forged::new(bucket, path, "public", &owner);
            assert_refused(&raw, &forged.file(), "files_bucket");
            assert_refused(&raw, &forged.intent(), "file_intents_bucket");
        }
        assert_refused(&raw, &Forged::new("spaces", &tab, "public", &owner).intent(), "file_intents_bucket");
        assert_refused(&raw, &Forged { size: 0, ..Forged::new("assets", "a", "public", &owner) }.intent().replace(", 0,", ", -1,"), "file_intents_size");
        put(&mallory.client, "assets", "mine", "x").expect("her file");
        assert_refused(&raw, "UPDATE townsquare.files SET bucket = '/tmp/outside'", "files_bucket");
        for path in ["..", ".", "a/../b", "../../a", "a//b", "/a", "a/", "a/.", r"a\b"] {
            let forged = Forged::new("assets", path, "public", &owner);
            assert_refused(&raw, &forged.file(), POLICY);
            assert_refused(&raw, &forged.intent(), POLICY);
            let first = path.split('/').next().unwrap_or_default();
            let moved = format!("UPDATE townsquare.files SET path = '{path}', first_segment = '{first}'");
            assert_refused(&raw, &moved, POLICY);
        }
        for path in ["a..b", ".a", "..a", "a.", "...", "a b/..."] {
            assert_eq!(raw.rows(&Forged::new("assets", path, "public", &owner).file()).len(), 1, "{path}");
        }
    }

    fn a_caller_makes_no_row_of_an_object_which_would_stop_uploads_of_everybody(db: &TestDatabase) {
        let db = with_vault(db.engine);
        let (ann, mallory) = (Sender::new(&db, "ann"), Sender::new(&db, "mallory"));
        let raw = connect_as(&db, mallory.id);
        let (owner, home) = (mallory.id.to_string(), format!("{}/x", mallory.id));
        for (bucket, path, access) in [("assets", "x", "public"), ("private", &*home, "private")] {
            assert_refused(&raw, &Forged::new(bucket, path, access, &owner).object(), POLICY);
        }
        put(&mallory.client, "assets", "mine", "x").expect("her file");
        assert_refused(&raw, "UPDATE townsquare.files SET is_inline = false", POLICY);
        put(&ann.client, "assets", "large", bytes(100_000, 1)).expect("a large file");
        db.another().as_service().storage().repair().expect("repaired");
    }

    fn an_unfinished_upload_takes_over_no_file(db: &TestDatabase) {
        let db = with_vault(db.engine);
        let (ann, mallory) = (Sender::new(&db, "ann"), Sender::new(&db, "mallory"));
        let space = ann.client.spaces().create_space(NewSpace::named("x")).expect("created").id.to_string();
        let own = mallory.client.spaces().create_space(NewSpace::named("x")).expect("created").id.to_string();
        let (tab, free) = (format!("{space}/tab"), format!("{own}/tab"));
        let raw = connect_as(&db, mallory.id);
        let owner = mallory.id.to_string();
        for (bucket, path, access, space) in [("assets", "photos/ann", "public", ""), ("spaces", &*tab, "spaces", &*space)] {
            put(&ann.client, bucket, path, bytes(100_000, 1)).expect("her file");
            let columns = db.raw.rows(&format!("SELECT etag, digest FROM townsquare.files WHERE path = '{path}'"));
            let [Some(etag), Some(digest)] = &columns[0][..] else { panic!("{columns:?}") };
            let forged = Forged { space, etag, digest, size: 100_000, ..Forged::new(bucket, path, access, &owner) };
            for sql in [forged.intent(), forged.intent() + "; UPDATE townsquare.file_intents SET path = path"] {
                assert_refused(&raw, &sql, POLICY);
            }
            db.service.storage().repair().expect("settled");
            assert_eq!(owner_of(&db, path), ann.id.to_string());
            assert_eq!(put(&ann.client, bucket, path, bytes(100_000, 2)).expect("hers").owner_id, Some(ann.id));
        }
        // She can begin one over a file of hers, and change none.
        put(&mallory.client, "spaces", &free, bytes(100_000, 1)).expect("her file");
        let began = Forged { space: &own, ..Forged::new("spaces", &free, "spaces", &owner) };
        for staged in ["", "../x", &"0".repeat(31), &"G".repeat(32)] {
            assert_refused(&raw, &began.intent().replace(&"0".repeat(32), staged), POLICY);
        }
        assert_eq!(raw.rows(&began.intent()).len(), 1);
        for sql in [
            "UPDATE townsquare.file_intents SET path = 'photos/ann'",
            "DELETE FROM townsquare.file_intents",
            "SELECT staged FROM townsquare.file_intents",
            "SELECT digest, etag FROM townsquare.file_intents",
        ] {
            assert_refused(&raw, sql, "permission denied");
        }
        wait_until("the intent is settled", || db.raw.count("townsquare.file_intents") == 0);
        let found = db.client.storage().download("spaces", &free).expect("unchanged");
        assert!(found == bytes(100_000, 1));
    }

    fn a_login_with_the_rights_of_the_callers_is_a_caller(db: &TestDatabase) {
        let db = with_vault(db.engine);
        let (ann, mallory) = (Sender::new(&db, "ann"), Sender::new(&db, "mallory"));
        let space = mallory.client.spaces().create_space(NewSpace::named("x")).expect("created").id;
        put(&mallory.client, "spaces", &format!("{space}/tab"), "x").expect("her file");
        let raw = RawConnection::postgres(&db.url()).expect("the server runs");
        let session = insert_session(&db.raw, mallory.id);
        let login = format!("login_{}", space.simple());
        let administrator = db.database().0.administrator(db.database().1);
        administrator.run(&format!("CREATE ROLE {login} LOGIN INHERIT; GRANT {} TO {login}", callers_role(&raw)));
        let of_login = RawConnection::postgres(&db.database().0.url(&login, db.database().1)).expect("the server runs");
        of_login.run(&format!("SELECT set_config('townsquare.session', '{session}', false)"));
        assert_refused(
            &of_login,
            &format!("UPDATE townsquare.files SET owner_id = '{}', size = 1000000", ann.id),
            "permission denied for table files",
        );
        assert_eq!(of_login.rows("UPDATE townsquare.files SET size = size RETURNING path").len(), 1);
        drop(of_login);
        administrator.run(&format!("REVOKE {} FROM {login}; DROP ROLE {login}", callers_role(&raw)));
    }

    fn a_caller_fills_no_quota_of_another(db: &TestDatabase) {
        let db = with_vault(db.engine);
        let (ann, mallory) = (Sender::new(&db, "ann"), Sender::new(&db, "mallory"));
        let own = mallory.client.spaces().create_space(NewSpace::named("x")).expect("created").id.to_string();
        let raw = connect_as(&db, mallory.id);
        let (victim, path) = (ann.id.to_string(), |name: &str| format!("{own}/{name}"));
        let new = path("new");
        let forged = Forged { space: &own, size: 1_000_000, ..Forged::new("spaces", &new, "spaces", &victim) };
        assert_refused(&raw, &forged.file(), POLICY);
        assert_refused(&raw, &forged.intent(), POLICY);
        // A file of the victim in her space, which had another owner before.
        for (name, size) in [("small", 10), ("large", 100_000)] {
            put(&mallory.client, "spaces", &path(name), bytes(size, 1)).expect("her file");
            let of = |name: &str| format!("WHERE path = '{}'", path(name));
            let give = format!("UPDATE townsquare.files SET owner_id = '{victim}' {}", of(name));
            assert_refused(&raw, &give, "permission denied for table files");
            db.raw.run(&give);
            for set in ["size = size + 1", "size = 1000000000"] {
                let grow = format!("UPDATE townsquare.files SET {set} {}", of(name));
                assert_refused(&raw, &grow, "permission denied for table files");
            }
            let moved = path(&format!("moved-{name}"));
            let move_file = mallory.client.storage().move_file("spaces", &path(name), &moved, Overwrite::Refuse);
            assert_eq!(move_file.expect("moved").owner_id, Some(ann.id), "a move leaves the owner");
            assert_eq!(owner_of(&db, &moved), victim);
            // Her own write makes the file hers.
            assert_eq!(put(&mallory.client, "spaces", &moved, bytes(size + 1, 2)).expect("written").owner_id, Some(mallory.id));
        }
        assert_eq!(db.raw.count(&format!("townsquare.files WHERE owner_id = '{victim}'")), 0);
    }
}

on_both_engines! {
    /// Rows of the program itself, or of an older version: no constraint is in the way.
    fn an_export_writes_nothing_outside_of_its_folder(db: &TestDatabase) {
        let (db, folder) = (with_vault(db.engine), temp_dir());
        let outside = folder.path().join("outside");
        fs::create_dir(&outside).expect("a folder");
        let bucket = outside.display().to_string();
        let mut files = "townsquare_files";
        if db.engine == Engine::Postgres {
            db.raw.run("ALTER TABLE townsquare.files DROP CONSTRAINT files_bucket");
            files = "townsquare.files";
        }
        for (name, size) in [("small", 10), ("large", 100_000)] {
            put(&db.service, "assets", &format!("{name}-good"), bytes(size, 1)).expect("stored");
            for number in 0..4 {
                put(&db.service, "assets", &format!("{name}{number}"), bytes(size, 2 + number)).expect("stored");
            }
            for (number, set) in [
                format!("bucket = '{bucket}', access = 'private'"),
                "bucket = 'unknown', access = 'private'".to_owned(),
                format!("path = '../../outside/{name}', first_segment = '..'"),
                format!("path = 'a/../../../outside/{name}', first_segment = 'a'"),
            ].into_iter().enumerate() {
                db.raw.run(&format!("UPDATE {files} SET {set} WHERE path = '{name}{number}'"));
            }
        }
        let target = folder.path().join("exported/here");
        fs::create_dir(folder.path().join("exported")).expect("a folder");
        let exported = db.service.storage().export_files(&target, |_, _| ControlFlow::Continue(()));
        let error = exported.expect_err("it lacks the files");
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert!(error.to_string().contains("lacks 8 damaged files"), "{error}");
        for (name, size) in [("small", 10), ("large", 100_000)] {
            let good = fs::read(target.join("assets").join(format!("{name}-good"))).expect("exported");
            assert!(good == bytes(size, 1), "{name}");
        }
        assert_eq!(fs::read_dir(&outside).expect("a folder").count(), 0);
        let names: Vec<_> = fs::read_dir(target.join("assets")).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
        let uploaded = db.service.storage().upload("assets", "next", "x", UploadOptions::new());
        uploaded.expect("the store works");
    }
}

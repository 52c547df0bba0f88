//! Crashes and changes behind the library's back: what is settled at open, on access, and by `repair`.

use std::fs;

use townsquare::{ErrorKind, blocking::Client, storage::Overwrite};
use townsquare_tests::{on_both_engines, test_database::Engine};

use super::{
    files::own,
    fixture::{Fixture, Store, assert_refused, bytes, paths},
};

/// A fixture with a folder, in which every file is an object.
fn with_folder(engine: Engine) -> Option<Fixture> {
    Fixture::on(engine, Store::Folder(0))
}

/// Writes the intent of an upload of `data` over `a`, as a writer leaves it that dies before the rename.
fn leave_intent(fixture: &Fixture, path: &str, data: &[u8], base_etag: &str) {
    let sql = format!(
        "INSERT INTO townsquare.file_intents (bucket, path, access, first_segment, size, content_type, cache_control, etag,
            metadata, digest, staged, base_etag, created_at)
         VALUES ('assets', '{path}', 'public', '{path}', {}, 'text/plain', 60, 'new-etag', '{{}}', '{}', '{}',
            '{base_etag}', '2026-01-02T03:04:06.000000Z')",
        data.len(),
        blake3(data),
        "0".repeat(32),
    );
    fixture.db.raw.run(&own(fixture, &sql));
}

/// Does the rename of an upload of `data`.
fn rename_to(fixture: &Fixture, path: &str, data: &[u8]) {
    let staged = fixture.files_folder().join("staged");
    fs::write(&staged, data).expect("written");
    fs::rename(staged, fixture.files_folder().join("assets").join(path)).expect("renamed");
}

/// BLAKE3 in hex, by way of an upload.
fn blake3(data: &[u8]) -> String {
    let Some(fixture) = with_folder(Engine::Sqlite) else { panic!("SQLite is always there") };
    fixture.put("assets", "x", data.to_vec());
    fixture.db.raw.value("SELECT digest FROM townsquare_files")
}

fn each_engine(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(fixture) = with_folder(engine) {
            test(&fixture);
        }
    }
}

#[test]
fn an_intent_whose_bytes_are_in_place_becomes_the_file() {
    each_engine(|fixture| {
        let old = fixture.put("assets", "a", bytes(1_000, 1));
        let new = bytes(2_000, 2);
        for is_reopened in [false, true] {
            leave_intent(fixture, "a", &new, &fixture.db.service.storage().stat("assets", "a").expect("found").etag);
            rename_to(fixture, "a", &new);
            if is_reopened {
                Client::open(fixture.config()).expect("opened").close();
                let count = own(fixture, "SELECT count(*) FROM townsquare.file_intents");
                assert_eq!(fixture.db.raw.value(&count), "0", "open settles it");
            }
            assert!(fixture.get("assets", "a") == new, "the new bytes, whole");
            let info = fixture.db.service.storage().stat("assets", "a").expect("found");
            assert_eq!((info.size, info.etag.as_str()), (2_000, "new-etag"));
            assert!(info.updated_at > old.updated_at);
            fixture.put("assets", "a", bytes(1_000, 1));
        }
    });
}

#[test]
fn an_intent_whose_bytes_are_not_in_place_is_undone() {
    each_engine(|fixture| {
        let old = fixture.put("assets", "a", bytes(1_000, 1));
        leave_intent(fixture, "a", &bytes(2_000, 2), &old.etag);
        leave_intent(fixture, "b", &bytes(2_000, 2), "");
        assert!(fixture.get("assets", "a") == bytes(1_000, 1), "the old bytes, whole");
        assert_eq!(fixture.db.service.storage().stat("assets", "a").expect("found"), old);
        fixture.put("assets", "b", bytes(3_000, 3));
        assert!(fixture.get("assets", "b") == bytes(3_000, 3), "a writer settles what is in its way");
        let report = fixture.db.service.storage().repair().expect("repaired");
        assert_eq!(report.finished, 1, "a reader of the old version leaves the intent");
        let count = own(fixture, "SELECT count(*) FROM townsquare.file_intents");
        assert_eq!(fixture.db.raw.value(&count), "0");
    });
}

#[test]
fn an_intent_does_not_undo_a_later_write() {
    each_engine(|fixture| {
        let old = fixture.put("assets", "a", bytes(1_000, 1));
        let new = bytes(2_000, 2);
        leave_intent(fixture, "a", &new, "another etag");
        rename_to(fixture, "a", &new);
        let report = fixture.db.service.storage().repair().expect("repaired");
        assert_eq!(report.finished, 1);
        let _ = old;
        let count = own(fixture, "SELECT count(*) FROM townsquare.file_intents");
        assert_eq!(fixture.db.raw.value(&count), "0");
    });
}

#[test]
fn bytes_that_vanished_are_missing_and_bytes_of_another_size_are_an_error() {
    each_engine(|fixture| {
        fixture.put("assets", "gone", bytes(1_000, 1));
        fixture.put("assets", "other", bytes(1_000, 1));
        fixture.put("assets", "fine", bytes(1_000, 1));
        fs::remove_file(fixture.files_folder().join("assets/gone")).expect("removed");
        fs::write(fixture.files_folder().join("assets/other"), "short").expect("written");
        fs::write(fixture.files_folder().join("assets/orphan"), "nobody's").expect("written");
        let storage = fixture.db.service.storage();
        let missing = storage.download("assets", "gone");
        let advice = missing.as_ref().expect_err("nothing to read").explanation();
        assert!(advice.contains("backup") && advice.contains("check()"), "{advice}");
        assert_refused(missing, ErrorKind::NotFound, 404, "Download failed: File not found");
        let message = "Download failed: Storage error: The stored bytes are 5, but the file has 1000";
        assert_refused(storage.download("assets", "other"), ErrorKind::Internal, 500, message);
        let report = storage.repair().expect("repaired");
        assert_eq!((report.orphans_removed, report.rows_removed), (1, 1));
        assert_eq!(report.mismatched, ["assets/other"]);
        assert_eq!(paths(&fixture.db.service, "assets"), ["fine", "other"]);
        assert_eq!(fixture.objects(), Some(vec!["assets/fine".to_owned(), "assets/other".to_owned()]));
        let report = storage.repair().expect("repaired");
        assert_eq!((report.finished, report.orphans_removed, report.rows_removed), (0, 0, 0));
    });
}

#[test]
fn staged_bytes_of_dead_writers_are_removed_by_an_open_without_other_clients() {
    let fixture = with_folder(Engine::Sqlite).expect("SQLite is always there");
    fixture.put("assets", "a", bytes(1_000, 1));
    let staging = fixture.files_folder().join(".townsquare/staging");
    let count = || fs::read_dir(&staging).expect("a folder").count();
    fs::write(staging.join("0".repeat(32)), "of a writer that was killed").expect("written");
    let open = || Client::open(fixture.config()).expect("opened");
    open().close();
    assert_eq!(count(), 1, "a writer of the other client may be at work");
    fixture.db.client.close();
    let client = open();
    assert_eq!(count(), 0);
    client.close();
}

#[test]
fn a_row_that_plain_sql_deletes_loses_its_object() {
    each_engine(|fixture| {
        fixture.put("assets", "a", bytes(1_000, 1));
        fixture.db.raw.run(&own(fixture, "DELETE FROM townsquare.files"));
        Client::open(fixture.config()).expect("opened").close();
        assert_eq!(fixture.objects(), Some(Vec::new()));
        fixture.put("assets", "b", bytes(1_000, 1));
        fixture.db.raw.run(&own(fixture, "DELETE FROM townsquare.files"));
        fixture.put("assets", "b", bytes(1_000, 2));
        fixture.db.service.storage().repair().expect("repaired");
        assert!(fixture.get("assets", "b") == bytes(1_000, 2), "a new file at the path stays");
    });
}

on_both_engines! {
    fn a_bucket_is_declared_with_one_access(db: &TestDatabase) {
        let open = |buckets: &str| Client::open(db.config().storage_url("memory:").buckets(buckets));
        let client = open("shared=public, vault=private").expect("declared");
        super::fixture::put(&client.as_service(), "shared", "a", "x").expect("uploaded");
        super::fixture::put(&client.as_service(), "vault", "a/b", "x").expect("uploaded");
        assert_eq!(client.storage().download("shared", "a").expect("public"), "x");
        assert!(client.storage().download("vault", "a/b").is_err(), "private");
        client.close();
        for bad in ["shared=private", "spaces=public", "a/b=public", "x", "x=open", "X=public", "x=public,x=private"] {
            let error = open(bad).expect_err(bad);
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.message().contains("buckets"), "{error}");
        }
    }
}

#[test]
fn a_thousand_paths_that_fail_do_not_keep_another_path_from_being_settled() {
    each_engine(|fixture| {
        fixture.put("assets", "z", bytes(1_000, 1));
        // A folder of files refuses these paths.
        let names = match fixture.db.engine {
            Engine::Sqlite => {
                "WITH RECURSIVE names (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM names WHERE n < 1200)
                 INSERT INTO townsquare_file_outbox (bucket, path) SELECT 'assets', '../' || n FROM names"
            }
            Engine::Postgres => {
                "INSERT INTO townsquare.file_outbox (bucket, path)
                 SELECT 'assets', '../' || n FROM generate_series(1, 1200) AS n"
            }
        };
        fixture.db.raw.run(names);
        fixture.db.raw.run(&own(fixture, "DELETE FROM townsquare.files WHERE path = 'z'"));
        let report = fixture.db.service.storage().repair().expect("repaired");
        assert_eq!(report.finished, 1);
        assert_eq!(fixture.objects(), Some(Vec::new()));
        let left = own(fixture, "SELECT count(*) FROM townsquare.file_outbox");
        assert_eq!(fixture.db.raw.value(&left), "1200");
    });
}

/// The row of the only file as it was before the last write, with the bytes of that write.
fn bring_old_row_back(fixture: &Fixture, old: &[u8], etag: &str) {
    let digest = blake3(old);
    let sql = format!("UPDATE townsquare.files SET etag = '{etag}', digest = '{digest}', size = {}", old.len());
    fixture.db.raw.run(&own(fixture, &sql));
}

#[cfg(target_os = "linux")]
#[test]
fn bytes_of_another_version_are_an_error_and_reported() {
    each_engine(|fixture| {
        let (old, new) = (bytes(100_000, 1), bytes(100_000, 2));
        let etag = fixture.put("assets", "a", old.clone()).etag;
        fixture.put("assets", "a", new);
        bring_old_row_back(fixture, &old, &etag);
        let storage = fixture.db.service.storage();
        let message = "Download failed: Storage error: The stored bytes are of another version than the file";
        assert_refused(storage.download("assets", "a"), ErrorKind::Internal, 500, message);
        assert_eq!(storage.repair().expect("repaired").mismatched, ["assets/a"]);
        let new = fixture.put("assets", "a", old.clone());
        assert!(fixture.get("assets", "a") == old);
        assert_eq!(storage.stat("assets", "a").expect("found"), new);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn the_object_of_a_moved_file_gets_its_version() {
    each_engine(|fixture| {
        let (storage, data) = (fixture.db.service.storage(), bytes(100_000, 1));
        fixture.put("assets", "a", data.clone());
        storage.move_file("assets", "a", "b", Overwrite::Refuse).expect("moved");
        // Nobody needs the digest of an object with the row's version.
        fixture.db.raw.run(&own(fixture, "UPDATE townsquare.files SET digest = 'x'"));
        assert!(fixture.get("assets", "b") == data);
        assert_eq!(storage.repair().expect("repaired").mismatched, [""; 0]);
        // As a process leaves it that is killed before it writes the version: the digest tells.
        let sql = format!("UPDATE townsquare.files SET etag = 'moved', digest = '{}'", blake3(&data));
        fixture.db.raw.run(&own(fixture, &sql));
        assert!(fixture.get("assets", "b") == data);
        fixture.db.raw.run(&own(fixture, "UPDATE townsquare.files SET digest = 'x'"));
        assert!(fixture.get("assets", "b") == data, "the reader has written the version");
    });
}

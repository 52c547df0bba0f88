//! Writes that overlap a write of an object, between its intent and its row. An S3 server that holds back the copy of the
//! staged bytes keeps the first write there.

use std::{
    sync::mpsc,
    thread::{self, Scope, ScopedJoinHandle},
    time::Duration,
};

use townsquare::{
    Error, ErrorKind,
    blocking::Client,
    storage::{FileInfo, Overwrite, UploadOptions},
};
use townsquare_tests::{test_database::Engine, wait::wait_until};

use super::{
    files::own,
    fixture::{Fixture, SMALL, Store, assert_refused, bytes, paths, put},
};

const LARGE: usize = 100_000;

/// How long a write that should wait is given to return, which it must not do.
const HEAD_START: Duration = Duration::from_millis(300);

fn on_each_engine(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(fixture) = Fixture::on(engine, Store::S3(SMALL)) {
            test(&fixture);
        }
    }
}

/// The number of rows of a table of the library.
fn count(fixture: &Fixture, table: &str) -> String {
    fixture.db.raw.value(&own(fixture, &format!("SELECT count(*) FROM townsquare.{table}")))
}

fn delete_with_plain_sql(fixture: &Fixture, path: &str) {
    fixture.db.raw.run(&own(fixture, &format!("DELETE FROM townsquare.files WHERE path = '{path}'")));
}

/// Starts `write`, which writes an object, and runs `meanwhile` between its intent and its row. Returns both results.
fn during<W: Send, M>(fixture: &Fixture, write: impl FnOnce() -> W + Send, meanwhile: impl FnOnce() -> M) -> (W, M) {
    let server = fixture.s3.as_ref().expect("the store is in S3");
    let held = server.hold_copies();
    thread::scope(|scope| {
        let writer = scope.spawn(write);
        wait_until("the intent is written", || count(fixture, "file_intents") == "1");
        let result = meanwhile();
        drop(held);
        (writer.join().expect("no panic"), result)
    })
}

/// Starts `write` on a thread, and lets it run until it has returned or, because it waits, for a while.
fn start<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    write: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let (returned, is_returned) = mpsc::channel();
    let handle = scope.spawn(move || {
        let result = write();
        let _ = returned.send(());
        result
    });
    let _ = is_returned.recv_timeout(HEAD_START);
    handle
}

fn move_to_target(fixture: &Fixture) -> Result<FileInfo, Error> {
    fixture.db.service.storage().move_file("assets", "s", "t", Overwrite::Replace)
}

/// Nothing is left of writes that did not become the file.
fn assert_clean(fixture: &Fixture, files: &[&str]) {
    assert_eq!(paths(&fixture.db.service, "assets"), files);
    let report = fixture.db.service.storage().repair().expect("repaired");
    assert_eq!((report.orphans_removed, report.rows_removed, &report.mismatched[..]), (0, 0, &[][..]));
    assert_eq!((count(fixture, "file_intents"), count(fixture, "file_outbox")), ("0".to_owned(), "0".to_owned()));
}

#[test]
fn a_small_upload_does_not_slip_under_a_large_one_of_another_user() {
    on_each_engine(|fixture| {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let upload = |client: &Client, size| put(client, "assets", "a", bytes(size, 1));
        let (large, small) = thread::scope(|scope| {
            let (large, small) =
                during(fixture, || upload(&ann.client, LARGE), || start(scope, || upload(&bob.client, 10)));
            (large, small.join().expect("no panic"))
        });
        let large = large.expect("uploaded");
        let message = "Upload failed: Forbidden file access";
        assert_refused(small, ErrorKind::Forbidden, 403, message);
        assert_eq!(fixture.db.service.storage().stat("assets", "a").expect("found"), large);
        assert_eq!(large.owner_id, Some(ann.id));
        assert!(fixture.get("assets", "a") == bytes(LARGE, 1));
        assert_clean(fixture, &["a"]);
    });
}

#[test]
fn a_small_upload_with_if_match_waits_for_a_move_of_its_file() {
    on_each_engine(|fixture| {
        let source = fixture.put("assets", "s", bytes(LARGE, 1));
        fixture.put("assets", "t", bytes(LARGE, 2));
        let options = UploadOptions::new().if_match(source.etag);
        let (moved, written) = thread::scope(|scope| {
            let write = || fixture.db.service.storage().upload("assets", "s", "small", options);
            let (moved, write) = during(fixture, || move_to_target(fixture), || start(scope, write));
            (moved, write.join().expect("no panic"))
        });
        moved.expect("moved");
        let message = "Upload failed: Storage error: The file has another version than if_match";
        assert_refused(written, ErrorKind::Conflict, 412, message);
        assert!(fixture.get("assets", "t") == bytes(LARGE, 1));
        assert_clean(fixture, &["t"]);
    });
}

#[test]
fn a_small_file_is_not_moved_under_a_large_upload_of_another_user() {
    on_each_engine(|fixture| {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        put(&bob.client, "assets", "s", "small").expect("uploaded");
        let (large, moved) = thread::scope(|scope| {
            let rename = || bob.client.storage().move_file("assets", "s", "t", Overwrite::Replace);
            let upload = || put(&ann.client, "assets", "t", bytes(LARGE, 1));
            let (large, moved) = during(fixture, upload, || start(scope, rename));
            (large, moved.join().expect("no panic"))
        });
        assert_eq!(large.expect("uploaded").owner_id, Some(ann.id));
        assert_refused(moved, ErrorKind::Forbidden, 403, "Move failed: Forbidden file access");
        assert!(fixture.get("assets", "t") == bytes(LARGE, 1) && fixture.get("assets", "s") == "small");
        assert_clean(fixture, &["s", "t"]);
    });
}

#[test]
fn a_move_succeeds_although_plain_sql_deletes_its_target() {
    on_each_engine(|fixture| {
        fixture.put("assets", "s", bytes(LARGE, 1));
        fixture.put("assets", "t", bytes(LARGE, 2));
        let (moved, ()) = during(fixture, || move_to_target(fixture), || delete_with_plain_sql(fixture, "t"));
        moved.expect("moved");
        assert!(fixture.get("assets", "t") == bytes(LARGE, 1));
        assert_clean(fixture, &["t"]);
    });
}

#[test]
fn a_move_whose_source_plain_sql_deletes_is_refused_if_it_replaces_nothing() {
    on_each_engine(|fixture| {
        for has_target in [false, true] {
            fixture.put("assets", "s", bytes(LARGE, 1));
            if has_target {
                fixture.put("assets", "t", bytes(LARGE, 2));
            }
            let (moved, ()) = during(
                fixture,
                || move_to_target(fixture),
                || ["s", "t"].into_iter().for_each(|path| delete_with_plain_sql(fixture, path)),
            );
            assert_refused(moved, ErrorKind::NotFound, 404, "Move failed: File not found");
            assert_clean(fixture, &[]);
        }
    });
}

#[test]
fn a_move_over_a_file_is_done_before_plain_sql_deletes_its_source() {
    on_each_engine(|fixture| {
        fixture.put("assets", "s", bytes(LARGE, 1));
        fixture.put("assets", "t", bytes(LARGE, 2));
        let (moved, ()) = during(fixture, || move_to_target(fixture), || delete_with_plain_sql(fixture, "s"));
        moved.expect("the bytes of the target are replaced");
        assert!(fixture.get("assets", "t") == bytes(LARGE, 1));
        assert_clean(fixture, &["t"]);
    });
}

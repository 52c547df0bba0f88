//! Copies and moves of large files in S3: the store copies the bytes. If it cannot, they pass through the client.

use std::{fs, path::PathBuf, thread};

use townsquare::{
    Error, ErrorKind,
    blocking::Storage,
    storage::{FileInfo, Overwrite, UploadOptions},
};
use townsquare_tests::{
    s3_proxy::{Call, Fault, Rule, S3Proxy},
    s3_server::S3Server,
    test_database::{Engine, TestDatabase},
    wait::wait_until,
};

use super::fixture::{SMALL, bytes};

const SIZE: usize = 10 << 20;
/// A file of one request.
const SMALLER: usize = 100_000;
/// The part of the paths of stages.
const STAGING: &str = "/.townsquare/staging/";

/// A database with a store behind a proxy.
struct Town {
    db: TestDatabase,
    proxy: S3Proxy,
    server: S3Server,
}

impl Town {
    fn storage(&self) -> Storage<'_> {
        self.db.service.storage()
    }

    /// Uploads `a`.
    fn put(&self, size: usize, seed: u8) -> FileInfo {
        let options =
            UploadOptions::new().content_type("text/css").cache_control(7).metadata("colour", "red").upsert(true);
        self.storage().upload("assets", "a", bytes(size, seed), options).expect("uploaded")
    }

    /// Copies `a` to `target`, or moves it there.
    fn transfer(&self, is_move: bool, target: &str) -> Result<FileInfo, Error> {
        transfer_by(&self.storage(), is_move, target)
    }

    /// Copies or moves `a` to `b`, and does something while the store copies the bytes.
    fn transfer_during(&self, is_move: bool, meanwhile: impl FnOnce()) -> Result<FileInfo, Error> {
        let held = self.server.hold_copies_of("objects/assets/a");
        thread::scope(|scope| {
            let transfer = scope.spawn(|| self.transfer(is_move, "b"));
            wait_until("the store is asked to copy", || self.staged_copies() == 1);
            meanwhile();
            drop(held);
            transfer.join().expect("no panic")
        })
    }

    fn assert_has(&self, path: &str, size: usize, seed: u8) {
        assert!(self.storage().download("assets", path).expect("downloaded") == bytes(size, seed), "{path}");
    }

    /// How often bytes were read and written since a count before.
    fn transfers(&self) -> usize {
        [Call::Get, Call::Put, Call::BeginUpload, Call::PutPart].map(|call| self.proxy.count(call, "")).iter().sum()
    }

    /// How often the store was asked to stage a copy.
    fn staged_copies(&self) -> usize {
        self.proxy.count(Call::Copy, STAGING)
    }

    fn assert_clean(&self) {
        let staging = self.server.folder().join(format!("objects{STAGING}"));
        let count = || fs::read_dir(&staging).into_iter().flatten().count();
        wait_until("no stage is left", || count() == 0);
        assert_eq!(self.storage().repair().expect("repaired").rows_removed, 0);
    }

    /// The files in which the server keeps the attributes of objects, as JSON.
    fn files_of_attributes(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(self.server.buckets()).expect("a folder").flatten().map(|entry| entry.path());
        entries.filter(|path| path.to_string_lossy().ends_with(".metadata.json"))
    }
}

fn transfer_by(storage: &Storage<'_>, is_move: bool, target: &str) -> Result<FileInfo, Error> {
    match is_move {
        true => storage.move_file("assets", "a", target, Overwrite::Refuse),
        false => storage.copy("assets", "a", target, Overwrite::Refuse),
    }
}

/// Runs a test with a new database and store: for a copy and for a move, on each engine.
fn each(test: impl Fn(&Town, bool)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for is_move in [false, true] {
            let server = S3Server::start();
            let proxy = S3Proxy::to(server.address());
            let url = proxy.through(&server.url("objects"), server.address());
            let db = TestDatabase::with(engine, |config| config.storage_url(&url).inline_file_limit(SMALL));
            if let Some(db) = db {
                test(&Town { db, proxy, server }, is_move);
            }
        }
    }
}

#[test]
fn the_bytes_of_a_copy_and_of_a_move_do_not_pass_through_the_client() {
    each(|town, is_move| {
        let source = town.put(SIZE, 1);
        let (transfers, sent) = (town.transfers(), town.proxy.bytes());
        let target = town.transfer(is_move, "b").expect("done");
        assert_eq!(town.transfers(), transfers, "no request reads or writes bytes");
        let sent = town.proxy.bytes() - sent;
        assert!(sent < 2_000, "{sent} bytes of requests and answers");
        assert_ne!(target.etag, source.etag);
        assert_eq!(
            (target.size, &target.content_type, target.cache_control, &target.metadata),
            (SIZE as u64, &source.content_type, 7, &source.metadata)
        );
        assert_eq!(town.storage().stat("assets", "b").expect("found"), target);
        town.assert_has("b", SIZE, 1);
        assert_eq!(town.storage().exists("assets", "a").expect("an answer"), !is_move);
        let mut attributes = town.files_of_attributes().map(|file| fs::read_to_string(file).expect("attributes"));
        let of_target = attributes.find(|found| found.contains(&target.etag)).expect("the version of the target");
        for value in ["text/css", "max-age=7", "colour", "red"] {
            assert!(of_target.contains(value), "{value} in {of_target}");
        }
        town.assert_clean();
    });
}

#[test]
fn a_copy_of_a_copy_has_the_bytes_of_its_source() {
    each(|town, is_move| {
        town.put(SIZE, 1);
        town.transfer(is_move, "b").expect("done");
        town.storage().move_file("assets", "b", "a", Overwrite::Replace).expect("moved");
        town.transfer(is_move, "c/d").expect("done");
        assert_eq!(town.staged_copies(), 3);
        town.assert_has("c/d", SIZE, 1);
        town.assert_clean();
    });
}

#[test]
fn a_source_that_is_replaced_meanwhile_is_copied_and_moved_in_its_new_version() {
    each(|town, is_move| {
        town.put(SMALLER, 1);
        let replace = || {
            let options = UploadOptions::new().content_type("text/plain").upsert(true);
            town.storage().upload("assets", "a", bytes(SMALLER + 1, 2), options).expect("uploaded");
        };
        let target = town.transfer_during(is_move, replace).expect("done");
        assert_eq!((target.size, target.content_type.as_str()), (SMALLER as u64 + 1, "text/plain"));
        town.assert_has("b", SMALLER + 1, 2);
        town.assert_clean();
    });
}

#[test]
fn a_source_that_is_deleted_meanwhile_is_not_found() {
    each(|town, is_move| {
        town.put(SMALLER, 1);
        let delete = || town.storage().delete("assets", "a").expect("deleted");
        let refused = town.transfer_during(is_move, delete).expect_err("the source is gone");
        assert_eq!((refused.kind(), refused.status()), (ErrorKind::NotFound, 404), "{refused:?}");
        assert!(!town.storage().exists("assets", "b").expect("an answer"));
        town.assert_clean();
    });
}

#[test]
fn bytes_pass_through_the_client_if_the_store_refuses_to_copy_them() {
    let refusals = [
        (400, "InvalidRequest"),
        (403, "AccessDenied"),
        (405, "MethodNotAllowed"),
        (412, "PreconditionFailed"),
        (501, "NotImplemented"),
        // The answer to a copy may begin before its outcome is known.
        (200, "AccessDenied"),
    ];
    each(|town, is_move| {
        for (status, code) in refusals {
            town.put(SMALLER, 1);
            let asked = town.staged_copies();
            town.proxy.inject(Rule::new(Fault::Status(status, code), Call::Copy).path(STAGING));
            let target = format!("{status}");
            town.transfer(is_move, &target).unwrap_or_else(|error| panic!("{status}: {error:?}"));
            town.proxy.heal();
            assert_eq!(town.staged_copies(), asked + 1, "{status} is not tried again");
            town.assert_has(&target, SMALLER, 1);
        }
        town.assert_clean();
    });
}

#[test]
fn a_store_that_fails_to_copy_in_its_answer_is_asked_again() {
    each(|town, is_move| {
        town.put(SMALLER, 1);
        town.proxy.inject(Rule::new(Fault::Status(200, "InternalError"), Call::Copy).path(STAGING).times(2));
        let before = town.transfers();
        town.transfer(is_move, "b").expect("done");
        assert_eq!((town.staged_copies(), town.transfers()), (3, before));
        town.assert_has("b", SMALLER, 1);
        town.assert_clean();
    });
}

#[test]
fn a_busy_store_changes_nothing() {
    each(|town, is_move| {
        town.put(SMALLER, 1);
        let before = town.transfers();
        town.proxy.inject(Rule::new(Fault::Status(503, "SlowDown"), Call::Copy).path(STAGING));
        let refused = town.transfer(is_move, "b").expect_err("the store is busy");
        assert_eq!((refused.kind(), refused.is_retryable()), (ErrorKind::Unavailable, true), "{refused:?}");
        assert_eq!(town.transfers(), before, "it is not given the bytes either");
        town.proxy.heal();
        assert!(!town.storage().exists("assets", "b").expect("an answer"));
        town.assert_has("a", SMALLER, 1);
        town.transfer(is_move, "b").expect("done");
        town.assert_clean();
    });
}

#[test]
fn a_store_that_keeps_the_attributes_of_copies_is_asked_once() {
    each(|town, is_move| {
        town.server.keep_attributes_of_copies();
        for target in ["b", "c"] {
            let source = town.put(SMALLER, 1);
            let moved = town.transfer(is_move, target).expect("done");
            assert_ne!(moved.etag, source.etag);
            town.assert_has(target, SMALLER, 1);
        }
        assert_eq!(town.staged_copies(), 1);
        town.assert_clean();
    });
}

#[test]
fn an_object_without_a_version_passes_through_the_client() {
    each(|town, is_move| {
        town.put(SMALLER, 1);
        town.files_of_attributes().for_each(|file| fs::remove_file(file).expect("removed"));
        town.transfer(is_move, "b").expect("done");
        assert_eq!(town.staged_copies(), 0);
        town.assert_has("b", SMALLER, 1);
    });
}

#[test]
fn the_store_is_not_asked_for_a_copy_that_the_caller_may_not_make() {
    each(|town, is_move| {
        town.put(SMALLER, 1);
        let refused = transfer_by(&town.db.client.storage(), is_move, "b").expect_err("nobody is signed in");
        assert_eq!((refused.kind(), refused.status()), (ErrorKind::Unauthorized, 401), "{refused:?}");
        assert_eq!(town.staged_copies(), 0);
        assert!(!town.storage().exists("assets", "b").expect("an answer"));
    });
}

//! Deleting by prefix, asking whether a file exists, and iterating over files: on every store, with the negative twins.

use townsquare::{ErrorKind, blocking::Client, spaces::NewSpace};
use townsquare_tests::test_database::Engine;

use super::{
    files::own,
    fixture::{Fixture, Store, assert_refused, bytes, on_every_store, paths, put},
};

/// The paths that `iter` gives.
fn iterated(client: &Client, bucket: &str, prefix: &str, page_size: u32) -> Vec<String> {
    let files = client.storage().iter(bucket, prefix, page_size);
    files.map(|file| file.expect("a file").path).collect()
}

/// Puts 230 files into `assets/old/` and three beside the folder. The first of `old/` is an object on most stores.
fn put_pages(client: &Client) {
    put(client, "assets", "old/000", bytes(100_000, 1)).expect("uploaded");
    for number in 1..230 {
        put(client, "assets", &format!("old/{number:03}"), "x").expect("uploaded");
    }
    for path in ["new/a", "old.txt", "older/a"] {
        put(client, "assets", path, "x").expect("uploaded");
    }
}

on_every_store! {
    fn a_prefix_is_deleted_with_the_bytes_of_its_files(fixture: &Fixture) {
        let ann = fixture.signed_in_user("ann");
        put(&ann.client, "assets", "old/small", bytes(10, 1)).expect("uploaded");
        for path in ["old/a", "old/b/c", "older", "other"] {
            put(&ann.client, "assets", path, bytes(100_000, 1)).expect("uploaded");
        }
        assert_eq!(ann.client.storage().delete_prefix("assets", "old/").expect("deleted"), 3);
        assert_eq!(paths(&fixture.db.service, "assets"), ["older", "other"]);
        assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/older", "assets/other"], 100_000));
        assert_eq!(ann.client.storage().delete_prefix("assets", "old/").expect("nothing to do"), 0);
        assert_eq!(ann.client.storage().delete_prefix("assets", "").expect("deleted"), 2);
        assert!(paths(&fixture.db.service, "assets").is_empty());
        assert_eq!(fixture.objects(), fixture.expected_objects(&[""; 0], 0));
        let left = own(fixture, "SELECT count(*) FROM townsquare.file_outbox");
        assert_eq!(fixture.db.raw.value(&left), "0");
    }

    fn rows_that_cannot_be_read_end_no_list(fixture: &Fixture) {
        let service = &fixture.db.service;
        for number in 0..150 {
            put(service, "assets", &format!("old/{number:03}"), "x").expect("uploaded");
        }
        // The column allows any JSON. More than a page of `delete_prefix` in a row.
        let spoil = "UPDATE townsquare.files SET metadata = '[1]' WHERE path > 'old/010' AND path < 'old/140'";
        fixture.db.raw.run(&own(fixture, spoil));
        let readable = || {
            let numbers = (0..11).chain(140..150);
            numbers.map(|number| format!("old/{number:03}")).collect::<Vec<_>>()
        };
        assert_eq!(iterated(service, "assets", "old/", 1), readable());
        assert_eq!(iterated(service, "assets", "old/", 1_000), readable());
        assert_eq!(service.storage().delete_prefix("assets", "old/").expect("deleted"), 21, "those that the list shows");
    }

    fn a_file_of_another_owner_keeps_its_page(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        for size in [10, 100_000] {
            put(&ann.client, "assets", "shared/a", bytes(size, 1)).expect("uploaded");
            put(&bob.client, "assets", "shared/b", bytes(size, 2)).expect("uploaded");
            put(&ann.client, "assets", "shared/c", bytes(size, 3)).expect("uploaded");
            let all = ["shared/a", "shared/b", "shared/c"];
            for (client, kind, status, words) in [
                (&ann.client, ErrorKind::Forbidden, 403, "Forbidden file access"),
                (&bob.client, ErrorKind::Forbidden, 403, "Forbidden file access"),
                (&fixture.db.client, ErrorKind::Unauthorized, 401, "Unauthorized file access"),
            ] {
                let refused = client.storage().delete_prefix("assets", "shared/");
                assert_refused(refused, kind, status, &format!("Delete files failed: {words}"));
                assert_eq!(paths(&fixture.db.service, "assets"), all);
                assert!(fixture.get("assets", "shared/a") == bytes(size, 1));
            }
            assert_eq!(fixture.db.service.storage().delete_prefix("assets", "shared/").expect("the service"), 3);
        }
    }

    fn a_stranger_deletes_no_file_of_a_private_folder_or_of_a_space(fixture: &Fixture) {
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        let own = format!("{}/", ann.id);
        let [hidden, public] = [NewSpace::named("Diary"), NewSpace::named("Plaza").public()]
            .map(|space| ann.client.spaces().create_space(space).expect("a space").id);
        for size in [10, 100_000] {
            put(&ann.client, "private", &format!("{own}{size}"), bytes(size, 1)).expect("uploaded");
            for space in [hidden, public] {
                put(&ann.client, "spaces", &format!("{space}/{size}"), bytes(size, 1)).expect("uploaded");
            }
        }
        for (stranger, status) in [(&bob.client, 403), (&fixture.db.client, 401)] {
            for prefix in ["", own.as_str()] {
                let deleted = stranger.storage().delete_prefix("private", prefix).expect("the files are hidden");
                assert_eq!(deleted, 0, "{prefix}");
            }
            let deleted = stranger.storage().delete_prefix("spaces", &format!("{hidden}/")).expect("a hidden list");
            assert_eq!(deleted, 0);
            let refused = stranger.storage().delete_prefix("spaces", &format!("{public}/")).expect_err("refused");
            assert_eq!(refused.status(), status, "{refused:?}");
            assert!(!stranger.storage().exists("private", &format!("{own}10")).expect("an answer"));
            assert!(iterated(stranger, "private", "", 10).is_empty());
        }
        assert_eq!(paths(&fixture.db.service, "private").len(), 2);
        assert_eq!(paths(&fixture.db.service, "spaces").len(), 4);
        assert!(ann.client.storage().exists("private", &format!("{own}10")).expect("an answer"));
        assert_eq!(ann.client.storage().delete_prefix("private", &own).expect("the owner"), 2);
        assert_eq!(ann.client.storage().delete_prefix("spaces", "").expect("the owner"), 4);
    }

    fn an_ended_session_neither_deletes_nor_learns_anything(fixture: &Fixture) {
        let ann = fixture.signed_in_user("ann");
        put(&ann.client, "assets", "a", "x").expect("uploaded");
        fixture.db.service.auth().set_password(ann.id, "another password").expect("ends the sessions");
        let storage = ann.client.storage();
        let kind = ErrorKind::Unauthorized;
        let words = "Unauthorized file access";
        assert_refused(storage.delete_prefix("assets", ""), kind, 401, &format!("Delete files failed: {words}"));
        assert_refused(storage.exists("assets", "a"), kind, 401, &format!("Check file failed: {words}"));
        let listed = storage.iter("assets", "", 10).next().expect("an item");
        assert_refused(listed, kind, 401, &format!("List files failed: {words}"));
        assert_eq!(paths(&fixture.db.service, "assets"), ["a"]);
    }
}

#[test]
fn a_refused_page_keeps_all_its_files_and_the_pages_before_are_deleted() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = Fixture::on(engine, Store::Folder(65_536)) else { continue };
        let (ann, bob) = (fixture.signed_in_user("ann"), fixture.signed_in_user("bob"));
        put_pages(&ann.client);
        put(&bob.client, "assets", "old/150b", "x").expect("uploaded");
        let refused = ann.client.storage().delete_prefix("assets", "old/").expect_err("refused");
        assert_eq!((refused.kind(), refused.status()), (ErrorKind::Forbidden, 403));
        let reason = refused.reason().expect("a reason");
        assert!(reason.contains("old/150b") && reason.contains("100 files"), "{reason}");
        let left = paths(&fixture.db.service, "assets");
        assert_eq!((left.len(), left[1].as_str()), (134, "old.txt"), "the first hundred are gone, no further one");
        bob.client.storage().delete("assets", "old/150b").expect("the owner");
        assert_eq!(ann.client.storage().delete_prefix("assets", "old/").expect("deleted"), 130);
        assert_eq!(paths(&fixture.db.service, "assets"), ["new/a", "old.txt", "older/a"]);
    }
}

#[test]
fn iterating_gives_every_file_once_and_in_order_whatever_the_page() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = Fixture::on(engine, Store::Memory(65_536)) else { continue };
        put_pages(&fixture.db.service);
        let all = paths(&fixture.db.service, "assets");
        for page_size in [1, 7, 100, 1_000] {
            assert_eq!(iterated(&fixture.db.client, "assets", "", page_size), all);
        }
        let old: Vec<_> = all.iter().filter(|path| path.starts_with("old/")).cloned().collect();
        assert_eq!(iterated(&fixture.db.client, "assets", "old/", 100), old);
        // A file that is deleted while the iteration is there does not end it.
        let mut files = fixture.db.client.storage().iter("assets", "old/", 2);
        let first = files.next().expect("a file").expect("readable").path;
        fixture.db.service.storage().delete_prefix("assets", "old/00").expect("deleted");
        let rest: Vec<_> = files.map(|file| file.expect("readable").path).collect();
        assert_eq!((first.as_str(), rest[0].as_str(), rest[1].as_str()), ("old/000", "old/001", "old/010"));
    }
}

#[test]
fn bad_prefixes_unknown_buckets_and_bad_pages_are_refused() {
    let Some(fixture) = Fixture::on(Engine::Sqlite, Store::Folder(0)) else { return };
    fixture.put("assets", "a", "x");
    let storage = fixture.db.service.storage();
    let invalid = (ErrorKind::InvalidInput, 400, "Invalid file or request");
    let missing = (ErrorKind::NotFound, 404, "File not found");
    for (bucket, prefix, (kind, status, words)) in
        [("assets", "/", invalid), ("assets", "..", invalid), ("assets", "a//", invalid), ("unknown", "", missing)]
    {
        let deleted = storage.delete_prefix(bucket, prefix);
        assert_refused(deleted, kind, status, &format!("Delete files failed: {words}"));
        let mut files = storage.iter(bucket, prefix, 10);
        let refused = files.next().expect("an item");
        assert_refused(refused, kind, status, &format!("List files failed: {words}"));
        assert!(files.next().is_none(), "an error ends the iteration");
    }
    assert_refused(storage.exists("unknown", "a"), missing.0, missing.1, "Check file failed: File not found");
    assert_refused(storage.exists("assets", "a/"), invalid.0, invalid.1, "Check file failed: Invalid file or request");
    for page_size in [0, 1_001] {
        let refused = storage.iter("assets", "", page_size).next().expect("an item");
        assert_refused(refused, invalid.0, invalid.1, "List files failed: Invalid file or request");
    }
    assert_eq!(paths(&fixture.db.service, "assets"), ["a"]);
    fixture.db.client.close();
    assert_eq!(storage.exists("assets", "a").expect_err("closed").kind(), ErrorKind::Closed);
    assert_eq!(storage.delete_prefix("assets", "").expect_err("closed").kind(), ErrorKind::Closed);
}

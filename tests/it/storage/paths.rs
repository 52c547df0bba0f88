//! Paths and names (DESIGN 7): what is refused, what is kept apart, and that a file and a folder share no name.

use std::{fs, ops::ControlFlow, time::Duration};

use townsquare::{
    ErrorKind,
    storage::{ListFiles, Overwrite, UploadOptions, UrlMethod},
};
use townsquare_tests::test_database::Engine;

use super::{
    fixture::{Fixture, Store, assert_refused, bytes, on_every_store, paths, put},
    requests::send,
};

const NAME_TAKEN: &str = "Upload failed: Storage error: A file and a folder cannot share a name";

on_every_store! {
    fn a_malformed_path_is_refused_by_every_operation(fixture: &Fixture) {
        let long = "x".repeat(256);
        let deep = "abc/".repeat(300);
        let storage = fixture.db.service.storage();
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "../../etc/passwd", "a/.", "a\0b", "a\nb", "a\\b",
            "a\u{85}b", "cafe\u{301}", &long, &deep]
        {
            let kind = ErrorKind::InvalidInput;
            let words = "Invalid file or request";
            assert_refused(put(&fixture.db.service, "assets", bad, "x"), kind, 400, &format!("Upload failed: {words}"));
            assert_refused(storage.download("assets", bad), kind, 400, &format!("Download failed: {words}"));
            assert_refused(storage.delete("assets", bad), kind, 400, &format!("Delete failed: {words}"));
            let copied = storage.copy("assets", "a", bad, Overwrite::Replace);
            assert_refused(copied, kind, 400, &format!("Copy failed: {words}"));
        }
        assert!(paths(&fixture.db.service, "assets").is_empty());
    }

    fn unusual_names_are_kept_as_they_are(fixture: &Fixture) {
        let names = ["%2e%2e/x", "a b", "x#12", "q?a=1", "'; DROP TABLE spaces; --", "\"", "café", "日本", "-", "~",
            ".townsquare/staging/x", ".hidden", "a:b", "*", "$1", "{files.select}", "COM1", "a%00b", "e\u{1F600}"];
        for (number, name) in (0u8..).zip(names) {
            for size in [10, 70_000] {
                let info = fixture.put("assets", name, bytes(size, number));
                assert_eq!(info.path, name);
                assert!(fixture.get("assets", name) == bytes(size, number), "{name}");
            }
        }
        let mut expected: Vec<_> = names.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(paths(&fixture.db.service, "assets"), expected);
        let storage = fixture.db.service.storage();
        let found = storage.list("assets", ListFiles::with_prefix("'; DROP")).expect("a list");
        assert_eq!(found.len(), 1);
        for name in names {
            storage.delete("assets", name).expect("deleted");
        }
        assert_eq!(fixture.objects(), fixture.expected_objects(&[""; 0], 0));
    }

    fn names_that_differ_in_case_are_two_files(fixture: &Fixture) {
        fixture.put("assets", "Logo", bytes(70_000, 1));
        fixture.put("assets", "logo", bytes(70_000, 2));
        assert!(fixture.get("assets", "Logo") == bytes(70_000, 1) && fixture.get("assets", "logo") == bytes(70_000, 2));
    }

    fn a_file_and_a_folder_do_not_share_a_name(fixture: &Fixture) {
        let kind = ErrorKind::AlreadyExists;
        for first in [10, 70_000] {
            for second in [10, 70_000] {
                let name = format!("{first}-{second}");
                fixture.put("assets", &format!("{name}/b/c"), bytes(first, 1));
                for above in [name.clone(), format!("{name}/b")] {
                    let refused = put(&fixture.db.service, "assets", &above, bytes(second, 2));
                    assert!(refused.as_ref().is_err_and(|error| error.explanation().starts_with("Use another path, or delete")));
                    assert_refused(refused, kind, 409, NAME_TAKEN);
                }
                let refused = put(&fixture.db.service, "assets", &format!("{name}/b/c/d"), bytes(second, 2));
                assert_refused(refused, kind, 409, NAME_TAKEN);
                fixture.put("assets", &format!("{name}/b/cd"), bytes(second, 2));
                fixture.put("assets", &format!("{name}0"), bytes(second, 2));
            }
        }
    }

    fn concurrent_writers_do_not_make_a_file_a_folder(fixture: &Fixture) {
        for round in 0..4 {
            let size = if round % 2 == 0 { 10 } else { 70_000 };
            let names = [format!("r{round}"), format!("r{round}/a"), format!("r{round}/a/b"), format!("r{round}/c")];
            std::thread::scope(|scope| {
                for name in &names {
                    scope.spawn(move || put(&fixture.db.service, "assets", name, bytes(size, 1)).map_err(|error| error.status()));
                }
            });
            let found = paths(&fixture.db.service, "assets");
            for file in &found {
                assert!(!found.iter().any(|other| other.starts_with(&format!("{file}/"))), "{found:?}");
            }
        }
    }

    fn malformed_options_are_refused(fixture: &Fixture) {
        let new = UploadOptions::new;
        let mut many = new();
        for number in 0..65 {
            many = many.metadata(format!("name{number}"), "x");
        }
        // Names and values together: 8 KiB, and one byte more.
        let full = (0..8).fold(new(), |options, number| options.metadata(number.to_string(), "x".repeat(1_023)));
        for bad in [
            new().cache_control(31_536_001),
            new().content_type("text"),
            new().content_type("text/plain\r\nx: y"),
            new().content_type(format!("text/{}", "x".repeat(255))),
            new().metadata("", "x"),
            new().metadata("a b", "x"),
            new().metadata("a".repeat(65), "x"),
            new().metadata("a", "x\ny"),
            new().metadata("a", "x".repeat(1_025)),
            many,
            full.clone().metadata("8", ""),
            new().verify(true),
        ] {
            let refused = fixture.db.service.storage().upload("assets", "a", "x", bad);
            assert_refused(refused, ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
        }
        assert!(paths(&fixture.db.service, "assets").is_empty());
        let info = fixture.db.service.storage().upload("assets", "a", "x", full).expect("at the limit");
        assert_eq!(info.metadata.len(), 8);
    }

    fn a_new_file_has_no_bidirectional_control_in_its_path(fixture: &Fixture) {
        let (storage, bad) = (fixture.db.service.storage(), "photo\u{202E}gpj.exe");
        fixture.put("assets", "a", "x");
        let invalid = "Invalid file or request";
        let uploaded = storage.upload("assets", bad, "x", UploadOptions::new());
        assert_refused(uploaded, ErrorKind::InvalidInput, 400, &format!("Upload failed: {invalid}"));
        let begun = storage.writer("assets", bad, UploadOptions::new()).map(drop);
        assert_refused(begun, ErrorKind::InvalidInput, 400, &format!("Upload failed: {invalid}"));
        let copied = storage.copy("assets", "a", bad, Overwrite::Replace);
        assert_refused(copied, ErrorKind::InvalidInput, 400, &format!("Copy failed: {invalid}"));
        let moved = storage.move_file("assets", "a", bad, Overwrite::Replace);
        assert_refused(moved, ErrorKind::InvalidInput, 400, &format!("Move failed: {invalid}"));
        let signed = storage.signed_url("assets", bad, UrlMethod::Put, Duration::from_secs(60));
        assert_eq!(signed.expect_err("refused").status(), 400);
        let answer = send(&fixture.db.service, "PUT", "/assets/photo%E2%80%AEgpj.exe", &[], b"x");
        assert_eq!(answer.status, 400, "over HTTP");
        assert_eq!(paths(&fixture.db.service, "assets"), ["a"]);
        if fixture.limit() == 0 {
            return;
        }
        // An inline file from before the rule can be read, moved and deleted.
        let table = if fixture.db.engine == Engine::Sqlite { "townsquare_files" } else { "townsquare.files" };
        let put_old = || {
            fixture.put("assets", "old", "x");
            let set = format!("path = '{bad}', first_segment = '{bad}'");
            fixture.db.raw.run(&format!("UPDATE {table} SET {set} WHERE path = 'old'"));
            assert_eq!(fixture.get("assets", bad), "x");
        };
        put_old();
        storage.move_file("assets", bad, "new", Overwrite::Replace).expect("moved");
        put_old();
        storage.delete("assets", bad).expect("deleted");
    }

    fn a_new_file_has_at_most_32_segments_in_its_path(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        let (most, bad) = (vec!["f"; 32].join("/"), vec!["d"; 33].join("/"));
        fixture.put("assets", &most, "x");
        let invalid = "Invalid file or request";
        let uploaded = storage.upload("assets", &bad, "x", UploadOptions::new());
        let refused = uploaded.as_ref().expect_err("33 segments");
        let reason = refused.reason().map(str::to_owned);
        assert_eq!(reason.as_deref(), Some("the path has 33 segments; the limit of a new file is 32"));
        assert_refused(uploaded, ErrorKind::InvalidInput, 400, &format!("Upload failed: {invalid}"));
        let begun = storage.writer("assets", &bad, UploadOptions::new()).map(drop);
        assert_refused(begun, ErrorKind::InvalidInput, 400, &format!("Upload failed: {invalid}"));
        let source = tempfile::NamedTempFile::new().expect("a file");
        let read = storage.upload_from("assets", &bad, source.path(), UploadOptions::new(), |_, _| ControlFlow::Continue(()));
        assert_refused(read, ErrorKind::InvalidInput, 400, &format!("Upload failed: {invalid}"));
        let copied = storage.copy("assets", &most, &bad, Overwrite::Replace);
        assert_refused(copied, ErrorKind::InvalidInput, 400, &format!("Copy failed: {invalid}"));
        let moved = storage.move_file("assets", &most, &bad, Overwrite::Replace);
        assert_refused(moved, ErrorKind::InvalidInput, 400, &format!("Move failed: {invalid}"));
        let signed = storage.signed_url("assets", &bad, UrlMethod::Put, Duration::from_secs(60));
        assert_eq!(signed.expect_err("refused").status(), 400);
        let answer = send(&fixture.db.service, "PUT", &format!("/assets/{bad}"), &[], b"x");
        assert_eq!(answer.status, 400, "over HTTP");
        assert_eq!(paths(&fixture.db.service, "assets"), [most.as_str()]);
        if fixture.limit() == 0 {
            return;
        }
        // An inline file from before the rule can be read, listed, copied, moved and deleted.
        let table = if fixture.db.engine == Engine::Sqlite { "townsquare_files" } else { "townsquare.files" };
        let put_old = || {
            fixture.put("assets", "old", "x");
            let set = format!("path = '{bad}', first_segment = 'd'");
            fixture.db.raw.run(&format!("UPDATE {table} SET {set} WHERE path = 'old'"));
            assert_eq!(fixture.get("assets", &bad), "x");
        };
        put_old();
        assert_eq!(storage.list("assets", ListFiles::with_prefix(&bad)).expect("a list").len(), 1);
        storage.copy("assets", &bad, "copy", Overwrite::Replace).expect("copied");
        storage.move_file("assets", &bad, "new", Overwrite::Replace).expect("moved");
        put_old();
        storage.delete("assets", &bad).expect("deleted");
    }

    fn a_prefix_that_no_path_can_have_is_refused(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        fixture.put("assets", "a/.b/c", "x");
        let long = format!("a/{}", "x".repeat(256));
        for bad in ["/", "/a", "a//", "a//b", "..", "../", "a/..", "a/../b", ".", "./", "a/./", "a\\b", "a\n", &long, "e\u{301}"] {
            let refused = storage.list("assets", ListFiles::with_prefix(bad));
            let is_beginning = bad == ".";
            if is_beginning {
                assert!(refused.expect("a name may start with a dot").is_empty());
                continue;
            }
            assert_refused(refused, ErrorKind::InvalidInput, 400, "List files failed: Invalid file or request");
        }
        for good in ["", "a", "a/", "a/.", "a/.b", "a/.b/"] {
            let found = storage.list("assets", ListFiles::with_prefix(good)).expect("a prefix of a path");
            assert_eq!(found.len(), 1, "{good:?}");
        }
    }
}

/// A real folder that ignores case needs a file system that few systems can mount. The probe finds one by the name of the
/// work folder in upper case, so a folder of that name makes the store take this one for such.
#[test]
fn names_that_differ_in_case_alone_are_refused_in_a_folder_that_ignores_case() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(10)).expect("SQLite is always there");
    fs::create_dir_all(fixture.files_folder().join(".TOWNSQUARE")).expect("created");
    let put = |path: &str, size| put(&fixture.db.service, "assets", path, bytes(size, 1));
    put("Images/Cat", 1_000).expect("uploaded");
    put("Images/Cat", 2_000).expect("the same spelling");
    put("Images/Dog", 1_000).expect("another name");
    let assert_refused = |other: &str| {
        let refused = put(other, 1_000).expect_err("another spelling");
        assert_eq!((refused.kind(), refused.status()), (ErrorKind::AlreadyExists, 409), "{refused:?}");
        assert!(refused.message().contains("This folder ignores case, and contains"), "{refused}");
    };
    assert_refused("Images/cat");
    assert_refused("Images/DOG");
    let moved = fixture.db.service.storage().move_file("assets", "Images/Dog", "Images/cat", Overwrite::Refuse);
    assert_eq!(moved.expect_err("another spelling").status(), 409);
    // Such a folder finds `Images` by this name.
    fs::create_dir(fixture.files_folder().join("assets/images")).expect("created");
    assert_refused("images/Bird");
    put("images/cat", 1).expect("a small file is in the database, where case matters");
    assert_eq!(paths(&fixture.db.service, "assets"), ["Images/Cat", "Images/Dog", "images/cat"]);
    assert!(
        fixture.get("assets", "Images/Cat") == bytes(2_000, 1) && fixture.get("assets", "images/cat") == bytes(1, 1)
    );
}

//! Paths and names (DESIGN 7): what is refused, what is kept apart, and that a file and a folder share no name.

use townsquare::{
    ErrorKind,
    blocking::wait,
    storage::{ListFiles, Overwrite, UploadOptions},
};

use super::town::{assert_refused, bytes, on_every_store, paths, put};

const NAME_TAKEN: &str = "Upload failed: Storage error: A file and a folder cannot share a name";

on_every_store! {
    fn a_malformed_path_is_refused_by_every_operation(town: &Town) {
        let long = "x".repeat(256);
        let deep = "abc/".repeat(300);
        let storage = town.db.service.storage();
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "../../etc/passwd", "a/.", "a\0b", "a\nb", "a\\b",
            "a\u{85}b", "cafe\u{301}", &long, &deep]
        {
            let kind = ErrorKind::InvalidInput;
            let words = "Invalid file or request";
            assert_refused(put(&town.db.service, "assets", bad, "x"), kind, 400, &format!("Upload failed: {words}"));
            assert_refused(wait(storage.download("assets", bad)), kind, 400, &format!("Download failed: {words}"));
            assert_refused(wait(storage.delete("assets", bad)), kind, 400, &format!("Delete failed: {words}"));
            let copied = wait(storage.copy("assets", "a", bad, Overwrite::Replace));
            assert_refused(copied, kind, 400, &format!("Copy failed: {words}"));
        }
        assert!(paths(&town.db.service, "assets").is_empty());
    }

    fn unusual_names_are_kept_as_they_are(town: &Town) {
        let names = ["%2e%2e/x", "a b", "x#12", "q?a=1", "'; DROP TABLE spaces; --", "\"", "café", "日本", "-", "~",
            ".townsquare/staging/x", ".hidden", "a:b", "*", "$1", "{files.select}", "COM1", "a%00b", "e\u{1F600}"];
        for (number, name) in (0u8..).zip(names) {
            for size in [10, 70_000] {
                let info = town.put("assets", name, bytes(size, number));
                assert_eq!(info.path, name);
                assert!(town.get("assets", name) == bytes(size, number), "{name}");
            }
        }
        let mut expected: Vec<_> = names.map(str::to_owned).to_vec();
        expected.sort();
        assert_eq!(paths(&town.db.service, "assets"), expected);
        let storage = town.db.service.storage();
        let found = wait(storage.list("assets", ListFiles::with_prefix("'; DROP"))).expect("a list");
        assert_eq!(found.len(), 1);
        for name in names {
            wait(storage.delete("assets", name)).expect("deleted");
        }
        assert_eq!(town.objects(), town.expected_objects(&[], 0));
    }

    fn names_that_differ_in_case_are_two_files(town: &Town) {
        town.put("assets", "Logo", bytes(70_000, 1));
        town.put("assets", "logo", bytes(70_000, 2));
        assert!(town.get("assets", "Logo") == bytes(70_000, 1) && town.get("assets", "logo") == bytes(70_000, 2));
    }

    fn a_file_and_a_folder_do_not_share_a_name(town: &Town) {
        let kind = ErrorKind::AlreadyExists;
        for first in [10, 70_000] {
            for second in [10, 70_000] {
                let name = format!("{first}-{second}");
                town.put("assets", &format!("{name}/b/c"), bytes(first, 1));
                for above in [name.clone(), format!("{name}/b")] {
                    let refused = put(&town.db.service, "assets", &above, bytes(second, 2));
                    assert_refused(refused, kind, 409, NAME_TAKEN);
                }
                let refused = put(&town.db.service, "assets", &format!("{name}/b/c/d"), bytes(second, 2));
                assert_refused(refused, kind, 409, NAME_TAKEN);
                town.put("assets", &format!("{name}/b/cd"), bytes(second, 2));
                town.put("assets", &format!("{name}0"), bytes(second, 2));
            }
        }
    }

    fn concurrent_writers_do_not_make_a_file_a_folder(town: &Town) {
        for round in 0..4 {
            let size = if round % 2 == 0 { 10 } else { 70_000 };
            let names = [format!("r{round}"), format!("r{round}/a"), format!("r{round}/a/b"), format!("r{round}/c")];
            std::thread::scope(|scope| {
                for name in &names {
                    scope.spawn(move || put(&town.db.service, "assets", name, bytes(size, 1)).map_err(|error| error.status()));
                }
            });
            let found = paths(&town.db.service, "assets");
            for file in &found {
                assert!(!found.iter().any(|other| other.starts_with(&format!("{file}/"))), "{found:?}");
            }
        }
    }

    fn malformed_options_are_refused(town: &Town) {
        let new = UploadOptions::new;
        let mut many = new();
        for number in 0..65 {
            many = many.metadata(format!("name{number}"), "x");
        }
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
            new().verify(true),
        ] {
            let refused = wait(town.db.service.storage().upload("assets", "a", "x", bad));
            assert_refused(refused, ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
        }
        assert!(paths(&town.db.service, "assets").is_empty());
    }
}

//! Open files: locks keep few, and nothing stays open after `close` or in a response that was read to its end.

use std::{fs, path::Path};

use townsquare::blocking::{Client, wait};
use townsquare_tests::test_database::Engine;

use super::fixture::{Fixture, Store, bytes, put};

/// The most lock files that stay open.
const MAX_LOCK_FILES: usize = 16;

/// The files below a folder that are open in this process.
fn open_below(folder: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").expect("Linux").flatten();
    let files = open.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    files.filter(|file| file.starts_with(folder)).count()
}

#[test]
fn the_locks_of_many_paths_keep_few_files_open_and_none_after_close() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there");
    let client = Client::open(fixture.config()).expect("opened").as_service();
    for number in 0..60 {
        put(&client, "assets", &format!("{number}"), bytes(1_000, 1)).expect("uploaded");
    }
    let locks = open_below(&fixture.files_folder().join(".townsquare/locks"));
    // The lock file of the clients stays open too, in each of the two clients.
    assert!((1..=MAX_LOCK_FILES + 2).contains(&locks), "{locks} lock files are open");
    let before = open_below(&fixture.files_folder());
    let other = Client::open(fixture.config()).expect("opened");
    put(&other.as_service(), "assets", "x", bytes(1_000, 1)).expect("uploaded");
    other.close();
    assert_eq!(open_below(&fixture.files_folder()), before, "a closed client keeps no file open");
}

#[test]
fn a_response_that_was_read_to_its_end_keeps_no_file_open() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there");
    fixture.put("assets", "a", bytes(3_000_000, 1));
    let object = fixture.files_folder().join("assets/a");
    for range in [None, Some(("Range".to_owned(), "bytes=5-2000000".to_owned()))] {
        let headers: Vec<_> = range.into_iter().collect();
        let storage = fixture.db.service.storage();
        let mut response = storage.handle_file("GET", "/assets/a", &headers, "").expect("a response");
        assert_eq!(open_below(&object), 1);
        while wait(response.body.next_chunk()).expect("a chunk").is_some() {}
        assert_eq!(open_below(&object), 0);
        assert_eq!(wait(response.body.next_chunk()).expect("the end"), None);
    }
}

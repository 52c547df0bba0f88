//! Copies and moves.

use std::{fs, os::unix::fs::MetadataExt, sync::Barrier, thread};

use townsquare::{
    Error, ErrorKind,
    blocking::Client,
    storage::{FileInfo, Overwrite, UploadOptions},
};

use townsquare_tests::{fixture::hours, test_database::Engine};

use super::fixture::{Fixture, Store, assert_refused, bytes, on_every_store, paths, put};

on_every_store! {
    fn a_copy_has_the_bytes_and_the_description_of_its_source(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        for size in [10, 100_000] {
            let (from, to) = (format!("{size}/a"), format!("{size}/b"));
            let options = UploadOptions::new().metadata("a", "b").content_type("text/css").cache_control(1);
            let source = storage.upload("assets", &from, bytes(size, 1), options).expect("uploaded");
            let copy = storage.copy("assets", &from, &to, Overwrite::Refuse).expect("copied");
            assert_eq!((copy.content_type, copy.cache_control, copy.metadata), ("text/css".into(), 1, source.metadata.clone()));
            assert_ne!(copy.etag, source.etag);
            assert!(fixture.get("assets", &to) == bytes(size, 1) && fixture.get("assets", &from) == bytes(size, 1));
            let again = storage.copy("assets", &from, &to, Overwrite::Refuse);
            let message = "Copy failed: Storage error: The file already exists";
            assert_refused(again, ErrorKind::AlreadyExists, 409, message);
            put(&fixture.db.service, "assets", &to, bytes(100_010 - size, 2)).expect("another");
            storage.copy("assets", &from, &to, Overwrite::Replace).expect("copied");
            assert!(fixture.get("assets", &to) == bytes(size, 1));
        }
    }

    fn a_moved_file_keeps_its_owner_and_leaves_nothing(fixture: &Fixture) {
        let ann = fixture.signed_in_user("ann");
        let storage = ann.client.storage();
        for size in [10, 100_000] {
            let source = put(&ann.client, "assets", "a", bytes(size, 1)).expect("uploaded");
            let moved = storage.move_file("assets", "a", "b/c", Overwrite::Refuse).expect("moved");
            assert_eq!((moved.owner_id, moved.size, &moved.content_type), (Some(ann.id), source.size, &source.content_type));
            assert_ne!(moved.etag, source.etag);
            assert!(fixture.get("assets", "b/c") == bytes(size, 1));
            assert_eq!(paths(&fixture.db.service, "assets"), ["b/c"]);
            assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/b/c"], size as u64));
            put(&ann.client, "assets", "a", bytes(100_010 - size, 2)).expect("uploaded");
            let refused = storage.move_file("assets", "b/c", "a", Overwrite::Refuse);
            let message = "Move failed: Storage error: The file already exists";
            assert_refused(refused, ErrorKind::AlreadyExists, 409, message);
            storage.move_file("assets", "b/c", "a", Overwrite::Replace).expect("moved");
            assert!(fixture.get("assets", "a") == bytes(size, 1));
            assert_eq!(paths(&fixture.db.service, "assets"), ["a"]);
            assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/a"], size as u64));
        }
        let refused = storage.move_file("assets", "a", "a", Overwrite::Replace);
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Move failed: Invalid file or request");
        assert_eq!(paths(&fixture.db.service, "assets"), ["a"]);
    }

    fn updated_at_of_a_path_grows_with_a_move_although_the_clock_is_set_back(fixture: &Fixture) {
        for (source, target) in [(10, 10), (10, 100_000), (100_000, 10), (100_000, 100_000)] {
            fixture.put("assets", "a", bytes(source, 1));
            fixture.db.clock.step(hours(1));
            let replaced = fixture.put("assets", "b", bytes(target, 2));
            fixture.db.clock.step(hours(-2));
            let moved = fixture.db.service.storage().move_file("assets", "a", "b", Overwrite::Replace).expect("moved");
            assert!(moved.updated_at > replaced.updated_at, "{source} over {target}: {moved:?} {replaced:?}");
            assert_eq!(fixture.db.service.storage().stat("assets", "b").expect("found"), moved);
        }
    }

    fn of_concurrent_moves_of_one_file_one_wins(fixture: &Fixture) {
        for size in [10, 100_000] {
            for round in 0..10 {
                fixture.put("assets", "s", bytes(size, round));
                let targets: Vec<_> = (0..3).map(|index| format!("{size}/{round}/{index}")).collect();
                let start = Barrier::new(targets.len());
                let results: Vec<_> = thread::scope(|scope| {
                    let run = |target| {
                        start.wait();
                        fixture.db.service.storage().move_file("assets", "s", target, Overwrite::Refuse)
                    };
                    let threads: Vec<_> = targets.iter().map(|target| scope.spawn(move || run(target))).collect();
                    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
                });
                let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
                assert_eq!(won.len(), 1, "{size} {lost:?}");
                for refused in lost {
                    assert_refused(refused, ErrorKind::NotFound, 404, "Move failed: File not found");
                }
                let moved = won.into_iter().flatten().next().expect("one won");
                assert_eq!(paths(&fixture.db.service, "assets"), [moved.path.as_str()]);
                fixture.db.service.storage().delete("assets", &moved.path).expect("deleted");
            }
        }
    }

    fn of_concurrent_moves_onto_existing_files_one_wins(fixture: &Fixture) {
        for round in 0..10 {
            fixture.put("assets", "s", bytes(100_000, round));
            let targets: Vec<_> = (0..3).map(|index| format!("t/{index}")).collect();
            for target in &targets {
                fixture.put("assets", target, bytes(70_000, 99));
            }
            let (won, lost) = move_at_once(fixture, &targets);
            let [moved] = won.as_slice() else { panic!("{won:?} {lost:?}") };
            for refused in lost {
                assert_refused::<()>(Err(refused), ErrorKind::NotFound, 404, "Move failed: File not found");
            }
            for target in &targets {
                let expected = if *target == moved.path { bytes(100_000, round) } else { bytes(70_000, 99) };
                assert!(fixture.get("assets", target) == expected, "{target}");
            }
            assert_eq!(paths(&fixture.db.service, "assets"), targets);
        }
    }

    fn of_a_move_and_a_delete_of_one_file_one_wins(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        for round in 0..10 {
            fixture.put("assets", "s", bytes(100_000, round));
            fixture.put("assets", "t", bytes(70_000, 99));
            let start = Barrier::new(2);
            let (moved, deleted) = thread::scope(|scope| {
                let deleted = scope.spawn(|| {
                    start.wait();
                    storage.delete("assets", "s")
                });
                start.wait();
                let moved = storage.move_file("assets", "s", "t", Overwrite::Replace);
                (moved, deleted.join().expect("no panic"))
            });
            assert_ne!(moved.is_ok(), deleted.is_ok(), "{moved:?} {deleted:?}");
            let expected = if moved.is_ok() { bytes(100_000, round) } else { bytes(70_000, 99) };
            assert!(fixture.get("assets", "t") == expected);
            assert_eq!(paths(&fixture.db.service, "assets"), ["t"]);
        }
    }
}

/// Moves `s` to each target at the same time. Returns the moved files and the failures.
fn move_at_once(fixture: &Fixture, targets: &[String]) -> (Vec<FileInfo>, Vec<Error>) {
    let start = Barrier::new(targets.len());
    let results: Vec<_> = thread::scope(|scope| {
        let run = |target| {
            start.wait();
            fixture.db.service.storage().move_file("assets", "s", target, Overwrite::Replace)
        };
        let threads: Vec<_> = targets.iter().map(|target| scope.spawn(move || run(target))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    (won.into_iter().flatten().collect(), lost.into_iter().filter_map(Result::err).collect())
}

#[test]
fn a_move_in_a_folder_renames_and_does_not_copy_the_bytes() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there");
    let inode = |path: &str| fs::metadata(fixture.files_folder().join(path)).expect("an object").ino();
    fixture.put("assets", "a", bytes(1_000, 1));
    fixture.put("assets", "c", bytes(1_000, 3));
    let before = inode("assets/a");
    let storage = fixture.db.service.storage();
    storage.move_file("assets", "a", "b/a", Overwrite::Refuse).expect("moved");
    assert_eq!(inode("assets/b/a"), before);
    storage.move_file("assets", "b/a", "c", Overwrite::Replace).expect("moved");
    assert_eq!(inode("assets/c"), before);
    storage.copy("assets", "c", "d", Overwrite::Refuse).expect("copied");
    assert_ne!(inode("assets/d"), before, "a program that changes one of them must not change both");
    assert_eq!(fixture.objects(), fixture.expected_objects(&["assets/c", "assets/d"], 1_000));
    let report = storage.repair().expect("repaired");
    assert_eq!((report.finished, report.orphans_removed, report.rows_removed), (0, 0, 0));
}

#[test]
fn a_copy_is_refused_over_a_lowered_max_file_size() {
    for limit in [0, 1_000_000] {
        let fixture = Fixture::on(Engine::Sqlite, Store::Folder(limit)).expect("SQLite is always there");
        fixture.put("assets", "a", bytes(1_001, 1));
        let client = Client::open(fixture.config().max_file_size(1_000)).expect("opened").as_service();
        let refused = client.storage().copy("assets", "a", "b", Overwrite::Refuse);
        assert_refused(refused, ErrorKind::TooLarge, 413, "Copy failed: File too large");
        client.storage().move_file("assets", "a", "b", Overwrite::Refuse).expect("a move stores nothing new");
        client.close();
    }
}

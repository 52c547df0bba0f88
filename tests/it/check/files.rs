//! Planted damages of files and of their store.

use std::{
    fs,
    io::{Seek as _, Write as _},
    time::{Duration, SystemTime},
};

use townsquare::{
    check::{CheckDepth, FindingCode},
    storage::UploadOptions,
};
use townsquare_tests::{test_database::Engine, wait::wait_until};

use super::fixture::{Fixture, Store, assert_only, codes, on_each_engine, unknown};

/// Runs a test on each engine with each store, filled.
fn on_each_store(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        for store in [Store::Folder, Store::S3] {
            if let Some(fixture) = Fixture::on(engine, store) {
                fixture.fill();
                test(&fixture);
            }
        }
    }
}

#[test]
fn a_large_file_without_bytes_is_missing() {
    on_each_store(|fixture| {
        fs::remove_file(fixture.files().join("assets/folder/large!")).expect("removed");
        let found = fixture.assert_finds(FindingCode::FileMissing);
        assert_eq!(found, ["The bytes of assets/folder/large! are gone."]);
    });
}

#[test]
fn a_large_file_of_another_size_is_found() {
    on_each_store(|fixture| {
        let object = fixture.files().join("assets/moved");
        fs::OpenOptions::new().append(true).open(object).and_then(|mut file| file.write_all(b"more")).expect("written");
        let found = fixture.assert_finds(FindingCode::FileSizeDiffers);
        assert_eq!(found, ["assets/moved has 5004 bytes, and its row says 5000."]);
    });
}

#[test]
fn a_large_file_with_other_bytes_is_found_by_a_full_check() {
    on_each_store(|fixture| {
        let object = fixture.files().join("assets/folder/nested/large");
        let mut file = fs::OpenOptions::new().write(true).open(object).expect("the object");
        file.seek(std::io::SeekFrom::Start(4_999)).and_then(|_| file.write_all(b"x")).expect("written");
        assert_eq!(fixture.check(CheckDepth::Quick), []);
        let found = assert_only(FindingCode::FileDigestDiffers, &fixture.check(CheckDepth::Full));
        assert_eq!(found, ["The bytes of assets/folder/nested/large are not those that were uploaded."]);
    });
}

#[test]
fn an_object_without_a_row_is_an_orphan() {
    on_each_store(|fixture| {
        fs::create_dir_all(fixture.files().join("assets/a")).expect("created");
        fs::write(fixture.files().join("assets/a/b"), "of nobody").expect("written");
        let found = fixture.assert_finds(FindingCode::OrphanObject);
        assert_eq!(found, ["The object assets/a/b belongs to no file."]);
        fixture.service.storage().repair().expect("repaired");
        assert_eq!(fixture.codes(), [], "repair mends it");
    });
}

#[test]
fn a_small_file_without_bytes_or_of_another_size_is_found() {
    on_each_engine(|fixture| {
        let contents = fixture.own("file_contents");
        fixture.put("other", 20);
        fixture.raw.run(&format!("DELETE FROM {contents} WHERE path = 'small'"));
        for depth in [CheckDepth::Quick, CheckDepth::Full] {
            let found = assert_only(FindingCode::FileMissing, &fixture.check(depth));
            assert_eq!(found, ["The bytes of assets/small are gone."]);
        }
        fixture.put("small", 10);
        let bytes = if fixture.engine == Engine::Sqlite { "x'0102'" } else { "'\\x0102'" };
        fixture.raw.run(&format!("UPDATE {contents} SET content = {bytes} WHERE path = 'other'"));
        for depth in [CheckDepth::Quick, CheckDepth::Full] {
            let found = assert_only(FindingCode::FileSizeDiffers, &fixture.check(depth));
            assert_eq!(found, ["assets/other has 2 bytes, and its row says 20."]);
        }
    });
}

#[test]
fn a_write_that_began_long_ago_is_unfinished() {
    on_each_engine(|fixture| {
        let intents = fixture.own("file_intents");
        let plant = format!(
            "DELETE FROM {intents};
             INSERT INTO {intents} (bucket, path, access, first_segment, size, content_type, cache_control, etag, metadata,
                digest, staged, base_etag, created_at)
             VALUES ('assets', 'begun', 'public', 'begun', 5, 'text/plain', 0, 'e', '{{}}', 'd', '{}', '',
                '2020-01-01T00:00:00.000000Z')",
            unknown().simple()
        );
        // The client recovers it from time to time.
        wait_until("the write is found", || {
            fixture.raw.run(&plant);
            fixture.codes() == [FindingCode::UnfinishedUpload]
        });
    });
}

#[test]
fn staged_bytes_of_long_ago_are_stale() {
    on_each_engine(|fixture| {
        let staged = fixture.files().join(".townsquare/staging").join(unknown().simple().to_string());
        let file = fs::File::create(&staged).expect("created");
        assert_eq!(fixture.codes(), [], "young bytes may belong to a writer on another machine");
        file.set_modified(SystemTime::now() - Duration::from_secs(7_200)).expect("an old file");
        let found = fixture.assert_finds(FindingCode::StaleStage);
        assert_eq!(found, ["The store keeps the bytes of 1 uploads that ended without a file."]);
        assert!(staged.exists());
    });
}

#[test]
fn a_file_in_the_place_of_a_folder_costs_the_files_in_it() {
    on_each_engine(|fixture| {
        fs::remove_dir_all(fixture.files().join("assets/folder/nested")).expect("removed");
        fs::write(fixture.files().join("assets/folder/nested"), "in the way").expect("written");
        let found = fixture.check(CheckDepth::Full);
        assert_eq!(codes(&found), [FindingCode::FileMissing, FindingCode::OrphanObject], "{found:?}");
    });
}

#[test]
fn a_row_with_a_path_that_no_file_can_have_is_unreadable() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder).expect("SQLite is always there");
    fixture.fill();
    fixture.raw.run("UPDATE townsquare_files SET path = 'a//b' WHERE path = 'moved'");
    let found = fixture.check(CheckDepth::Quick);
    assert_eq!(found[0].code, FindingCode::FileUnreadable, "{found:?}");
    assert_eq!(found[0].message, "The bytes of assets/a//b cannot be read.");
    assert_eq!((found.len(), found[1].code), (2, FindingCode::OrphanObject), "{found:?}");
}

#[test]
fn another_store_is_foreign_and_its_files_are_not_compared() {
    on_each_store(|fixture| {
        let id = fixture.files().join(".townsquare/store");
        let own = fs::read_to_string(&id).expect("the store has an id");
        fs::write(&id, "another\n").expect("written");
        let found = fixture.assert_finds(FindingCode::StoreForeign);
        assert_eq!(found, ["The object store belongs to another database: its id is another."]);
        fs::write(&id, own).expect("written");
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn a_store_that_is_gone_or_has_no_id_is_missing() {
    on_each_engine(|fixture| {
        let away = fixture.folder.path().join("away");
        fs::rename(fixture.files(), &away).expect("unmounted");
        let found = fixture.assert_finds(FindingCode::StoreMissing);
        assert_eq!(found, ["The folder with the large files does not exist."]);
        fs::create_dir(fixture.files()).expect("created");
        let found = fixture.check(CheckDepth::Quick);
        assert_eq!(
            (found[0].code, found[0].message.as_str()),
            (FindingCode::StoreMissing, "The object store has no id.")
        );
        fs::remove_dir(fixture.files()).expect("still empty");
        fs::rename(&away, fixture.files()).expect("mounted");
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn the_store_of_the_original_is_told_from_the_own_one() {
    on_each_engine(|fixture| {
        fixture.raw.run(&format!("UPDATE {} SET owns_store = FALSE", fixture.own("database")));
        fs::write(fixture.files().join("assets/of-the-original"), "not an orphan").expect("written");
        fixture.assert_finds(FindingCode::StoreOfOriginal);
    });
}

#[test]
fn a_store_in_another_one_is_nested() {
    on_each_engine(|fixture| {
        fs::create_dir(fixture.folder.path().join(".townsquare")).expect("created");
        fs::write(fixture.folder.path().join(".townsquare/store"), "outer\n").expect("written");
        fixture.assert_finds(FindingCode::StoreNested);
    });
}

#[test]
fn an_object_of_another_version_is_found() {
    let Some(fixture) = Fixture::on(Engine::Sqlite, Store::S3) else { return };
    fixture.fill();
    // A late copy of the store replaces the object: its bytes and its version are those of another write.
    fixture.raw.run("UPDATE townsquare_files SET etag = 'newer' WHERE path = 'large'");
    fixture.assert_finds_in_full(FindingCode::FileVersionDiffers);
    fixture.service.storage().repair().expect("repaired");
    assert_eq!(fixture.check(CheckDepth::Full), [], "repair mends it");
}

#[test]
fn a_store_that_does_not_answer_is_unreachable() {
    let Some(mut fixture) = Fixture::on(Engine::Sqlite, Store::S3) else { return };
    fixture.service.storage().upload("assets", "a", vec![1; 5_000], UploadOptions::new()).expect("uploaded");
    drop(fixture.s3.take());
    fixture.assert_finds(FindingCode::StoreUnreachable);
}

//! Faults below the files: a full disk, a read-only folder, and objects that other programs removed, changed, or replaced by
//! folders and links. The right message, and nothing lost.

use std::{
    fs,
    ops::ControlFlow,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Command,
};

use townsquare::{
    Config, ErrorKind,
    blocking::{Client, wait},
    storage::{Overwrite, UploadOptions},
};
use townsquare_tests::{
    skip::skip,
    subprocess::{in_shell, name_of, role, run_child, run_on_small_disk, without_root},
    temp_dir,
    test_database::{Engine, child_on, inherited},
    wait::wait_until,
};

use super::fixture::{Fixture, Store, assert_refused, bytes, paths, put};

const FOLDER: &str = "TOWNSQUARE_TEST_FILES_FOLDER";
const MIB: usize = 1 << 20;

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_with_a_faulty_folder() {
    match role().as_deref() {
        Some("fill") => fill_the_disk(),
        Some("fill-database") => fill_the_disk_of_the_database(),
        Some("read-only") => write_to_a_read_only_folder(),
        _ => {}
    }
}

fn folder() -> std::path::PathBuf {
    std::env::var(FOLDER).expect("a child").into()
}

fn config() -> Config {
    inherited().storage_url(format!("file:{}", folder().display())).inline_file_limit(65_536)
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Uploads until the disk of the folder is full, and checks that failure.
fn fill_the_disk() {
    let client = Client::open(config()).expect("opens").as_service();
    let storage = client.storage();
    // On the same disk, but not in the store.
    let target = folder().with_file_name("target");
    fs::write(&target, "old").expect("there is room");
    let mut written = 0;
    let error = loop {
        match put(&client, "assets", &format!("{written}"), bytes(MIB, written)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 50, "the limit is 8 MB");
    };
    assert!(written > 2, "{error:?}");
    let full = "Storage error: No space left on device";
    assert!(error.is_retryable());
    assert_refused(Err::<(), _>(error), ErrorKind::Unavailable, 507, &format!("Upload failed: {full}"));
    let old = storage.stat("assets", "0").expect("found");
    let over = put(&client, "assets", "0", bytes(2 * MIB, 99));
    assert_refused(over, ErrorKind::Unavailable, 507, &format!("Upload failed: {full}"));
    let copied = storage.copy("assets", "0", "copy", Overwrite::Refuse);
    assert_refused(copied, ErrorKind::Unavailable, 507, &format!("Copy failed: {full}"));
    let downloaded = storage.download_to("assets", "0", &target, |_, _| ControlFlow::Continue(()));
    assert_refused(downloaded, ErrorKind::Unavailable, 507, &format!("Download failed: {full}"));
    assert_eq!(fs::read(&target).expect("a file"), b"old", "the target stays");
    fs::remove_file(&target).expect("removed");
    wait_until("the staged bytes are removed", || entries(&folder().join(".townsquare/staging")) == 0);
    // Nothing is lost, and nothing is left.
    assert_eq!(storage.stat("assets", "0").expect("found"), old);
    assert_eq!(paths(&client, "assets").len(), usize::from(written));
    for number in 0..written {
        let found = storage.download("assets", &number.to_string()).expect("whole");
        assert!(found == bytes(MIB, number), "{number}");
    }
    assert_eq!(entries(&folder()), 2, "the bucket and the work folder");
    put(&client, "assets", "small", "x").expect("the database has room");
    storage.delete("assets", "1").expect("deleted");
    put(&client, "assets", "again", bytes(MIB, 100)).expect("there is room again");
    let report = storage.repair().expect("repaired");
    assert_eq!((report.finished, report.orphans_removed, report.rows_removed), (0, 0, 0));
    client.close();
}

/// Uploads inline files until the disk of the database is full, and checks that failure.
fn fill_the_disk_of_the_database() {
    let client = Client::open(inherited().storage_url("memory:").inline_file_limit(10 * MIB as u64)).expect("opens");
    let client = client.as_service();
    let mut written = 0;
    let error = loop {
        match put(&client, "assets", &format!("{written}"), bytes(MIB / 2, written)) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 50, "the limit is 8 MB");
    };
    assert!(error.is_retryable() && error.code() == Some("53100"), "{error:?}");
    let message = "Upload failed: Storage error: No space left on device";
    assert_refused(Err::<(), _>(error), ErrorKind::Unavailable, 507, message);
    for number in 0..written {
        let found = client.storage().download("assets", &number.to_string()).expect("whole");
        assert!(found == bytes(MIB / 2, number), "{number}");
    }
    client.close();
}

/// Makes the folder read-only, and then writable again.
fn write_to_a_read_only_folder() {
    let client = Client::open(config()).expect("opens").as_service();
    let storage = client.storage();
    put(&client, "assets", "a", bytes(MIB, 1)).expect("uploaded");
    put(&client, "assets", "b", bytes(MIB, 2)).expect("uploaded");
    let all = ["assets", ".townsquare/staging", ""].map(|name| folder().join(name));
    let set =
        |mode| all.iter().for_each(|path| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set"));
    set(0o500);
    let message = "Upload failed: Storage error: Permission denied";
    for path in ["a", "new"] {
        assert_refused(put(&client, "assets", path, bytes(MIB, 3)), ErrorKind::Internal, 500, message);
    }
    put(&client, "assets", "small", "x").expect("an inline file");
    assert!(storage.download("assets", "a").expect("reads go on") == bytes(MIB, 1));
    storage.delete("assets", "b").expect("the row is deleted, the object later");
    assert_eq!(paths(&client, "assets"), ["a", "small"]);
    assert!(folder().join("assets/b").exists());
    set(0o700);
    let report = storage.repair().expect("repaired");
    assert_eq!((report.finished, report.rows_removed), (1, 0));
    assert!(!folder().join("assets/b").exists());
    assert!(storage.download("assets", "a").expect("whole") == bytes(MIB, 1));
    client.close();
}

/// Makes a command for a child with this folder for its files.
fn child(database: &Path, files: &Path, role: &str) -> Command {
    let test = name_of(&child_process_with_a_faulty_folder);
    let variables = [(FOLDER, files.to_str().expect("UTF-8"))];
    child_on(&format!("sqlite:{}", database.display()), test, role, &variables)
}

#[test]
fn a_full_disk_is_reported_and_loses_no_file() {
    let (folder, database) = (temp_dir(), temp_dir());
    let child = child(&database.path().join("fixture.db"), &folder.path().join("files"), "fill");
    run_on_small_disk(folder.path(), 8, &child);
}

#[test]
fn a_full_disk_of_the_database_is_reported_as_that_of_the_files_is() {
    let folder = temp_dir();
    let child = child(&folder.path().join("fixture.db"), folder.path(), "fill-database");
    run_on_small_disk(folder.path(), 8, &child);
}

#[test]
fn a_read_only_folder_is_reported_and_loses_no_file() {
    let folder = temp_dir();
    // For the user `nobody`.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("opened");
    let child = child(&folder.path().join("fixture.db"), &folder.path().join("files"), "read-only");
    run_child(&mut without_root(in_shell("umask 0", &child)));
}

/// A fixture where every file is an object in a folder.
fn fixture() -> Fixture {
    Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there")
}

fn assert_repaired(fixture: &Fixture, files: &[&str]) {
    let report = fixture.db.service.storage().repair().expect("repaired");
    assert!(report.mismatched.is_empty(), "{:?}", report.mismatched);
    assert_eq!(paths(&fixture.db.service, "assets"), files);
    let objects = files.iter().map(|file| format!("assets/{file}")).collect();
    assert_eq!(fixture.objects(), Some(objects));
}

#[test]
fn an_object_that_vanished_is_missing_until_it_is_written_again() {
    let fixture = fixture();
    let storage = fixture.db.service.storage();
    for path in ["a", "b", "c", "sub/d"] {
        fixture.put("assets", path, bytes(MIB, 1));
        fs::remove_file(fixture.files_folder().join("assets").join(path)).expect("removed");
        let missing = storage.download("assets", path);
        assert_refused(missing, ErrorKind::NotFound, 404, "Download failed: File not found");
        let moved = storage.move_file("assets", path, "elsewhere", Overwrite::Replace);
        assert_refused(moved, ErrorKind::NotFound, 404, "Move failed: File not found");
    }
    fs::remove_dir(fixture.files_folder().join("assets/sub")).expect("removed");
    fixture.put("assets", "a", bytes(MIB, 2));
    assert!(fixture.get("assets", "a") == bytes(MIB, 2));
    storage.delete("assets", "b").expect("the row is deleted");
    assert_eq!(storage.repair().expect("repaired").rows_removed, 2);
    assert_repaired(&fixture, &["a"]);
}

#[test]
fn an_object_of_another_size_is_an_error_until_it_is_written_again() {
    let fixture = fixture();
    let storage = fixture.db.service.storage();
    for size in [0, 10, MIB + 1] {
        fixture.put("assets", "a", bytes(MIB, 1));
        let object = fs::File::options().write(true).open(fixture.files_folder().join("assets/a")).expect("opened");
        object.set_len(size as u64).expect("changed");
        let message = format!("Storage error: The stored bytes are {size}, but the file has {MIB}");
        let refused = storage.download("assets", "a");
        assert_refused(refused, ErrorKind::Internal, 500, &format!("Download failed: {message}"));
        let refused = storage.download_range("assets", "a", 0..1);
        assert_refused(refused, ErrorKind::Internal, 500, &format!("Download failed: {message}"));
        let refused = storage.copy("assets", "a", "b", Overwrite::Replace);
        assert_refused(refused, ErrorKind::Internal, 500, &format!("Copy failed: {message}"));
        let target = fixture.folder.path().join("target");
        let refused = storage.download_to("assets", "a", &target, |_, _| ControlFlow::Continue(()));
        assert_refused(refused, ErrorKind::Internal, 500, &format!("Download failed: {message}"));
        assert!(!target.exists());
        assert_eq!(storage.repair().expect("repaired").mismatched, ["assets/a"]);
    }
    fixture.put("assets", "a", bytes(MIB, 2));
    assert!(fixture.get("assets", "a") == bytes(MIB, 2));
    assert_repaired(&fixture, &["a"]);
}

#[test]
fn an_object_that_is_truncated_while_it_is_read_is_an_error() {
    let fixture = fixture();
    fixture.put("assets", "a", bytes(8 * MIB, 1));
    let mut reader = wait(fixture.db.async_service().storage().reader("assets", "a")).expect("opened");
    assert!(wait(reader.next_chunk()).expect("read").is_some());
    let object = fs::File::options().write(true).open(fixture.files_folder().join("assets/a")).expect("opened");
    object.set_len(MIB as u64).expect("changed");
    let error = loop {
        match wait(reader.next_chunk()) {
            Ok(chunk) => assert!(chunk.is_some(), "half a file is no file"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.status()), (ErrorKind::Internal, 500), "{error:?}");
    wait(reader.next_chunk()).expect_err("reading on fails too");
}

#[test]
fn a_folder_in_the_place_of_an_object_is_no_file_and_is_not_replaced() {
    let fixture = fixture();
    let storage = fixture.db.service.storage();
    let object = fixture.files_folder().join("assets/a");
    fixture.put("assets", "a", bytes(MIB, 1));
    fs::remove_file(&object).expect("removed");
    fs::create_dir(&object).expect("created");
    fs::write(object.join("of somebody"), "x").expect("written");
    let missing = storage.download("assets", "a");
    assert_refused(missing, ErrorKind::NotFound, 404, "Download failed: File not found");
    let refused = put(&fixture.db.service, "assets", "a", bytes(MIB, 2));
    let message = "Upload failed: Storage error: The path is a folder";
    assert_refused(refused, ErrorKind::AlreadyExists, 409, message);
    assert_eq!(fs::read(object.join("of somebody")).expect("it stays"), b"x");
    wait_until("the staged bytes are removed", || entries(&fixture.files_folder().join(".townsquare/staging")) == 0);
    fs::remove_file(object.join("of somebody")).expect("removed");
    fixture.put("assets", "a", bytes(MIB, 3));
    assert!(fixture.get("assets", "a") == bytes(MIB, 3), "an empty folder is what a crash leaves");
    assert_repaired(&fixture, &["a"]);
}

#[test]
fn a_file_in_the_place_of_a_folder_is_not_replaced() {
    let fixture = fixture();
    fixture.put("assets", "other", bytes(MIB, 1));
    let file = fixture.files_folder().join("assets/images");
    fs::write(&file, "x").expect("written");
    let refused = put(&fixture.db.service, "assets", "images/a", bytes(MIB, 2));
    let message = "Upload failed: Storage error: A part of the path is a file";
    assert_refused(refused, ErrorKind::AlreadyExists, 409, message);
    assert_eq!(fs::read(&file).expect("it stays"), b"x");
    let missing = fixture.db.service.storage().download("assets", "images/a");
    assert_refused(missing, ErrorKind::NotFound, 404, "Download failed: File not found");
    wait_until("the staged bytes are removed", || entries(&fixture.files_folder().join(".townsquare/staging")) == 0);
    assert_repaired(&fixture, &["other"]);
    fixture.put("assets", "images/a", bytes(MIB, 2));
}

/// A folder outside the root with a file `a` of a mebibyte.
fn outside(fixture: &Fixture) -> std::path::PathBuf {
    let outside = fixture.folder.path().join("outside");
    fs::create_dir(&outside).expect("created");
    fs::write(outside.join("a"), bytes(MIB, 7)).expect("written");
    outside
}

fn assert_untouched(outside: &Path) {
    assert!(fs::read(outside.join("a")).expect("it is there") == bytes(MIB, 7), "the file outside has changed");
    assert_eq!(entries(outside), 1, "something was written outside");
}

/// Links in the place of an object, of a folder, of a bucket, and of the work folder lead out of the root.
#[test]
fn nothing_is_read_or_written_through_a_link() {
    let fixture = fixture();
    let (service, outside, root) = (&fixture.db.service, outside(&fixture), fixture.files_folder());
    let storage = service.storage();
    for (link, path) in [("assets/a", "a"), ("assets/sub", "sub/a"), ("assets", "a")] {
        fixture.put("assets", path, bytes(MIB, 1));
        let place = root.join(link);
        if link == "assets/a" {
            fs::remove_file(&place).expect("removed");
            symlink(outside.join("a"), &place).expect("linked");
        } else {
            fs::rename(&place, root.join("before")).expect("renamed");
            symlink(&outside, &place).expect("linked");
        }
        let read = storage.download("assets", path);
        assert!(read.is_err(), "{link}: read through the link");
        assert_untouched(&outside);
        let written = put(service, "assets", path, bytes(MIB, 2));
        // A link in the place of the object itself is replaced.
        assert_eq!(written.is_ok(), link == "assets/a", "{link}: {written:?}");
        assert_untouched(&outside);
        let copied = storage.copy("assets", path, "sub/copy", Overwrite::Replace);
        assert_eq!(copied.is_ok(), link == "assets/a", "{link}: {copied:?}");
        assert_untouched(&outside);
        let _ = storage.repair();
        assert_untouched(&outside);
        let _ = storage.delete("assets", path);
        assert_untouched(&outside);
        let _ = storage.repair();
        assert_untouched(&outside);
        if link == "assets/a" {
            assert!(!place.exists(), "the object is deleted");
            storage.delete("assets", "sub/copy").expect("deleted");
        } else {
            fs::remove_file(&place).expect("the link stays");
            fs::rename(root.join("before"), &place).expect("renamed");
        }
        wait_until("the staged bytes are removed", || entries(&root.join(".townsquare/staging")) == 0);
        storage.repair().expect("repaired");
        assert_eq!(fixture.objects(), Some(Vec::new()), "{link}");
    }
}

#[test]
fn a_link_in_the_place_of_the_work_folders_is_refused() {
    for link in [".townsquare", ".townsquare/staging", ".townsquare/locks"] {
        let fixture = fixture();
        let outside = outside(&fixture);
        let place = fixture.files_folder().join(link);
        fs::create_dir_all(place.parent().expect("a folder")).expect("created");
        symlink(&outside, &place).expect("linked");
        let written = put(&fixture.db.service, "assets", "a", bytes(MIB, 1)).expect_err("a link");
        assert!(matches!(written.status(), 409 | 500), "{written:?}");
        assert_untouched(&outside);
        assert!(paths(&fixture.db.service, "assets").is_empty());
        let _ = fixture.db.service.storage().repair();
        assert_untouched(&outside);
    }
}

/// A pipe in the place of an object would block whoever opens it.
#[test]
fn a_pipe_in_the_place_of_an_object_is_no_file() {
    let fixture = fixture();
    let object = fixture.files_folder().join("assets/a");
    fixture.put("assets", "a", bytes(MIB, 1));
    fs::remove_file(&object).expect("removed");
    let made = Command::new("mkfifo").arg(&object).status();
    if !made.is_ok_and(|status| status.success()) {
        return skip("a pipe in the place of an object: there is no mkfifo");
    }
    let missing = fixture.db.service.storage().download("assets", "a");
    assert_refused(missing, ErrorKind::NotFound, 404, "Download failed: File not found");
    let options = UploadOptions::new();
    fixture.db.service.storage().upload("assets", "a", bytes(MIB, 2), options).expect("the pipe is replaced");
    assert!(fixture.get("assets", "a") == bytes(MIB, 2));
}

//! Files of the host: `upload_from`, `download_to` and `export_files`.

use std::{
    fs,
    ops::ControlFlow,
    os::unix::fs::{FileTypeExt, PermissionsExt, symlink},
    path::Path,
    pin::pin,
    process::Command,
    task::{Context, Waker},
};

use townsquare::{
    Config, ErrorKind,
    blocking::{Client, wait},
    storage::UploadOptions,
};
use townsquare_tests::{subprocess::in_subprocess, temp_dir, test_database::Engine};

use super::fixture::{Fixture, Store, assert_refused, bytes, on_every_store, paths, put};

fn keep_going(_: u64, _: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

on_every_store! {
    fn files_of_the_host_are_streamed_with_progress(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        let (source, target) = (fixture.folder.path().join("source.png"), fixture.folder.path().join("target.png"));
        for size in [0usize, 10, 3_000_000] {
            fs::write(&source, bytes(size, 1)).expect("written");
            let mut steps = Vec::new();
            let uploaded =
                storage.upload_from("assets", "a.png", &source, UploadOptions::new(), |done, all| {
                steps.push((done, all));
                ControlFlow::Continue(())
            });
            let info = uploaded.expect("uploaded");
            assert_eq!((info.size, info.content_type.as_str()), (size as u64, "image/png"));
            assert!(steps.is_sorted() && steps.iter().all(|step| step.1 == size as u64), "{steps:?}");
            assert_eq!(steps.last().map_or(0, |step| step.0), size as u64);
            let mut steps = Vec::new();
            let downloaded = storage.download_to("assets", "a.png", &target, |done, all| {
                steps.push((done, all));
                ControlFlow::Continue(())
            });
            assert_eq!(downloaded.expect("downloaded"), info);
            assert!(fs::read(&target).expect("read") == bytes(size, 1));
            assert_eq!(steps.last().map_or(0, |step| step.0), size as u64);
        }
        let missing = fixture.folder.path().join("missing");
        let refused = storage.upload_from("assets", "b", &missing, UploadOptions::new(), keep_going);
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
        let refused = storage.download_to("assets", "a.png", missing.join("target"), keep_going);
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Download failed: Invalid file or request");
        let refused = storage.download_to("assets", "none", &target, keep_going);
        assert_refused(refused, ErrorKind::NotFound, 404, "Download failed: File not found");
        assert!(fs::read(&target).expect("read") == bytes(3_000_000, 1), "the target stays");
        let left: Vec<_> = fs::read_dir(fixture.folder.path()).expect("a folder").flatten().collect();
        assert!(!left.iter().any(|entry| entry.file_name().to_string_lossy().starts_with(".townsquare-")), "{left:?}");
        assert_eq!(paths(&fixture.db.service, "assets"), ["a.png"]);
    }

    fn an_export_has_the_layout_of_spec_2_8(fixture: &Fixture) {
        let files = [("assets", "images/a", 10), ("assets", "images/b c", 100_000), ("private", "x/homebase", 5),
            ("spaces", "s/tabs/Home", 70_000)];
        for (bucket, path, size) in files {
            fixture.put(bucket, path, bytes(size, 1));
        }
        let target = fixture.folder.path().join("exported");
        let mut steps = Vec::new();
        let exported = fixture.db.service.storage().export_files(&target, |done, all| {
                steps.push((done, all));
                ControlFlow::Continue(())
            });
        assert_eq!(exported.expect("exported"), 4);
        assert_eq!(steps, [(1, 4), (2, 4), (3, 4), (4, 4)]);
        for (bucket, path, size) in files {
            assert!(fs::read(target.join(bucket).join(path)).expect("exported") == bytes(size, 1));
        }
        let again = fixture.db.service.storage().export_files(&target, keep_going);
        assert_refused(again, ErrorKind::InvalidInput, 400, "Export files failed: Invalid file or request");
    }

    fn a_callback_that_breaks_stops_the_transfer_and_leaves_nothing(fixture: &Fixture) {
        let storage = fixture.db.service.storage();
        let (source, target) = (fixture.folder.path().join("source"), fixture.folder.path().join("target"));
        fs::write(&source, bytes(3_000_000, 1)).expect("written");
        fs::write(&target, "old").expect("written");
        fixture.put("assets", "a", bytes(3_000_000, 2));
        fixture.put("assets", "b", bytes(10, 2));
        let stop = |_, _| ControlFlow::Break(());
        let cancelled = |error: townsquare::Error| {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error:?}");
            error.to_string()
        };
        let message = "Upload failed: A callback cancelled the call";
        for path in ["a", "new"] {
            let stopped = storage.upload_from("assets", path, &source, UploadOptions::new(), stop);
            assert_eq!(cancelled(stopped.expect_err("stopped")), message);
        }
        assert!(fixture.get("assets", "a") == bytes(3_000_000, 2), "the old version stays");
        let message = "Download failed: A callback cancelled the call";
        let stopped = storage.download_to("assets", "a", &target, stop);
        assert_eq!(cancelled(stopped.expect_err("stopped")), message);
        assert_eq!(fs::read(&target).expect("a file"), b"old");
        assert_no_temporary(fixture.folder.path());
        let (exported, mut files) = (fixture.folder.path().join("exported"), 0);
        let stopped = storage.export_files(&exported, |done, _| {
            files = done;
            if done == 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(cancelled(stopped.expect_err("stopped")), "Export files failed: A callback cancelled the call");
        assert_eq!((files, fs::read_dir(exported.join("assets")).expect("a folder").count()), (1, 1));
        assert_eq!(paths(&fixture.db.service, "assets"), ["a", "b"]);
    }
}

fn assert_no_temporary(folder: &Path) {
    let left: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".townsquare-")), "{left:?}");
}

fn fixture(limit: u64) -> Fixture {
    Fixture::on(Engine::Sqlite, Store::Folder(limit)).expect("SQLite is always there")
}

#[test]
fn a_download_replaces_regular_files_only() {
    for limit in [0, 1_000_000] {
        let fixture = fixture(limit);
        fixture.put("assets", "a", "new");
        let folder = fixture.folder.path().join("host");
        fs::create_dir_all(folder.join("folder/inner")).expect("created");
        let made = Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo starts");
        assert!(made.success());
        symlink("folder", folder.join("to-folder")).expect("linked");
        symlink("/dev/null", folder.join("to-device")).expect("linked");
        symlink("nothing", folder.join("to-nothing")).expect("linked");
        let before = names_and_types(&folder);
        for (name, why) in [
            ("folder", "it is a folder"),
            ("pipe", "it is a device, a pipe or a socket"),
            ("to-folder", "it is a folder"),
            ("to-device", "it is a device, a pipe or a socket"),
            ("to-nothing", "it is a symbolic link to no file"),
        ] {
            let refused = download(&fixture, &folder.join(name));
            let reason = refused.as_ref().expect_err(name).reason().expect("a reason").to_owned();
            assert!(reason.contains(why), "{name}: {reason}");
            assert_refused(refused, ErrorKind::InvalidInput, 400, "Download failed: Invalid file or request");
        }
        let refused = download(&fixture, Path::new("/dev/null"));
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Download failed: Invalid file or request");
        assert!(fs::metadata("/dev/null").expect("a device").file_type().is_char_device());
        assert_eq!(names_and_types(&folder), before, "nothing is left");
    }
}

/// To open a pipe waits for a writer of it, and nothing would end that wait.
#[test]
fn an_upload_reads_regular_files_only() {
    let fixture = fixture(0);
    let folder = fixture.folder.path().join("host");
    fs::create_dir_all(folder.join("folder")).expect("created");
    let made = Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo starts");
    assert!(made.success());
    symlink("pipe", folder.join("to-pipe")).expect("linked");
    for name in ["pipe", "to-pipe", "folder"] {
        let options = UploadOptions::new();
        let refused = fixture.db.service.storage().upload_from("assets", "a", folder.join(name), options, keep_going);
        assert_refused(refused, ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
    }
    // The cause is the error of the host, for programs that tell a missing file from one that is denied.
    let missing = fixture.db.service.storage().upload_from(
        "assets",
        "a",
        folder.join("missing"),
        UploadOptions::new(),
        keep_going,
    );
    let error = missing.expect_err("there is no file");
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    assert_eq!(cause.map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound), "{error:?}");
    // A pipe is no catalog file, too.
    let catalog = Config::new().data_dir(folder.join("town")).catalog_url(folder.join("pipe").display().to_string());
    let client = Client::open(catalog).expect("opens");
    let error = client.discovery().refresh().expect_err("no catalog");
    assert!(error.message().contains("a pipe"), "{error}");
    client.close();
}

fn download(fixture: &Fixture, target: &Path) -> Result<townsquare::storage::FileInfo, townsquare::Error> {
    fixture.db.service.storage().download_to("assets", "a", target, keep_going)
}

fn names_and_types(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut found: Vec<_> = entries.map(|entry| format!("{:?} {:?}", entry.file_name(), entry.file_type())).collect();
    found.sort();
    found
}

#[test]
fn a_download_keeps_permissions_and_the_link_to_the_file() {
    let fixture = fixture(0);
    fixture.put("assets", "a", "new");
    let folder = fixture.folder.path();
    let mode = |name: &str| fs::metadata(folder.join(name)).expect("a file").permissions().mode() & 0o7777;
    download(&fixture, &folder.join("fresh")).expect("downloaded");
    assert_eq!(mode("fresh"), 0o600);
    for (name, permissions) in [("shared", 0o644), ("program", 0o755)] {
        fs::write(folder.join(name), "old").expect("written");
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(permissions)).expect("set");
        download(&fixture, &folder.join(name)).expect("downloaded");
        assert_eq!((mode(name), fs::read(folder.join(name)).expect("read")), (permissions, b"new".to_vec()), "{name}");
    }
    fs::create_dir(folder.join("data")).expect("created");
    fs::write(folder.join("data/real"), "old").expect("written");
    fs::set_permissions(folder.join("data/real"), fs::Permissions::from_mode(0o640)).expect("set");
    symlink("data/real", folder.join("latest")).expect("linked");
    download(&fixture, &folder.join("latest")).expect("downloaded");
    assert!(fs::symlink_metadata(folder.join("latest")).expect("a link").is_symlink(), "the link stays");
    assert_eq!((mode("data/real"), fs::read(folder.join("data/real")).expect("read")), (0o640, b"new".to_vec()));
    assert_no_temporary(folder);
    assert_no_temporary(&folder.join("data"));
}

#[test]
fn an_export_names_the_files_that_it_lacks_and_has_all_others() {
    let fixture = fixture(10);
    // No other file has the bytes of a damaged file.
    for (path, seed) in [("a", 1), ("b/gone", 2), ("c/short", 3), ("z", 1)] {
        fixture.put("assets", path, bytes(1_000, seed));
    }
    fs::remove_file(fixture.files_folder().join("assets/b/gone")).expect("removed");
    fs::write(fixture.files_folder().join("assets/c/short"), "short").expect("written");
    let target = fixture.folder.path().join("exported");
    let lacking = fixture.db.service.storage().export_files(&target, keep_going);
    let message = "Export files failed: Storage error: The export lacks 2 damaged files: assets/b/gone (the bytes of the file \
                   are gone), assets/c/short (The stored bytes are 5, but the file has 1000)";
    assert_refused(lacking, ErrorKind::Internal, 500, message);
    for path in ["a", "z"] {
        assert!(fs::read(target.join("assets").join(path)).expect("exported") == bytes(1_000, 1));
    }
    assert!(!target.join("assets/c/short").exists());
}

#[test]
fn an_export_and_a_backup_have_the_files_of_buckets_that_are_no_longer_declared() {
    let fixture = fixture(10);
    let client = Client::open(fixture.config().buckets("old=private")).expect("opened").as_service();
    put(&client, "old", "x/large", bytes(1_000, 1)).expect("uploaded");
    put(&client, "old", "x/small", "x").expect("uploaded");
    client.close();
    let refused = fixture.db.service.storage().stat("old", "x/large");
    assert_refused(refused, ErrorKind::NotFound, 404, "Get file failed: File not found");
    let target = fixture.folder.path().join("exported");
    let count = fixture.db.service.storage().export_files(&target, keep_going).expect("exported");
    assert_eq!(count, 2);
    assert!(fs::read(target.join("old/x/large")).expect("exported") == bytes(1_000, 1));
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    fixture.db.client.backup(&backup).expect("a backup");
    Client::restore(&backup, &data_dir).expect("restored");
    let config = Config::new().data_dir(&data_dir).catalog_api_key("").buckets("old=private");
    let client = Client::open(config).expect("opened").as_service();
    assert!(client.storage().download("old", "x/large").expect("restored") == bytes(1_000, 1));
    client.close();
    let report = fixture.db.service.storage().repair().expect("repaired");
    assert_eq!((report.orphans_removed, report.rows_removed), (0, 0));
}

#[test]
fn a_writer_whose_write_was_cancelled_writes_no_file() {
    let fixture = fixture(0);
    let storage = fixture.db.async_service().storage();
    let mut writer = wait(storage.writer("assets", "a", UploadOptions::new())).expect("a writer");
    let (data, mut is_cancelled) = (bytes::Bytes::from(bytes(4 << 20, 1)), false);
    for _ in 0..20 {
        // Each waits for the one before to be written.
        let write = pin!(writer.write(data.clone()));
        is_cancelled |= write.poll(&mut Context::from_waker(Waker::noop())).is_pending();
    }
    assert!(is_cancelled, "each write was ready at once");
    assert_refused(wait(writer.finish()), ErrorKind::InvalidInput, 400, "Upload failed: Invalid file or request");
    assert!(paths(&fixture.db.service, "assets").is_empty());
}

/// Its repair would delete the file, or the file would replace one of its own.
#[test]
fn a_target_in_the_object_store_is_refused() {
    let folder = temp_dir();
    let client = Client::open(Config::new().data_dir(folder.path().join("town")).catalog_api_key("")).expect("opens");
    let storage = client.as_service();
    let storage = storage.storage();
    storage.upload("assets", "a", "bytes", UploadOptions::new()).expect("uploaded");
    storage.upload("assets", "large", vec![7; 300_000], UploadOptions::new()).expect("uploaded");
    let (store, link) = (folder.path().join("town/files"), folder.path().join("link"));
    symlink(store.join("assets/large"), &link).expect("a link");
    let export = storage.export_files(store.join("new"), keep_going).expect_err("refused");
    assert!(!store.join("new").exists());
    let targets = [store.join(".townsquare/store"), store.join("assets/new"), store.join("new"), link];
    let downloads = targets.map(|target| storage.download_to("assets", "a", target, keep_going).expect_err("refused"));
    for error in downloads.iter().chain([&export]) {
        assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidInput, 400), "{error}");
        assert!(error.message().contains("lies in the folder of the object store"), "{error}");
    }
    assert_eq!(storage.download("assets", "large").expect("the object is there").len(), 300_000);
    client.close();
}

/// To close a descriptor of such a file drops the locks of the process: another process would take the database for its own.
#[test]
fn files_of_the_open_database_are_neither_uploaded_nor_read_as_a_catalog() {
    // The locks are those of the process.
    in_subprocess(files_of_the_open_database_are_neither_uploaded_nor_read_as_a_catalog, refuse_open_databases);
}

fn refuse_open_databases() {
    let folder = temp_dir();
    let data_dir = folder.path().join("town");
    let config = || Config::new().data_dir(&data_dir).catalog_api_key("");
    let client = Client::open(config()).expect("opens");
    let storage = client.as_service();
    let storage = storage.storage();
    let database = data_dir.join("townsquare.db");
    let (link, hard) = (folder.path().join("link"), folder.path().join("hard"));
    symlink(&database, &link).expect("a link");
    fs::hard_link(&database, &hard).expect("a link");
    let beside = ["-wal", "-shm"].map(|suffix| data_dir.join(format!("townsquare.db{suffix}")));
    let locks =
        || fs::read_to_string("/proc/locks").expect("Linux").matches(&format!(" {} ", std::process::id())).count();
    let before = locks();
    assert!(before > 0, "the client holds locks");
    for source in [&database, &link, &hard, &beside[0], &beside[1]] {
        let refused = storage.upload_from("assets", "copy", source, UploadOptions::new(), keep_going);
        let error = refused.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.message().contains("it is a file of a database that this process has open"), "{error}");
    }
    storage.upload("assets", "a", "bytes", UploadOptions::new()).expect("uploaded");
    for target in [&database, &link, &beside[0], &beside[1]] {
        let error = storage.download_to("assets", "a", target, keep_going).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.message().contains("it is a file of a database that this process has open"), "{error}");
    }
    assert_eq!(storage.download("assets", "a").expect("the database is there"), "bytes");
    let other = Config::new().data_dir(":memory:").catalog_url(format!("file:{}", database.display()));
    let other = Client::open(other).expect("opens");
    other.discovery().refresh().expect_err("the file is not opened");
    assert_eq!(locks(), before);
    other.close();
    client.close();
    storage_of_a_closed_database_is_a_file(&database);
}

fn storage_of_a_closed_database_is_a_file(database: &Path) {
    let client = Client::open(Config::new().data_dir(":memory:").catalog_api_key("")).expect("opens");
    let service = client.as_service();
    service.storage().upload_from("assets", "copy", database, UploadOptions::new(), keep_going).expect("uploaded");
    client.close();
}

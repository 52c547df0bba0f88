//! `backup` and `restore` take files along (DESIGN 7), on SQLite.

use std::{fs, time::Duration};

use townsquare::{Config, ErrorKind, blocking::Client, realtime::ChangeRequest, storage::UrlMethod};
use townsquare_tests::{raw_sql::RawConnection, test_database::Engine};

use super::fixture::{Fixture, Store, UNLIMITED, bytes, paths};

/// Each file of a backup: bucket, path, size.
const FILES: [(&str, &str, usize); 4] = [
    ("assets", "images/a", 100_000),
    ("assets", "small", 10),
    ("private", "x/homebase", 70_000),
    ("spaces", "s/tabs/a b", 0),
];

fn filled(store: Store) -> Fixture {
    let fixture = Fixture::on(Engine::Sqlite, store).expect("SQLite is always there");
    for (bucket, path, size) in FILES {
        fixture.put(bucket, path, bytes(size, 1));
    }
    fixture
}

#[test]
fn a_restored_backup_has_the_files_of_the_backup() {
    for store in [Store::Folder(0), Store::Folder(65_536), Store::Memory(0)] {
        let fixture = filled(store);
        let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
        fixture.db.client.backup(&backup).expect("a backup");
        for (bucket, path, _) in FILES {
            fixture.put(bucket, path, "changed after the backup");
        }
        Client::restore(&backup, &data_dir).expect("restored");
        let client = Client::open(Config::new().data_dir(&data_dir).catalog_api_key("")).expect("opened");
        let service = client.as_service();
        for (bucket, path, size) in FILES {
            assert!(service.storage().download(bucket, path).expect("restored") == bytes(size, 1), "{path}");
        }
        let report = service.storage().repair().expect("repaired");
        assert_eq!((report.orphans_removed, report.rows_removed, report.mismatched), (0, 0, Vec::new()));
        client.close();
        let again = fixture.db.client.backup(&backup).expect_err("it exists");
        assert_eq!(again.kind(), ErrorKind::InvalidInput);
    }
}

/// A database that was itself a backup of one whose objects stayed in S3 has the mark of that.
#[test]
fn a_backup_says_anew_where_its_objects_are() {
    let fixture = filled(Store::Folder(0));
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    fixture.db.raw.run("PRAGMA user_version = 1");
    fixture.db.client.backup(&backup).expect("a backup");
    Client::restore(&backup, &data_dir).expect("restored");
    let client = Client::open(Config::new().data_dir(&data_dir).catalog_api_key("")).expect("opened");
    for (bucket, path, size) in FILES {
        assert!(client.as_service().storage().download(bucket, path).expect("restored") == bytes(size, 1), "{path}");
    }
    client.close();
}

#[test]
fn a_signed_url_of_the_original_is_refused_by_the_copy() {
    let fixture = filled(Store::Folder(0));
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    let hour = Duration::from_secs(3_600);
    let sign =
        |client: &Client| client.storage().signed_url("private", "x/homebase", UrlMethod::Get, hour).expect("signed");
    let status =
        |client: &Client, url: &str| client.storage().handle_file("GET", url, &[], "").expect("an answer").status;
    let of_original = sign(&fixture.db.service);
    fixture.db.client.backup(&backup).expect("a backup");
    Client::restore(&backup, &data_dir).expect("restored");
    let config = Config::new().data_dir(&data_dir).catalog_api_key("").clock(fixture.db.clock.clock());
    let copy = Client::open(config).expect("opened").as_service();
    assert_eq!(status(&fixture.db.client, &of_original), 200);
    assert_eq!(status(&copy, &sign(&copy)), 200);
    assert_ne!(status(&copy, &of_original), 200, "a URL of the original");
    assert_ne!(status(&fixture.db.client, &sign(&copy)), 200, "a URL of the copy");
    copy.close();
}

#[test]
fn a_stolen_backup_forges_no_url_of_the_original() {
    const KEY: &str = "the same option for both databases";
    let with_key = |config: Config| config.url_signing_key(KEY);
    for options in [&with_key as &dyn Fn(Config) -> Config, &|config| config] {
        let fixture = filled(Store::Folder(UNLIMITED));
        let original = Client::open(options(fixture.config())).expect("opened");
        original.as_service().realtime().cursor().expect("the key of cursors is used");
        let keys = ["url_key", "cursor_key"]
            .map(|column| fixture.db.raw.value(&format!("SELECT {column} FROM townsquare_database")));
        fixture.db.service.storage().rotate_url_key().expect("rotated");
        let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
        original.backup(&backup).expect("a backup");
        let rotated = fixture.db.raw.value("SELECT url_key FROM townsquare_database");
        let stolen = fs::read(&backup).expect("read");
        for key in keys.iter().chain([&rotated]) {
            assert_eq!(key.len(), 64);
            let found = stolen.windows(key.len()).any(|window| window == key.as_bytes());
            assert!(!found, "a key is in the backup");
        }
        // Opened without `restore`, and by it.
        let copied = fixture.folder.path().join("copied");
        fs::create_dir(&copied).expect("a folder");
        fs::copy(&backup, copied.join("townsquare.db")).expect("copied");
        Client::restore(&backup, &data_dir).expect("restored");
        for folder in [copied, data_dir] {
            let config = Config::new().data_dir(&folder).catalog_api_key("").clock(fixture.db.clock.clock());
            let thief = Client::open(options(config)).expect("opened");
            let service = thief.as_service();
            let forged = service.storage().signed_url("private", "x/homebase", UrlMethod::Get, Duration::from_secs(60));
            let forged = forged.expect("signed");
            let answer = original.storage().handle_file("GET", &forged, &[], "").expect("an answer");
            assert_eq!(answer.status, 401, "{}", folder.display());
            let cursor = service.realtime().cursor().expect("a cursor");
            let since = ChangeRequest::table("spaces").since(cursor);
            let error = original.as_service().realtime().changes(since).map(drop).expect_err("of another database");
            assert_eq!(error.kind(), ErrorKind::CursorExpired);
            thief.close();
        }
        original.close();
    }
}

#[test]
fn a_backup_whose_files_are_incomplete_is_not_restored() {
    let fixture = filled(Store::Folder(0));
    let backup = fixture.folder.path().join("backup.db");
    fixture.db.client.backup(&backup).expect("a backup");
    let file = fixture.folder.path().join("backup.db.files/assets/images/a");
    let moved = file.with_file_name("moved");
    let damages: [(&str, &dyn Fn()); 4] = [
        ("is damaged", &|| fs::write(&file, bytes(100_000, 2)).expect("other bytes")),
        ("has another size", &|| fs::write(&file, "short").expect("written")),
        ("is missing", &|| fs::rename(&file, &moved).expect("moved")),
        ("is no regular file", &|| std::os::unix::fs::symlink(&moved, &file).expect("a link")),
    ];
    for (why, damage) in damages {
        damage();
        let data_dir = fixture.folder.path().join("restored");
        let error = Client::restore(&backup, &data_dir).expect_err("incomplete");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.message().contains(&format!("assets/images/a {why}")), "{error}");
        let left: Vec<_> = fs::read_dir(&data_dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The rows of a stranger's backup name files outside of the data folder.
#[test]
fn a_backup_that_names_files_elsewhere_is_not_restored() {
    let outside = townsquare_tests::temp_dir();
    let absolute = outside.path().display().to_string();
    for (bucket, path) in [
        ("..", "stolen"),
        (&*absolute, "stolen"),
        (".townsquare", "stolen"),
        ("assets", "../../stolen"),
        ("assets", "a/../../../stolen"),
        ("assets", &format!("{absolute}/stolen")),
    ] {
        let fixture = Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there");
        // No check of the table is in the way.
        fixture.put("assets", "a", bytes(100_000, 1));
        let backup = fixture.folder.path().join("backup.db");
        fixture.db.client.backup(&backup).expect("a backup");
        RawConnection::sqlite(&backup).run(&format!(
            "PRAGMA ignore_check_constraints = ON; UPDATE townsquare_files SET bucket = '{bucket}', path = '{path}'"
        ));
        fs::remove_file(fixture.folder.path().join("backup.db.files/assets/a")).expect("its path is a folder now");
        let mut source = fixture.folder.path().join("backup.db.files").join(bucket);
        source.extend(path.split('/'));
        fs::create_dir_all(source.parent().expect("a folder")).expect("created");
        fs::write(&source, bytes(100_000, 1)).expect("the bytes are there");
        let data_dir = fixture.folder.path().join("restored");
        let error = Client::restore(&backup, &data_dir).expect_err("crafted");
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.message().ends_with("is not the name of a file"), "{error}");
        let left: Vec<_> = fs::read_dir(&data_dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_backup_into_the_store_which_repair_would_delete_is_refused() {
    let fixture = filled(Store::Folder(0));
    let store = fixture.files_folder();
    for target in [store.join("backup.db"), store.join("private/backup.db"), store.join("private/../backup.db")] {
        let error = fixture.db.client.backup(&target).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.message().contains("lies in the folder of the object store"), "{error}");
        assert!(!target.exists());
    }
}

#[test]
fn a_restore_does_not_overwrite_files() {
    let fixture = filled(Store::Folder(0));
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    fixture.db.client.backup(&backup).expect("a backup");
    fs::create_dir_all(data_dir.join("files/assets")).expect("a folder");
    fs::write(data_dir.join("files/assets/mine"), "mine").expect("a file");
    let error = Client::restore(&backup, &data_dir).expect_err("there are files");
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert_eq!(fs::read_to_string(data_dir.join("files/assets/mine")).expect("it stays"), "mine");
    assert!(!data_dir.join("townsquare.db").exists());
}

#[test]
fn a_backup_under_writes_has_whole_files() {
    let fixture = filled(Store::Folder(0));
    let backup = fixture.folder.path().join("backup.db");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..30u8 {
                let path = format!("busy/{}", round % 3);
                fixture.put("assets", &path, bytes(50_000 + usize::from(round), round));
                if round % 7 == 6 {
                    fixture.db.service.storage().delete("assets", &path).expect("deleted");
                }
            }
        });
        fixture.db.client.backup(&backup).expect("a backup");
        writer.join().expect("no panic");
    });
    let data_dir = fixture.folder.path().join("restored");
    Client::restore(&backup, &data_dir).expect("rows and bytes agree");
    let client = Client::open(Config::new().data_dir(&data_dir).catalog_api_key("")).expect("opened");
    for path in paths(&client.as_service(), "assets") {
        client.as_service().storage().download("assets", &path).expect("whole");
    }
    client.close();
}

#[test]
fn files_in_a_remote_store_stay_there() {
    let fixture = filled(Store::S3(0));
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    fixture.db.client.backup(&backup).expect("a backup");
    assert!(!fixture.folder.path().join("backup.db.files").exists());
    Client::restore(&backup, &data_dir).expect("restored");
    let url = fixture.s3.as_ref().expect("a server").url("objects");
    let config = Config::new().data_dir(&data_dir).storage_url(url).catalog_api_key("");
    let client = Client::open(config).expect("opened");
    assert!(client.as_service().storage().download("assets", "images/a").expect("read") == bytes(100_000, 1));
    client.close();
}

#[test]
fn a_backup_fails_and_names_a_file_whose_bytes_are_gone() {
    let fixture = filled(Store::Folder(0));
    fs::remove_file(fixture.files_folder().join("assets/images/a")).expect("removed");
    let backup = fixture.folder.path().join("backup.db");
    let error = fixture.db.client.backup(&backup).expect_err("a file is gone");
    let message = "Backup failed: Storage error: The backup would lack 1 damaged files: assets/images/a (the bytes of the \
                   file are gone)";
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Internal, message));
    assert!(!backup.exists() && !fixture.folder.path().join("backup.db.files").exists(), "nothing is left");
    fixture.db.service.storage().repair().expect("repaired");
    fixture.db.client.backup(&backup).expect("a backup");
}

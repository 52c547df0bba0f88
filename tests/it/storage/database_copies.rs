//! A copy of a database that `restore` did not make, or whose files stayed in the store of the original (DESIGN 3): it has an
//! incarnation of its own, and changes nothing in the object store of the original.

use std::{fs, path::Path, process::Command};

use townsquare::{Config, Error, ErrorKind, blocking::Client, realtime::ChangeRequest};
use townsquare_tests::{
    postgres::{APP_ROLE, Server, server},
    raw_sql::RawConnection,
    s3_server::S3Server,
    temp_dir,
    test_database::Engine,
    wait::wait_until,
};

use super::fixture::{Fixture, Store, bytes, paths, put};

/// Above the limit of inline files.
const SIZE: usize = 100_000;
const PATHS: [&str; 3] = ["a", "b/c", "d"];

fn config(data_dir: &Path) -> Config {
    Config::new().data_dir(data_dir).catalog_api_key("")
}

fn open(config: Config) -> Client {
    Client::open(config).expect("opens")
}

fn fill(client: &Client) {
    for path in PATHS {
        put(&client.as_service(), "assets", path, bytes(SIZE, 1)).expect("uploaded");
    }
}

/// Checks that the client reads every file.
fn assert_complete(client: &Client) {
    let service = client.as_service();
    assert_eq!(paths(&service, "assets"), PATHS);
    for path in PATHS {
        assert!(service.storage().download("assets", path).expect("read") == bytes(SIZE, 1), "{path}");
    }
}

/// Checks that the client reads the store and changes nothing in it.
#[track_caller]
fn assert_reads_only(client: &Client) {
    let service = client.as_service();
    assert_complete(client);
    let refused: [Result<(), Error>; 4] = [
        put(&service, "assets", "new", bytes(SIZE, 2)).map(drop),
        put(&service, "assets", "a", bytes(SIZE, 2)).map(drop),
        service.storage().delete("assets", "a"),
        service.storage().repair().map(drop),
    ];
    for refused in refused {
        let error = refused.expect_err("the store of the original");
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        assert!(error.message().contains("is a copy") && error.message().contains("claim_store=true"), "{error}");
    }
    assert_complete(client);
}

/// Checks that the client changes the store.
#[track_caller]
fn assert_writes(client: &Client) {
    let service = client.as_service();
    assert_complete(client);
    put(&service, "assets", "new", bytes(SIZE, 2)).expect("uploaded");
    service.storage().delete("assets", "new").expect("deleted");
    let report = service.storage().repair().expect("repaired");
    assert_eq!((report.rows_removed, report.mismatched.len()), (0, 0));
    assert_complete(client);
}

/// Checks that the store of the client belongs to another database.
fn assert_lost_its_store(client: &Client) {
    let error = client.as_service().storage().repair().expect_err("the store of another database");
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().expect("cp runs").success());
}

fn value(data_dir: &Path, column: &str) -> String {
    let raw = RawConnection::sqlite(&data_dir.join("townsquare.db"));
    raw.value(&format!("SELECT {column} FROM townsquare_database"))
}

#[test]
fn a_copied_folder_with_database_and_files_is_a_database_of_its_own() {
    let folder = temp_dir();
    let (data, copied, moved) = (folder.path().join("data"), folder.path().join("copy"), folder.path().join("moved"));
    let client = open(config(&data));
    fill(&client);
    let cursor = client.as_service().realtime().cursor().expect("a cursor");
    let url_key = value(&data, "url_key");
    client.close();
    copy(&data, &copied);
    fs::rename(&data, &moved).expect("moved");

    let copy = open(config(&copied));
    for column in ["incarnation", "store_id", "url_key", "cursor_key", "place"] {
        assert_ne!(value(&copied, column), value(&moved, column), "{column}");
    }
    let expired = copy.as_service().realtime().changes(ChangeRequest::table("spaces").since(&*cursor));
    assert_eq!(expired.map(drop).expect_err("a cursor of the original").kind(), ErrorKind::CursorExpired);
    assert_writes(&copy);
    copy.as_service().storage().delete("assets", "a").expect("deleted");
    copy.as_service().storage().repair().expect("repaired");
    copy.close();

    // A folder that is renamed is the same.
    let original = open(config(&moved));
    assert_eq!(value(&moved, "url_key"), url_key);
    let since = ChangeRequest::table("spaces").since(&*cursor);
    drop(original.as_service().realtime().changes(since).expect("its cursor is valid"));
    assert_writes(&original);
    original.close();
}

#[test]
fn a_copied_database_file_reads_the_store_of_the_original_until_it_claims_it() {
    let server = S3Server::start();
    for store in ["folder", "s3"] {
        let folder = temp_dir();
        let files = folder.path().join("files");
        let url = if store == "s3" { server.url("objects") } else { format!("file:{}", files.display()) };
        let (data, copied) = (folder.path().join("data"), folder.path().join("copy"));
        let with_store = |data_dir: &Path| config(data_dir).storage_url(url.clone());
        let original = open(with_store(&data));
        fill(&original);
        original.close();
        copy(&data, &copied);
        let original = open(with_store(&data));
        for _ in 0..2 {
            let copy = open(with_store(&copied));
            assert_reads_only(&copy);
            copy.close();
        }
        assert_writes(&original);
        // The operator says that the copy is the one that stays.
        let copy = open(with_store(&copied).claim_store(true));
        assert_writes(&copy);
        copy.close();
        let copy = open(with_store(&copied));
        assert_writes(&copy);
        assert_lost_its_store(&original);
        original.close();
        let refused = Client::open(with_store(&data)).expect_err("the store of another database");
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused:?}");
        assert_complete(&copy);
        copy.close();
    }
}

/// The place of a folder tells that it was copied, but also that the original has moved it to another disk.
#[test]
fn a_copied_database_file_does_not_take_the_store_that_the_original_has_moved() {
    let folder = temp_dir();
    let (data, copied, files) =
        (folder.path().join("data"), folder.path().join("copy"), folder.path().join("elsewhere/files"));
    fs::create_dir(folder.path().join("elsewhere")).expect("created");
    let with_store = |data_dir: &Path| config(data_dir).storage_url(format!("file:{}", files.display()));
    let original = open(with_store(&data));
    fill(&original);
    original.close();
    copy(&data, &copied);
    let moved = folder.path().join("moved");
    copy(&files, &moved);
    fs::remove_dir_all(&files).expect("removed");
    fs::rename(&moved, &files).expect("moved");

    let of_copy = open(with_store(&copied));
    assert_reads_only(&of_copy);
    of_copy.close();
    let original = open(with_store(&data));
    assert_writes(&original);
    original.close();
}

#[test]
fn a_copy_claims_no_store_without_its_files() {
    let folder = temp_dir();
    let (data, copied, empty) = (folder.path().join("data"), folder.path().join("copy"), folder.path().join("empty"));
    let client = open(config(&data));
    fill(&client);
    client.close();
    fs::create_dir_all(&copied).expect("created");
    copy(&data.join("townsquare.db"), &copied);
    fs::create_dir(&empty).expect("created");
    let claimed = config(&copied).storage_url(format!("file:{}", empty.display())).claim_store(true);
    let error = Client::open(claimed).expect_err("an empty folder");
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(fs::read_dir(&empty).expect("a folder").next().is_none(), "nothing is written into it");
}

#[test]
fn a_restored_database_leaves_the_remote_files_of_the_original_alone() {
    let fixture = Fixture::on(Engine::Sqlite, Store::S3(0)).expect("SQLite is always there");
    fill(&fixture.db.client);
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    fixture.db.client.backup(&backup).expect("a backup");
    Client::restore(&backup, &data_dir).expect("restored");
    let restored = open(config(&data_dir).storage_url(fixture.s3.as_ref().expect("a server").url("objects")));
    assert_reads_only(&restored);
    assert_writes(&fixture.db.client);
    restored.close();
}

#[test]
fn a_restored_database_does_not_take_the_folder_of_the_original() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there");
    fill(&fixture.db.client);
    let (backup, data_dir) = (fixture.folder.path().join("backup.db"), fixture.folder.path().join("restored"));
    fixture.db.client.backup(&backup).expect("a backup");
    Client::restore(&backup, &data_dir).expect("restored");
    let theirs = config(&data_dir).storage_url(format!("file:{}", fixture.files_folder().display()));
    let error = Client::open(theirs).expect_err("the store of the original");
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    let restored = open(config(&data_dir));
    assert_writes(&restored);
    restored.close();
    assert_writes(&fixture.db.client);
}

#[test]
fn a_backup_that_is_opened_without_restore_is_a_copy() {
    let fixture = Fixture::on(Engine::Sqlite, Store::S3(0)).expect("SQLite is always there");
    fill(&fixture.db.client);
    let backup = fixture.folder.path().join("backup.db");
    fixture.db.client.backup(&backup).expect("a backup");
    let raw = RawConnection::sqlite(&backup);
    assert_eq!(raw.value("SELECT url_key FROM townsquare_database"), "", "the key of signed URLs is not in it");
    drop(raw);
    let copy = open(fixture.config().database_url(format!("sqlite:{}", backup.display())));
    assert_reads_only(&copy);
    copy.close();
    assert_writes(&fixture.db.client);
}

#[test]
fn a_postgres_database_made_from_another_one_is_a_copy() {
    let Some(server) = server() else { return };
    let database = server.new_database();
    let copied = format!("{database}_copy");
    let folder = temp_dir();
    let url = format!("file:{}", folder.path().join("files").display());
    let with_store = |name: &str| {
        Config::new().database_url(server.url(APP_ROLE, name)).storage_url(url.clone()).catalog_api_key("")
    };
    let original = open(with_store(&database));
    fill(&original);
    original.close();
    let administrator = server.administrator("postgres");
    wait_until("nobody is connected", || {
        administrator.value(&format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'")) == "0"
    });
    administrator.run(&format!("CREATE DATABASE {copied} TEMPLATE {database} OWNER {APP_ROLE}"));
    let (original, copy) = (open(with_store(&database)), open(with_store(&copied)));
    assert_reads_only(&copy);
    assert_writes(&original);
    for column in ["incarnation", "cursor_key"] {
        let value = |name| server.administrator(name).value(&format!("SELECT {column} FROM townsquare.database"));
        assert_ne!(value(&database), value(&copied), "{column}");
    }
    original.close();
    copy.close();
    let copy = open(with_store(&copied).claim_store(true));
    assert_writes(&copy);
    copy.close();
    server.drop_database(&copied);
    server.drop_database(&database);
}

#[test]
fn a_standby_that_takes_over_keeps_its_object_store() {
    let Some(primary) = Server::durable() else { return };
    let database = primary.new_database();
    let folder = temp_dir();
    let url = format!("file:{}", folder.path().join("files").display());
    let with_store = |server: &Server| {
        Config::new().database_url(server.url(APP_ROLE, &database)).storage_url(url.clone()).catalog_api_key("")
    };
    let original = open(with_store(&primary));
    fill(&original);
    original.close();
    let standby = primary.standby();
    let id = |server: &Server| server.administrator(&database).value("SELECT store_id FROM townsquare.database");
    wait_until("the standby has followed", || id(&standby) == id(&primary));
    primary.stop();
    standby.promote();
    let promoted = open(with_store(&standby));
    assert_writes(&promoted);
    promoted.close();
}

//! A database knows its object store: a wrong, empty or unmounted one costs no file.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    thread,
};

use townsquare::{Config, Error, ErrorKind, blocking::Client, storage::UploadOptions};
use townsquare_tests::{fixture::assert_kind, s3_server::S3Server, temp_dir, test_database::Engine};

use super::{
    files::own,
    fixture::{Fixture, Store, bytes, paths, put},
};

/// A file in the work folder of the store.
const ID: &str = ".townsquare/store";

/// A database with three large files in a folder.
fn filled(engine: Engine) -> Option<Fixture> {
    let fixture = Fixture::on(engine, Store::Folder(0))?;
    for path in ["a", "b/c", "d"] {
        fixture.put("assets", path, bytes(1_000, 1));
    }
    Some(fixture)
}

fn each_engine(test: impl Fn(&Fixture)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(fixture) = filled(engine) {
            test(&fixture);
        }
    }
}

fn refused(config: Config) -> Error {
    let error = Client::open(config).expect_err("another store");
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(error.to_string().starts_with("Open failed: Option storage_url: the object store"), "{error}");
    error
}

/// Checks that the database has all its files, with their bytes.
fn assert_complete(fixture: &Fixture) {
    assert_eq!(paths(&fixture.db.service, "assets"), ["a", "b/c", "d"]);
    for path in ["a", "b/c", "d"] {
        assert!(fixture.get("assets", path) == bytes(1_000, 1), "{path}");
    }
}

#[test]
fn a_database_does_not_open_with_another_store() {
    each_engine(|fixture| {
        let id = fs::read_to_string(fixture.files_folder().join(ID)).expect("the store has an id");
        let empty = fixture.folder.path().join("empty");
        fs::create_dir(&empty).expect("created");
        let other = filled(Engine::Sqlite).expect("SQLite is always there");
        let s3 = S3Server::start();
        for url in [
            format!("file:{}", empty.display()),
            format!("file:{}", fixture.folder.path().join("missing").display()),
            format!("file:{}", other.files_folder().display()),
            s3.url("objects"),
            "memory:".to_owned(),
        ] {
            let error = refused(fixture.config().storage_url(url));
            assert!(error.to_string().contains(id.trim()), "{error}");
        }
        assert!(fs::read_dir(&empty).expect("a folder").next().is_none(), "nothing is written into it");
        assert_complete(fixture);
        assert_complete(&other);
    });
}

/// The check of the store comes before the migrations.
#[test]
fn an_older_database_is_not_migrated_with_another_store_or_another_access_of_a_bucket() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = Fixture::on(engine, Store::Folder(0)) else { continue };
        Client::open(fixture.config().buckets("photos=public")).expect("declared").close();
        fixture.put("assets", "a", bytes(1_000, 1));
        let migrations = own(&fixture, "townsquare.migrations");
        fixture
            .db
            .raw
            .run(&format!("DELETE FROM {migrations} WHERE version = (SELECT max(version) FROM {migrations})"));
        let before = fixture.db.raw.rows(&format!("SELECT * FROM {migrations} ORDER BY version"));
        let empty = fixture.folder.path().join("empty");
        refused(fixture.config().storage_url(format!("file:{}", empty.display())));
        let error = Client::open(fixture.config().buckets("photos=private")).expect_err("another access");
        assert!(error.message().contains("the bucket photos is private, but it is public"), "{error}");
        assert_eq!(fixture.db.raw.rows(&format!("SELECT * FROM {migrations} ORDER BY version")), before);
    }
}

#[test]
fn repair_deletes_nothing_while_the_store_is_unmounted_or_another_one() {
    each_engine(|fixture| {
        let (folder, away) = (fixture.files_folder(), fixture.folder.path().join("away"));
        let repair = || fixture.db.service.storage().repair();
        let fails = |what: &str| {
            let error = repair().expect_err(what);
            assert_eq!(error.kind(), ErrorKind::Config, "{what}: {error:?}");
            assert!(error.to_string().starts_with("Repair failed: Option storage_url: the object store"), "{error}");
        };
        fs::rename(&folder, &away).expect("unmounted");
        fails("no folder");
        fs::create_dir(&folder).expect("created");
        fails("an empty folder");
        fs::create_dir_all(folder.join("assets")).expect("created");
        fs::write(folder.join("assets/theirs"), "of another database").expect("written");
        fails("another folder");
        assert!(folder.join("assets/theirs").exists());
        let message = "The folder is not the one with the files of this database";
        let upload = put(&fixture.db.service, "assets", "new", bytes(1_000, 2)).expect_err("another folder");
        assert!(upload.kind() == ErrorKind::Config || upload.to_string().contains(message), "{upload:?}");
        let download = fixture.db.service.storage().download("assets", "a").expect_err("another folder");
        assert_eq!((download.status(), download.message()), (503, format!("Storage error: {message}").as_str()));
        let left: Vec<_> = fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left, ["assets"], "nothing is written into it");
        fs::remove_dir_all(&folder).expect("removed");
        fs::rename(&away, &folder).expect("mounted");
        let report = repair().expect("repaired");
        assert_eq!((report.rows_removed, report.mismatched.len()), (0, 0));
        assert_complete(fixture);
    });
}

#[test]
fn a_folder_that_moves_takes_its_id_along() {
    let fixture = filled(Engine::Sqlite).expect("SQLite is always there");
    let moved = fixture.folder.path().join("moved");
    fixture.db.client.close();
    fs::rename(fixture.files_folder(), &moved).expect("moved");
    refused(fixture.config());
    let config = || fixture.config().storage_url(format!("file:{}", moved.display()));
    let client = Client::open(config()).expect("the same store").as_service();
    assert!(client.storage().download("assets", "b/c").expect("read") == bytes(1_000, 1));
    client.close();
    // An operator who copied the files alone gives the id by hand, as the message says.
    let id = fs::read_to_string(moved.join(ID)).expect("an id");
    fs::remove_dir_all(moved.join(".townsquare")).expect("removed");
    let error = refused(config());
    assert!(error.to_string().contains(&format!("write {} into .townsquare/store", id.trim())), "{error}");
    fs::create_dir(moved.join(".townsquare")).expect("created");
    fs::write(moved.join(ID), id.trim()).expect("written");
    Client::open(config()).expect("the same store").close();
}

#[test]
fn a_database_from_before_the_ids_takes_the_store_with_its_files() {
    each_engine(|fixture| {
        let forget = || {
            fixture.db.raw.run(&own(fixture, "UPDATE townsquare.database SET store_id = ''"));
            let _ = fs::remove_file(fixture.files_folder().join(ID));
        };
        forget();
        let empty = fixture.folder.path().join("empty");
        let error = refused(fixture.config().storage_url(format!("file:{}", empty.display())));
        assert!(error.to_string().contains("has none of the files of this database"), "{error}");
        forget();
        Client::open(fixture.config()).expect("opened").close();
        let id = fs::read_to_string(fixture.files_folder().join(ID)).expect("an id");
        assert_eq!(fixture.db.raw.value(&own(fixture, "SELECT store_id FROM townsquare.database")), id.trim());
        fixture.db.service.storage().repair().expect("repaired");
        assert_complete(fixture);
    });
}

/// Two hosts with one database, each with a folder of its own by mistake; or a folder that was not mounted for a while.
#[test]
fn a_second_place_does_not_get_the_id_of_the_first() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = Fixture::on(engine, Store::Folder(0)) else { continue };
        let first = &fixture.db.service;
        fixture.put("assets", "first", bytes(1_000, 1));
        first.storage().delete("assets", "first").expect("deleted");
        let other = format!("file:{}", fixture.folder.path().join("other").display());
        let second = Client::open(fixture.config().storage_url(other)).expect("no large file is missing");
        let upload = |client: &Client, path: &str| {
            client.as_service().storage().upload("assets", path, bytes(1_000, 2), UploadOptions::new())
        };
        upload(&second, "second").expect("its folder is the store now");
        let refused = [
            upload(&fixture.db.client, "third").map(drop),
            first.storage().delete("assets", "second"),
            first.storage().repair().map(drop),
        ];
        for refused in refused {
            let error = assert_kind(ErrorKind::Config, refused);
            assert!(error.message().contains("another"), "{error}");
        }
        assert!(second.as_service().storage().download("assets", "second").expect("it is there") == bytes(1_000, 2));
        assert_eq!(second.as_service().storage().repair().expect("its own store").rows_removed, 0);
        second.close();
    }
}

#[test]
fn a_new_database_does_not_take_the_files_of_another_one() {
    let other = filled(Engine::Sqlite).expect("SQLite is always there");
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder(0)).expect("SQLite is always there");
    let theirs = format!("file:{}", other.files_folder().display());
    let config = fixture.config().storage_url(theirs).inline_file_limit(10);
    let client = Client::open(config).expect("small files need no store").as_service();
    put(&client, "assets", "small", "x").expect("uploaded");
    let repaired = client.storage().repair().map(drop);
    for refused in [repaired, put(&client, "assets", "large", bytes(1_000, 2)).map(drop)] {
        let error = refused.expect_err("the store of another database");
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        assert!(error.message().contains("assets/a: it belongs to another database"), "{error}");
    }
    assert_eq!(paths(&client, "assets"), ["small"]);
    client.close();
    assert_complete(&other);
    assert_eq!(other.objects(), other.expected_objects(&["assets/a", "assets/b/c", "assets/d"], 1_000));
}

#[test]
fn a_remote_store_is_known_by_its_id_too() {
    let fixture = Fixture::on(Engine::Sqlite, Store::S3(0)).expect("SQLite is always there");
    fixture.put("assets", "a", bytes(1_000, 1));
    let server = fixture.s3.as_ref().expect("an S3 store has a server");
    Client::open(fixture.config()).expect("the same store").close();
    refused(fixture.config().storage_url(server.url("another/prefix")));
    fs::remove_file(server.folder().join("objects").join(ID)).expect("removed");
    let error = fixture.db.service.storage().repair().expect_err("another store");
    assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
    assert!(fixture.get("assets", "a") == bytes(1_000, 1));
}

/// A store may carry out a write after its answer was lost, and after another id was recorded and written.
#[test]
fn a_remote_store_that_gets_an_id_late_is_still_the_one_of_the_database() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(fixture) = Fixture::on(engine, Store::S3(0)) else { continue };
        let server = fixture.s3.as_ref().expect("an S3 store has a server");
        let id = server.folder().join("objects").join(ID);
        let upload = |path: &str| {
            let client = Client::open(fixture.config()).expect("no file is missing");
            let service = client.as_service();
            service.storage().upload("assets", path, bytes(1_000, 1), UploadOptions::new()).expect("uploaded");
            for stored in paths(&service, "assets") {
                assert!(service.storage().download("assets", &stored).expect("it is there") == bytes(1_000, 1));
            }
            let text = fs::read_to_string(&id).expect("the store has an id");
            client.close();
            text
        };
        let first = upload("a");
        fixture.db.service.storage().delete("assets", "a").expect("deleted");
        fs::remove_file(&id).expect("removed");
        let second = upload("b");
        assert_ne!(first, second, "nobody knows whether it is the same store");
        fixture.db.service.storage().delete("assets", "b").expect("deleted");
        fs::write(&id, &first).expect("written");
        assert_eq!(upload("c"), first);
        // Without conditional writes the second id can come late, too.
        fs::write(&id, &second).expect("written");
        assert_eq!(upload("d"), second);
        // An id of another database is none of them.
        fs::write(&id, first.replace(['0', '1', '2', '3'], "4")).expect("written");
        refused(fixture.config());
    }
}

#[test]
fn a_store_in_memory_is_empty_at_each_open_and_repair_removes_its_rows() {
    let fixture = Fixture::on(Engine::Sqlite, Store::Memory(10)).expect("SQLite is always there");
    fixture.put("assets", "large", bytes(1_000, 1));
    fixture.put("assets", "small", "x");
    fixture.db.client.close();
    let client = Client::open(fixture.config()).expect("opened").as_service();
    assert_eq!(client.storage().repair().expect("repaired").rows_removed, 1);
    assert_eq!(paths(&client, "assets"), ["small"]);
    client.close();
    let client = Client::open(fixture.config().storage_url(format!("file:{}", fixture.files_folder().display())));
    let client = client.expect("a folder takes over").as_service();
    put(&client, "assets", "large", bytes(1_000, 2)).expect("uploaded");
    client.close();
}

#[test]
fn a_missing_bucket_and_wrong_credentials_are_reported_by_open() {
    let server = S3Server::start();
    let data = temp_dir();
    let url = server.url("objects");
    let open = |url: String| {
        Client::open(Config::new().data_dir(data.path()).storage_url(url).catalog_api_key("")).map(|client| {
            client.close();
        })
    };
    open(url.clone()).expect("a bucket, and its credentials");
    for (url, reason) in [
        (url.replace("s3://town/", "s3://nowhere/"), "the bucket does not exist"),
        (url.replace("secret_access_key=", "secret_access_key=x"), "denies the access"),
        (url.replace("access_key_id=", "access_key_id=x"), "denies the access"),
    ] {
        let error = open(url).expect_err(reason);
        assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
        assert!(
            error.to_string().starts_with("Open failed: Option storage_url: ") && error.message().contains(reason),
            "{error}"
        );
        assert!(!format!("{error:?}").contains(townsquare_tests::s3_server::SECRET_KEY));
    }
    let left: Vec<_> =
        fs::read_dir(server.folder().join("objects/.townsquare")).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_error_of_the_folder_is_reported_as_itself() {
    let fixture = filled(Engine::Sqlite).expect("SQLite is always there");
    fixture.db.client.close();
    let (folder, away) = (fixture.files_folder(), fixture.folder.path().join("away"));
    fs::rename(&folder, &away).expect("moved");
    // The first two names of the path go round in a circle, which no process can open.
    std::os::unix::fs::symlink(&folder, &folder).expect("a link to itself");
    let error = Client::open(fixture.config()).expect_err("the folder cannot be opened");
    assert!(!error.message().contains("is not the one") && !error.message().contains("has no id"), "{error}");
    assert!(
        error.to_string().starts_with("Open failed: Storage error: ") && error.message().contains("os error 40"),
        "{error}"
    );
    fs::remove_file(&folder).expect("removed");
    fs::rename(&away, &folder).expect("moved back");
    let client = Client::open(fixture.config()).expect("opened");
    assert!(client.as_service().storage().download("assets", "a").expect("read") == bytes(1_000, 1));
    fs::rename(&folder, &away).expect("moved");
    let repair = client.as_service().storage().repair().expect_err("no folder");
    assert!(repair.message().contains("does not exist"), "{repair}");
    let error = client.as_service().storage().download("assets", "b/c").expect_err("no folder");
    assert_eq!((error.status(), error.kind()), (503, ErrorKind::Unavailable), "{error:?}");
    assert!(error.message().contains("is missing"), "{error}");
    client.close();
}

/// Answers each request on a connection with an object that it says has 99,999,999,999 bytes, and sends 5,000 of them.
fn answer_with_a_false_length(mut connection: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        connection.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let head = "HTTP/1.1 200 OK\r\nETag: \"x\"\r\nLast-Modified: Wed, 25 Nov 2026 00:00:00 GMT\r\n\
                Content-Length: 99999999999\r\n\r\n";
    connection.write_all(head.as_bytes())?;
    connection.write_all(&[b'x'; 5_000])
}

#[test]
fn a_false_length_of_the_stores_id_costs_no_memory() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of the loopback");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            thread::spawn(move || answer_with_a_false_length(connection));
        }
    });
    let folder = temp_dir();
    let url = format!(
        "s3://town/files?endpoint=http://{address}&region=us-east-1&access_key_id=tester&secret_access_key=secret"
    );
    let config = Config::new().data_dir(folder.path()).storage_url(url).catalog_api_key("");
    let client = Client::open(config).expect("opens");
    // An allocation of the announced size ends the process.
    let uploaded = client.as_service().storage().upload("assets", "a", bytes(100_000, 1), UploadOptions::new());
    assert_kind(ErrorKind::Unavailable, uploaded);
}

#[test]
fn a_store_does_not_lie_in_another_one() {
    let outer = filled(Engine::Sqlite).expect("SQLite is always there");
    let (other, third) = (temp_dir(), temp_dir());
    let s3 = S3Server::start();
    let in_s3 = Client::open(Config::new().data_dir(third.path()).storage_url(s3.url("town")).inline_file_limit(0));
    let in_s3 = in_s3.expect("opens");
    put(&in_s3.as_service(), "assets", "a", bytes(1_000, 1)).expect("uploaded");
    let link = third.path().join("link");
    std::os::unix::fs::symlink(outer.files_folder().join("assets"), &link).expect("linked");
    let [inner, behind_link] = [outer.files_folder().join("assets/inner"), link.join("inner")];
    let urls = [inner, behind_link].map(|inner| format!("file:{}", inner.display()));
    for inner in urls.into_iter().chain([s3.url("town/assets")]) {
        let config = Config::new().data_dir(other.path()).storage_url(inner).inline_file_limit(0).catalog_api_key("");
        let client = Client::open(config).expect("it has no large file yet");
        let refused = put(&client.as_service(), "assets", "a", bytes(1_000, 1)).expect_err("it lies in another store");
        assert_eq!(refused.kind(), ErrorKind::Config, "{refused:?}");
        assert!(refused.to_string().contains("lies in another one, at /"), "{refused}");
        client.close();
    }
    assert_complete(&outer);
    outer.db.service.storage().repair().expect("repaired");
    assert_complete(&outer);
    in_s3.close();
}

/// Its repair would take the files of the database for objects without rows.
#[test]
fn a_database_does_not_lie_in_an_object_store() {
    let outer = filled(Engine::Sqlite).expect("SQLite is always there");
    let folder = temp_dir();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(outer.files_folder().join("assets"), &link).expect("linked");
    let backup = folder.path().join("backup.db");
    outer.db.client.backup(&backup).expect("a backup");
    let source = Client::open(Config::new().data_dir(folder.path().join("source")).catalog_api_key("")).expect("opens");
    put(&source.as_service(), "assets", "a", bytes(100_000, 1)).expect("uploaded");
    let before = entries(&outer.files_folder().join("assets"));
    for inner in [outer.files_folder().join("assets/inner"), link.join("inner"), outer.files_folder().join("a/b/c")] {
        let target = || Config::new().data_dir(&inner).catalog_api_key("");
        let refused = [
            Client::open(target()).map(drop),
            Client::restore(&backup, &inner),
            source.check_move(target()).map(drop),
            source
                .move_to(target(), townsquare::MoveOptions::new(), |_, _| std::ops::ControlFlow::Continue(()))
                .map(drop),
        ];
        for refused in refused {
            let error = refused.expect_err("the place is another database's");
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.message().contains("lies in an object store, at /"), "{error}");
        }
        assert!(!inner.exists(), "nothing was made");
    }
    // A store alone.
    let inner = format!("file:{}", outer.files_folder().join("assets/inner").display());
    let target = Config::new().data_dir(folder.path().join("target")).storage_url(inner).catalog_api_key("");
    let refused = source.check_move(target.clone()).expect_err("the place is another database's");
    assert!(refused.message().contains("the object store lies in another one"), "{refused}");
    let go_on = |_, _| std::ops::ControlFlow::Continue(());
    source.move_to(target, townsquare::MoveOptions::new(), go_on).expect_err("refused in the same way");
    assert!(!folder.path().join("target").exists(), "nothing was made");
    assert_eq!(entries(&outer.files_folder().join("assets")), before);
    source.close();
    assert_complete(&outer);
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn close_aborts_the_uploads_in_parts() {
    let s3 = S3Server::start();
    let folder = temp_dir();
    let client = Client::open(Config::new().data_dir(folder.path()).storage_url(s3.url("town")).catalog_api_key(""));
    let client = client.expect("opens");
    let open_uploads = || {
        let root = s3.folder();
        let names = entries(&root).into_iter().chain(entries(root.parent().expect("a folder")));
        names.filter(|name| name.starts_with(".upload")).count()
    };
    let mut writer = client.as_service().storage().writer("assets", "large", UploadOptions::new()).expect("a writer");
    writer.write_all(&bytes(20 << 20, 1)).expect("parts are sent");
    assert_ne!(open_uploads(), 0);
    client.close();
    assert_eq!(open_uploads(), 0);
    drop(writer);
}

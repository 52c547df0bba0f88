//! Opening a client: what it creates, and the errors that name an invalid option or file (DESIGN 3).

use std::{fs, path::Path, process::Stdio, sync::Barrier, thread};

use townsquare::{Config, ErrorKind, blocking::Client, discovery::Timeframe};
use townsquare_tests::{
    TempDir,
    catalog::Catalog,
    fixture::{Fixture, assert_kind},
    subprocess::{child, join_child, name_of, role, run_child},
    temp_dir,
};

fn open_error(config: Config) -> String {
    let error = assert_kind(ErrorKind::Config, Client::open(config));
    assert!(!error.is_retryable());
    error.to_string()
}

fn database(folder: &TempDir) -> std::path::PathBuf {
    folder.path().join("townsquare.db")
}

#[test]
fn missing_folders_and_the_database_are_created() {
    let folder = temp_dir();
    let deep = folder.path().join("a/b/c");
    let client = Client::open(Config::new().data_dir(&deep)).expect("opens");
    client.close();
    assert!(deep.join("townsquare.db").is_file());
    let again = Client::open(Config::new().data_dir(&deep)).expect("opens again");
    again.close();
}

#[test]
fn a_database_url_names_the_file() {
    let folder = temp_dir();
    let file = folder.path().join("own name.db");
    for url in [format!("sqlite:{}", file.display()), format!("sqlite://{}", file.display())] {
        let client = Client::open(Config::new().database_url(url)).expect("opens");
        client.close();
    }
    assert_eq!(fs::read(&file).expect("a file")[..16], *b"SQLite format 3\0");
    let client = Client::open(Config::from_url(&format!("townsquare:{}", folder.path().display())).expect("a URL"));
    client.expect("opens").close();
    assert!(database(&folder).is_file());
}

#[test]
fn a_file_in_place_of_the_folder_is_refused_by_name() {
    let folder = temp_dir();
    let taken = folder.path().join("taken");
    fs::write(&taken, "not a folder").expect("a file");
    for bad in [taken.clone(), taken.join("below")] {
        let message = open_error(Config::new().data_dir(&bad));
        assert!(message.contains("taken"), "{message}");
        assert!(message.contains("data_dir"), "{message}");
    }
    assert_eq!(fs::read(&taken).expect("still there"), b"not a folder");
}

#[test]
fn unknown_options_and_bad_values_are_refused_by_name() {
    let environment_like = [("colour", "red"), ("catalog_api_keys", "x"), ("", "x"), ("DATA_DIR", "x")];
    for (name, value) in environment_like {
        let error = assert_kind(ErrorKind::Config, Config::new().set(name, value));
        assert!(error.message().contains(name), "{error}");
    }
    for (name, value) in
        [("refresh_interval", "soon"), ("durability", "much"), ("catalog_page_size", "1.5"), ("catalog_tries", "")]
    {
        let error = assert_kind(ErrorKind::Config, Config::new().set(name, value));
        assert!(error.message().contains(name), "{error}");
    }
    let folder = temp_dir();
    let config = || Config::new().data_dir(folder.path());
    for (config, named) in [
        (config().catalog_url("gopher://x"), "catalog_url"),
        (config().catalog_url("http://"), "catalog_url"),
        (config().catalog_url("nonsense"), "catalog_url"),
        (config().database_url("mysql://h/d"), "database_url"),
        (config().database_url("nonsense"), "database_url"),
        (config().catalog_page_size(101), "catalog_page_size"),
        (config().catalog_tries(0), "catalog_tries"),
        (config().catalog_key_header("a:b"), "catalog_key_header"),
    ] {
        let message = open_error(config);
        assert!(message.contains(named), "{message}");
    }
    for url in ["", "nonsense", "ftp://x", "townsquare:x?colour=red", "sqlite:x?refresh_interval=soon"] {
        assert_kind(ErrorKind::Config, Config::from_url(url));
    }
}

#[test]
fn secrets_are_in_no_error_and_no_debug_output() {
    let secret = "MARKED-secret";
    let config = Config::new().catalog_api_key(secret).catalog_url(format!("http://u:{secret}@h.example"));
    assert!(!format!("{config:?}").contains(secret));
    for config in [
        Config::new().catalog_api_key(format!("{secret}\n")),
        Config::new().database_url(format!("mysql://u:{secret}@h/d")),
        Config::new().catalog_url(format!("http://u:{secret}@")),
    ] {
        let error = assert_kind(ErrorKind::Config, Client::open(config));
        assert!(!format!("{error} {error:?}").contains(secret), "{error}");
    }
}

#[test]
fn environment_variables_set_options_by_name() {
    let test = environment_variables_set_options_by_name;
    if role().as_deref() == Some("good") {
        let config = Config::from_env().expect("good variables");
        assert_eq!(config, Config::new().catalog_page_size(7).catalog_key_header("x-other"));
        return;
    }
    if role().as_deref() == Some("bad") {
        let error = assert_kind(ErrorKind::Config, Config::from_env());
        assert!(error.message().contains("TOWNSQUARE_CATALOG_PAGE_SIZE"), "{error}");
        return;
    }
    if role().as_deref() == Some("folder") {
        Client::open(Config::new()).expect("opens in TOWNSQUARE_DATA_DIR").close();
        return;
    }
    let name = name_of(&test);
    let folder = temp_dir();
    let path = folder.path().join("by variable");
    let runs: [(&str, &[(&str, &str)]); 3] = [
        ("good", &[("TOWNSQUARE_CATALOG_PAGE_SIZE", "7"), ("TOWNSQUARE_CATALOG_KEY_HEADER", "x-other")]),
        ("bad", &[("TOWNSQUARE_CATALOG_PAGE_SIZE", "many")]),
        ("folder", &[("TOWNSQUARE_DATA_DIR", path.to_str().expect("UTF-8"))]),
    ];
    for (role, variables) in runs {
        run_child(&mut child(name, role, variables));
    }
    assert!(path.join("townsquare.db").is_file());
}

#[test]
fn a_file_that_is_no_database_is_refused_unchanged() {
    let contents: [(&str, Vec<u8>); 4] = [
        ("text", b"Dear diary, this is no database. ".repeat(100)),
        ("short text", b"hello".to_vec()),
        ("half a header", b"SQLite format 3\0".to_vec()),
        ("a damaged header", {
            let mut bytes = b"SQLite format 3\0".to_vec();
            bytes.resize(8192, 0xAB);
            bytes
        }),
    ];
    for (what, bytes) in contents {
        let folder = temp_dir();
        fs::write(database(&folder), &bytes).expect("a file");
        let message = open_error(Config::new().data_dir(folder.path()));
        assert!(message.contains("townsquare.db"), "{what}: {message}");
        assert_eq!(fs::read(database(&folder)).expect("still there"), bytes, "{what}");
        assert_eq!(file_names(folder.path()), ["townsquare.db"], "{what}: nothing is left beside it");
    }
}

#[test]
fn a_folder_in_place_of_the_database_is_refused() {
    let folder = temp_dir();
    fs::create_dir(database(&folder)).expect("a folder");
    assert!(open_error(Config::new().data_dir(folder.path())).contains("townsquare.db"));
}

#[test]
fn a_database_of_a_newer_version_is_refused_unchanged() {
    let folder = temp_dir();
    Client::open(Config::new().data_dir(folder.path())).expect("opens").close();
    let connection = rusqlite::Connection::open(database(&folder)).expect("SQLite");
    let columns: Vec<(String, String)> = {
        let mut statement =
            connection.prepare("SELECT name, type FROM pragma_table_info('townsquare_migrations')").expect("SQL");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.collect::<Result<_, _>>().expect("rows")
    };
    assert!(!columns.is_empty(), "the migrations table of DESIGN 3");
    // A migration that this library does not know.
    let number = &columns[0].0;
    let names: Vec<_> = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let values: Vec<_> = columns
        .iter()
        .map(|(name, _)| {
            if name == number || name == "minimum_version" {
                "9999".to_owned()
            } else {
                format!("(SELECT \"{name}\" FROM townsquare_migrations LIMIT 1)")
            }
        })
        .collect();
    let insert = format!("INSERT INTO townsquare_migrations ({}) VALUES ({})", names.join(", "), values.join(", "));
    connection.execute(&insert, []).expect("a newer migration");
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("a checkpoint");
    drop(connection);
    let before = fs::read(database(&folder)).expect("a file");
    let message = open_error(Config::new().data_dir(folder.path()));
    assert!(message.contains("newer"), "{message}");
    assert_eq!(fs::read(database(&folder)).expect("a file"), before);
}

#[test]
fn a_database_of_another_program_is_refused_unchanged() {
    let folder = temp_dir();
    let connection = rusqlite::Connection::open(database(&folder)).expect("SQLite");
    connection.execute_batch("CREATE TABLE mine (x); INSERT INTO mine VALUES (7);").expect("SQL");
    drop(connection);
    let before = fs::read(database(&folder)).expect("a file");
    assert!(open_error(Config::new().data_dir(folder.path())).contains("townsquare.db"));
    assert_eq!(fs::read(database(&folder)).expect("a file"), before);
}

#[test]
fn the_database_file_is_readable_sqlite() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = Client::open(fixture.config()).expect("opens");
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
    client.close();
    let connection = rusqlite::Connection::open(fixture.folder.path().join("data/townsquare.db")).expect("SQLite");
    let check: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a row");
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a row");
    assert_eq!((check.as_str(), mode.as_str()), ("ok", "wal"));
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        .expect("SQL");
    let tables: Vec<String> =
        statement.query_map([], |row| row.get(0)).expect("rows").collect::<Result<_, _>>().expect("rows");
    assert!(tables.iter().any(|name| name.starts_with("townsquare_")), "{tables:?}");
}

#[test]
fn eight_threads_open_a_new_database_at_once() {
    let folder = temp_dir();
    let start = Barrier::new(8);
    thread::scope(|scope| {
        let open = || {
            start.wait();
            Client::open(Config::new().data_dir(folder.path().join("new")))
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        for thread in threads {
            thread.join().expect("no panic").expect("opens").close();
        }
    });
}

#[test]
fn eight_processes_open_a_new_database_at_once() {
    let test = eight_processes_open_a_new_database_at_once;
    if role().is_some() {
        Client::open(Config::new()).expect("opens").close();
        return;
    }
    let folder = temp_dir();
    let (name, path) = (name_of(&test), folder.path().join("new"));
    let variables = [("TOWNSQUARE_DATA_DIR", path.to_str().expect("UTF-8"))];
    let spawn = |_| child(name, "opener", &variables).stdin(Stdio::null()).spawn().expect("starts");
    let children: Vec<_> = (0..8).map(spawn).collect();
    for child in children {
        join_child(child);
    }
}

fn file_names(folder: &Path) -> Vec<String> {
    let file_names = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        file_names.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

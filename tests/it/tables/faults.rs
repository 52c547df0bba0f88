//! Faults below the database: a full disk, a read-only file, a lost server, a foreign lock.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use townsquare::{Config, ErrorKind, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    on_engine,
    proxy::Proxy,
    subprocess::{in_shell, name_of, role, run_child, run_on_small_disk, without_root},
    temp_dir,
    test_database::{Engine, TestDatabase, assert_fails, child_on, inherited},
};

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_under_limits() {
    match role().as_deref() {
        Some("fill") => write_until_full(),
        Some("read-only") => {
            let error = Client::open(inherited()).expect_err("it cannot be written to");
            assert_eq!(error.kind(), ErrorKind::Config, "{error:?}");
            assert!(error.to_string().starts_with("Open failed: ") && error.message().contains("closed.db"), "{error}");
            assert!(matches!(error.code(), Some("25006" | "58030")), "{error:?}");
        }
        _ => {}
    }
}

fn child(database: &Path, role: &str) -> Command {
    child_on(&format!("sqlite:{}", database.display()), name_of(&child_process_under_limits), role, &[])
}

/// Writes until a write fails, and checks that failure (DESIGN 9).
fn write_until_full() {
    let client = Client::open(inherited()).expect("opens").as_service();
    let small = client.spaces().create_space(NewSpace::named("small")).expect("fits");
    let mut written = 1;
    let error = loop {
        let large = NewSpace::named("large").description("x".repeat(100_000));
        match client.spaces().create_space(large) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 10_000, "the limit is 4 MB");
    };
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    assert!(error.is_retryable());
    // A file size limit is an I/O error, a full disk has its own code.
    assert!(matches!(error.code(), Some("53100" | "58030")), "{error:?}");
    assert!(error.to_string().starts_with("Create space failed: Database error: "), "{error}");
    assert_eq!(client.spaces().get_space(small.id).expect("reads go on"), small);
    // Exactly the acknowledged rows exist, and the database works.
    let many = (0..3).map(|_| NewSpace::named("large").description("x".repeat(100_000))).collect();
    client.spaces().create_spaces(many).expect_err("still no room");
    client.close();
    let raw = townsquare_tests::raw_sql::RawConnection::sqlite(&database());
    assert_eq!(raw.value("PRAGMA integrity_check"), "ok");
    assert_eq!(raw.count("spaces"), written);
}

fn database() -> std::path::PathBuf {
    std::env::var("TOWNSQUARE_TEST_DATABASE").expect("a child").trim_start_matches("sqlite:").into()
}

#[test]
fn a_file_size_limit_loses_no_acknowledged_write() {
    let folder = temp_dir();
    // In blocks of 512 or 1024 bytes, depending on the shell.
    let child = child(&folder.path().join("full.db"), "fill");
    run_child(&mut in_shell("trap '' XFSZ; ulimit -f 4096", &child));
}

#[test]
fn a_full_disk_loses_no_acknowledged_write() {
    let folder = temp_dir();
    run_on_small_disk(folder.path(), 4, &child(&folder.path().join("full.db"), "fill"));
}

#[test]
fn a_read_only_file_is_refused_by_name() {
    let folder = temp_dir();
    let file = folder.path().join("closed.db");
    let url = format!("sqlite:{}", file.display());
    Client::open(Config::new().database_url(url).catalog_api_key("")).expect("opens").close();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("closed");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).expect("closed");
    let before = fs::read(&file).expect("a file");
    run_child(&mut without_root(child(&file, "read-only")));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    assert_eq!(fs::read(&file).expect("a file"), before);
}

/// A failure without SQLSTATE (SPEC 7, last line).
#[test]
fn a_lost_server_is_an_unknown_database_error() {
    let Some(db) = TestDatabase::on(Engine::Postgres) else { return };
    let (server, _) = db.database();
    let wire = Proxy::to(server.port());
    let url = db.url().replace(&format!(":{}/", server.port()), &format!(":{}/", wire.port()));
    let config = db.config().database_url(url).busy_timeout(Duration::from_secs(1));
    let client = Client::open(config).expect("opens").as_service();
    let space = db.space();
    assert_eq!(client.spaces().get_space(space.id).expect("read"), space);
    wire.disconnect();
    let results = [
        ("Get space", client.spaces().get_space(space.id).map(drop)),
        ("Create space", client.spaces().create_space(NewSpace::named("x")).map(drop)),
        ("Create spaces", client.spaces().create_spaces(vec![NewSpace::named("x")]).map(drop)),
    ];
    for (operation, result) in results {
        let sentence = format!("{operation} failed: Unknown database error");
        let error = assert_fails(result, ErrorKind::Unavailable, None, &sentence);
        assert!(error.is_retryable());
        let cause = std::error::Error::source(&error).expect("a cause").to_string();
        let reason = error.reason().expect("a reason");
        // A new connection names the server.
        let server = format!("cannot connect to 127.0.0.1:{}: ", wire.port());
        assert!(cause.ends_with(reason) || reason.starts_with(&server), "{reason} of {cause}");
    }
    client.close();
}

on_engine! { Sqlite in sqlite;
    fn a_write_waits_for_a_foreign_lock_and_then_fails_as_busy(db: &TestDatabase) {
        let patience = Duration::from_millis(300);
        let client = Client::open(db.config().busy_timeout(patience)).expect("opens").as_service();
        let space = db.space();
        db.raw.run("BEGIN IMMEDIATE");
        let start = Instant::now();
        let refused = client.spaces().create_space(NewSpace::named("x"));
        let waited = start.elapsed();
        let sentence = "Create space failed: Database error: database is locked";
        let error = assert_fails(refused, ErrorKind::Unavailable, Some("55P03"), sentence);
        assert!(error.is_retryable() && waited >= patience, "{waited:?}");
        assert_eq!(client.spaces().get_space(space.id).expect("readers never wait"), space);
        thread::scope(|scope| {
            let patient = scope.spawn(|| db.service.spaces().create_space(NewSpace::named("patient")));
            // In most runs the writer waits by now; the test passes either way.
            let _ = client.spaces().create_space(NewSpace::named("x"));
            db.raw.run("COMMIT");
            patient.join().expect("no panic").expect("it had its turn");
        });
        client.spaces().create_space(NewSpace::named("again")).expect("another try");
        client.close();
    }
}

on_engine! { Postgres in postgres;
    fn writing_to_a_read_only_database_is_reported(db: &TestDatabase) {
        let (_, database) = db.database();
        db.raw.run(&format!("ALTER DATABASE {database} SET default_transaction_read_only = on"));
        db.end_server_processes();
        let client = db.another().as_service();
        let refused = client.spaces().create_space(NewSpace::named("x"));
        let sentence = "Create space failed: Database error: cannot execute INSERT in a read-only transaction";
        assert!(refused.as_ref().expect_err("refused").is_retryable(), "the database may become writable again");
        assert_fails(refused, ErrorKind::Unavailable, Some("25006"), sentence);
        assert_eq!(client.spaces().get_public_spaces(1, 0).expect("reads go on"), []);
        client.close();
    }

    /// A pooled connection is lost, as after a restart of the server.
    fn a_terminated_connection_is_replaced(db: &TestDatabase) {
        let space = db.space();
        let (server, database) = db.database();
        let administrator = server.administrator("postgres");
        for round in 0..3 {
            administrator.run(&format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
             WHERE datname = '{database}' AND application_name = 'townsquare'"
            ));
            assert_eq!(db.service.spaces().get_space(space.id).expect("a new connection"), space, "{round}");
            db.service.spaces().create_spaces(vec![NewSpace::named("x")]).expect("and it writes");
            administrator.run(&format!(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
             WHERE datname = '{database}' AND application_name = 'townsquare'"
            ));
            // The write may fail where the client cannot know whether the server read it; the next one works.
            if let Err(error) = db.service.spaces().create_space(NewSpace::named("y")) {
                assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
            }
            db.service.spaces().create_space(NewSpace::named("y")).expect("the next");
        }
    }
}

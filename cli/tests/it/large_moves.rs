//! A move of 100,000 rows and 10,000 files from SQLite with a folder to PostgreSQL and back, with kills at 50 random moments: of a
//! source that nobody writes, and of one that is written.
//!
//! It takes minutes: `cargo test -p townsquare-cli -- --ignored --nocapture large_moves`.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Child, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use townsquare::{Config, Uuid, blocking::Client, spaces::NewSpace, storage::UploadOptions};
use townsquare_tests::{
    raw_sql::{RawConnection, RawRow},
    test_database::{EmptyDatabase, Engine},
};

use crate::fixture::{Fixture, run};

/// Spaces with three fidgets each: 100,000 rows.
const SPACES: &str = "25000";
const FILES: usize = 10_000;
/// How long the writers wait.
const PATIENCE: Duration = Duration::from_secs(90);
/// The kills of one direction.
const KILLS: u32 = 25;
/// The tables that are compared row by row.
const TABLES: [&str; 5] = ["spaces", "fidgets", "users", "townsquare_files", "townsquare_file_contents"];

/// A number below `end`.
fn random(end: u64) -> u64 {
    u64::try_from(Uuid::new_v4().as_u128() >> 64).unwrap_or_default() % end.max(1)
}

fn add_files(folder: &Path) {
    let client = Client::open(Config::new().data_dir(folder).catalog_api_key("")).expect("it opens");
    let service = client.as_service();
    for number in 0..FILES {
        // Most are rows, and each tenth is an object in the folder.
        let size = if number % 10 == 0 { 70_000 } else { 500 + number % 3_000 };
        let bytes: Vec<u8> = (0..size).map(|at| u8::try_from((at * 31 + number) % 251).expect("a byte")).collect();
        let path = format!("{}/file-{number}", number % 100);
        service.storage().upload("assets", &path, bytes, UploadOptions::new()).expect("uploaded");
    }
    client.close();
}

/// Every row of the tables, in an order of its own.
fn rows(folder: &Path) -> BTreeMap<&'static str, Vec<RawRow>> {
    let raw = RawConnection::sqlite(&folder.join("townsquare.db"));
    let sorted = |table: &'static str| {
        let mut rows = raw.rows(&format!("SELECT * FROM {table}"));
        rows.sort();
        (table, rows)
    };
    TABLES.into_iter().map(sorted).collect()
}

/// The folder of a store with its id.
const OF_STORE: &str = ".townsquare";

/// Every file of a store, by its path in it. What the store has of its own counts by its name alone.
fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("inside").to_string_lossy().into_owned();
            let bytes = if name.starts_with(OF_STORE) { Vec::new() } else { fs::read(&path).expect("a file") };
            found.insert(name, bytes);
        }
    }
    found
}

/// Moves, and kills the process `KILLS` times at random moments of a move that takes `expected`. Returns the report of the last run,
/// and the seconds of all runs.
fn move_with_kills(start: &dyn Fn() -> Child, expected: Duration) -> (serde_json::Value, f64) {
    let most = u64::try_from(expected.as_millis()).expect("a short time") * 2 / u64::from(KILLS);
    let (begun, mut kills) = (Instant::now(), 0);
    loop {
        let mut process = start();
        if kills < KILLS {
            thread::sleep(Duration::from_millis(random(most)));
            if process.try_wait().expect("a state").is_none() {
                process.kill().expect("killed");
                process.wait().expect("it ends");
                kills += 1;
                continue;
            }
        }
        let output = process.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        assert!(kills == KILLS, "the move was over after {kills} kills of {KILLS}: expected {expected:?}");
        let report = serde_json::from_slice(&output.stdout).expect("a report");
        return (report, begun.elapsed().as_secs_f64());
    }
}

/// Everything that the test needs in one place of a move.
struct Place {
    argument: String,
    config: Config,
}

/// Writes spaces, changes them and uploads files until a write is refused. Returns the names of the spaces and files that were
/// acknowledged.
fn write_until_refused(config: Config) -> (BTreeMap<Uuid, String>, BTreeMap<String, Vec<u8>>) {
    let client = Client::open(config).expect("it opens");
    let service = client.as_service();
    let (mut spaces, mut files) = (BTreeMap::new(), BTreeMap::new());
    for number in 0_u64.. {
        let mut write = || -> townsquare::Result<()> {
            let name = format!("written-{number}");
            spaces.insert(service.spaces().create_space(NewSpace::named(&name))?.id, name);
            if number % 8 == 0 {
                let path = format!("written/{}", number % 160);
                let bytes =
                    vec![u8::try_from(number % 251).expect("a byte"); if number % 16 == 0 { 70_000 } else { 700 }];
                service.storage().upload("assets", &path, bytes.clone(), UploadOptions::new())?;
                files.insert(path, bytes);
            }
            Ok(())
        };
        if let Err(error) = write() {
            assert_eq!(error.code(), Some("25006"), "{error}");
            break;
        }
        // As many writes as a busy community makes, so that the data does not double meanwhile.
        let (_kept, never) = mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_millis(5));
    }
    client.close();
    (spaces, files)
}

/// Moves with kills while a thread writes the source. Everything that was acknowledged is in the target, and both export the same rows.
#[allow(clippy::print_stderr, reason = "the figures are what the test is for")]
fn follows_with_kills(town: &Fixture, source: &Place, target: &Place, expected: Duration) {
    let start = || {
        let mut command = town.bare();
        command.env("SOURCE", &source.argument).env("TARGET", &target.argument);
        command
            .args(["move", "env:SOURCE", "env:TARGET", "--json", "--follow", "--longest-pause", "60"])
            .stdin(Stdio::null());
        command.spawn().expect("it starts")
    };
    let (report, all, (spaces, files)) = thread::scope(|scope| {
        let writer = scope.spawn(|| write_until_refused(source.config.clone()));
        let (report, all) = move_with_kills(&start, expected);
        (report, all, writer.join().expect("no panic"))
    });
    eprintln!(
        "followed with {KILLS} kills: {all:.1} s, {} spaces and {} files written, {report}",
        spaces.len(),
        files.len()
    );
    let client = Client::open(target.config.clone()).expect("it opens");
    let service = client.as_service();
    for (id, name) in &spaces {
        assert_eq!(&service.spaces().get_space(*id).expect("it was acknowledged").name, name);
    }
    for (path, bytes) in &files {
        assert!(service.storage().download("assets", path).expect("it was acknowledged") == bytes[..], "{path}");
    }
    client.close();
    let exported = |place: &Place| {
        let client = Client::open(place.config.clone()).expect("it opens");
        let rows = client.as_service().export_rows(&[]).expect("an export");
        let mut rows: Vec<_> = rows.map(|row| serde_json::to_string(&row.expect("a row")).expect("JSON")).collect();
        client.close();
        rows.sort_unstable();
        rows
    };
    assert!(exported(source) == exported(target), "the rows differ");
}

#[test]
#[ignore = "it takes minutes"]
#[allow(clippy::print_stderr, reason = "the figures are what the test is for")]
fn a_large_move_to_postgres_and_back_survives_fifty_kills() {
    let (Some(first), Some(second)) = (EmptyDatabase::on(Engine::Postgres), EmptyDatabase::on(Engine::Postgres)) else {
        return;
    };
    let town = Fixture::new();
    town.run(&["seed", "--users", "5", "--spaces", SPACES, "--fidgets", "3"]).succeeded();
    add_files(&town.path("town"));
    let place = |database: &EmptyDatabase, files: &str| {
        format!("{}?storage_url=file:{}&inline_file_limit=65536", database.url(), town.path(files).display())
    };
    let started = |source: &str, target: &str| {
        let mut command = town.bare();
        command.env("SOURCE", source).env("TARGET", target).args(["move", "env:SOURCE", "env:TARGET", "--json"]);
        command
    };
    let seconds = |source: &str, target: &str| {
        let begun = Instant::now();
        run(started(source, target), "").succeeded();
        begun.elapsed()
    };
    let source = town.path("town").display().to_string();
    // Without kills, to know how long a move takes.
    let there = seconds(&source, &place(&first, "first"));
    let back = seconds(&place(&first, "first"), &town.path("plain").display().to_string());
    eprintln!("without kills: to PostgreSQL {:.1} s, back {:.1} s", there.as_secs_f64(), back.as_secs_f64());

    let remote = place(&second, "second");
    let start = |source: &str, target: &str| {
        let mut command = started(source, target);
        command.stdin(Stdio::null()).spawn().expect("it starts")
    };
    let (report, all) = move_with_kills(&|| start(&source, &remote), there);
    eprintln!("to PostgreSQL with {KILLS} kills: {all:.1} s, {report}");
    let target = town.path("target").display().to_string();
    let (report, all) = move_with_kills(&|| start(&remote, &target), back);
    eprintln!("back with {KILLS} kills: {all:.1} s, {report}");
    assert_eq!(report["rows"]["spaces"].as_u64().zip(report["rows"]["fidgets"].as_u64()), Some((25_000, 75_000)));
    assert_eq!(report["files"].as_u64(), Some(FILES as u64));

    let (before, after) = (rows(&town.path("town")), rows(&town.path("target")));
    for table in TABLES {
        assert!(before[table].len() == after[table].len(), "{table}: {} rows", after[table].len());
        assert!(before[table] == after[table], "{table} differs");
    }
    assert!(bytes(&town.path("town/files")) == bytes(&town.path("target/files")), "the files differ");
    town.run(&["check", "--full", "--data-dir", "target"]).succeeded();
}

#[test]
#[ignore = "it takes minutes"]
#[allow(clippy::print_stderr, reason = "the figures are what the test is for")]
fn a_large_move_follows_its_source_to_postgres_and_back_through_fifty_kills() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let town = Fixture::new();
    town.run(&["seed", "--users", "5", "--spaces", SPACES, "--fidgets", "3"]).succeeded();
    add_files(&town.path("town"));
    let folder = |name: &str| Place {
        argument: town.path(name).display().to_string(),
        // A build without optimization needs longer pauses.
        config: Config::new().data_dir(town.path(name)).catalog_api_key("").busy_timeout(PATIENCE),
    };
    let url =
        format!("{}?storage_url=file:{}&inline_file_limit=65536", database.url(), town.path("remote-files").display());
    let remote = Place {
        config: Config::from_url(&url).expect("a URL").catalog_api_key("").operation_timeout(PATIENCE),
        argument: url,
    };
    let (source, target) = (folder("town"), folder("target"));
    follows_with_kills(&town, &source, &remote, Duration::from_secs(20));
    follows_with_kills(&town, &remote, &target, Duration::from_secs(20));
    town.run(&["check", "--full", "--data-dir", "target"]).succeeded();
}

//! SIGKILL while `open` migrates a database (DESIGN 3): the database is of the old version or of the new one, and the next `open`
//! finishes it.
//!
//! strace kills a child process at one of its system calls: before a write to the files of SQLite, or before a message to PostgreSQL.

use std::{collections::BTreeMap, fs, process::Command};

use townsquare::{Config, blocking::Client};
use townsquare_tests::{
    Rng,
    setting::{seed, setting},
    skip::skip,
    subprocess::{child, name_of, role, run_by},
    temp_dir,
    test_database::{EmptyDatabase, Engine},
    wait::wait_until,
};

use super::older_versions::{make, newest, opens_as_current, schema, scripts};

const DATABASE: &str = "TOWNSQUARE_TEST_OLD_DATABASE";

/// The kills of each older version, unless `TOWNSQUARE_TEST_KILLS` names another number.
const KILLS: usize = 2;

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_that_is_killed_while_it_migrates() {
    if role().as_deref() == Some("migrate") {
        let url = std::env::var(DATABASE).expect("the parent sets it");
        Client::open(Config::new().database_url(url).catalog_api_key("")).expect("it is migrated").close();
    }
}

/// Opens the database in a child process, which is killed when one of its threads makes the call with this number. Returns the
/// largest number of calls of a thread, and whether the child came to its end.
fn open_and_kill(database: &EmptyDatabase, number: Option<usize>) -> (usize, bool) {
    let calls = match database.engine() {
        Engine::Sqlite => "pwrite64,ftruncate,fsync,fdatasync,unlink",
        Engine::Postgres => "sendto",
    };
    let folder = temp_dir();
    let trace = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={calls}"), "-o"]).arg(&trace);
    strace
        .args(number.into_iter().flat_map(|number| ["-e".into(), format!("inject={calls}:signal=KILL:when={number}")]));
    let opens =
        child(name_of(&child_process_that_is_killed_while_it_migrates), "migrate", &[(DATABASE, &database.url())]);
    let output = run_by(strace, &opens).output().expect("strace starts");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(!out.contains("FAILED"), "{out}\n{err}");
    let mut of_threads: BTreeMap<String, usize> = BTreeMap::new();
    for line in fs::read_to_string(trace).expect("a trace").lines().filter(|line| !line.contains("resumed>")) {
        *of_threads.entry(line.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    (of_threads.into_values().max().unwrap_or(0), out.contains("1 passed"))
}

/// The migrations that the database has.
fn version(database: &EmptyDatabase) -> usize {
    let (exists, table) = match database.engine() {
        Engine::Sqlite => ("sqlite_schema WHERE name = 'townsquare_migrations'", "townsquare_migrations"),
        Engine::Postgres => {
            ("pg_tables WHERE schemaname = 'townsquare' AND tablename = 'migrations'", "townsquare.migrations")
        }
    };
    let raw = database.raw();
    if raw.count(exists) == 0 { 0 } else { raw.count(table) }
}

/// A server process of PostgreSQL ends some time after its client.
fn wait_for_server(database: &EmptyDatabase) {
    if database.engine() == Engine::Postgres {
        let raw = database.raw();
        wait_until("the server process ends", || {
            raw.count("pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()") == 0
        });
    }
}

fn a_killed_migration_is_whole_or_absent(engine: Engine) {
    if Command::new("strace").arg("-V").output().is_err() {
        return skip("a kill in a migration: there is no strace");
    }
    let Some((new, application_id)) = newest(engine) else { return };
    let (mut random, newest) = (Rng::with_seed(seed(1)), scripts(engine).len());
    let kills = setting("TOWNSQUARE_TEST_KILLS", KILLS);
    let of_version = |version: usize| {
        let database = EmptyDatabase::on(engine)?;
        if version > 0 {
            make(&database.raw(), engine, version, &application_id);
        }
        Some(database)
    };
    let mut killed_before = 0;
    for old in 0..newest {
        let Some(whole) = of_version(old) else { return };
        let before = schema(&whole.raw(), engine);
        let (calls, is_complete) = open_and_kill(&whole, None);
        assert!(is_complete, "strace does not disturb it");
        let after = schema(&whole.raw(), engine);
        for _ in 0..kills {
            let Some(database) = of_version(old) else { return };
            let number = random.usize(1..=calls);
            open_and_kill(&database, Some(number));
            wait_for_server(&database);
            let (version, found) = (version(&database), schema(&database.raw(), engine));
            let context = format!("version {old}, call {number} of {calls}");
            if version == old {
                assert_eq!(found, before, "{context}");
                killed_before += 1;
            } else {
                assert_eq!((version, &found), (newest, &after), "{context}");
            }
            opens_as_current(old, &database, &new);
        }
    }
    assert!(killed_before > 0, "no kill came before the commit");
}

#[test]
fn a_sqlite_database_whose_migration_is_killed_is_of_one_version_and_is_finished() {
    a_killed_migration_is_whole_or_absent(Engine::Sqlite);
}

#[test]
fn a_postgres_database_whose_migration_is_killed_is_of_one_version_and_is_finished() {
    a_killed_migration_is_whole_or_absent(Engine::Postgres);
}

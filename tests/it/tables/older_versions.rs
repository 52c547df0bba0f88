//! Databases of each older version of the schema (DESIGN 3): `open` migrates them, and their rows and files stay.
//!
//! A migration is never changed after a release, which its checksum in the database enforces. So the first scripts are the database
//! of an older version.

use std::{collections::BTreeSet, fs};

use townsquare::{
    Config,
    blocking::Client,
    check::{CheckDepth, Severity},
    realtime::ChangeRequest,
    spaces::NewSpace,
};
use townsquare_tests::{
    paths::workspace,
    raw_sql::{RawConnection, RawRow},
    temp_dir,
    test_database::{EmptyDatabase, Engine, TestDatabase},
};

const USER: &str = "11111111-1111-4111-8111-111111111111";
const SPACE: &str = "22222222-2222-4222-8222-222222222222";

/// The version with users and spaces, and the one with files.
const TABLES: usize = 2;
const FILES: usize = 5;

/// The scripts of an engine in order: name and SQL.
pub(super) fn scripts(engine: Engine) -> Vec<(String, String)> {
    let folder = workspace().join("core/migrations").join(match engine {
        Engine::Sqlite => "sqlite",
        Engine::Postgres => "postgres",
    });
    let mut scripts: Vec<_> = fs::read_dir(folder)
        .expect("the scripts")
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("a script"))
        })
        .collect();
    scripts.sort();
    scripts
}

/// Makes the database of the version `version`, with a row in each table that a caller of that version could fill.
pub(super) fn make(raw: &RawConnection, engine: Engine, version: usize, application_id: &str) {
    let (table, own) = match engine {
        Engine::Sqlite => {
            raw.run(&format!("PRAGMA application_id = {application_id}"));
            raw.run(
                "CREATE TABLE townsquare_migrations (version INTEGER PRIMARY KEY, name TEXT NOT NULL,
                    applied_at TEXT NOT NULL, minimum_version INTEGER NOT NULL, checksum TEXT)",
            );
            ("townsquare_migrations", "townsquare_")
        }
        Engine::Postgres => {
            raw.run("CREATE SCHEMA townsquare");
            raw.run(
                "CREATE TABLE townsquare.migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL,
                    applied_at TIMESTAMPTZ NOT NULL, minimum_version BIGINT NOT NULL, checksum TEXT)",
            );
            ("townsquare.migrations", "townsquare.")
        }
    };
    for (number, (name, script)) in (1..=version).zip(scripts(engine)) {
        raw.run(&script);
        raw.run(&format!(
            "INSERT INTO {table} (version, name, applied_at, minimum_version)
             VALUES ({number}, '{name}', '2026-01-01T00:00:00.000000Z', {})",
            number.min(4)
        ));
    }
    if version >= TABLES {
        raw.run(&format!("INSERT INTO users (id, email) VALUES ('{USER}', 'ann@town.example')"));
        raw.run(&format!("INSERT INTO spaces (id, name, owner_id) VALUES ('{SPACE}', 'Harbor', '{USER}')"));
    }
    if version >= FILES {
        raw.run(&format!(
            "INSERT INTO {own}files (bucket, path, access, first_segment, owner_id, size, content_type, cache_control, etag,
                is_inline, updated_at)
             VALUES ('assets', 'old', 'public', 'old', '{USER}', 3, 'text/plain', 60, '0123456789abcdef0123456789abcdef',
                true, '2026-01-01T00:00:00.000000Z')"
        ));
        let content = if engine == Engine::Sqlite { "X'6f6c64'" } else { "'\\x6f6c64'" };
        raw.run(&format!("INSERT INTO {own}file_contents (bucket, path, content) VALUES ('assets', 'old', {content})"));
    }
}

/// The tables, indexes and triggers of a database.
pub(super) fn schema(raw: &RawConnection, engine: Engine) -> BTreeSet<RawRow> {
    let rows = raw.rows(match engine {
        Engine::Sqlite => "SELECT type, name, sql FROM sqlite_schema WHERE name <> 'townsquare_migrations'",
        Engine::Postgres => {
            "SELECT table_schema || '.' || table_name, column_name, data_type || is_nullable || coalesce(column_default, '')
                FROM information_schema.columns WHERE table_schema IN ('public', 'townsquare')
             UNION ALL SELECT schemaname || '.' || tablename, indexname, indexdef
                FROM pg_indexes WHERE schemaname IN ('public', 'townsquare')
             UNION ALL SELECT event_object_schema || '.' || event_object_table, trigger_name,
                action_timing || event_manipulation || split_part(action_statement, '(', 1) FROM information_schema.triggers"
        }
    });
    rows.into_iter().collect()
}

fn is_migrated(version: usize, new: &TestDatabase, application_id: &str) {
    let Some(old) = EmptyDatabase::on(new.engine) else { return };
    make(&old.raw(), new.engine, version, application_id);
    opens_as_current(version, &old, new);
}

/// Opens a database of the version `version`. Checks that it has its rows and files, and the schema of the database `new`.
pub(super) fn opens_as_current(version: usize, old: &EmptyDatabase, new: &TestDatabase) {
    let raw = old.raw();
    let folder = temp_dir();
    let config = Config::new().database_url(old.url()).data_dir(folder.path()).catalog_api_key("");
    let client = Client::open(config).expect("it is migrated");
    let service = client.as_service();
    if version >= TABLES {
        let space = service.spaces().get_space(SPACE.parse().expect("an id")).expect("it stayed");
        assert_eq!((space.name.as_str(), space.owner_id.map(|id| id.to_string())), ("Harbor", Some(USER.to_owned())));
    }
    if version >= FILES {
        assert_eq!(service.storage().download("assets", "old").expect("it stayed"), "old");
        assert_eq!(service.storage().stat("assets", "old").expect("it stayed").cache_control, 60);
    }
    let mut changes = service.realtime().changes(ChangeRequest::table("spaces")).expect("the feed works");
    service.spaces().create_space(NewSpace::named("Lighthouse")).expect("it works");
    assert!(changes.next().expect("a change").is_ok());
    drop(changes);
    let (migrated, fresh) = (schema(&raw, new.engine), schema(&new.raw, new.engine));
    let differs: Vec<_> = migrated.symmetric_difference(&fresh).collect();
    assert!(differs.is_empty(), "version {version}: {differs:?}");
    let findings = client.check(CheckDepth::Full).expect("checked");
    let errors: Vec<_> = findings.iter().filter(|finding| finding.severity() == Severity::Error).collect();
    assert!(errors.is_empty(), "version {version}: {errors:?}");
    client.close();
}

/// A new database of this version, and its application id.
pub(super) fn newest(engine: Engine) -> Option<(TestDatabase, String)> {
    let new = TestDatabase::on(engine)?;
    let application_id = match engine {
        Engine::Sqlite => new.raw.value("PRAGMA application_id"),
        Engine::Postgres => String::new(),
    };
    // Its triggers of the change log are made when the feed is used for the first time.
    drop(new.service.realtime().changes(ChangeRequest::table("spaces")).expect("the feed works"));
    Some((new, application_id))
}

fn each_older_version_is_migrated(engine: Engine) {
    let Some((new, application_id)) = newest(engine) else { return };
    for version in 1..=scripts(engine).len() {
        is_migrated(version, &new, &application_id);
    }
}

#[test]
fn a_sqlite_database_of_each_older_version_is_migrated_with_its_rows_and_files() {
    each_older_version_is_migrated(Engine::Sqlite);
}

#[test]
fn a_postgres_database_of_each_older_version_is_migrated_with_its_rows_and_files() {
    each_older_version_is_migrated(Engine::Postgres);
}

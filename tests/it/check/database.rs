//! Planted damages of the database, on both engines and on SQLite.

use std::{
    fs,
    io::{Read as _, Seek as _, SeekFrom, Write as _},
};

use townsquare::{
    Config,
    blocking::Client,
    check::{CheckDepth, FindingCode},
    config::{Clock, ManualClock},
    realtime::ChangeRequest,
    spaces::NewSpace,
};
use townsquare_tests::{raw_sql::RawConnection, temp_dir, test_database::Engine};

use super::fixture::{Fixture, Store, codes, on_each_engine, unknown};

/// Runs a test on SQLite, with a filled folder.
fn on_sqlite(test: impl Fn(&Fixture)) {
    let fixture = Fixture::on(Engine::Sqlite, Store::Folder).expect("SQLite is always there");
    fixture.fill();
    test(&fixture);
}

#[test]
fn a_changed_and_a_missing_migration_are_found() {
    on_each_engine(|fixture| {
        let migrations = fixture.own("migrations");
        fixture.raw.run(&format!("UPDATE {migrations} SET checksum = 'x' WHERE version = 3"));
        let found = fixture.assert_finds(FindingCode::MigrationChanged);
        assert_eq!(found, ["The recorded migration 0003_auth is not the migration 0003_auth of this library."]);
        fixture.raw.run(&format!("DELETE FROM {migrations} WHERE version = 3"));
        let found = fixture.assert_finds(FindingCode::MigrationMissing);
        assert_eq!(found, ["The database does not record the migration 0003_auth."]);
    });
}

#[test]
fn the_schema_of_a_newer_library_is_a_note_and_is_not_compared() {
    on_each_engine(|fixture| {
        let (migrations, index) = match fixture.engine {
            Engine::Sqlite => ("townsquare_migrations", "townsquare_files_objects"),
            Engine::Postgres => ("townsquare.migrations", "townsquare.files_objects"),
        };
        let time = "'2030-01-01T00:00:00.000000Z'";
        // A time that is not in the future, which would be a fault of the clock.
        let time = time.replace("2030", "2020");
        fixture.raw.run(&format!(
            "INSERT INTO {migrations} (version, name, applied_at, minimum_version) VALUES (99, '0099_new', {time}, 1);
             DROP INDEX {index}"
        ));
        fixture.assert_finds(FindingCode::SchemaNewer);
    });
}

#[test]
fn a_missing_index_and_a_missing_trigger_of_files_are_found() {
    on_each_engine(|fixture| {
        let (index, trigger) = match fixture.engine {
            Engine::Sqlite => ("townsquare_files_objects", "DROP TRIGGER townsquare_file_deleted"),
            Engine::Postgres => {
                ("townsquare.files_objects", "DROP TRIGGER townsquare_file_deleted ON townsquare.files")
            }
        };
        fixture.raw.run(&format!("DROP INDEX {index}"));
        let found = fixture.assert_finds(FindingCode::IndexMissing);
        assert_eq!(found, [format!("The index {index} of the table {} is missing.", fixture.own("files"))]);
        fixture.raw.run(trigger);
        assert_eq!(fixture.codes(), [FindingCode::TriggerChanged, FindingCode::IndexMissing]);
    });
}

#[test]
fn a_missing_trigger_of_the_change_log_is_found_and_open_mends_it() {
    on_each_engine(|fixture| {
        fixture.raw.run(match fixture.engine {
            Engine::Sqlite => "DROP TRIGGER townsquare_change_spaces_insert",
            Engine::Postgres => "DROP TRIGGER townsquare_capture ON public.spaces",
        });
        fixture.assert_finds(FindingCode::TriggerChanged);
        Client::open(fixture.config()).expect("opens").close();
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn a_missing_table_is_found() {
    on_each_engine(|fixture| {
        let table = fixture.own("known_clients");
        fixture.raw.run(&format!("DROP TABLE {table}"));
        let found = fixture.assert_finds(FindingCode::TableMissing);
        assert_eq!(found, [format!("The table {table} is missing.")]);
    });
}

#[test]
fn a_table_that_lost_its_one_row_is_found() {
    on_each_engine(|fixture| {
        let feed = fixture.own("feed");
        let row = fixture.raw.rows(&format!("SELECT * FROM {feed}"));
        fixture.raw.run(&format!("DELETE FROM {feed}"));
        let found = fixture.check(CheckDepth::Quick);
        assert!(codes(&found).contains(&FindingCode::BookkeepingMissing), "{found:?}");
        assert_eq!(row.len(), 1);
    });
}

#[test]
fn a_log_far_over_its_limits_is_found() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let options = |config: Config| config.change_retention_rows(100);
        let Some(fixture) = Fixture::with(engine, Store::Folder, options) else { continue };
        // A stream that nobody reads keeps up to four times the limit.
        let changes = fixture.service.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
        fixture.raw.run(&match engine {
            Engine::Sqlite => "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
                INSERT INTO spaces (id, name) SELECT lower(hex(randomblob(4))) || '-0000-4000-8000-000000000000', 'x' FROM n"
                .to_owned(),
            Engine::Postgres => "INSERT INTO spaces (name) SELECT 'x' FROM generate_series(1, 300)".to_owned(),
        });
        fixture.assert_finds(FindingCode::LogOverLimit);
        drop(changes);
    }
}

#[test]
fn rows_without_their_parents_and_bytes_without_a_file_are_found() {
    on_sqlite(|fixture| {
        fixture.raw.run("PRAGMA foreign_keys = OFF");
        fixture.raw.run(&format!(
            "INSERT INTO townsquare_identities (public_key, user_id, linked_at) VALUES ('k', '{}', '2020-01-01T00:00:00.000000Z')",
            unknown()
        ));
        let found = fixture.assert_finds(FindingCode::ReferenceBroken);
        assert_eq!(found, ["1 rows of townsquare_identities name rows of users that do not exist."]);
        fixture.raw.run("DELETE FROM townsquare_identities");
        fixture.raw.run("INSERT INTO townsquare_file_contents (bucket, path, content) VALUES ('assets', 'b', x'01')");
        let found = fixture.assert_finds(FindingCode::StrayContent);
        assert_eq!(found, ["The database has the bytes of 1 small files without a row."]);
        fixture.service.storage().repair().expect("repaired");
        assert_eq!(fixture.codes(), [], "repair mends it");
    });
}

#[test]
fn a_table_that_another_program_changed_is_found() {
    on_sqlite(|fixture| {
        fixture.raw.run("ALTER TABLE users ADD COLUMN shoe_size INTEGER; CREATE TABLE of_the_host (a INTEGER)");
        let found = fixture.assert_finds(FindingCode::TableChanged);
        assert_eq!(found, ["The table users is not the one of this library."]);
    });
}

#[test]
fn a_damaged_page_is_found() {
    let folder = temp_dir();
    let config = || Config::new().data_dir(folder.path().join("data")).catalog_api_key("");
    let file = folder.path().join("data/townsquare.db");
    let client = Client::open(config()).expect("opens");
    for number in 0..300 {
        let space = NewSpace::named(format!("space {number}")).description("x".repeat(500));
        client.as_service().spaces().create_space(space).expect("created");
    }
    client.close();
    // The last pages have rows of spaces.
    let mut content = fs::OpenOptions::new().read(true).write(true).open(&file).expect("the database");
    let size = content.metadata().expect("a size").len();
    content.seek(SeekFrom::Start(size - 8_192)).expect("a position");
    let mut page = vec![0; 8_192];
    content.read_exact(&mut page).expect("two pages");
    content.seek(SeekFrom::Start(size - 8_192)).expect("a position");
    content.write_all(&page.iter().map(|byte| !byte).collect::<Vec<_>>()).expect("written");
    drop(content);
    let client = Client::open(config()).expect("opens, because it does not read these pages");
    for depth in [CheckDepth::Quick, CheckDepth::Full] {
        let findings = client.check(depth).expect("checked");
        assert_eq!(codes(&findings), [FindingCode::DatabaseDamaged], "{findings:?}");
    }
    client.close();
}

#[test]
fn a_database_file_that_was_replaced_is_found() {
    on_sqlite(|fixture| {
        let file = fixture.folder.path().join("data/townsquare.db");
        let away = file.with_extension("away");
        fs::rename(&file, &away).expect("renamed");
        fixture.assert_finds(FindingCode::DatabaseReplaced);
        fs::rename(&away, &file).expect("renamed");
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn a_clock_that_is_behind_the_database_is_found() {
    let folder = temp_dir();
    let config = || Config::new().data_dir(folder.path().join("data")).catalog_api_key("");
    Client::open(config()).expect("opens").close();
    let now = Clock::default().now();
    for (seconds, expected) in [(3_600, vec![FindingCode::ClockBehind]), (30, vec![])] {
        let clock = ManualClock::at(now - jiff::SignedDuration::from_secs(seconds));
        let client = Client::open(config().clock(clock.clock())).expect("opens");
        assert_eq!(codes(&client.check(CheckDepth::Quick).expect("checked")), expected);
        client.close();
    }
}

#[test]
fn a_large_write_ahead_log_is_found() {
    on_sqlite(|fixture| {
        let reader = RawConnection::sqlite(&fixture.folder.path().join("data/townsquare.db"));
        reader.run("BEGIN; SELECT count(*) FROM spaces");
        fixture.raw.run("CREATE TABLE of_the_host (a BLOB)");
        for _ in 0..9 {
            fixture.raw.run("INSERT INTO of_the_host VALUES (randomblob(16000000))");
        }
        fixture.assert_finds(FindingCode::WalLarge);
        reader.run("COMMIT");
    });
}

#[test]
fn a_database_that_has_moved_away_is_found() {
    on_each_engine(|fixture| {
        let mark = fixture.own("moved_away");
        fixture.raw.run(&format!("INSERT INTO {mark} VALUES (1, 'abc', '2026-01-02T03:04:05.123456Z')"));
        let found = fixture.assert_finds(FindingCode::MovedAway);
        assert_eq!(found, ["It is now the database with the incarnation abc."]);
    });
}

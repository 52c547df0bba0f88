//! Migrations at open (DESIGN 3): a database is created, migrated, or refused unchanged.

use std::fs;

use townsquare::{Config, ErrorKind, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines, on_engine,
    raw_sql::RawConnection,
    temp_dir,
    test_database::{EmptyDatabase, Engine, TestDatabase},
};

/// The table that lists the applied migrations.
fn migrations_table(db: &TestDatabase) -> &'static str {
    match db.engine {
        Engine::Sqlite => "townsquare_migrations",
        Engine::Postgres => "townsquare.migrations",
    }
}

fn open(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

/// A file with the library's application id and a table that a migration would create.
#[test]
fn a_failed_migration_changes_nothing_in_sqlite() {
    let db = TestDatabase::on(Engine::Sqlite).expect("built in");
    db.raw.run("DROP TABLE fidgets; DELETE FROM townsquare_migrations WHERE version > 1");
    let before = db.raw.rows("SELECT name, sql FROM sqlite_schema ORDER BY name");
    Client::open(db.config()).expect_err("spaces is there already");
    assert_eq!(db.raw.rows("SELECT name, sql FROM sqlite_schema ORDER BY name"), before);
}

#[test]
fn a_sqlite_file_of_another_program_is_refused_unchanged() {
    let folder = temp_dir();
    let foreign = folder.path().join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).expect("a file");
    connection.execute_batch("CREATE TABLE spaces (id); INSERT INTO spaces VALUES (1)").expect("a table");
    connection.close().expect("closed");
    let marked = folder.path().join("marked.db");
    let connection = rusqlite::Connection::open(&marked).expect("a file");
    connection.execute_batch("PRAGMA application_id = 7; CREATE TABLE x (y)").expect("a table");
    connection.close().expect("closed");
    let text = folder.path().join("text.db");
    fs::write(&text, "this is no database, but a letter of some length to the mayor of the town".repeat(20))
        .expect("a file");
    for file in [foreign, marked, text] {
        let before = fs::read(&file).expect("a file");
        let error = assert_kind(ErrorKind::Config, Client::open(open(&format!("sqlite:{}", file.display()))));
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(error.message().contains(name), "{error}");
        assert_eq!(fs::read(&file).expect("still a file"), before, "{name}");
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 3, "nothing beside them: {left:?}");
}

#[test]
fn a_postgres_database_with_clashing_tables_is_refused_unchanged() {
    for foreign in
        ["CREATE TABLE public.spaces (id INTEGER)", "CREATE SCHEMA townsquare; CREATE TABLE townsquare.x (y INTEGER)"]
    {
        let Some(empty) = EmptyDatabase::on(Engine::Postgres) else { return };
        let raw = empty.raw();
        raw.run(foreign);
        let objects = "SELECT schemaname, tablename FROM pg_tables
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
        let before = raw.rows(objects);
        let error = assert_kind(ErrorKind::Config, Client::open(open(&empty.url())));
        assert!(error.to_string().contains("already exist"), "{error}");
        assert_eq!(raw.rows(objects), before);
        assert_eq!(
            raw.count("pg_namespace WHERE nspname = 'townsquare'"),
            usize::from(before[0][0].as_deref() == Some("townsquare"))
        );
    }
}

#[test]
fn without_migrate_an_empty_database_is_refused_and_nothing_is_created() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(empty) = EmptyDatabase::on(engine) else { continue };
        let error = assert_kind(ErrorKind::Config, Client::open(open(&empty.url()).migrate(false)));
        assert_eq!(error.code(), Some("3D000"), "{error}");
        assert!(error.explanation().contains("migrate=true"), "{}", error.explanation());
        match engine {
            Engine::Sqlite => assert!(!empty.file().exists()),
            Engine::Postgres => assert_eq!(empty.raw().count("pg_namespace WHERE nspname = 'townsquare'"), 0),
        }
    }
    let folder = temp_dir();
    let data = folder.path().join("data");
    assert_kind(ErrorKind::Config, Client::open(Config::new().data_dir(&data).migrate(false)));
    assert!(!data.exists());
}

#[test]
fn a_bad_option_creates_no_database() {
    let folder = temp_dir();
    let data = folder.path().join("data");
    for config in [Config::new().buckets("photos"), Config::new().storage_url("s3://")] {
        assert_kind(ErrorKind::Config, Client::open(config.data_dir(&data)));
        assert!(!data.exists());
    }
}

on_both_engines! {
    fn a_plan_lists_the_missing_migrations_and_changes_nothing(db: &TestDatabase) {
        let plan = || Client::plan_migrations(db.config().migrate(false)).expect("a plan");
        let whole = plan();
        assert!(whole.is_current && !whole.is_new && whole.missing().count() == 0, "{whole:?}");
        let last = whole.migrations.last().expect("a migration").name;

        let table = migrations_table(db);
        let (name, values) = (format!("DELETE FROM {table} WHERE name = '{last}'"), format!("SELECT name FROM {table}"));
        db.raw.run(&name);
        let before = db.raw.rows(&values);
        let plan = plan();
        let missing: Vec<_> = plan.missing().map(|migration| migration.name).collect();
        assert_eq!((missing, plan.is_current, plan.is_new), (vec![last], false, false));
        assert!(plan.missing().all(|migration| migration.about.len() > 10), "{plan:?}");
        assert_eq!(db.raw.rows(&values), before);
        let error = assert_kind(ErrorKind::Config, Client::open(db.config().migrate(false)));
        assert_eq!(error.code(), Some("55000"), "{error}");
    }

    fn reopening_keeps_every_row(db: &TestDatabase) {
        let space = db.space();
        let migrations = db.raw.rows(&format!("SELECT * FROM {} ORDER BY version", migrations_table(db)));
        for _ in 0..2 {
            let client = db.another().as_service();
            assert_eq!(client.spaces().get_space(space.id).expect("there"), space);
            client.close();
        }
        assert_eq!(db.raw.rows(&format!("SELECT * FROM {} ORDER BY version", migrations_table(db))), migrations);
    }

    /// Sets the database back to the first migration.
    fn an_older_database_is_migrated(db: &TestDatabase) {
        let tables = ["fidgets", "spaces", "users", "\"spaceRegistrations\"", "community_domains", "community_configs"];
        // The tables of files and of auth go first, because they reference users.
        let own = ["file_outbox", "file_intents", "file_contents", "files", "buckets", "mailed_tokens", "verified_emails", "spent_tokens", "sessions", "credentials", "identities", "known_clients", "failures", "database",
            "changes", "feed", "deleted_spaces", "former_spaces", "unfinished_move", "moved_away"];
        let of_engine: &[&str] = if db.engine == Engine::Sqlite { &["ending_sessions"] } else { &[] };
        for table in own.iter().chain(of_engine) {
            db.raw.run(&match db.engine {
                Engine::Sqlite => format!("DROP TABLE townsquare_{table}"),
                Engine::Postgres => format!("DROP TABLE townsquare.{table} CASCADE"),
            });
        }
        let cascade = if db.engine == Engine::Postgres { " CASCADE" } else { "" };
        for table in tables {
            db.raw.run(&format!("DROP TABLE {table}{cascade}"));
        }
        if db.engine == Engine::Postgres {
            db.raw.run("DROP FUNCTION get_active_community_config");
            db.raw.run("DROP TABLE townsquare.policies");
            db.raw.run("DROP SEQUENCE townsquare.changes_id, townsquare.listening_until");
            db.raw.run("DO $$ DECLARE own REGPROCEDURE; BEGIN
                FOR own IN SELECT oid FROM pg_proc WHERE pronamespace = 'townsquare'::regnamespace LOOP
                    EXECUTE 'DROP FUNCTION ' || own || ' CASCADE';
                END LOOP; END $$");
        }
        let migrations = migrations_table(db);
        db.raw.run(&format!("DELETE FROM {migrations} WHERE version > 1"));
        let client = db.another();
        for table in tables {
            assert_eq!(db.raw.count(table), 0, "{table} is there");
        }
        client.as_service().spaces().create_space(NewSpace::named("x")).expect("it works");
        client.close();
        assert_eq!(db.raw.count(&format!("{migrations} WHERE checksum IS NULL")), 0);
    }

    fn a_database_of_another_build_is_refused_unchanged_by_the_name_of_its_migration(db: &TestDatabase) {
        let own = migrations_table(db);
        let original = db.raw.value(&format!("SELECT checksum FROM {own} WHERE version = 3"));
        for change in ["checksum = 'of another script'", "name = '0003_other', checksum = NULL"] {
            db.raw.run(&format!("UPDATE {own} SET {change} WHERE version = 3"));
            // An error before any migration: the newest one is missing, too.
            db.raw.run(&format!("DELETE FROM {own} WHERE version = (SELECT max(version) FROM {own})"));
            let before = db.raw.rows(&format!("SELECT * FROM {own} ORDER BY version"));
            let error = assert_kind(ErrorKind::Config, Client::open(db.config()));
            assert!(error.message().contains("Another build") && error.message().contains("0003_auth"), "{error}");
            assert_eq!(db.raw.rows(&format!("SELECT * FROM {own} ORDER BY version")), before);
        }
        assert_eq!(original.len(), 64);
    }

    fn without_migrate_an_older_database_is_refused_unchanged(db: &TestDatabase) {
        let own = migrations_table(db);
        Client::open(db.config().migrate(false)).expect("it is current").close();
        let newest = db.raw.value(&format!("SELECT name FROM {own} ORDER BY version DESC LIMIT 1"));
        db.raw.run(&format!("DELETE FROM {own} WHERE name = '{newest}'"));
        let before = db.raw.rows(&format!("SELECT * FROM {own} ORDER BY version"));
        let error = assert_kind(ErrorKind::Config, Client::open(db.config().migrate(false)));
        assert!(error.code() == Some("55000") && error.message().contains(&newest), "{error}");
        assert_eq!(db.raw.rows(&format!("SELECT * FROM {own} ORDER BY version")), before);
    }

    fn a_newer_database_is_refused_unchanged(db: &TestDatabase) {
        let own = migrations_table(db);
        let when = "'2030-01-01 00:00:00Z'";
        db.raw.run(&format!("INSERT INTO {own} (version, name, applied_at, minimum_version)
             VALUES (999, '0999_future', {when}, 999)"));
        db.raw.run("CREATE TABLE from_the_future (x INTEGER)");
        let error = assert_kind(ErrorKind::Config, Client::open(db.config()));
        assert!(error.to_string().starts_with("Open failed: "), "{error}");
        assert!(error.message().contains("999") && error.message().contains("newer"), "{error}");
        assert!(!error.is_retryable());
        assert_eq!(db.raw.count(own), 1 + db.raw.count(&format!("{own} WHERE version < 999")));
        assert_eq!(db.raw.count("from_the_future"), 0);
    }

    fn a_newer_compatible_database_works(db: &TestDatabase) {
        let migrations = migrations_table(db);
        db.raw.run(&format!(
            "INSERT INTO {migrations} (version, name, applied_at, minimum_version)
             VALUES (998, '0998_future', '2030-01-01 00:00:00Z', 4);
             CREATE TABLE from_the_future (x INTEGER)"
        ));
        let before = db.raw.rows(&format!("SELECT * FROM {migrations} ORDER BY version"));
        let client = db.another().as_service();
        let space = client.spaces().create_space(NewSpace::named("x").public()).expect("it writes");
        assert_eq!(client.spaces().get_space(space.id).expect("it reads"), space);
        let seen = db.client.spaces().get_public_spaces(10, 0).expect("policies hold");
        assert_eq!(seen.len(), 1);
        client.close();
        assert_eq!(db.raw.rows(&format!("SELECT * FROM {migrations} ORDER BY version")), before, "no migration ran");
    }

    fn a_newer_incompatible_database_is_refused_untouched(db: &TestDatabase) {
        let migrations = migrations_table(db);
        db.raw.run(&format!(
            "INSERT INTO {migrations} (version, name, applied_at, minimum_version)
             VALUES (998, '0998_future', '2030-01-01 00:00:00Z', 4), (999, '0999_future', '2030-01-01 00:00:00Z', 998)"
        ));
        let before = db.raw.rows(&format!("SELECT * FROM {migrations} ORDER BY version"));
        let error = assert_kind(ErrorKind::Config, Client::open(db.config()));
        assert!(error.message().contains("version 999") && error.message().contains("version 998"), "{error}");
        assert!(!error.is_retryable());
        assert_eq!(db.raw.rows(&format!("SELECT * FROM {migrations} ORDER BY version")), before);
    }
}

on_engine! { Sqlite in planned_triggers;
    fn a_plan_tells_that_triggers_are_outdated(db: &TestDatabase) {
        db.raw.run("DROP TRIGGER townsquare_change_spaces_insert");
        let plan = Client::plan_migrations(db.config()).expect("a plan");
        assert!(!plan.is_current && plan.missing().count() == 0, "{plan:?}");
    }
}

on_engine! { Postgres in planned_policies;
    fn a_plan_tells_that_policies_are_outdated(db: &TestDatabase) {
        db.raw.run("DROP TRIGGER townsquare_capture ON spaces");
        let plan = Client::plan_migrations(db.config()).expect("a plan");
        assert!(!plan.is_current && plan.missing().count() == 0, "{plan:?}");
    }
}

#[test]
fn a_plan_creates_no_database_and_refuses_a_foreign_file() {
    let folder = temp_dir();
    let file = folder.path().join("new.db");
    let plan = Client::plan_migrations(open(&format!("sqlite:{}", file.display()))).expect("a plan");
    assert!(plan.is_new && !plan.is_current && plan.missing().count() == plan.migrations.len(), "{plan:?}");
    assert!(!file.exists());
    fs::write(&file, "this is no database, but a letter of some length to the mayor".repeat(90)).expect("a file");
    let error = assert_kind(ErrorKind::Config, Client::plan_migrations(open(&format!("sqlite:{}", file.display()))));
    assert_eq!(error.code(), Some("XX001"), "{error}");
}

/// Each page of a table that `open` reads.
#[test]
fn a_damaged_database_is_refused_with_its_path() {
    let folder = temp_dir();
    let file = folder.path().join("town.db");
    let url = format!("sqlite:{}", file.display());
    Client::open(open(&url)).expect("opens").close();
    let raw = RawConnection::sqlite(&file);
    let size: usize = raw.value("PRAGMA page_size").parse().expect("a number");
    let pages = raw
        .rows("SELECT name, rootpage FROM sqlite_schema WHERE name IN ('townsquare_database', 'townsquare_buckets')");
    drop(raw);
    let whole = fs::read(&file).expect("read");
    assert_eq!(pages.len(), 2);
    for row in pages {
        let [Some(table), Some(page)] = &row[..] else { panic!("{row:?}") };
        let mut damaged = whole.clone();
        let start = (page.parse::<usize>().expect("a number") - 1) * size;
        damaged[start..start + 12].iter_mut().for_each(|byte| *byte ^= 0xff);
        fs::write(&file, &damaged).expect("written");
        for refused in [Client::open(open(&url)).map(drop), Client::plan_migrations(open(&url)).map(drop)] {
            let error = assert_kind(ErrorKind::Config, refused);
            assert_eq!(error.code(), Some("XX001"), "{table}: {error}");
            assert!(error.message().contains(&file.display().to_string()), "{table}: {error}");
        }
    }
}

on_engine! { Sqlite in triggers;
    fn changed_triggers_of_the_change_log_are_repaired(db: &TestDatabase) {
        let triggers =
            "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'townsquare_change_*' ORDER BY name";
        let own = db.raw.rows(triggers);
        db.raw.run("DROP TRIGGER townsquare_change_spaces_insert;
            CREATE TRIGGER townsquare_change_spaces_insert AFTER INSERT ON spaces BEGIN SELECT 1; END");
        let changed = db.raw.rows(triggers);
        let error = assert_kind(ErrorKind::Config, Client::open(db.config().migrate(false)));
        assert!(error.code() == Some("55000") && error.message().contains("The triggers"), "{error}");
        assert_eq!(db.raw.rows(triggers), changed);
        let client = db.another().as_service();
        assert_eq!(db.raw.rows(triggers), own);
        client.close();
    }
}

on_engine! { Postgres in capture_triggers;
    fn changed_triggers_and_functions_of_the_change_log_are_repaired(db: &TestDatabase) {
        let state = "SELECT tgrelid::regclass::text, pg_get_triggerdef(oid), tgenabled::text FROM pg_trigger
                WHERE tgname LIKE 'townsquare\\_capture%'
            UNION ALL SELECT oid::regprocedure::text, prosrc, '' FROM pg_proc WHERE pronamespace = 'townsquare'::regnamespace
            ORDER BY 1, 2";
        for is_on in [false, true] {
            db.raw.run(&format!("SELECT townsquare.set_capture({is_on})"));
            let own = db.raw.rows(state);
            for change in [
                "DROP TRIGGER townsquare_capture ON spaces",
                "CREATE TRIGGER townsquare_capture_more AFTER INSERT ON fidgets
                    FOR EACH ROW EXECUTE FUNCTION townsquare.capture_fidget()",
                "DROP TRIGGER townsquare_capture_delete ON townsquare.sessions",
                "CREATE OR REPLACE FUNCTION townsquare.capture_row() RETURNS TRIGGER LANGUAGE plpgsql
                    AS 'BEGIN RETURN NULL; END'",
                "DROP FUNCTION townsquare.next_entry",
            ] {
                db.raw.run(change);
                let changed = db.raw.rows(state);
                let error = assert_kind(ErrorKind::Config, Client::open(db.config().migrate(false)));
                assert_eq!(error.code(), Some("55000"), "{change}: {error}");
                assert_eq!(db.raw.rows(state), changed);
                db.another().close();
                assert_eq!(db.raw.rows(state), own, "{change}");
            }
        }
    }
}

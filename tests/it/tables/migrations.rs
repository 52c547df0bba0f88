//! What a database goes through when it is opened (DESIGN 3): made, brought up to date, or refused and left alone.

use std::fs;

use townsquare::{Client, Config, ErrorKind, NewSpace, blocking::wait};
use townsquare_tests::{
    on_both_engines,
    store::{Engine, Fresh, Store},
    temp::TempFolder,
    town::refused,
};

on_both_engines!(
    reopening_keeps_every_row,
    an_older_database_is_brought_up_to_date,
    a_newer_database_is_refused_and_left_alone,
);

fn own_table(store: &Store) -> &'static str {
    match store.engine {
        Engine::Sqlite => "townsquare_migrations",
        Engine::Postgres => "townsquare.migrations",
    }
}

fn open(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

fn reopening_keeps_every_row(store: &Store) {
    let space = store.space();
    let migrations = store.outside.rows(&format!("SELECT * FROM {} ORDER BY version", own_table(store)));
    for _ in 0..2 {
        let client = store.another().as_service();
        assert_eq!(wait(client.spaces().get_space(space.id)).expect("there"), space);
        wait(client.close());
    }
    assert_eq!(store.outside.rows(&format!("SELECT * FROM {} ORDER BY version", own_table(store))), migrations);
}

/// Back to the first migration: the second has to come again.
fn an_older_database_is_brought_up_to_date(store: &Store) {
    let tables = ["fidgets", "spaces", "users", "\"spaceRegistrations\"", "community_domains", "community_configs"];
    // What belongs to sign-in goes first: it refers to the users.
    let own = ["spent_tokens", "sessions", "credentials", "identities", "failures"];
    for table in own {
        store.outside.run(&match store.engine {
            Engine::Sqlite => format!("DROP TABLE townsquare_{table}"),
            Engine::Postgres => format!("DROP TABLE townsquare.{table} CASCADE"),
        });
    }
    let cascade = if store.engine == Engine::Postgres { " CASCADE" } else { "" };
    for table in tables {
        store.outside.run(&format!("DROP TABLE {table}{cascade}"));
    }
    if store.engine == Engine::Postgres {
        store.outside.run("DROP FUNCTION get_active_community_config");
        store.outside.run("DROP TABLE townsquare.policies");
        for function in ["caller_id()", "is_service()", "admitted()", "holds_key(UUID, TEXT[])"] {
            store.outside.run(&format!("DROP FUNCTION townsquare.{function}"));
        }
    }
    store.outside.run(&format!("DELETE FROM {} WHERE version > 1", own_table(store)));
    let client = store.another();
    for table in tables {
        assert_eq!(store.outside.count(table), 0, "{table} is there");
    }
    wait(client.as_service().spaces().create_space(NewSpace::named("x"))).expect("it works");
    wait(client.close());
}

fn a_newer_database_is_refused_and_left_alone(store: &Store) {
    let own = own_table(store);
    let when = "'2030-01-01 00:00:00Z'";
    store.outside.run(&format!("INSERT INTO {own} (version, name, applied_at) VALUES (999, '0999_future', {when})"));
    store.outside.run("CREATE TABLE from_the_future (x INTEGER)");
    let error = refused(ErrorKind::Config, wait(Client::open(store.config())));
    assert!(error.to_string().starts_with("Open failed: "), "{error}");
    assert!(error.message().contains("999") && error.message().contains("newer"), "{error}");
    assert!(!error.is_retryable());
    assert_eq!(store.outside.count(own), 1 + store.outside.count(&format!("{own} WHERE version < 999")));
    assert_eq!(store.outside.count("from_the_future"), 0);
}

/// A file that says it is ours, and has a table that a migration would make.
#[test]
fn a_schema_that_clashes_changes_nothing_in_sqlite() {
    let store = Store::on(Engine::Sqlite).expect("built in");
    store.outside.run("DROP TABLE fidgets; DELETE FROM townsquare_migrations WHERE version > 1");
    let before = store.outside.rows("SELECT name, sql FROM sqlite_schema ORDER BY name");
    wait(Client::open(store.config())).expect_err("spaces is there already");
    assert_eq!(store.outside.rows("SELECT name, sql FROM sqlite_schema ORDER BY name"), before);
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let folder = TempFolder::new();
    let foreign = folder.join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).expect("a file");
    connection.execute_batch("CREATE TABLE spaces (id); INSERT INTO spaces VALUES (1)").expect("a table");
    connection.close().expect("closed");
    let marked = folder.join("marked.db");
    let connection = rusqlite::Connection::open(&marked).expect("a file");
    connection.execute_batch("PRAGMA application_id = 7; CREATE TABLE x (y)").expect("a table");
    connection.close().expect("closed");
    let text = folder.join("text.db");
    fs::write(&text, "this is no database, but a letter of some length to the mayor of the town".repeat(20))
        .expect("a file");
    for file in [foreign, marked, text] {
        let before = fs::read(&file).expect("a file");
        let error = refused(ErrorKind::Config, wait(Client::open(open(&format!("sqlite:{}", file.display())))));
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(error.message().contains(name), "{error}");
        assert_eq!(fs::read(&file).expect("still a file"), before, "{name}");
    }
    let left: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left.len(), 3, "nothing beside them: {left:?}");
}

#[test]
fn a_postgres_database_with_tables_of_another_program_is_left_alone() {
    for foreign in
        ["CREATE TABLE public.spaces (id INTEGER)", "CREATE SCHEMA townsquare; CREATE TABLE townsquare.x (y INTEGER)"]
    {
        let Some(fresh) = Fresh::on(Engine::Postgres) else { return };
        let outside = fresh.outside();
        outside.run(foreign);
        let objects = "SELECT schemaname, tablename FROM pg_tables
             WHERE schemaname NOT IN ('pg_catalog', 'information_schema')";
        let before = outside.rows(objects);
        let error = refused(ErrorKind::Config, wait(Client::open(open(&fresh.url()))));
        assert!(error.to_string().contains("already exists"), "{error}");
        assert_eq!(outside.rows(objects), before);
        assert_eq!(
            outside.count("pg_namespace WHERE nspname = 'townsquare'"),
            usize::from(before[0][0].as_deref() == Some("townsquare"))
        );
    }
}

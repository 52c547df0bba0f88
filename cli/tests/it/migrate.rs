//! `migrate` and `migrate --plan`, on both engines.

use townsquare_tests::test_database::{EmptyDatabase, Engine};

use crate::fixture::{CommandOutput, Fixture, run};

fn on_both(test: impl Fn(&Fixture, &EmptyDatabase, &dyn Fn(&[&str]) -> CommandOutput)) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        // A missing engine is reported as a skip.
        let Some(database) = EmptyDatabase::on(engine) else { continue };
        let town = Fixture::new();
        let ran = |arguments: &[&str]| {
            let mut command = town.command(arguments);
            command.env("TOWNSQUARE_DATABASE_URL", database.url());
            run(command, "")
        };
        test(&town, &database, &ran);
    }
}

fn migrations_table(database: &EmptyDatabase) -> &'static str {
    match database.engine() {
        Engine::Sqlite => "townsquare_migrations",
        Engine::Postgres => "townsquare.migrations",
    }
}

#[test]
fn a_plan_lists_what_is_missing_and_changes_nothing() {
    on_both(|_, database, ran| {
        let plan = ran(&["migrate", "--plan", "--json"]).json();
        assert_eq!((&plan["is_new"], &plan["is_current"]), (&true.into(), &false.into()));
        let listed = ran(&["migrate", "--plan"]).succeeded();
        assert!(
            listed
                .out
                .lines()
                .any(|line| line.starts_with("0001_catalog ") && line.ends_with("stores the catalog of mini apps")),
            "{listed:?}"
        );
        assert!(listed.err.contains("There is no townsquare yet"), "{listed:?}");
        ran(&["users", "list"]).failed(4, "There is no");

        // Other programs of the place may have the option; the operator asks for the migration.
        let applied = ran(&["migrate", "--json", "--set", "migrate=false"]).json();
        assert_eq!(applied["applied"].as_array().map(Vec::len), plan["migrations"].as_array().map(Vec::len));
        ran(&["users", "list"]).succeeded();
        let again = ran(&["migrate"]).succeeded();
        assert!(again.out.is_empty() && again.err.contains("nothing to do"), "{again:?}");
        assert_eq!(ran(&["migrate", "--plan", "--json"]).json()["is_current"], true);

        // A database of an older version, as far as its records say.
        let raw = database.raw();
        let table = migrations_table(database);
        raw.run(&format!("DELETE FROM {table} WHERE version = (SELECT max(version) FROM {table})"));
        let count = raw.count(table);
        ran(&["users", "list"]).failed(2, "The database needs the migrations 00");
        let plan = ran(&["migrate", "--plan"]).succeeded();
        assert_eq!(plan.out.lines().count(), 2, "{plan:?}");
        assert!(plan.err.contains("Back the database up"), "{plan:?}");
        assert_eq!(raw.count(table), count);
    });
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    on_both(|_, database, ran| {
        ran(&["migrate"]).succeeded();
        // The record of a migration whose tables are there: it cannot be applied again.
        let (raw, table) = (database.raw(), migrations_table(database));
        raw.run(&format!("DELETE FROM {table} WHERE version >= 8"));
        let before = raw.rows(&format!("SELECT name FROM {table} ORDER BY version"));
        let ran = ran(&["migrate"]);
        assert!(ran.code != 0 && ran.err.starts_with("townsquare: "), "{ran:?}");
        assert_eq!(raw.rows(&format!("SELECT name FROM {table} ORDER BY version")), before);
    });
}

#[test]
fn a_database_of_another_build_is_refused() {
    on_both(|_, database, ran| {
        ran(&["migrate"]).succeeded();
        let (raw, table) = (database.raw(), migrations_table(database));
        raw.run(&format!("UPDATE {table} SET checksum = 'other' WHERE version = 3"));
        for arguments in [&["migrate", "--plan"][..], &["migrate"]] {
            ran(arguments).failed(2, "Another build of townsquare made the database");
        }
    });
}

#[test]
fn a_server_without_the_database_is_not_found() {
    let Some(database) = EmptyDatabase::on(Engine::Postgres) else { return };
    let town = Fixture::new();
    let mut command = town.command(&["check"]);
    command.env("TOWNSQUARE_DATABASE_URL", format!("{}_missing", database.url()));
    let ran = run(command, "");
    assert!(ran.err.contains("create the database on the server"), "{ran:?}");
    ran.failed(4, "does not exist");
}

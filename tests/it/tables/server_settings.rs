//! Settings of the server, the database and the role that change what statements mean (DESIGN 3): connections pin them.

use townsquare::{
    ErrorKind,
    blocking::Client,
    config::DatabasePooler,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{fixture::assert_kind, on_engine, postgres::APP_ROLE, test_database::TestDatabase};

/// Sets a default for the library's role in this database.
fn set_default(db: &TestDatabase, setting: &str) {
    let (server, database) = db.database();
    server.administrator(database).run(&format!("ALTER ROLE {APP_ROLE} IN DATABASE {database} SET {setting}"));
}

on_engine! { Postgres in postgres;
    /// A trigger notes the settings of each transaction that changes a space.
    fn transactions_are_read_committed_and_settings_are_pinned_whatever_the_defaults(db: &TestDatabase) {
        for default in [
            "default_transaction_isolation = 'serializable'",
            "default_transaction_deferrable = on",
            "row_security = off",
            "standard_conforming_strings = off",
            "bytea_output = 'escape'",
            "lock_timeout = '59s'",
            "idle_in_transaction_session_timeout = '58s'",
            "search_path = 'nowhere'",
            "DateStyle = 'German'",
            "TimeZone = 'Asia/Tokyo'",
            "synchronous_commit = off",
        ] {
            set_default(db, default);
        }
        db.raw.run(
            "CREATE TABLE noted (settings TEXT);
             CREATE FUNCTION note() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO public.noted SELECT pg_catalog.concat_ws(' ', current_setting('transaction_isolation'),
                     current_setting('row_security'), current_setting('standard_conforming_strings'),
                     current_setting('bytea_output'), current_setting('lock_timeout'),
                     current_setting('idle_in_transaction_session_timeout'), current_setting('search_path'),
                     current_setting('DateStyle'), current_setting('TimeZone'),
                     current_setting('synchronous_commit'));
                 RETURN NULL; END $$;
             CREATE TRIGGER note AFTER INSERT OR UPDATE ON spaces FOR EACH STATEMENT EXECUTE FUNCTION note()",
        );
        for pooler in [DatabasePooler::Auto, DatabasePooler::Transaction] {
            let client = Client::open(db.config().database_pooler(pooler)).expect("opens");
            let service = client.as_service();
            let space = service.spaces().create_space(NewSpace::named("alone").public()).expect("created");
            service.spaces().create_spaces(vec![NewSpace::named("together"); 2]).expect("created");
            service.spaces().update_space(space.id, SpacePatch::new().name("renamed")).expect("renamed");
            client.spaces().get_public_spaces(10, 0).expect("policies apply");
            client.close();
        }
        let noted: Vec<_> = db.raw.rows("SELECT DISTINCT settings FROM noted").concat();
        let pinned = "read committed on on hex 0 1min pg_catalog, public ISO, MDY UTC on";
        assert_eq!(noted, [Some(pinned.to_owned())]);
        assert!(db.raw.count("noted") >= 6);
        db.raw.run("DROP TRIGGER note ON spaces; DROP FUNCTION note; DROP TABLE noted");
    }

    /// Other values say for which servers a commit waits.
    fn commits_wait_for_the_disk_at_least(db: &TestDatabase) {
        set_default(db, "synchronous_commit = 'local'");
        db.raw.run(
            "CREATE TABLE noted (setting TEXT);
             CREATE FUNCTION note() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                 INSERT INTO public.noted SELECT current_setting('synchronous_commit'); RETURN NULL; END $$;
             CREATE TRIGGER note AFTER INSERT ON spaces FOR EACH STATEMENT EXECUTE FUNCTION note()",
        );
        let client = Client::open(db.config()).expect("opens");
        client.as_service().spaces().create_space(NewSpace::named("x")).expect("created");
        client.close();
        assert_eq!(db.raw.rows("SELECT setting FROM noted").concat(), [Some("local".to_owned())]);
        db.raw.run("DROP TRIGGER note ON spaces; DROP FUNCTION note; DROP TABLE noted");
    }

    /// Triggers write the change log, so changes would be missing.
    fn a_role_that_runs_no_triggers_is_refused(db: &TestDatabase) {
        set_default(db, "session_replication_role = 'replica'");
        let error = assert_kind(ErrorKind::Config, Client::open(db.config()));
        assert!(error.message().contains("session_replication_role"), "{error}");
        // A client that is open finds it on its next connection.
        db.end_server_processes();
        let error = assert_kind(ErrorKind::Config, db.service.spaces().create_space(NewSpace::named("x")));
        assert!(error.message().contains("session_replication_role"), "{error}");
        assert_eq!(db.raw.count("spaces"), 0);
    }
}

//! The service is a property of the database, whichever login role opened it last (DESIGN 4); backups have every row or
//! fail.

use std::process::Output;

use townsquare::{ErrorKind, blocking::Client, spaces::NewSpace};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    postgres::{APP_ROLE, callers_role, program, server},
    raw_sql::RawConnection,
    test_database::{Engine, TestDatabase},
};

use super::roles::{assert_policies_apply, config, user_with_space};

/// Creates a login role, runs `test` with its name and drops it.
fn with_login_role(db: &TestDatabase, test: impl FnOnce(&str)) {
    let (server, database) = db.database();
    let role = format!("second_of_{database}");
    let administrator = server.administrator(database);
    administrator.run(&format!("CREATE ROLE {role} LOGIN"));
    test(&role);
    administrator.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// Runs `pg_dump` of the database as a role.
fn dump(db: &TestDatabase, role: &str, arguments: &[&str]) -> Output {
    let (server, database) = db.database();
    let url = server.url(role, database);
    program("pg_dump").args(arguments).arg(url).output().expect("pg_dump starts")
}

on_engine! { Postgres in postgres;
    fn a_login_role_without_the_rights_of_the_service_is_refused_and_takes_nothing(db: &TestDatabase) {
        let (server, database) = db.database();
        let (_, of_ann) = user_with_space(&db.client, "ann");
        let callers = callers_role(&db.raw);
        with_login_role(db, |role| {
            let administrator = server.administrator(database);
            // Every right but the ownership.
            administrator.run(&format!(
                "GRANT ALL ON DATABASE {database} TO {role}; GRANT ALL ON SCHEMA public, townsquare TO {role};
                 GRANT ALL ON ALL TABLES IN SCHEMA public, townsquare TO {role}; GRANT {callers} TO {role}"
            ));
            let error = assert_kind(ErrorKind::Config, Client::open(config(&server.url(role, database))));
            assert!(error.message().contains(&format!("GRANT {APP_ROLE} TO \"{role}\"")), "{error}");
            assert_eq!(db.service.spaces().get_space(of_ann.id).expect("still the service"), of_ann);
            assert_eq!(RawConnection::postgres(&server.url(role, database)).expect("it connects").count("spaces"), 0);
            let dumped = dump(db, role, &["--enable-row-security", &format!("--role={APP_ROLE}")]);
            assert!(!dumped.status.success(), "no dump of some rows");
            assert!(!dump(db, role, &[]).status.success(), "no dump of some rows");
        });
    }

    fn a_member_of_the_service_role_is_the_service_as_well(db: &TestDatabase) {
        let (server, database) = db.database();
        with_login_role(db, |role| {
            server.administrator(database).run(&format!("GRANT {APP_ROLE} TO {role}"));
            let second = Client::open(config(&server.url(role, database))).expect("opens");
            let (of_ann, _) = assert_policies_apply(&second);
            for service in [&db.service, &second.as_service()] {
                assert_eq!(service.spaces().get_space(of_ann.id).expect("the service sees it"), of_ann);
            }
            // What the second role repairs still belongs to the first one.
            db.raw.run("DROP POLICY townsquare_select ON spaces");
            second.close();
            let second = Client::open(config(&server.url(role, database))).expect("opens");
            let owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname IN ('public', 'townsquare')";
            assert_eq!(db.raw.rows(owners), [[Some(APP_ROLE.to_owned())]]);
            db.another().close();
            second.close();
        });
    }

    fn tables_that_a_second_role_migrates_belong_to_the_service(db: &TestDatabase) {
        let (server, database) = db.database();
        with_login_role(db, |role| {
            server.administrator(database).run(&format!("GRANT {APP_ROLE} TO {role}"));
            db.raw.run("DELETE FROM townsquare.migrations WHERE version >= 6;
                DROP TABLE townsquare.changes, townsquare.feed, townsquare.deleted_spaces, townsquare.unfinished_move,
                    townsquare.moved_away;
                DROP SEQUENCE townsquare.changes_id, townsquare.listening_until");
            Client::open(config(&server.url(role, database))).expect("opens").close();
            let owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'changes'";
            assert_eq!(db.raw.value(owner), APP_ROLE);
        });
    }

    fn a_restored_backup_has_every_row(db: &TestDatabase) {
        let spaces = |count: usize| vec![NewSpace::named("x"); count];
        let create = |client: &Client, count| client.spaces().create_spaces(spaces(count)).expect("created");
        create(&db.service, 1_000);
        user_with_space(&db.client, "ann");
        let (server, _) = db.database();
        let dumped = dump(db, APP_ROLE, &["--enable-row-security", &format!("--role={APP_ROLE}")]);
        assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
        let restored = server.new_database();
        let url = server.url(APP_ROLE, &restored);
        let file = townsquare_tests::temp_dir();
        let path = file.path().join("dump.sql");
        std::fs::write(&path, &dumped.stdout).expect("a file");
        let psql = program("psql").args(["-q", "-f"]).arg(&path).arg(&url).output().expect("psql starts");
        assert!(psql.status.success(), "{}", String::from_utf8_lossy(&psql.stderr));
        let raw = RawConnection::postgres(&url).expect("the server runs");
        let client = Client::open(config(&url)).expect("opens");
        assert_eq!(raw.count("spaces"), 1_001);
        assert_eq!(client.spaces().get_public_spaces(20, 0).expect("policies hold"), []);
        let policies = format!("pg_policy WHERE polroles::text LIKE '%' || '{}'::regrole::oid || '%'", callers_role(&raw));
        assert!(raw.count(&policies) > 15, "the policies name the role of the new database");
        client.close();
        server.drop_database(&restored);
    }

    fn an_unusual_search_path_of_the_role_changes_nothing(db: &TestDatabase) {
        let (server, database) = db.database();
        with_login_role(db, |role| {
            let administrator = server.administrator(database);
            administrator.run(&format!(
                "GRANT {APP_ROLE} TO {role}; CREATE SCHEMA app;
                 CREATE TABLE app.users (LIKE public.users); CREATE TABLE app.spaces (LIKE public.spaces);
                 GRANT ALL ON SCHEMA app TO PUBLIC; GRANT ALL ON ALL TABLES IN SCHEMA app TO PUBLIC;
                 ALTER ROLE {role} SET search_path = app, public"
            ));
            let client = Client::open(config(&server.url(role, database))).expect("opens");
            let (handle, space) = user_with_space(&client, "ann");
            assert_eq!(handle.spaces().get_space(space.id).expect("hers"), space);
            assert_eq!((db.raw.count("public.users"), db.raw.count("public.spaces")), (1, 1));
            assert_eq!((db.raw.count("app.users"), db.raw.count("app.spaces")), (0, 0));
            client.close();
            administrator.run("DROP SCHEMA app CASCADE");
        });
    }

    fn session_hashes_are_in_the_text_of_no_statement(db: &TestDatabase) {
        let (server, database) = db.database();
        server.administrator(database).run(&format!("ALTER DATABASE {database} SET log_statement = 'all'"));
        db.end_server_processes();
        let client = db.another();
        let (handle, space) = user_with_space(&client, "ann");
        handle.spaces().get_space(space.id).expect("hers");
        let hashes = db.raw.rows("SELECT access_hash FROM townsquare.sessions UNION SELECT refresh_hash FROM townsquare.sessions");
        assert!(hashes.len() >= 2);
        let log = server.log();
        assert!(log.contains("set_config('townsquare.session', $1") || log.contains("set_config('townsquare.session', $3"));
        for hash in hashes.iter().flatten().flatten() {
            let statements = log.lines().filter(|line| line.contains(hash.as_str()));
            let texts: Vec<_> = statements.filter(|line| !line.contains("DETAIL:  parameters: ")).collect();
            assert!(texts.is_empty(), "{texts:?}");
        }
        client.close();
    }
}

#[test]
fn a_refused_open_leaves_no_role() {
    let Some(server) = server() else { return };
    let empty = townsquare_tests::test_database::EmptyDatabase::on(Engine::Postgres).expect("a server runs");
    let raw = empty.raw();
    raw.run("CREATE TABLE public.spaces (id INTEGER)");
    assert_kind(ErrorKind::Config, Client::open(config(&empty.url())));
    let callers = callers_role(&raw);
    assert_eq!(server.administrator("postgres").count(&format!("pg_roles WHERE rolname = '{callers}'")), 0);
}

#[test]
fn each_database_has_a_role_of_its_own() {
    let (Some(one), Some(other)) = (TestDatabase::on(Engine::Postgres), TestDatabase::on(Engine::Postgres)) else {
        return;
    };
    let (of_one, of_other) = (callers_role(&one.raw), callers_role(&other.raw));
    assert_ne!(of_one, of_other);
    let (_, of_ann) = user_with_space(&one.client, "ann");
    let (server, database) = one.database();
    let raw = RawConnection::postgres(&server.url(APP_ROLE, database)).expect("the server runs");
    raw.run(&format!("SET ROLE {of_other}"));
    let error = raw.try_rows("SELECT id FROM spaces").expect_err("the role of another database");
    assert!(error.contains("permission denied"), "{error}");
    raw.run(&format!("SET ROLE {of_one}"));
    assert_eq!(raw.count("spaces"), 0, "and ours names nobody");
    drop(of_ann);
}

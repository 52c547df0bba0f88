//! Planted damages of a PostgreSQL database and of its server.

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
};

use townsquare::{
    Config,
    blocking::Client,
    check::{CheckDepth, FindingCode},
    config::ManualClock,
    spaces::NewSpace,
};
use townsquare_tests::{
    fixture::start_time,
    postgres::{APP_ROLE, Server, callers_role, server},
    proxy::Proxy,
    temp_dir,
    test_database::{Engine, TestDatabase},
};

use super::fixture::{Fixture, Store, assert_only, codes};

/// Runs a test on PostgreSQL, with a filled folder.
fn on_postgres(test: impl Fn(&Fixture)) {
    if let Some(fixture) = Fixture::on(Engine::Postgres, Store::Folder) {
        fixture.fill();
        assert_eq!(fixture.codes(), []);
        test(&fixture);
    }
}

#[test]
fn changed_policies_and_grants_are_found_and_open_mends_them() {
    on_postgres(|fixture| {
        let callers = callers_role(&fixture.raw);
        for damage in [
            "DROP POLICY townsquare_select ON public.spaces".to_owned(),
            "ALTER TABLE public.spaces NO FORCE ROW LEVEL SECURITY".to_owned(),
            format!("GRANT SELECT ON public.spaces TO {callers}"),
        ] {
            fixture.raw.run(&damage);
            let found = fixture.assert_finds(FindingCode::PolicyChanged);
            let sentence = "The policies, grants or triggers of the table public.spaces are not those of this library.";
            assert_eq!(found, [sentence], "{damage}");
            Client::open(fixture.config()).expect("opens").close();
            assert_eq!(fixture.codes(), [], "{damage}");
        }
    });
}

/// An upgrade of the operating system changes the rules of a collation. The catalog keeps the version that was built with.
#[test]
fn an_index_with_an_outdated_collation_is_found() {
    on_postgres(|fixture| {
        let server = server().expect("started");
        let url = fixture.database.url();
        let administrator = server.administrator(url.rsplit('/').next().expect("a name"));
        let version = administrator.value("SELECT collversion FROM pg_collation WHERE collname = 'address'");
        let set = |version: &str| {
            administrator.run(&format!("UPDATE pg_collation SET collversion = '{version}' WHERE collname = 'address'"));
        };
        set("1");
        let sentence = "The index townsquare_users_address of the table public.users was built with another version of the \
                        collation address.";
        assert_eq!(fixture.assert_finds(FindingCode::CollationChanged), [sentence]);
        set(&version);
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn an_index_with_an_outdated_collation_of_the_database_is_found() {
    let Some(server) = server() else { return };
    let (administrator, name) = (server.administrator("postgres"), "outdated_collation");
    let create = format!("CREATE DATABASE {name} OWNER {APP_ROLE} TEMPLATE template0");
    administrator.run(&format!("{create} LOCALE_PROVIDER icu ICU_LOCALE 'und'"));
    let folder = temp_dir();
    let config = Config::new().data_dir(folder.path().join("data")).catalog_api_key("");
    let client = Client::open(config.database_url(server.url(APP_ROLE, name))).expect("opens");
    let find = || {
        let found = client.check(CheckDepth::Quick).expect("checks");
        let outdated = found.into_iter().filter(|finding| finding.code == FindingCode::CollationChanged);
        outdated.map(|finding| finding.message).collect::<Vec<_>>()
    };
    assert_eq!(find(), [""; 0]);
    administrator.run(&format!("UPDATE pg_database SET datcollversion = '1' WHERE datname = '{name}'"));
    let end = "of the table public.users was built with another version of the collation default.";
    let found = find();
    assert!(found.iter().any(|message| message.ends_with(end)), "{found:?}");
    client.close();
    server.drop_database(name);
}

#[test]
fn a_missing_column_is_found() {
    on_postgres(|fixture| {
        fixture.raw.run("ALTER TABLE public.fidgets DROP COLUMN position");
        let found = fixture.check(CheckDepth::Quick);
        let message = "The table public.\"fidgets\" has no column position.";
        let is_named = found.iter().any(|one| one.code == FindingCode::TableChanged && one.message == message);
        assert!(is_named, "{found:?}");
    });
}

#[test]
fn policies_and_grants_of_other_programs_are_found() {
    on_postgres(|fixture| {
        for (damage, undo) in [
            (
                "CREATE POLICY hides ON public.spaces AS RESTRICTIVE FOR SELECT TO PUBLIC USING (false)",
                "DROP POLICY hides ON public.spaces",
            ),
            ("GRANT SELECT ON public.users TO PUBLIC", "REVOKE SELECT ON public.users FROM PUBLIC"),
        ] {
            fixture.raw.run(damage);
            let found = codes(&fixture.check(CheckDepth::Quick));
            assert!(found.contains(&FindingCode::PolicyForeign), "{damage}: {found:?}");
            fixture.raw.run(undo);
            assert_eq!(fixture.codes(), [], "{undo}");
        }
    });
}

#[test]
fn changed_functions_are_found() {
    on_postgres(|fixture| {
        fixture.raw.run(
            "CREATE OR REPLACE FUNCTION townsquare.caller_id() RETURNS UUID LANGUAGE sql STABLE AS 'SELECT NULL::uuid'",
        );
        let found = fixture.assert_finds(FindingCode::FunctionChanged);
        assert_eq!(found, ["A function of the schema townsquare (of the functions) is not the one of this library."]);
        Client::open(fixture.config()).expect("opens").close();
        assert_eq!(fixture.codes(), []);
        fixture.raw.run("ALTER FUNCTION townsquare.delete_space_files() RESET ALL");
        let found = fixture.assert_finds(FindingCode::FunctionChanged);
        let sentence =
            "A function of the schema townsquare (of the functions of migrations) is not the one of this library.";
        assert_eq!(found, [sentence]);
    });
}

#[test]
fn triggers_that_are_switched_off_are_found() {
    on_postgres(|fixture| {
        fixture.raw.run("ALTER TABLE public.fidgets DISABLE TRIGGER USER");
        fixture.assert_finds(FindingCode::TriggerChanged);
        fixture.raw.run("ALTER TABLE public.fidgets ENABLE TRIGGER USER");
        assert_eq!(fixture.codes(), []);
        fixture.service.realtime().stop().expect("capture is off");
        assert_eq!(fixture.codes(), [], "the triggers of the log are off while capture is off");
    });
}

#[test]
fn an_index_that_is_not_valid_is_found() {
    on_postgres(|fixture| {
        let administrator = {
            let db = TestDatabase::on(Engine::Postgres).expect("the server runs");
            let (server, _) = db.database();
            let name = fixture.raw.value("SELECT current_database()");
            server.administrator(&name)
        };
        administrator
            .run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'public.spaces_owner_id_idx'::regclass");
        let found = fixture.assert_finds(FindingCode::IndexMissing);
        assert_eq!(found, ["The index spaces_owner_id_idx of the table public.spaces is not valid."]);
    });
}

#[test]
fn a_role_of_callers_with_other_rights_is_found() {
    on_postgres(|fixture| {
        let administrator = {
            let db = TestDatabase::on(Engine::Postgres).expect("the server runs");
            let (server, _) = db.database();
            server.administrator(&fixture.raw.value("SELECT current_database()"))
        };
        let callers = callers_role(&fixture.raw);
        administrator.run(&format!("GRANT pg_read_all_settings TO {callers}"));
        let found = fixture.assert_finds(FindingCode::RoleUnsafe);
        assert!(found[0].contains("is a member of pg_read_all_settings"), "{found:?}");
        administrator.run(&format!("REVOKE pg_read_all_settings FROM {callers}"));
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn a_feed_that_an_open_transaction_holds_up_is_behind() {
    on_postgres(|fixture| {
        let open = fixture.database.raw();
        open.run("BEGIN; INSERT INTO spaces (name) VALUES ('not committed')");
        fixture.service.spaces().create_space(NewSpace::named("committed")).expect("created");
        assert_eq!(fixture.codes(), []);
        fixture.raw.run("UPDATE townsquare.changes SET at = at - INTERVAL '5 minutes'");
        let found = fixture.assert_finds(FindingCode::FeedBehind);
        assert!(found[0].starts_with("The change feed is 30"), "{found:?}");
        open.run("ROLLBACK");
        assert_eq!(fixture.codes(), []);
    });
}

#[test]
fn a_clock_that_differs_from_the_servers_is_found() {
    on_postgres(|fixture| {
        let clock = ManualClock::at(start_time());
        let client = Client::open(fixture.config().clock(clock.clock())).expect("opens");
        assert_only(FindingCode::ClockDiffers, &client.check(CheckDepth::Quick).expect("checked"));
        client.close();
    });
}

#[test]
fn transactions_that_belong_to_a_pooler_are_a_note() {
    on_postgres(|fixture| {
        let client = Client::open(fixture.config().set("database_pooler", "transaction").expect("set")).expect("opens");
        for depth in [CheckDepth::Quick, CheckDepth::Full] {
            assert_only(FindingCode::PoolerTransaction, &client.check(depth).expect("checked"));
        }
        client.close();
    });
}

#[test]
fn a_damaged_block_and_a_standby_are_found() {
    let Some(server) = Server::with_settings(&["wal_level=replica"]) else { return };
    let name = server.new_database();
    let folder = temp_dir();
    let config = || {
        let url = server.url(APP_ROLE, &name);
        Config::new().data_dir(folder.path().join("data")).database_url(url).catalog_api_key("")
    };
    let client = Client::open(config()).expect("opens");
    for number in 0..100 {
        let space = NewSpace::named(format!("space {number}")).description("x".repeat(500));
        client.as_service().spaces().create_space(space).expect("created");
    }
    assert_eq!(client.check(CheckDepth::Full).expect("checked"), []);
    client.close();
    let standby = server.standby();
    let url = standby.url(APP_ROLE, &name);
    let client = Client::open(config().database_url(url)).expect("a standby opens for reading");
    assert_only(FindingCode::ServerReadOnly, &client.check(CheckDepth::Quick).expect("checked"));
    client.close();
    drop(standby);
    let administrator = server.administrator(&name);
    administrator.run("CHECKPOINT");
    let folder_of_server = administrator.value("SHOW data_directory");
    let table = administrator.value("SELECT pg_relation_filepath('public.spaces')");
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(Path::new(&folder_of_server).join(table))
        .expect("the file of the table");
    // The header of the third block.
    file.seek(SeekFrom::Start(2 * 8_192)).and_then(|_| file.write_all(&[0xff; 64])).expect("written");
    drop((file, administrator));
    server.restart();
    let client = Client::open(config()).expect("opens, because it does not read the block");
    assert_eq!(client.check(CheckDepth::Quick).expect("checked"), []);
    let found = assert_only(FindingCode::DatabaseDamaged, &client.check(CheckDepth::Full).expect("checked"));
    assert_eq!(found, ["The rows in block 2 of the table public.spaces cannot be read."]);
    client.close();
}

#[test]
fn a_server_that_does_not_answer_is_a_finding() {
    on_postgres(|fixture| {
        let db = TestDatabase::on(Engine::Postgres).expect("the server runs");
        let proxy = Proxy::to(db.database().0.port());
        let url =
            fixture.database.url().replace(&format!(":{}/", db.database().0.port()), &format!(":{}/", proxy.port()));
        assert_ne!(url, fixture.database.url());
        let client = Client::open(fixture.config().database_url(url)).expect("opens");
        assert_eq!(client.check(CheckDepth::Quick).expect("checked"), []);
        proxy.disconnect();
        assert_only(FindingCode::DatabaseUnreachable, &client.check(CheckDepth::Quick).expect("checked"));
        client.close();
    });
}

//! PostgreSQL behind a real pgbouncer, in transaction and in session mode (DESIGN 3): no statement, role or session of one
//! client reaches another.

use std::{process::Command, thread};

use townsquare::{
    Config, ErrorKind, Uuid,
    blocking::Client,
    config::DatabasePooler,
    realtime::LiveRequest,
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    Rng,
    fixture::assert_kind,
    pgbouncer::{Mode, PgBouncer},
    postgres::{APP_ROLE, server},
    raw_sql::RawConnection,
    setting::{seed, setting},
    subprocess::{join_child, name_of, role},
    test_database::{Engine, TestDatabase, child_on, inherited},
};

const POOL: u32 = 4;

/// Runs the part of a child process of this file; does nothing in the parent.
#[test]
fn child_process_entry_point() {
    if let Some("work") = role().as_deref() {
        work_on_threads();
    }
}

/// A database and a pgbouncer before it.
fn behind(mode: Mode) -> Option<(TestDatabase, PgBouncer, String)> {
    let db = TestDatabase::on(Engine::Postgres)?;
    let (server, database) = db.database();
    let pooler = PgBouncer::before(server, mode, POOL)?;
    let url = pooler.url(APP_ROLE, database);
    Some((db, pooler, url))
}

fn config(url: &str) -> Config {
    Config::new().database_url(url).catalog_api_key("")
}

/// Signs a new user up; returns a handle that acts for them.
fn user(client: &Client) -> Client {
    let (address, service) = (format!("{}@town.example", Uuid::new_v4().simple()), client.as_service());
    service.auth().sign_up(&address, "correct horse").expect("signed up");
    let session = service.auth().sign_in(&address, "correct horse").expect("signed in");
    client.as_user(&session.access_token).expect("a handle")
}

/// In a child process: eight users on eight threads create, read, change and delete spaces of their own; each then signs
/// out, after which no call of theirs works.
fn work_on_threads() {
    let connections = setting("TOWNSQUARE_TEST_CONNECTIONS", 16) as u32;
    let client = Client::open(inherited().max_connections(connections)).expect("opens");
    thread::scope(|scope| {
        for number in 0..8 {
            let client = &client;
            scope.spawn(move || work(&user(client), client, &mut Rng::with_seed(seed(number))));
        }
    });
    client.close();
}

fn work(user: &Client, anonymous: &Client, random: &mut Rng) {
    let mut own = Vec::new();
    for _ in 0..setting("TOWNSQUARE_TEST_STEPS", 60) {
        match random.u32(..6) {
            0 | 1 => own.push(user.spaces().create_space(NewSpace::named("mine")).expect("created")),
            2 => {
                let pair = vec![NewSpace::named("mine"), NewSpace::named("mine")];
                own.extend(user.spaces().create_spaces(pair).expect("created"));
            }
            3 if !own.is_empty() => {
                let space = own.swap_remove(random.usize(..own.len()));
                user.spaces().delete_space(space.id).expect("deleted");
            }
            4 if !own.is_empty() => {
                let index = random.usize(..own.len());
                let patch = SpacePatch::new().name("changed");
                own[index] = user.spaces().update_space(own[index].id, patch).expect("changed");
            }
            _ => {
                let Some(space) = own.last() else { continue };
                assert_eq!(user.spaces().get_space(space.id).expect("hers"), *space);
                assert_kind(ErrorKind::NotFound, anonymous.spaces().get_space(space.id));
                assert_eq!(anonymous.spaces().get_public_spaces(10, 0).expect("a list"), []);
            }
        }
    }
    let id = own.first().and_then(|space| space.owner_id);
    if let Some(id) = id {
        let seen = user.spaces().get_user_spaces(id).expect("hers");
        assert_eq!(seen.len(), own.len(), "every row of hers and no other");
    }
    user.auth().sign_out().expect("signed out");
    let space = user.spaces().create_space(NewSpace::named("late"));
    assert!(space.is_err(), "a session that has ended");
}

/// Asserts that none of pgbouncer's server connections carries something of a client.
fn assert_nothing_is_left(url: &str) {
    // Each holds one of the server connections.
    let holders: Vec<_> = (0..POOL).map(|_| RawConnection::postgres(url).expect("pgbouncer runs")).collect();
    for holder in &holders {
        holder.run("BEGIN");
        assert_eq!(holder.count("pg_prepared_statements"), 0);
        assert_eq!(holder.value("SELECT current_user"), APP_ROLE);
        let settings =
            "SELECT concat(current_setting('townsquare.session', true), current_setting('townsquare.caller', true))";
        assert_eq!(holder.value(settings), "");
        assert_eq!(holder.value("SHOW search_path"), "\"$user\", public");
        assert_eq!(holder.count("pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"), 0);
    }
    for holder in &holders {
        holder.run("ROLLBACK");
    }
}

fn two_processes_work(url: &str, variables: &[(&str, &str)]) {
    let test = name_of(&child_process_entry_point);
    let start = |_| -> Command { child_on(url, test, "work", variables) };
    let children: Vec<_> = (0..2).map(|number| start(number).spawn().expect("starts")).collect();
    for child in children {
        join_child(child);
    }
}

#[test]
fn two_processes_share_a_pooler_in_transaction_mode() {
    let Some((db, _pooler, url)) = behind(Mode::Transaction) else { return };
    two_processes_work(&url, &[]);
    assert_nothing_is_left(&url);
    assert_eq!(db.raw.count("spaces WHERE name NOT IN ('mine', 'changed')"), 0);
}

#[test]
fn two_processes_share_a_pooler_in_session_mode() {
    let Some((db, _pooler, url)) = behind(Mode::Session) else { return };
    // The probe of `open` needs a second connection for a moment: four for two processes are just enough.
    two_processes_work(&url, &[("TOWNSQUARE_TEST_CONNECTIONS", "2")]);
    assert_eq!(db.raw.count("spaces WHERE name NOT IN ('mine', 'changed')"), 0);
}

#[test]
fn open_detects_a_pooler_in_transaction_mode() {
    let Some((_db, _pooler, url)) = behind(Mode::Transaction) else { return };
    let client = Client::open(config(&url)).expect("opens");
    let ann = user(&client);
    ann.spaces().create_space(NewSpace::named("hers")).expect("created");
    assert_nothing_is_left(&url);
    client.close();
}

/// As pgbouncer uses several cores: two processes listen on one port. Two connections may reach different ones.
#[test]
fn open_detects_two_poolers_in_transaction_mode_on_one_port() {
    let Some((db, first, url)) = behind(Mode::Transaction) else { return };
    let (server, _) = db.database();
    let _second = PgBouncer::beside(&first, server, POOL);
    for _ in 0..10 {
        let client = Client::open(config(&url)).expect("opens");
        let ann = user(&client);
        ann.spaces().create_space(NewSpace::named("hers")).expect("created");
        client.close();
        let refused = Client::open(config(&url).database_pooler(DatabasePooler::Session));
        assert_kind(ErrorKind::Config, refused);
    }
}

#[test]
fn migrations_in_transaction_mode_leave_nothing_on_shared_connections() {
    let Some(server) = server() else { return };
    let Some(pooler) = PgBouncer::before(server, Mode::Transaction, POOL) else { return };
    let database = server.new_database();
    let url = pooler.url(APP_ROLE, &database);
    Client::open(config(&url)).expect("opens").close();
    assert_nothing_is_left(&url);
    server.drop_database(&database);
}

/// A statement that is prepared in one transaction and run in the next would run what another client has prepared.
#[test]
fn live_queries_in_transaction_mode_run_their_own_statements() {
    let Some((db, _pooler, url)) = behind(Mode::Transaction) else { return };
    let client = Client::open(config(&url)).expect("opens");
    let service = client.as_service();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..30 {
                    service.spaces().create_space(NewSpace::named("mine")).expect("created");
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let client = &service;
                for _ in 0..20 {
                    client.realtime().live(LiveRequest::table("spaces")).expect("a live query");
                }
            });
        }
    });
    client.close();
    assert_nothing_is_left(&url);
    assert_eq!(db.raw.count("spaces WHERE name = 'mine'"), 120);
}

/// In session mode a statement is prepared once: with a name, on the client's own server connection.
#[test]
fn a_pooler_in_session_mode_costs_no_prepared_statements() {
    for mode in [None, Some(Mode::Session)] {
        let Some(db) = TestDatabase::on(Engine::Postgres) else { return };
        let (server, database) = db.database();
        let pooler = match mode {
            Some(mode) => {
                let Some(pooler) = PgBouncer::before(server, mode, POOL) else { return };
                Some(pooler)
            }
            None => None,
        };
        let url = pooler.as_ref().map_or_else(|| db.url(), |pooler| pooler.url(APP_ROLE, database));
        server.administrator(database).run(&format!("ALTER DATABASE {database} SET log_statement = 'all'"));
        let client = Client::open(config(&url)).expect("opens").as_service();
        let marked = Uuid::new_v4();
        for _ in 0..3 {
            assert_kind(ErrorKind::NotFound, client.spaces().get_space(marked));
        }
        let log = server.log();
        let is_named =
            log.lines().any(|line| line.contains("execute sqlx_s_") && line.contains("FROM public.spaces WHERE"));
        assert!(is_named, "{mode:?}: a named statement");
        client.close();
    }
}

#[test]
fn the_option_and_the_url_override_the_detection() {
    let Some((db, _pooler, url)) = behind(Mode::Transaction) else { return };
    for config in [
        config(&url).database_pooler(DatabasePooler::Transaction),
        config(&format!("{url}?pgbouncer=true")),
        config(&format!("{url}?statement-cache-capacity=0")),
        // Without a pooler it works as well.
        config(&db.url()).database_pooler(DatabasePooler::Transaction),
    ] {
        let client = Client::open(config).expect("opens");
        let ann = user(&client);
        let space = ann.spaces().create_space(NewSpace::named("hers")).expect("created");
        assert_kind(ErrorKind::NotFound, client.spaces().get_space(space.id));
        client.close();
    }
    assert_nothing_is_left(&url);
    let error = assert_kind(
        ErrorKind::Config,
        Client::open(config(&format!("{url}?pgbouncer=true")).database_pooler(DatabasePooler::Session)),
    );
    assert!(error.message().contains("database_pooler"), "{error}");
}

#[test]
fn a_pooler_that_gives_no_second_connection_is_refused_by_the_name_of_the_option() {
    let Some(db) = TestDatabase::on(Engine::Postgres) else { return };
    let (server, database) = db.database();
    let Some(pooler) = PgBouncer::before(server, Mode::Session, 1) else { return };
    let url = pooler.url(APP_ROLE, database);
    let error = assert_kind(ErrorKind::Config, Client::open(config(&url)));
    assert!(error.message().contains("database_pooler"), "{error}");
    // The option says what the probe cannot find out: a pooler in transaction mode would have answered.
    let one = config(&url).database_pooler(DatabasePooler::Session).max_connections(1);
    let client = Client::open(one).expect("opens");
    client.as_service().spaces().create_space(NewSpace::named("x")).expect("created");
    client.close();
}

/// Settings and prepared statements of one client would reach others.
#[test]
fn session_mode_before_a_pooler_in_transaction_mode_is_refused_by_the_name_of_the_option() {
    let Some((_db, _pooler, url)) = behind(Mode::Transaction) else { return };
    let refused = Client::open(config(&url).database_pooler(DatabasePooler::Session));
    let error = assert_kind(ErrorKind::Config, refused);
    assert!(error.message().contains("database_pooler"), "{error}");
    assert!(!error.is_retryable(), "{error:?}");
    assert_nothing_is_left(&url);
}

#[test]
fn a_parameter_that_the_pooler_refuses_is_named_and_not_retryable() {
    let Some((_db, _pooler, url)) = behind(Mode::Transaction) else { return };
    for pooler in [DatabasePooler::Auto, DatabasePooler::Session, DatabasePooler::Transaction] {
        let config = config(&format!("{url}?options=-c%20geqo%3Doff")).database_pooler(pooler);
        let error = assert_kind(ErrorKind::Config, Client::open(config));
        assert!(error.message().contains("unsupported startup parameter"), "{error}");
        assert!(error.message().contains("database_url") && !error.is_retryable(), "{error:?}");
    }
}

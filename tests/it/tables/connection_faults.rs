//! Connections to PostgreSQL under load and faults (DESIGN 3): limits, deadlines, cancelled calls, restarts, several hosts.

use std::{
    collections::BTreeMap,
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;
use townsquare::{
    Config, ErrorKind, Uuid,
    blocking::{Client, wait},
    spaces::{NewSpace, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_engine,
    proxy::Proxy,
    raw_sql::RawConnection,
    skip::skip,
    test_database::{TestDatabase, assert_fails},
    wait::wait_until,
};

fn open(db: &TestDatabase, options: impl FnOnce(Config) -> Config) -> Client {
    Client::open(options(db.config().database_url(tested(&db.url())))).expect("opens")
}

/// The URL by which [`processes`] finds the client.
fn tested(url: &str) -> String {
    format!("{url}?application_name=tested")
}

/// The URL of a client whose connections pass through the proxy.
fn url_through(proxy: &Proxy, db: &TestDatabase) -> String {
    let (server, _) = db.database();
    tested(&db.url().replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port())))
}

/// The condition that finds the server processes of clients that [`open`] opened.
fn processes(db: &TestDatabase) -> String {
    let (_, database) = db.database();
    format!("pg_stat_activity WHERE datname = '{database}' AND application_name = 'tested'")
}

fn administrator(db: &TestDatabase) -> RawConnection {
    let (server, database) = db.database();
    server.administrator(database)
}

/// A port as `/proc/net/tcp` shows it.
fn port_in_hex(port: &str) -> String {
    format!(":{:04X}", port.parse::<u16>().expect("a port"))
}

on_engine! { Postgres in postgres;
    fn no_more_connections_are_open_than_the_option_allows(db: &TestDatabase) {
        let client = open(db, |config| config.max_connections(3));
        let service = client.as_service();
        let (administrator, open) = (administrator(db), processes(db));
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    for _ in 0..10 {
                        service.spaces().create_space(NewSpace::named("x")).expect("created");
                    }
                });
            }
            for _ in 0..20 {
                assert!(administrator.count(&open) <= 3);
            }
        });
        assert_eq!(db.raw.count("spaces"), 320);
        client.close();
    }

    /// The row is locked, so that all calls of the threads take place at once.
    fn thirty_two_threads_open_sixteen_connections_by_default(db: &TestDatabase) {
        let client = open(db, |config| config);
        let (service, space) = (client.as_service(), db.space());
        let (administrator, open) = (administrator(db), processes(db));
        db.raw.run(&format!("BEGIN; UPDATE spaces SET name = 'locked' WHERE id = '{}'", space.id));
        let calling = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..32 {
                scope.spawn(|| {
                    calling.fetch_add(1, Ordering::Relaxed);
                    service.spaces().update_space(space.id, SpacePatch::new().name("renamed")).expect("renamed");
                    for _ in 0..5 {
                        service.spaces().create_space(NewSpace::named("x")).expect("created");
                    }
                });
            }
            wait_until("every thread calls", || calling.load(Ordering::Relaxed) == 32);
            wait_until("sixteen calls wait for the row", || {
                administrator.count(&format!("{open} AND wait_event_type = 'Lock'")) == 16
            });
            for _ in 0..20 {
                assert_eq!(administrator.count(&open), 16);
            }
            db.raw.run("COMMIT");
            for _ in 0..20 {
                assert!(administrator.count(&open) <= 16);
            }
        });
        assert_eq!(db.raw.count("spaces"), 1 + 32 * 5);
        client.close();
    }

    fn an_operation_ends_at_its_deadline_with_an_answer(db: &TestDatabase) {
        let client = open(db, |config| config.operation_timeout(Duration::from_secs(4)));
        let (service, space) = (client.as_service(), db.space());
        db.raw.run(&format!("BEGIN; UPDATE spaces SET name = 'locked' WHERE id = '{}'", space.id));
        let rename = service.spaces().update_space(space.id, SpacePatch::new().name("renamed"));
        let error = assert_kind(ErrorKind::Unavailable, rename);
        assert_eq!(error.code(), Some("57014"), "{error:?}");
        assert!(error.is_retryable());
        db.raw.run("COMMIT");
        assert_eq!(service.spaces().get_space(space.id).expect("there").name, "locked");
        client.close();
    }

    fn a_locked_table_ends_no_call_late(db: &TestDatabase) {
        let client = open(db, |config| config.operation_timeout(Duration::from_secs(4)));
        let (service, space) = (client.as_service(), db.space());
        let administrator = administrator(db);
        for table in ["users", "spaces"] {
            administrator.run(&format!("BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"));
            let started = Instant::now();
            assert_kind(ErrorKind::Unavailable, service.spaces().get_public_spaces(1, 0));
            assert!(started.elapsed() < Duration::from_secs(40), "not the sixty seconds of the lock");
            administrator.run("ROLLBACK");
        }
        assert_eq!(service.spaces().get_space(space.id).expect("there"), space);
        client.close();
    }

    /// The server does not answer at all: the client's own deadline ends the call.
    fn a_server_that_is_gone_without_a_word_ends_each_call_at_its_deadline(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        let url = url_through(&proxy, db);
        let timeout = Duration::from_secs(4);
        let client = Client::open(db.config().database_url(&url).operation_timeout(timeout)).expect("opens");
        let (service, space) = (client.as_service(), db.space());
        assert_eq!(service.spaces().get_space(space.id).expect("read"), space);
        proxy.stall(true);
        let error = assert_kind(ErrorKind::Unavailable, service.spaces().get_space(space.id));
        assert_eq!((error.code(), error.is_retryable()), (Some("57014"), true), "{error:?}");
        let refused = Client::open(db.config().database_url(&url).operation_timeout(timeout));
        let error = assert_kind(ErrorKind::Unavailable, refused);
        assert!(error.is_retryable(), "{error:?}");
        proxy.stall(false);
        client.close();
    }

    /// The write has reached the server, and waits for a lock there.
    fn a_write_whose_answer_is_lost_is_in_doubt(db: &TestDatabase) {
        let proxy = Proxy::to(db.database().0.port());
        let timeout = Duration::from_secs(5);
        let client = open(db, |config| config.database_url(url_through(&proxy, db)).operation_timeout(timeout));
        let service = client.as_service();
        let (locker, administrator) = (administrator(db), administrator(db));
        locker.run("BEGIN; LOCK TABLE spaces IN SHARE MODE");
        let waits = format!("{} AND wait_event_type = 'Lock'", processes(db));
        thread::scope(|scope| {
            let write = scope.spawn(|| service.spaces().create_space(NewSpace::named("x")));
            wait_until("the write waits for the lock", || administrator.count(&waits) > 0);
            proxy.stall(true);
            let error = assert_kind(ErrorKind::Unavailable, write.join().expect("returns"));
            assert_eq!((error.code(), error.is_retryable()), (Some("08007"), false), "{error:?}");
        });
        locker.run("ROLLBACK");
        client.close();
    }

    /// The timer of the server's sockets, as Linux shows it: the default is two hours.
    fn the_server_probes_connections_without_traffic(db: &TestDatabase) {
        if !cfg!(target_os = "linux") {
            return skip("the timers of sockets are shown by Linux only");
        }
        let client = open(db, |config| config);
        client.as_service().spaces().get_public_spaces(1, 0).expect("a list");
        let port = administrator(db).value(&format!("SELECT client_port FROM {} LIMIT 1", processes(db)));
        let ends = (port_in_hex(&db.database().0.port().to_string()), port_in_hex(&port));
        wait_until("a probe within a minute", || {
            let sockets = std::fs::read_to_string("/proc/net/tcp").expect("Linux has it");
            sockets.lines().any(|line| {
                let columns: Vec<&str> = line.split_whitespace().collect();
                let is_between = columns.len() > 5 && columns[1].ends_with(&ends.0) && columns[2].ends_with(&ends.1);
                // Timer 2 is the one of probes; its time is in hundredths of a second.
                let left = columns.get(5).and_then(|timer| u64::from_str_radix(timer.strip_prefix("02:")?, 16).ok());
                is_between && left.is_some_and(|left| left <= 6_100)
            })
        });
        client.close();
    }

    fn cancelled_calls_do_not_add_up_to_server_processes(db: &TestDatabase) {
        let client = open(db, |config| config.max_connections(2));
        let (service, space) = (client.as_service(), db.space());
        db.raw.run(&format!("BEGIN; UPDATE spaces SET name = 'locked' WHERE id = '{}'", space.id));
        let (administrator, open) = (administrator(db), processes(db));
        for _ in 0..6 {
            let spaces = service.inner().spaces();
            let mut call = pin!(spaces.update_space(space.id, SpacePatch::new().name("renamed")));
            wait_until("the statement waits for the lock", || {
                let poll = wait(poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())));
                assert!(poll, "the row is locked");
                administrator.count(&format!("{open} AND wait_event_type = 'Lock'")) > 0
            });
            assert!(administrator.count(&open) <= 3, "two connections, and one that cancels");
        }
        // A dropped call is cancelled on the server, also one whose statement had not reached it yet.
        wait_until("no call is under way", || administrator.count(&format!("{open} AND state <> 'idle'")) == 0);
        db.raw.run("COMMIT");
        assert_eq!(service.spaces().get_space(space.id).expect("there").name, "locked");
        client.close();
    }

    fn idle_connections_are_closed(db: &TestDatabase) {
        let client = open(db, |config| config.idle_timeout(Duration::from_millis(100)));
        db.space();
        client.spaces().get_public_spaces(1, 0).expect("a list");
        let (administrator, open) = (administrator(db), processes(db));
        wait_until("the pool is empty", || administrator.count(&open) == 0);
        client.spaces().get_public_spaces(1, 0).expect("a list");
        client.close();
    }

    fn old_connections_are_replaced(db: &TestDatabase) {
        let client = open(db, |config| config.max_lifetime(Duration::from_millis(200)));
        let service = client.as_service();
        let (administrator, open) = (administrator(db), processes(db));
        let list = || administrator.rows(&format!("SELECT pid FROM {open}"));
        service.spaces().get_public_spaces(1, 0).expect("a list");
        let before = list();
        wait_until("another process serves", || {
            service.spaces().get_public_spaces(1, 0).expect("a list");
            list().iter().all(|process| !before.contains(process))
        });
        client.close();
    }

    fn reads_survive_the_loss_of_every_connection(db: &TestDatabase) {
        let client = open(db, |config| config);
        let (service, space) = (client.as_service(), db.space());
        let administrator = administrator(db);
        for _ in 0..3 {
            thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| service.spaces().get_space(space.id).expect("read"));
                }
            });
            administrator.run(&format!("SELECT pg_terminate_backend(pid) FROM {}", processes(db)));
            for _ in 0..20 {
                assert_eq!(service.spaces().get_space(space.id).expect("no read fails"), space);
            }
            administrator.run(&format!("SELECT pg_terminate_backend(pid) FROM {}", processes(db)));
            for _ in 0..20 {
                let new = NewSpace::named("x").with_id(Uuid::new_v4());
                service.spaces().create_space(new).expect("no idempotent write fails");
            }
            administrator.run(&format!("SELECT pg_terminate_backend(pid) FROM {}", processes(db)));
            let failures = (0..20).filter(|_| service.spaces().create_space(NewSpace::named("x")).is_err());
            assert!(failures.count() <= 1, "one write at most meets the loss");
        }
        client.close();
    }

    /// A trigger fails every other attempt like a transaction that others got in the way of.
    fn conflicts_between_transactions_are_retried(db: &TestDatabase) {
        for code in ["40001", "40P01"] {
            db.raw.run(&format!(
                "CREATE SEQUENCE attempts; CREATE FUNCTION conflict() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
                     IF nextval('public.attempts') % 3 <> 0 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '{code}'; END IF;
                     RETURN NULL; END $$;
                 CREATE TRIGGER conflict AFTER INSERT OR UPDATE ON spaces FOR EACH STATEMENT EXECUTE FUNCTION conflict()"
            ));
            let space = db.service.spaces().create_space(NewSpace::named("x")).expect("created");
            db.service.spaces().create_spaces(vec![NewSpace::named("x")]).expect("created");
            db.service.spaces().update_space(space.id, SpacePatch::new().name("y")).expect("renamed");
            let fidget = db.fidget(space.id, "clock");
            db.raw.run("CREATE TRIGGER conflict AFTER UPDATE ON fidgets FOR EACH STATEMENT EXECUTE FUNCTION conflict()");
            let position = BTreeMap::from([(fidget.id, Some(json!([1, 2])))]);
            let saved = db.service.fidgets().save_positions(space.id, position).expect("saved");
            assert_eq!(saved[0].position, Some(json!([1, 2])));
            db.raw.run("DROP TRIGGER conflict ON spaces; DROP TRIGGER conflict ON fidgets; DROP FUNCTION conflict; DROP SEQUENCE attempts");
        }
        assert_eq!(db.raw.count("spaces"), 4);
    }

    fn a_read_only_database_opens_for_reads(db: &TestDatabase) {
        let space = db.space();
        let (_, database) = db.database();
        db.raw.run(&format!("ALTER DATABASE {database} SET default_transaction_read_only = on"));
        let client = open(db, |config| config);
        let service = client.as_service();
        assert_eq!(service.spaces().get_space(space.id).expect("read"), space);
        let error = assert_kind(ErrorKind::Unavailable, service.spaces().create_space(NewSpace::named("x")));
        assert_eq!(error.code(), Some("25006"), "{error:?}");
        assert!(error.is_retryable());
        client.close();
        db.raw.run("DROP POLICY townsquare_select ON spaces");
        let refused = Client::open(db.config().database_url(db.url()));
        let error = assert_kind(ErrorKind::Unavailable, refused);
        assert_eq!(error.code(), Some("25006"), "an outdated one cannot be repaired: {error}");
    }

    fn the_first_server_that_fits_is_used(db: &TestDatabase) {
        let (server, database) = db.database();
        let several = db.url().replace("127.0.0.1:", &format!("127.0.0.1:1,127.0.0.1:{},127.0.0.1:", server.port()));
        for attributes in ["any", "read-write", "primary", "prefer-standby"] {
            let url = format!("{several}?target_session_attrs={attributes}");
            let client = Client::open(db.config().database_url(url)).expect(attributes);
            client.as_service().spaces().create_space(NewSpace::named("x")).expect("created");
            client.close();
        }
        let standby = db.config().database_url(format!("{several}?target_session_attrs=standby"));
        assert_kind(ErrorKind::Unavailable, Client::open(standby));
        db.raw.run(&format!("ALTER DATABASE {database} SET default_transaction_read_only = on"));
        let writer = db.config().database_url(format!("{several}?target_session_attrs=read-write"));
        let error = assert_kind(ErrorKind::Unavailable, Client::open(writer));
        assert_eq!(error.code(), Some("25006"), "{error}");
    }

    fn a_full_server_is_unavailable_and_waited_for(db: &TestDatabase) {
        let (server, database) = db.database();
        let role = format!("limited_{database}");
        let administrator = server.administrator(database);
        administrator.run(&format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 3; GRANT app TO {role}"));
        let url = server.url(&role, database);
        let client = Client::open(db.config().database_url(&url)).expect("opens");
        let service = client.as_service();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..5 {
                        service.spaces().create_space(NewSpace::named("x")).expect("waits for its own connections");
                    }
                });
            }
        });
        assert_eq!(db.raw.count("spaces"), 40);
        client.close();
        let held: Vec<_> = (0..3).filter_map(|_| RawConnection::postgres(&url).ok()).collect();
        let refused = Client::open(db.config().database_url(&url));
        assert_fails(refused.map(drop), ErrorKind::Unavailable, Some("53300"),
            &format!("Open failed: Database error: too many connections for role \"{role}\""));
        drop(held);
        wait_until("the connections are closed", || administrator.count(&format!("pg_stat_activity WHERE usename = '{role}'")) == 0);
        administrator.run(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

//! The change feed on PostgreSQL: what happens to the server, to the connection that listens, and to transactions that stay open.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Instant,
};

use parking_lot::Mutex;
use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    http::events_router,
    metrics::Value,
    realtime::{ChangeRequest, EventType, RowChange, Subscription},
    spaces::NewSpace,
};
use townsquare_tests::{
    fixture::assert_kind,
    http_client,
    http_server::Server as HttpServer,
    on_engine,
    postgres::{APP_ROLE, Server},
    raw_sql::RawConnection,
    test_database::TestDatabase,
    wait::wait_until,
};

/// The names of the rows that a subscription of the service got.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    fn subscribe(&self, service: &Client, request: ChangeRequest) -> Subscription {
        let names = self.clone();
        let push = move |change: RowChange| {
            let row = change.new.or(change.old).expect("a row");
            names.0.lock().push(row["name"].as_str().expect("a name").to_owned());
        };
        service.realtime().subscribe("names", request, push).expect("subscribed")
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    fn wait_for(&self, count: usize) -> Vec<String> {
        wait_until(&format!("{count} changes arrive"), || self.0.lock().len() >= count);
        self.all()
    }
}

fn spaces() -> ChangeRequest {
    ChangeRequest::table("spaces")
}

fn connect(db: &TestDatabase) -> RawConnection {
    RawConnection::postgres(&db.url()).expect("the server runs")
}

fn insert(connection: &RawConnection, name: &str) {
    connection.run(&format!("INSERT INTO spaces (name) VALUES ('{name}')"));
}

const LISTENERS: &str = "pg_stat_activity WHERE datname = current_database() AND application_name = 'townsquare feed'";

on_engine! { Postgres in postgres;
    fn changes_of_other_programs_arrive(db: &TestDatabase) {
        let names = Names::default();
        let subscription = names.subscribe(&db.service, spaces());
        let shell = connect(db);
        for name in ["a", "b", "c"] {
            insert(&shell, name);
        }
        assert_eq!(names.wait_for(3), ["a", "b", "c"]);
        subscription.unsubscribe();
    }

    /// No code of the program runs inside its own call, which may hold a lock.
    fn a_subscription_whose_handle_is_closed_while_it_begins_fails(db: &TestDatabase) {
        db.service.realtime().start().expect("the log is on");
        let handle = db.client.as_service();
        let lock = connect(db);
        lock.run("BEGIN");
        lock.run("LOCK TABLE townsquare.changes IN ACCESS EXCLUSIVE MODE");
        let (closed, closes) = mpsc::channel::<()>();
        let calls = Arc::new(());
        thread::scope(|scope| {
            let (handle, counted) = (&handle, Arc::clone(&calls));
            let subscribing = scope.spawn(move || {
                let request = spaces().on_close(move |_| closed.send(()).expect("the test receives"));
                handle.realtime().subscribe("names", request, move |_| drop(Arc::clone(&counted))).map(drop)
            });
            db.wait_for_a_waiting_connection();
            handle.close();
            lock.run("COMMIT");
            assert_kind(ErrorKind::Closed, subscribing.join().expect("no panic"));
        });
        assert!(closes.recv().is_err(), "on_close is dropped, and was not called");
        assert_eq!(Arc::strong_count(&calls), 1, "the callback is dropped");
    }

    /// Each entry has 5 MiB; a page of the log has 256 KiB and one entry at least. Entries of another table come between them.
    fn entries_larger_than_a_page_are_delivered_completely(db: &TestDatabase) {
        let cursor = db.service.realtime().cursor().expect("a cursor");
        let live = Names::default();
        let subscription = live.subscribe(&db.service, spaces());
        let shell = connect(db);
        for name in 0..12 {
            shell.run(&format!(
                "INSERT INTO spaces (name, description) VALUES ('{name}', repeat('x', 5 * 1024 * 1024));
                 INSERT INTO fidgets (type, config) VALUES ('{name}', to_jsonb(repeat('x', 5 * 1024 * 1024)))"
            ));
        }
        let expected: Vec<_> = (0..12).map(|name| name.to_string()).collect();
        assert_eq!(live.wait_for(12), expected);
        let behind = Names::default();
        let again = behind.subscribe(&db.service, spaces().since(cursor));
        assert_eq!(behind.wait_for(12), expected);
        subscription.unsubscribe();
        again.unsubscribe();
    }

    fn a_transaction_that_stays_open_delays_later_changes_and_loses_none(db: &TestDatabase) {
        let names = Names::default();
        let subscription = names.subscribe(&db.service, spaces());
        let (open, other) = (connect(db), connect(db));
        open.run("BEGIN");
        insert(&open, "first");
        insert(&other, "second");
        // Another process of the library, which has subscribers and its own watch, does not change that.
        db.service.spaces().create_space(NewSpace::named("third")).expect("created");
        wait_until("the delay shows", || db.service.realtime().stats().expect("figures").lag_seconds > 0.0);
        let lag = || db.service.metrics().expect("open").get("townsquare_feed_lag_seconds", &[]).cloned();
        assert!(matches!(lag(), Some(Value::Number(lag)) if lag > 0.0), "{:?}", lag());
        assert!(names.all().is_empty(), "the first change is not committed");
        open.run("COMMIT");
        assert_eq!(names.wait_for(3), ["first", "second", "third"]);
        assert!(db.service.realtime().stats().expect("figures").lag_seconds.abs() < f64::EPSILON);
        assert_eq!(lag(), Some(Value::Number(0.0)));
        subscription.unsubscribe();
    }

    fn a_subscription_gets_what_commits_after_it_began_and_nothing_that_had_committed(db: &TestDatabase) {
        db.service.realtime().cursor().expect("capture is on");
        let (open, other) = (connect(db), connect(db));
        open.run("BEGIN");
        insert(&open, "open");
        insert(&other, "before");
        let cursor = db.service.realtime().cursor().expect("a cursor");
        let (names, since) = (Names::default(), Names::default());
        let subscription = names.subscribe(&db.service, spaces());
        insert(&other, "after");
        open.run("COMMIT");
        assert_eq!(names.wait_for(2), ["open", "after"]);
        let again = since.subscribe(&db.service, spaces().since(cursor));
        assert_eq!(since.wait_for(2), ["open", "after"]);
        insert(&other, "last");
        assert_eq!([names.wait_for(3), since.wait_for(3)], [["open", "after", "last"], ["open", "after", "last"]]);
        subscription.unsubscribe();
        again.unsubscribe();
    }

    fn a_change_of_a_row_by_the_older_of_two_transactions_comes_last_if_it_was_last(db: &TestDatabase) {
        insert(&db.raw, "0");
        let names = Names::default();
        let subscription = names.subscribe(&db.service, spaces().event(EventType::Update));
        let (older, other) = (connect(db), connect(db));
        older.run("BEGIN; INSERT INTO users (email) VALUES ('older')");
        other.run("UPDATE spaces SET name = '1'");
        older.run("UPDATE spaces SET name = '2'; COMMIT");
        assert_eq!(names.wait_for(2), ["1", "2"]);
        subscription.unsubscribe();
    }

    fn a_rolled_back_transaction_that_would_have_notified_holds_up_nobody(db: &TestDatabase) {
        let names = Names::default();
        let subscription = names.subscribe(&db.service, spaces());
        let (open, other) = (connect(db), connect(db));
        open.run("BEGIN");
        insert(&open, "undone");
        insert(&other, "done");
        open.run("ROLLBACK");
        assert_eq!(names.wait_for(1), ["done"]);
        subscription.unsubscribe();
    }

    /// Without a pooler: behind one in transaction mode no connection listens.
    fn the_feed_goes_on_when_the_connection_that_listens_is_cut(db: &TestDatabase) {
        let names = Names::default();
        let client = Client::open(db.config().database_url(db.url())).expect("opens");
        let subscription = names.subscribe(&client.as_service(), spaces());
        let (shell, mut due) = (connect(db), Vec::new());
        for round in 0..5 {
            for number in 0..20 {
                let name = format!("{round}.{number}");
                insert(&shell, &name);
                due.push(name);
                if number == 10 {
                    assert_eq!(shell.rows(&format!("SELECT pg_terminate_backend(pid) FROM {LISTENERS}")).len(), 1);
                }
            }
            assert_eq!(names.wait_for(due.len()), due);
            wait_until("a connection listens again", || shell.count(LISTENERS) == 1);
        }
        subscription.unsubscribe();
        wait_until("no connection listens", || shell.count(LISTENERS) == 0);
        client.close();
    }

    /// One snapshot for a whole transaction would be taken before the locks of writers are looked at.
    fn the_feed_loses_nothing_if_transactions_are_serializable_by_default(db: &TestDatabase) {
        let (server, database) = db.database();
        let setting = format!("ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'");
        server.administrator("postgres").run(&setting);
        let client = Client::open(db.config().database_url(db.url())).expect("opens");
        let service = client.as_service();
        let cursor = service.realtime().cursor().expect("a cursor");
        let (names, replayed) = (Names::default(), Names::default());
        let subscription = names.subscribe(&service, spaces());
        let (open, other) = (connect(db), connect(db));
        assert_eq!(open.value("SHOW transaction_isolation"), "serializable");
        open.run("BEGIN ISOLATION LEVEL READ COMMITTED");
        insert(&open, "first");
        insert(&other, "second");
        wait_until("the delay shows", || service.realtime().stats().expect("figures").lag_seconds > 0.0);
        open.run("COMMIT");
        assert_eq!(names.wait_for(2), ["first", "second"]);
        thread::scope(|scope| {
            for writer in 0..4 {
                let service = &service;
                scope.spawn(move || {
                    for number in 0..25 {
                        service.spaces().create_space(NewSpace::named(format!("{writer}.{number}"))).expect("created");
                    }
                });
            }
        });
        let due = db.raw.rows("SELECT new_row ->> 'name' FROM townsquare.changes WHERE table_name = 'spaces' ORDER BY id");
        let due: Vec<_> = due.into_iter().map(|row| row[0].clone().expect("a name")).collect();
        assert_eq!(due.len(), 102);
        assert_eq!(names.wait_for(due.len()), due);
        let again = replayed.subscribe(&service, spaces().since(cursor));
        assert_eq!(replayed.wait_for(due.len()), due);
        subscription.unsubscribe();
        again.unsubscribe();
        client.close();
    }

    fn a_write_waits_a_second_for_a_pruning_that_waits_longer(db: &TestDatabase) {
        let client = Client::open(db.config().change_retention_rows(1_000)).expect("opens").as_service();
        client.realtime().cursor().expect("capture is on");
        let (open, space) = (connect(db), NewSpace::named("x"));
        insert(&db.raw, "first");
        open.run("BEGIN; SELECT FROM townsquare.changes ORDER BY id LIMIT 1 FOR UPDATE");
        db.raw.run("INSERT INTO spaces (name) SELECT 'x' FROM generate_series(1, 3000)");
        client.spaces().create_space(space.clone()).expect("wakes the pruning");
        db.wait_for_a_waiting_connection();
        let began = Instant::now();
        (0..2).for_each(|_| drop(client.spaces().create_space(space.clone()).expect("created")));
        let elapsed = began.elapsed();
        // The pruning waits until its time limit of a minute.
        assert!((500..30_000).contains(&elapsed.as_millis()), "two writes took {elapsed:?}");
        open.run("ROLLBACK");
        wait_until("the log is pruned", || db.raw.count("townsquare.changes") <= 1_050);
        client.close();
    }

    fn no_connection_listens_without_a_subscription(db: &TestDatabase) {
        db.service.realtime().cursor().expect("capture is on");
        insert(&db.raw, "x");
        assert_eq!(db.raw.count(LISTENERS), 0);
        assert_eq!(db.raw.value("SELECT is_called FROM townsquare.listening_until"), "f", "triggers notify");
    }
}

/// `PREPARE TRANSACTION` is refused after `NOTIFY`, which the triggers run while somebody listens.
#[test]
fn a_prepared_transaction_is_delivered_when_it_is_committed() {
    let Some(server) = Server::durable() else { return };
    server.administrator("postgres").run("ALTER SYSTEM SET max_prepared_transactions = 4");
    server.restart();
    let database = server.new_database();
    let url = server.url(APP_ROLE, &database);
    let client = Client::open(Config::new().database_url(&url).catalog_api_key("")).expect("opens");
    let service = client.as_service();
    let cursor = service.realtime().cursor().expect("capture is on");
    let connect = || RawConnection::postgres(&url).expect("the server runs");
    let (prepared, other) = (connect(), connect());
    prepared.run("BEGIN");
    insert(&prepared, "prepared");
    prepared.run("PREPARE TRANSACTION 'one'");
    insert(&other, "later");
    let names = Names::default();
    let subscription = names.subscribe(&service, spaces().since(cursor));
    prepared.run("BEGIN");
    insert(&prepared, "refused");
    let refused = prepared.try_rows("PREPARE TRANSACTION 'two'").expect_err("somebody listens");
    assert!(refused.contains("NOTIFY"), "{refused}");
    assert!(names.all().is_empty(), "the first change is not committed");
    other.run("COMMIT PREPARED 'one'");
    assert_eq!(names.wait_for(2), ["prepared", "later"]);
    subscription.unsubscribe();
    client.close();
}

/// Each statement is a round trip, which a stranger can cause.
#[test]
fn a_request_for_events_runs_few_statements() {
    let Some(server) = Server::with_settings(&["log_statement=all"]) else { return };
    let url = server.url(APP_ROLE, &server.new_database());
    let client = Client::open(Config::new().database_url(&url).catalog_api_key("")).expect("opens");
    let cursor = client.realtime().cursor().expect("capture is on");
    let open = |cursor: &[(String, String)]| {
        let mut response = client.realtime().handle_events("/events?table=spaces", cursor).expect("a response");
        assert!(response.status == 200 && response.body.next().is_some_and(|first| first.starts_with(b"id: ")));
        response
    };
    let statements = || {
        let names = ["feed_position", "check_point", "seen_entries", "cursor_key"];
        server.log().lines().filter(|line| names.iter().any(|name| line.contains(name))).count()
    };
    // Starts the watch for commits.
    let _first = open(&[]);
    let before = statements();
    let _second = open(&[]);
    assert_eq!(statements() - before, 3);
    let before = statements();
    let _third = open(&[("last-event-id".to_owned(), cursor)]);
    assert_eq!(statements() - before, 4);
    let before = statements();
    let http = HttpServer::of(events_router(client.inner().clone()));
    let status = |method: &str, query: &str| {
        let request =
            format!("{method} /events?table=spaces{query} HTTP/1.1\r\nHost: town\r\nConnection: close\r\n\r\n");
        http_client::send(http.address(), request.as_bytes()).status
    };
    // HEAD answers as GET would.
    assert_eq!(status("HEAD", ""), 200);
    assert_eq!(statements() - before, 3);
    for query in ["&since=malformed", "&filter=secret=eq.1"] {
        assert_eq!((status("HEAD", query), status("GET", query)), (400, 400), "{query}");
    }
    client.as_service().realtime().stop().expect("capture is off");
    assert_eq!((status("HEAD", ""), status("GET", "")), (503, 503));
    client.close();
}

#[test]
fn the_feed_goes_on_after_a_restart_of_the_server() {
    let Some(server) = Server::durable() else { return };
    let database = server.new_database();
    let config = || Config::new().database_url(server.url(APP_ROLE, &database)).catalog_api_key("");
    let client = Client::open(config()).expect("opens");
    let names = Names::default();
    let subscription = names.subscribe(&client.as_service(), spaces());
    insert(&RawConnection::postgres(&server.url(APP_ROLE, &database)).expect("the server runs"), "before");
    assert_eq!(names.wait_for(1), ["before"]);
    server.restart();
    insert(&RawConnection::postgres(&server.url(APP_ROLE, &database)).expect("the server runs"), "after");
    assert_eq!(names.wait_for(2), ["before", "after"]);
    subscription.unsubscribe();
    client.close();
}

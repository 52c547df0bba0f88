//! Cursors and subscriptions after the database lost its last changes in a failover, a restore or a power loss. Later changes
//! get the ids of the lost ones.

use std::{fs, time::Duration};

use townsquare::{
    Config, ErrorKind,
    blocking::{ChangeStream, Client},
    realtime::{ChangeRequest, LiveRequest},
    spaces::NewSpace,
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines, on_engine,
    postgres::{APP_ROLE, Server, program},
    raw_sql::RawConnection,
    temp_dir,
    test_database::{Engine, TestDatabase},
    wait::wait_until,
};

use super::fixture::{PausedReader, Recorder, next, next_short, stream};

fn spaces() -> ChangeRequest {
    ChangeRequest::table("spaces")
}

fn create(service: &Client, name: &str) {
    service.spaces().create_space(NewSpace::named(name)).expect("created");
}

fn cursor(service: &Client) -> String {
    service.realtime().cursor().expect("a cursor")
}

/// Checks that a cursor is refused because it is of another history.
#[track_caller]
fn assert_other_history(service: &Client, cursor: &str) {
    let error = assert_kind(ErrorKind::CursorExpired, service.realtime().changes(spaces().since(cursor)));
    assert!(error.message().contains("another history"), "{error}");
}

/// Gives the log another history after the entry `id`, in one transaction: entries of `names` instead of those that it has.
fn replace_history(db: &TestDatabase, id: &str, names: &[&str]) {
    let reset = match db.engine {
        Engine::Sqlite => format!("UPDATE sqlite_sequence SET seq = {id} WHERE name = 'townsquare_changes'"),
        Engine::Postgres => format!("SELECT setval('townsquare.changes_id', greatest({id}, 1), {id} > 0)"),
    };
    let values: Vec<_> = names.iter().map(|name| format!("('{name}')")).collect();
    db.raw.run("BEGIN");
    db.raw.run(&format!("DELETE FROM {} WHERE id > {id}", log(db)));
    db.raw.run(&reset);
    db.raw.run(&format!("INSERT INTO spaces (name) VALUES {}", values.join(", ")));
    db.raw.run("COMMIT");
}

/// Begins a subscription of each kind: with a callback, as a live query, as a stream, and as a stream since a cursor.
fn begin_each(service: &Client) -> (Recorder, Vec<ChangeStream>) {
    let live = service.realtime().live(LiveRequest::table("spaces")).expect("a live query");
    let streams = vec![live.changes, stream(service, spaces()), stream(service, spaces().since(cursor(service)))];
    (Recorder::subscribe(service, spaces()), streams)
}

/// Checks that each subscription ends without a change, because it began with changes that are lost.
#[track_caller]
fn assert_each_ends((recorder, streams): (Recorder, Vec<ChangeStream>)) {
    assert_eq!(recorder.closed().map(|reason| reason.kind()), Some(ErrorKind::CursorExpired));
    assert!(recorder.short().is_empty(), "{:?}", recorder.short());
    for mut stream in streams {
        let end = stream.next_within(Duration::from_secs(60)).expect("an end");
        let error = assert_kind(ErrorKind::CursorExpired, end);
        assert!(error.message().contains("another history"), "{error}");
    }
}

/// The log's table.
fn log(db: &TestDatabase) -> &'static str {
    if db.engine == Engine::Sqlite { "townsquare_changes" } else { "townsquare.changes" }
}

/// The id of the last entry, `0` without one.
fn last_id(db: &TestDatabase) -> String {
    db.raw.value(&format!("SELECT coalesce(max(id), 0) FROM {}", log(db)))
}

/// The configuration of a client with the clock of the system, which gives the changes their times.
fn real_time(db: &TestDatabase) -> Config {
    Config::new().database_url(db.url()).catalog_api_key("")
}

on_both_engines! {
    fn feeds_and_cursors_on_a_lost_change_end_and_older_cursors_go_on(db: &TestDatabase) {
        let start = cursor(&db.service);
        create(&db.service, "shared");
        let (shared, shared_id) = (cursor(&db.service), last_id(db));
        let (mut changes, recorder) = (stream(&db.service, spaces()), Recorder::subscribe(&db.service, spaces()));
        create(&db.service, "lost");
        let (lost, mut behind) = (next(&mut changes).cursor, stream(&db.service, spaces().since(&*shared)));
        recorder.wait_for(1);
        let after_lost = cursor(&db.service);
        assert_eq!(next_short(&mut behind, 1), ["INSERT lost"]);

        replace_history(db, &shared_id, &["one", "two", "three"]);
        let closed = recorder.closed().expect("a reason");
        assert_eq!(closed.kind(), ErrorKind::CursorExpired);
        assert_eq!(recorder.short(), ["INSERT lost"], "no change after the lost one");
        for mut stream in [changes, behind] {
            let end = stream.next_within(Duration::from_secs(60)).expect("an end");
            assert_kind(ErrorKind::CursorExpired, end);
        }
        assert_other_history(&db.service, &lost);
        assert_other_history(&db.service, &after_lost);
        let new = ["INSERT one", "INSERT two", "INSERT three"];
        assert_eq!(next_short(&mut stream(&db.service, spaces().since(shared)), 3), new);
        assert_eq!(next_short(&mut stream(&db.service, spaces().since(start)), 4)[1..], new);
        // The client goes on with the new history.
        let recorder = Recorder::subscribe(&db.service, spaces());
        create(&db.service, "later");
        assert_eq!(recorder.wait_for(1), ["INSERT later"]);
        recorder.subscription.unsubscribe();
    }

    fn subscriptions_that_began_with_lost_changes_end_also_if_the_log_reader_was_before_them(db: &TestDatabase) {
        // The new history is shorter than the lost one, as long, and longer.
        for length in 2..5 {
            let older = Recorder::subscribe(&db.service, spaces());
            let reader = PausedReader::pause(&db.service);
            let shared_id = last_id(db);
            (0..3).for_each(|_| create(&db.service, "lost"));
            let begun = begin_each(&db.service);
            let new = &["one", "two", "three", "four"][..length];
            replace_history(db, &shared_id, new);
            reader.release();
            assert_each_ends(begun);
            let new: Vec<_> = new.iter().map(|name| format!("INSERT {name}")).collect();
            assert_eq!(older.wait_for(length), new, "the log reader goes on");
            older.subscription.unsubscribe();
        }
    }

    fn a_cursor_of_the_future_is_refused(db: &TestDatabase) {
        let start = cursor(&db.service);
        let id = last_id(db);
        create(&db.service, "lost");
        let lost = cursor(&db.service);
        replace_history(db, &id, &["one"]);
        assert_other_history(&db.service, &lost);
        assert_eq!(next_short(&mut stream(&db.service, spaces().since(start)), 1), ["INSERT one"]);
    }

    fn a_position_at_the_pruned_boundary_and_on_an_empty_log_stays_usable(db: &TestDatabase) {
        let empty = cursor(&db.service);
        let mut changes = stream(&db.service, spaces().since(&*empty));
        let cursors: Vec<_> = (0..110)
            .map(|number| {
                create(&db.service, &format!("{number}"));
                next(&mut changes).cursor
            })
            .collect();
        drop(changes);
        let log = log(db);
        let client = Client::open(real_time(db).change_retention_rows(100)).expect("opens").as_service();
        cursor(&client);
        wait_until("the log is pruned", || db.raw.count(log) == 100);
        assert_eq!(next_short(&mut stream(&client, spaces().since(&*cursors[9])), 5)[0], "INSERT 10");
        for expired in [&*empty, &*cursors[8]] {
            let refused = client.realtime().changes(spaces().since(expired));
            let error = assert_kind(ErrorKind::CursorExpired, refused);
            assert!(error.message().contains("no longer has"), "{error}");
        }
        db.raw.run(&format!("UPDATE {log} SET at = '2001-01-01T00:00:00.000000Z'"));
        wait_until("the log is empty", || db.raw.count(log) == 0);
        let mut since = [stream(&client, spaces().since(cursor(&client))), stream(&client, spaces())];
        create(&db.service, "after");
        for changes in &mut since {
            assert_eq!(next_short(changes, 1), ["INSERT after"]);
        }
        assert_kind(ErrorKind::CursorExpired, client.realtime().changes(spaces().since(&*cursors[108])));
        client.close();
    }
}

on_engine! { Postgres in postgres_alone;
    fn subscriptions_end_that_began_with_lost_changes_which_an_open_transaction_held_up(db: &TestDatabase) {
        create(&db.service, "shared");
        let older = Recorder::subscribe(&db.service, spaces());
        let reader = PausedReader::pause(&db.service);
        let shared_id = last_id(db);
        let open = RawConnection::postgres(&db.url()).expect("the server runs");
        open.run("BEGIN; UPDATE spaces SET name = 'held'");
        (0..3).for_each(|_| create(&db.service, "lost"));
        let begun = begin_each(&db.service);
        open.run("ROLLBACK");
        replace_history(db, &shared_id, &["new"]);
        reader.release();
        assert_each_ends(begun);
        assert_eq!(older.wait_for(1), ["INSERT new"]);
        older.subscription.unsubscribe();
    }
}

/// With `durability=normal` SQLite may lose the last commits in a power loss: the file is as it was before them.
#[test]
fn a_cursor_of_commits_that_a_power_loss_undid_is_refused() {
    let (folder, earlier) = (temp_dir(), temp_dir());
    let open = || Client::open(Config::new().data_dir(folder.path()).catalog_api_key("")).expect("opens");
    let file = |folder: &tempfile::TempDir| folder.path().join("townsquare.db");
    let client = open();
    cursor(&client);
    create(&client.as_service(), "kept");
    let kept = cursor(&client);
    client.close();
    fs::copy(file(&folder), file(&earlier)).expect("copied");

    let client = open();
    create(&client.as_service(), "lost");
    let lost = cursor(&client);
    client.close();
    fs::copy(file(&earlier), file(&folder)).expect("copied");

    let client = open();
    let service = client.as_service();
    assert_other_history(&service, &lost);
    (0..3).for_each(|number| create(&service, &format!("{number}")));
    assert_other_history(&service, &lost);
    let mut changes = stream(&service, spaces().since(kept));
    assert_eq!(next_short(&mut changes, 3), ["INSERT 0", "INSERT 1", "INSERT 2"]);
    client.close();
}

/// A primary, its standby, and a client of both on a database.
struct Pair {
    primary: Server,
    standby: Server,
    database: String,
    service: Client,
}

impl Pair {
    fn start() -> Option<Pair> {
        let primary = Server::durable()?;
        let database = primary.new_database();
        let client = Client::open(Config::new().database_url(primary.url(APP_ROLE, &database)).catalog_api_key(""));
        let client = client.expect("opens");
        cursor(&client.as_service());
        client.close();
        let standby = primary.standby();
        let ports = format!("127.0.0.1:{},127.0.0.1:{}", primary.port(), standby.port());
        let url = format!("postgres://{APP_ROLE}@{ports}/{database}?target_session_attrs=read-write");
        let client = Client::open(Config::new().database_url(url).catalog_api_key("")).expect("opens");
        Some(Pair { primary, standby, database, service: client.as_service() })
    }

    /// Waits until the standby has every change of the primary.
    fn wait_for_standby(&self) {
        let entries = |server: &Server| {
            RawConnection::postgres(&server.url("postgres", &self.database)).map(|raw| raw.count("townsquare.changes"))
        };
        let primary = entries(&self.primary);
        wait_until("the standby has followed", || entries(&self.standby) == primary);
    }

    /// Ends the connection of the standby to the primary.
    fn cut(&self) {
        let standby = self.standby.administrator("postgres");
        standby.run("ALTER SYSTEM SET primary_conninfo = ''");
        standby.run("SELECT pg_reload_conf()");
        wait_until("the standby does not follow", || standby.count("pg_stat_wal_receiver") == 0);
    }

    fn fail_over(&self) {
        self.primary.stop();
        self.standby.promote();
    }

    /// Creates a space on the new primary.
    fn create(&self, name: &str) {
        let raw = RawConnection::postgres(&self.standby.url(APP_ROLE, &self.database)).expect("the server runs");
        raw.run(&format!("INSERT INTO spaces (name) VALUES ('{name}')"));
    }
}

#[test]
fn a_failover_to_a_standby_that_lagged_ends_feeds_and_cursors_on_a_lost_change() {
    let Some(pair) = Pair::start() else { return };
    let service = &pair.service;
    create(service, "shared");
    let shared = cursor(service);
    pair.wait_for_standby();
    pair.cut();
    let recorder = Recorder::subscribe(service, spaces());
    create(service, "lost");
    recorder.wait_for(1);
    let lost = cursor(service);

    pair.fail_over();
    // Enough to reach the id of the lost change, whatever ids the new primary leaves out.
    (0..3).for_each(|number| pair.create(&format!("{number}")));
    assert_eq!(recorder.closed().map(|reason| reason.kind()), Some(ErrorKind::CursorExpired));
    assert_eq!(recorder.short(), ["INSERT lost"]);
    assert_other_history(service, &lost);
    let mut changes = stream(service, spaces().since(shared));
    assert_eq!(next_short(&mut changes, 3), ["INSERT 0", "INSERT 1", "INSERT 2"]);
    service.close();
}

#[test]
fn a_failover_ends_subscriptions_that_began_with_lost_changes_while_a_transaction_was_open() {
    let Some(pair) = Pair::start() else { return };
    let service = &pair.service;
    create(service, "shared");
    let older = Recorder::subscribe(service, spaces());
    pair.wait_for_standby();
    pair.cut();
    // The log reader waits for it.
    let open = RawConnection::postgres(&pair.primary.url(APP_ROLE, &pair.database)).expect("the server runs");
    open.run("BEGIN; UPDATE spaces SET name = 'held'");
    (0..3).for_each(|_| create(service, "lost"));
    let begun = begin_each(service);

    pair.fail_over();
    (0..5).for_each(|number| pair.create(&format!("{number}")));
    assert_each_ends(begun);
    assert_eq!(older.wait_for(5), ["INSERT 0", "INSERT 1", "INSERT 2", "INSERT 3", "INSERT 4"]);
    older.subscription.unsubscribe();
    service.close();
}

#[test]
fn a_subscription_goes_on_after_a_failover_that_lost_nothing() {
    let Some(pair) = Pair::start() else { return };
    let service = &pair.service;
    let recorder = Recorder::subscribe(service, spaces());
    create(service, "before");
    recorder.wait_for(1);
    let before = cursor(service);
    pair.wait_for_standby();
    pair.fail_over();
    pair.create("after");
    assert_eq!(recorder.wait_for(2), ["INSERT before", "INSERT after"]);
    let mut changes = stream(service, spaces().since(before));
    assert_eq!(next_short(&mut changes, 1), ["INSERT after"]);
    recorder.subscription.unsubscribe();
    service.close();
}

/// Restored into another database the dump is a copy, which has another incarnation.
#[test]
fn a_database_restored_in_place_refuses_the_cursors_of_later_changes() {
    let Some(db) = TestDatabase::on(Engine::Postgres) else { return };
    let start = cursor(&db.service);
    create(&db.service, "dumped");
    let dumped = cursor(&db.service);
    let (server, database) = db.database();
    let url = server.url("postgres", database);
    let folder = temp_dir();
    let file = folder.path().join("dump");
    let dump = program("pg_dump").args(["-Fc", "-f"]).arg(&file).arg(&url).status();
    assert!(dump.expect("pg_dump starts").success());
    let recorder = Recorder::subscribe(&db.service, spaces());
    create(&db.service, "lost");
    recorder.wait_for(1);
    let lost = cursor(&db.service);

    let restore = program("pg_restore").args(["--clean", "--if-exists", "-d", &url]).arg(&file).status();
    assert!(restore.expect("pg_restore starts").success());
    let client = db.another();
    let service = client.as_service();
    assert_other_history(&service, &lost);
    (0..3).for_each(|number| create(&service, &format!("{number}")));
    assert_other_history(&service, &lost);
    assert_eq!(recorder.closed().map(|reason| reason.kind()), Some(ErrorKind::CursorExpired));
    assert_eq!(recorder.short(), ["INSERT lost"]);
    let expected = ["INSERT 0", "INSERT 1", "INSERT 2"];
    assert_eq!(next_short(&mut stream(&service, spaces().since(dumped)), 3), expected);
    assert_eq!(next_short(&mut stream(&service, spaces().since(start)), 4)[1..], expected);
    client.close();
}

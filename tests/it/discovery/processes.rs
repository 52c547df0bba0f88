//! Clients on one database share lists, leases and backoff (DESIGN 6). Each client is a process to the others.

use std::{sync::mpsc, thread, time::Duration};

use townsquare::{
    ErrorKind,
    blocking::Client,
    config::ManualClock,
    discovery::{CatalogSource, DiscoveryStats, Timeframe},
};
use townsquare_tests::{
    catalog::Catalog,
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, hours, ids, start_time},
    on_both_engines, on_engine,
    test_database::{Engine, TestDatabase},
    upstream::{KEY, Reply, Upstream, in_order_of},
    wait::{DEADLINE, wait_until, wait_up_to},
};

const APPS: usize = 150;

fn count(client: &Client, timeframe: Timeframe) -> usize {
    client.discovery().get_trending_mini_apps(timeframe, 1000).expect("a list").len()
}

fn stats(client: &Client) -> DiscoveryStats {
    client.discovery().stats().expect("open")
}

fn prefix(db: &TestDatabase) -> &'static str {
    match db.engine {
        Engine::Sqlite => "townsquare_",
        Engine::Postgres => "townsquare.",
    }
}

fn open(db: &TestDatabase, upstream: &Upstream) -> Client {
    Client::open(db.config().catalog_url(upstream.url()).catalog_api_key(KEY)).expect("opens")
}

on_both_engines! {
    fn a_save_keeps_the_parts_of_a_save_that_runs(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(APPS).rows());
        let client = open(db, &upstream);
        count(&client, Timeframe::Hours24);
        wait_until("the catalog is stored", || db.raw.count(&format!("{}catalog", prefix(db))) == 1);
        // Another save has written its parts and not yet its header.
        let parts = format!("{}catalog_parts", prefix(db));
        db.raw.run(&format!(
            "INSERT INTO {parts} (generation, part, source, records, written_at)
            SELECT 'other', 0, source, '[]', written_at FROM {parts}"
        ));
        let others = || db.raw.count(&format!("{parts} WHERE generation = 'other'"));
        let refresh = |size: usize| {
            upstream.serve(Catalog::of(size).rows());
            db.elapse(Duration::from_secs(60));
            client.discovery().refresh().expect("refreshed");
        };
        refresh(APPS + 1);
        assert_eq!((others(), db.raw.count(&parts)), (1, 2), "the replaced generation is deleted, the other is not");
        // A save that never ended is removed after an hour.
        db.elapse(Duration::from_secs(3_600));
        refresh(APPS + 2);
        assert_eq!((others(), db.raw.count(&parts)), (0, 1));
        client.close();
        let second = open(db, &upstream);
        assert_eq!(count(&second, Timeframe::Hours24), APPS + 2);
        assert_eq!(stats(&second).source, CatalogSource::Database);
        second.close();
    }

    fn lists_of_two_clients_are_merged(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(APPS).rows());
        let (one, two) = (open(db, &upstream), open(db, &upstream));
        count(&one, Timeframe::Days7);
        count(&two, Timeframe::Hour1);
        count(&one, Timeframe::Hour1);
        assert_eq!(upstream.list_count(), 3, "the main list and each further list once");
        let third = open(db, &upstream);
        for (timeframe, window) in [(Timeframe::Days7, "7d"), (Timeframe::Hour1, "1h")] {
            let listed = third.discovery().get_trending_mini_apps(timeframe, 1000).expect("a list");
            assert_eq!(ids(&listed), in_order_of(window, Catalog::of(APPS).apps().map(|app| app.id).collect()));
        }
        assert_eq!(upstream.list_count(), 3);
        for client in [one, two, third] {
            client.close();
        }
    }

    fn backoff_and_retry_after_are_shared(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(APPS).rows());
        let (one, two) = (open(db, &upstream), open(db, &upstream));
        count(&one, Timeframe::Hours24);
        count(&two, Timeframe::Hours24);
        upstream.reply_with(|_| Reply::rate_limited(Some("3000")));
        db.elapse(FIFTEEN_MINUTES);
        let settle = |client: &Client| {
            count(client, Timeframe::Hours24);
            wait_until("no refresh runs", || !stats(client).is_refreshing);
        };
        settle(&one);
        let calls = upstream.request_count();
        assert_eq!(calls, 3);
        for _ in 0..3 {
            settle(&two);
            db.elapse(Duration::from_secs(900));
        }
        assert_eq!(upstream.request_count(), calls, "the second client leaves the upstream alone too");
        assert!(stats(&two).last_error.is_some_and(|told| told.contains("429")));
        // A client that opens meanwhile has the stored catalog, and does not ask either.
        let third = open(db, &upstream);
        settle(&third);
        assert_eq!((stats(&third).source, stats(&third).is_stale), (CatalogSource::Database, true));
        assert_eq!(upstream.request_count(), calls);
        upstream.recover();
        db.elapse(Duration::from_secs(301));
        settle(&two);
        wait_until("it recovers after the time it was told", || stats(&two).last_error.is_none());
        for client in [one, two, third] {
            client.close();
        }
    }

    fn refresh_waits_for_a_fetch_that_began_after_the_call(db: &TestDatabase) {
        let (old, new) = (Catalog::of(60), Catalog::of(60).seeded(7));
        let upstream = Upstream::of(old.rows());
        let (one, two) = (open(db, &upstream), open(db, &upstream));
        for is_forced in [false, true] {
            upstream.recover();
            upstream.serve(old.rows());
            one.discovery().refresh().expect("refreshed");
            let before = upstream.list_count();
            let gate = upstream.hold_replies();
            db.elapse(FIFTEEN_MINUTES);
            count(&one, Timeframe::Hours24);
            wait_until("the first client fetches the old rows", || upstream.list_count() == before + 1);
            upstream.serve(new.rows());
            thread::scope(|scope| {
                let discovery = two.discovery();
                let refresh = scope.spawn(move || match is_forced {
                    true => discovery.force_refresh(),
                    false => discovery.refresh(),
                });
                wait_until("the second client waits for the lease", || stats(&two).is_refreshing);
                gate.open();
                refresh.join().expect("no panic").expect("refreshed");
            });
            let listed = two.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
            assert_eq!(listed[0].id(), new.app(0).id, "forced: {is_forced}");
            wait_until("no refresh runs", || !stats(&one).is_refreshing);
        }
        one.close();
        two.close();
    }

    fn a_lease_taken_before_the_clock_was_set_back_is_free(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(60).rows());
        upstream.reply_with(|_| Reply::Never);
        let (dead, alive) = (open(db, &upstream), open(db, &upstream));
        thread::scope(|scope| {
            let read = scope.spawn(|| dead.discovery().get_trending_mini_apps(Timeframe::Hours24, 1));
            wait_until("the first client fetches", || upstream.list_count() == 1);
            dead.close();
            assert_kind(ErrorKind::Closed, read.join().expect("no panic"));
        });
        upstream.recover();
        match db.engine {
            Engine::Sqlite => db.clock.step(hours(-240)),
            Engine::Postgres => db.raw.run("UPDATE townsquare.leases SET held_until = held_until + INTERVAL '240 hours'"),
        }
        let (sender, first_read) = mpsc::channel();
        let reader = alive.clone();
        thread::spawn(move || sender.send(count(&reader, Timeframe::Hours24)));
        assert_eq!(first_read.recv_timeout(DEADLINE), Ok(60));
        assert_eq!(upstream.list_count(), 2);
        alive.close();
    }

    fn parts_written_before_the_clock_was_set_back_are_deleted_after_an_hour(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(60).rows());
        let client = open(db, &upstream);
        count(&client, Timeframe::Hours24);
        let parts = format!("{}catalog_parts", prefix(db));
        let future = match db.engine {
            Engine::Sqlite => "'2030-01-01T00:00:00.000000Z'",
            Engine::Postgres => "now() + INTERVAL '1000 days'",
        };
        db.raw.run(&format!(
            "INSERT INTO {parts} (generation, part, source, records, written_at)
            SELECT 'other', 0, source, '[]', {future} FROM {parts}"
        ));
        for expected in [1, 0] {
            client.discovery().refresh().expect("refreshed");
            assert_eq!(db.raw.count(&format!("{parts} WHERE generation = 'other'")), expected);
            db.elapse(Duration::from_secs(3_601));
        }
        client.close();
    }
}

on_engine! {
    Postgres in clock_skew;

    fn processes_with_wrong_clocks_share_leases_the_catalog_and_backoff(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(60).rows());
        let gate = upstream.hold_replies();
        let clocks = [0, 1, -1].map(|skew| ManualClock::at(start_time() + hours(skew)));
        let clients = clocks.each_ref().map(|clock| {
            let config = db.config().clock(clock.clock()).catalog_timeout(DEADLINE).catalog_refresh_timeout(DEADLINE);
            Client::open(config.catalog_url(upstream.url()).catalog_api_key(KEY)).expect("opens")
        });
        thread::scope(|scope| {
            let first = scope.spawn(|| count(&clients[0], Timeframe::Hours24));
            wait_until("the first client fetches", || upstream.request_count() == 1);
            let others = [1, 2].map(|number: usize| {
                let client = &clients[number];
                scope.spawn(move || count(client, Timeframe::Hours24))
            });
            wait_until("the others wait", || clients.iter().all(|client| stats(client).is_refreshing));
            gate.open();
            assert_eq!(first.join().expect("no panic"), 60);
            for other in others {
                assert_eq!(other.join().expect("no panic"), 60);
            }
        });
        assert_eq!(upstream.list_count(), 1, "one fetch for all");
        upstream.reply_with(|_| Reply::rate_limited(Some("3000")));
        db.elapse(FIFTEEN_MINUTES);
        clocks.iter().for_each(|clock| clock.advance(FIFTEEN_MINUTES));
        let before = upstream.request_count();
        for client in &clients {
            count(client, Timeframe::Hours24);
            wait_until("no refresh runs", || !stats(client).is_refreshing);
            assert!(stats(client).last_error.is_some_and(|told| told.contains("429")));
        }
        assert_eq!(upstream.request_count(), before + 1, "only the first client asks");
        for client in &clients {
            client.close();
        }
    }
}

#[test]
fn the_backoff_of_a_further_list_is_shared() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    fixture.upstream.reply_with(|request| match request.window() {
        "7d" => Reply::status(500),
        _ => Reply::Page,
    });
    let open = || Client::open(fixture.one_try()).expect("opens");
    let (one, two) = (open(), open());
    count(&one, Timeframe::Days7);
    let calls = fixture.upstream.request_count();
    assert_eq!(calls, 2);
    count(&two, Timeframe::Days7);
    assert_eq!(fixture.upstream.request_count(), calls);
    assert_eq!(stats(&two).stale_lists, ["7d"]);
}

#[test]
fn a_lease_is_renewed_as_long_as_its_fetch_runs() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let gate = fixture.upstream.hold_replies();
    // The lease lasts as long as a fetch may take, and is renewed after a third of that time, which the test waits for.
    let length = Duration::from_secs(30);
    let open =
        || Client::open(fixture.config().catalog_timeout(length).catalog_refresh_timeout(length)).expect("opens");
    let (one, two) = (open(), open());
    thread::scope(|scope| {
        let first = scope.spawn(|| count(&one, Timeframe::Hours24));
        wait_until("the first client fetches", || fixture.upstream.request_count() == 1);
        let connection = rusqlite::Connection::open(fixture.folder.path().join("data/townsquare.db")).expect("SQLite");
        let held_until = || {
            let read = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
            connection.query_row("SELECT held_until FROM townsquare_leases", [], read).expect("a lease")
        };
        let taken = held_until();
        fixture.clock.advance(Duration::from_secs(25));
        wait_up_to(2 * DEADLINE, "the lease is renewed", || held_until() > taken);
        // Without the renewal, the lease would end here.
        fixture.clock.advance(Duration::from_secs(25));
        let second = scope.spawn(|| count(&two, Timeframe::Hours24));
        wait_until("the second client waits", || stats(&two).is_refreshing);
        gate.open();
        assert_eq!([first, second].map(|read| read.join().expect("no panic")), [60, 60]);
    });
    assert_eq!(fixture.upstream.list_count(), 1, "one fetch for both");
}

//! Retention: old changes go, but none that a subscription of the client still needs within four times the limits.

use std::{
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    realtime::ChangeRequest,
    spaces::{NewFidget, NewSpace, SpacePatch},
};
use townsquare_tests::{
    fixture::assert_kind,
    on_both_engines,
    test_database::{Engine, TestDatabase},
    wait::{DEADLINE, wait_until},
};

use super::fixture::{Recorder, next, stream};

fn create(client: &Client, count: usize) {
    // Spaces without an owner: each is one entry.
    for _ in 0..count / 50 {
        client.spaces().create_spaces(vec![NewSpace::named("x"); 50]).expect("created");
    }
}

fn retained(client: &Client) -> u64 {
    client.realtime().stats().expect("figures").retained
}

/// The configuration of a client with the clock of the system, which gives the changes their times.
fn real_time(db: &TestDatabase) -> Config {
    Config::new().database_url(db.url()).catalog_api_key("")
}

/// Opens a client of the service that keeps 10,000 changes, with the log on.
fn client_with_small_log(db: &TestDatabase) -> Client {
    let client = Client::open(db.config().change_retention_rows(10_000)).expect("opens").as_service();
    client.realtime().cursor().expect("the log is on");
    client
}

/// Publishes and hides a space with 1,000 fidgets: each time the log gets a change of each fidget.
fn publish_and_hide(db: &TestDatabase, client: &Client, times: usize) {
    let space = db.public_space(db.user(), "a space");
    client.fidgets().create_fidgets(space.id, vec![NewFidget::of_type("note"); 1_000]).expect("created");
    for number in 0..times {
        let patch = if number % 2 == 0 { SpacePatch::new().hidden() } else { SpacePatch::new().published() };
        client.spaces().update_space(space.id, patch).expect("updated");
    }
}

/// Runs `write` while it looks at the number of changes in the log. Returns the largest number.
fn peak_during(db: &TestDatabase, write: impl FnOnce()) -> u64 {
    struct Ended<'a>(&'a AtomicBool);
    impl Drop for Ended<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let peak = scope.spawn(|| {
            let mut peak = 0;
            while !has_ended.load(Ordering::Acquire) {
                peak = peak.max(retained(&db.service));
                #[allow(clippy::disallowed_methods, reason = "looks until the writes have ended")]
                thread::sleep(Duration::from_millis(2));
            }
            peak
        });
        {
            let _ended = Ended(&has_ended);
            write();
        }
        peak.join().expect("the look at the log")
    })
}

on_both_engines! {
    fn large_writes_wait_for_pruning(db: &TestDatabase) {
        let client = client_with_small_log(db);
        // Another process, which never uses the feed.
        let other = Client::open(db.config().change_retention_rows(10_000)).expect("opens").as_service();
        let (has_ended, writes, longest) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        let peak = peak_during(db, || {
            thread::scope(|scope| {
                scope.spawn(|| {
                    let space = db.public_space(db.user(), "another space");
                    while !has_ended.load(Ordering::Acquire) {
                        let began = Instant::now();
                        let renamed = other.spaces().update_space(space.id, SpacePatch::new().name("x"));
                        if renamed.is_err() {
                            return;
                        }
                        longest.fetch_max(began.elapsed().as_millis() as usize, Ordering::AcqRel);
                        writes.fetch_add(1, Ordering::AcqRel);
                    }
                });
                publish_and_hide(db, &client, 200);
                has_ended.store(true, Ordering::Release);
            });
        });
        let (writes, longest) = (writes.into_inner(), longest.into_inner());
        assert!(peak < 50_000, "{peak} changes of 200,000");
        assert!(writes > 50 && longest < 10_000, "{writes} other writes, the longest took {longest} ms");
        wait_until("the log is pruned", || retained(&client) <= 11_000);
        assert!(retained(&client) >= 9_000, "not more than needed");
        other.close();
        client.close();
    }

    fn large_writes_of_several_clients_wait_for_pruning(db: &TestDatabase) {
        let clients: Vec<_> = (0..4).map(|_| client_with_small_log(db)).collect();
        let peak = peak_during(db, || {
            thread::scope(|scope| {
                for client in &clients {
                    scope.spawn(|| publish_and_hide(db, client, 50));
                }
            });
        });
        // A write waits a second at most, and a busy server may prune more slowly than four clients write then.
        assert!(peak < 100_000, "{peak} changes of 200,000");
        wait_until("the log is pruned", || retained(&clients[0]) <= 11_000);
        clients.iter().for_each(Client::close);
    }

    fn an_unread_stream_keeps_four_times_the_limit_and_expires(db: &TestDatabase) {
        let client = client_with_small_log(db);
        let mut changes = stream(&client, ChangeRequest::table("fidgets"));
        let peak = peak_during(db, || publish_and_hide(db, &client, 100));
        assert!((30_000..70_000).contains(&peak), "{peak} changes of 100,000");
        wait_until("the log is pruned", || retained(&client) <= 11_000);
        let error = loop {
            match changes.next_within(DEADLINE) {
                Some(Err(error)) => break error,
                change => assert!(change.is_some(), "the stream goes on"),
            }
        };
        assert_eq!(error.kind(), ErrorKind::CursorExpired, "{error}");
        client.close();
    }

    fn old_changes_are_pruned_and_their_cursors_expire(db: &TestDatabase) {
        let client = Client::open(db.config().change_retention_rows(100)).expect("opens").as_service();
        let cursor = client.realtime().cursor().expect("a cursor");
        create(&client, 400);
        wait_until("the log is pruned", || (1..=100).contains(&retained(&client)));
        let since = ChangeRequest::table("spaces").since(&*cursor);
        let error = assert_kind(ErrorKind::CursorExpired, client.realtime().changes(since));
        assert_eq!(error.to_string(), "Read changes failed: The change feed no longer has what follows the cursor");
        let cursor = client.realtime().cursor().expect("a cursor");
        create(&client, 50);
        let mut changes = stream(&client, ChangeRequest::table("spaces").since(cursor));
        (0..50).for_each(|_| drop(next(&mut changes)));
        client.close();
    }

    fn old_changes_are_pruned_by_their_age(db: &TestDatabase) {
        db.service.realtime().cursor().expect("capture is on");
        create(&db.service, 100);
        assert_eq!(retained(&db.service), 100, "they are not a week old");
        // The clock of the system, which gives the changes their times.
        let config = Config::new().database_url(db.url()).catalog_api_key("").change_retention(Duration::from_secs(1));
        let client = Client::open(config).expect("opens").as_service();
        client.realtime().cursor().expect("the client uses the feed");
        wait_until("the log is pruned", || retained(&client) == 0);
        client.close();
    }

    fn one_wrong_time_deletes_no_fresh_change_and_blocks_no_pruning(db: &TestDatabase) {
        db.service.realtime().cursor().expect("capture is on");
        create(&db.service, 300);
        let log = if db.engine == Engine::Sqlite { "townsquare_changes" } else { "townsquare.changes" };
        let set_time = |id: u32, time: &str| db.raw.run(&format!("UPDATE {log} SET at = '{time}' WHERE id = {id}"));
        (1..=10).for_each(|id| set_time(id, "2001-01-01T00:00:00.000000Z"));
        // A clock that was wrong for a moment.
        set_time(60, "2001-01-01T00:00:00.000000Z");
        let client = Client::open(real_time(db)).expect("opens").as_service();
        client.realtime().cursor().expect("the client uses the feed");
        wait_until("the old prefix is pruned", || retained(&client) <= 290);
        assert_eq!(db.raw.value(&format!("SELECT min(id) FROM {log}")), "11");
        assert_eq!(db.raw.count(log), 290, "what was committed before the wrong time is fresh");
        // A time in the future at the beginning holds up pruning by age, but not by number.
        set_time(11, "2999-01-01T00:00:00.000000Z");
        client.close();
        let client = Client::open(real_time(db).change_retention_rows(100)).expect("opens").as_service();
        client.realtime().cursor().expect("the client uses the feed");
        wait_until("the log is pruned", || retained(&client) <= 100);
        assert_eq!(db.raw.value(&format!("SELECT min(id) FROM {log}")), "201");
        client.close();
    }

    fn a_slow_subscription_is_kept_until_the_log_is_four_times_its_limit(db: &TestDatabase) {
        let opened = Client::open(db.config().change_retention_rows(100)).expect("opens");
        let client = opened.as_service();
        let (release, released) = mpsc::channel::<()>();
        let slow = Recorder::with(&client, ChangeRequest::table("spaces"), move |_| {
            let _ = released.recv();
        });
        create(&client, 300);
        // Another client prunes for itself alone; this one keeps what its subscription needs.
        wait_until("the callback runs", || retained(&client) >= 200);
        (0..300).for_each(|_| release.send(()).expect("the callback waits"));
        assert_eq!(slow.wait_for(300).len(), 300);
        create(&client, 1_500);
        wait_until("the log is pruned", || retained(&client) <= 400);
        drop(release);
        let reason = slow.closed().expect("a reason");
        assert_eq!(reason.kind(), ErrorKind::CursorExpired, "{reason}");
        assert!(reason.to_string().starts_with("Subscribe failed: "), "{reason}");
        assert!(slow.changes().len() < 1_800);
        opened.close();
    }
}

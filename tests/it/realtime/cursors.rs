//! Cursors: replay after a restart, and cursors that cannot be used.

use townsquare::{
    ErrorKind,
    blocking::{ChangeStream, Client},
    realtime::ChangeRequest,
    spaces::NewSpace,
};
use townsquare_tests::{
    fixture::assert_kind, on_both_engines, on_engine, raw_sql::RawConnection, test_database::Engine,
};

use super::fixture::{Recorder, next, next_short, short, stream};

fn create(client: &Client, names: std::ops::Range<u32>) -> Vec<String> {
    names
        .map(|name| {
            client.spaces().create_space(NewSpace::named(format!("{name}"))).expect("created");
            format!("INSERT {name}")
        })
        .collect()
}

on_both_engines! {
    fn a_subscription_since_a_cursor_goes_on_after_a_restart(db: &TestDatabase) {
        let cursor = {
            let client = db.another().as_service();
            let mut changes = stream(&client, ChangeRequest::table("spaces"));
            create(&client, 0..3);
            next(&mut changes);
            let second = next(&mut changes);
            second.cursor
        };
        // More than a feed holds in memory, while nobody listens.
        let missed: Vec<_> = ["INSERT 2".to_owned()].into_iter().chain(create(&db.service, 3..400)).collect();
        let client = db.another().as_service();
        let since = || ChangeRequest::table("spaces").since(&*cursor);
        let mut changes = stream(&client, since());
        let recorder = Recorder::subscribe(&client, since());
        let live = create(&db.service, 400..420);
        let expected: Vec<_> = missed.into_iter().chain(live).collect();
        assert_eq!(next_short(&mut changes, expected.len()), expected);
        assert_eq!(recorder.wait_for(expected.len()), expected);
        client.close();
    }

    fn the_cursor_of_every_change_leads_to_the_next_one(db: &TestDatabase) {
        let start = db.service.realtime().cursor().expect("a cursor");
        let all = create(&db.service, 0..20);
        let mut changes = stream(&db.service, ChangeRequest::table("spaces").since(start));
        for number in 0..all.len() {
            let cursor = next(&mut changes).cursor;
            let mut rest = stream(&db.service, ChangeRequest::table("spaces").since(&*cursor));
            assert_eq!(next_short(&mut rest, all.len() - number - 1), all[number + 1..], "after {number}");
        }
    }

    fn a_request_until_a_cursor_ends_there_however_few_changes_match(db: &TestDatabase) {
        let service = &db.service;
        let start = service.realtime().cursor().expect("a cursor");
        let all = create(service, 0..600);
        let end = service.realtime().cursor().expect("a cursor");
        create(service, 600..700);
        let names = |request: ChangeRequest, since: &str, until: &str| -> Vec<String> {
            let changes = service.realtime().changes(request.since(since).until(until)).expect("a stream");
            changes.map(|change| short(&change.expect("a change"))).collect()
        };
        let spaces = || ChangeRequest::table("spaces");
        assert_eq!(names(spaces(), &start, &end), all);
        assert_eq!(names(spaces().filter("name=eq.599"), &start, &end), ["INSERT 599"]);
        assert_eq!(names(spaces().filter("name=eq.600"), &start, &end), Vec::<String>::new());
        assert_eq!(names(ChangeRequest::table("fidgets"), &start, &end), Vec::<String>::new());
        // The end is before the start, or there is no start.
        assert_eq!(names(spaces(), &end, &start), Vec::<String>::new());
        let now = service.realtime().changes(spaces().until(&*end)).expect("a stream");
        assert_eq!(now.count(), 0);
        let error = service.realtime().changes(spaces().until("no cursor")).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }

    fn requests_until_and_since_one_cursor_deliver_each_change_once(db: &TestDatabase) {
        let service = &db.service;
        let start = service.realtime().cursor().expect("a cursor");
        let open = (db.engine == Engine::Postgres).then(|| RawConnection::postgres(&db.url()).expect("the server runs"));
        if let Some(open) = &open {
            open.run("BEGIN; INSERT INTO spaces (name) VALUES ('open')");
        }
        let before = create(service, 0..3);
        let middle = service.realtime().cursor().expect("a cursor");
        let after = create(service, 3..5);
        let request = || ChangeRequest::table("spaces");
        let first = service.realtime().changes(request().since(&*start).until(&*middle)).expect("a stream");
        // The second stream begins before its end can be reached.
        let second = service.realtime().changes(request().until(&*middle)).expect("a stream");
        if let Some(open) = &open {
            open.run("COMMIT");
        }
        let end = service.realtime().cursor().expect("a cursor");
        let names = |changes: ChangeStream| -> Vec<_> { changes.map(|change| short(&change.expect("a change"))).collect() };
        assert_eq!((names(first), names(second)), (before, Vec::new()));
        let rest = service.realtime().changes(request().since(middle).until(end)).expect("a stream");
        let of_open = open.iter().map(|_| "INSERT open".to_owned());
        assert_eq!(names(rest), of_open.chain(after).collect::<Vec<_>>());
    }

    fn a_callback_until_a_cursor_is_closed_without_a_reason(db: &TestDatabase) {
        let start = db.service.realtime().cursor().expect("a cursor");
        let all = create(&db.service, 0..3);
        let end = db.service.realtime().cursor().expect("a cursor");
        create(&db.service, 3..5);
        let (sender, receiver) = std::sync::mpsc::channel();
        let closed = sender.clone();
        let request = ChangeRequest::table("spaces").since(start).until(end);
        let request = request.on_close(move |reason| closed.send(format!("closed {}", reason.is_none())).expect("a reader"));
        let on_change = move |change| sender.send(short(&change)).expect("a reader");
        let _subscription = db.service.realtime().subscribe("past", request, on_change).expect("a subscription");
        let timeout = std::time::Duration::from_secs(20);
        let seen: Vec<_> = (0..4).map(|_| receiver.recv_timeout(timeout).expect("a call")).collect();
        assert_eq!(seen, [&all[..], &["closed true".to_owned()]].concat());
    }

    fn the_position_after_the_last_commit_has_nothing_behind_it(db: &TestDatabase) {
        create(&db.service, 0..3);
        let before = db.service.realtime().cursor().expect("a cursor");
        create(&db.service, 3..5);
        let cursor = db.service.realtime().cursor().expect("a cursor");
        create(&db.service, 5..6);
        let mut changes = stream(&db.service, ChangeRequest::table("spaces").since(cursor));
        assert_eq!(next_short(&mut changes, 1), ["INSERT 5"]);
        let mut changes = stream(&db.service, ChangeRequest::table("spaces").since(before));
        assert_eq!(next_short(&mut changes, 3), ["INSERT 3", "INSERT 4", "INSERT 5"]);
    }

    fn a_changed_cursor_and_one_of_an_older_library_have_expired(db: &TestDatabase) {
        let cursor = db.service.realtime().cursor().expect("a cursor");
        let changed = if cursor.starts_with('0') { "1" } else { "0" };
        for expired in [format!("{changed}{}", &cursor[1..]), "0123456789abcdef0123456789abcdef.0.7".to_owned()] {
            let error = assert_kind(
                ErrorKind::CursorExpired,
                db.service.realtime().changes(ChangeRequest::table("spaces").since(&*expired)),
            );
            assert!(error.to_string().starts_with("Read changes failed: The cursor is "), "{error}");
        }
        let subscribed = db.service.realtime().subscribe("x", ChangeRequest::table("spaces").since("x.y"), |_| {});
        assert_kind(ErrorKind::InvalidInput, subscribed);
    }

    fn a_replay_of_many_pages_gives_also_what_is_written_meanwhile(db: &TestDatabase) {
        let insert = |names: std::ops::Range<u32>| -> Vec<String> {
            let rows: Vec<_> = names.clone().map(|name| format!("('{name}')")).collect();
            db.raw.run(&format!("INSERT INTO spaces (name) VALUES {}", rows.join(", ")));
            names.map(|name| format!("INSERT {name}")).collect()
        };
        let cursor = db.service.realtime().cursor().expect("a cursor");
        // Three pages of 256. More streams than may read ahead at a time.
        let mut all = insert(0..600);
        let since = || stream(&db.service, ChangeRequest::table("spaces").since(&*cursor));
        let mut streams: Vec<_> = (0..10).map(|_| since()).collect();
        for changes in &mut streams {
            // The second page is taken, and the last one is being read.
            assert_eq!(next_short(changes, 300), all[..300]);
        }
        let mut live = stream(&db.service, ChangeRequest::table("spaces"));
        all.extend(insert(600..900));
        // The log reader has passed the new entries.
        next_short(&mut live, 300);
        for changes in &mut streams {
            assert_eq!(next_short(changes, 600), all[300..]);
        }
    }

    fn two_positions_of_one_stream_never_repeat_or_skip(db: &TestDatabase) {
        // A stream that nobody reads falls behind; reading it later gives everything once.
        let mut changes = stream(&db.service, ChangeRequest::table("spaces"));
        let all = create(&db.service, 0..300);
        assert_eq!(next_short(&mut changes, 150), all[..150]);
        let more = create(&db.service, 300..310);
        assert_eq!(next_short(&mut changes, 160), [&all[150..], &more[..]].concat());
    }
}

mod beside_transactions {
    //! Transactions that are open when a subscription begins. Those of SQLite run one after another.

    use super::*;

    on_engine! { Postgres in postgres;
        fn a_request_until_a_cursor_ends_where_transactions_are_rolled_back(db: &TestDatabase) {
            let (service, other) = (&db.service, RawConnection::postgres(&db.url()).expect("the server runs"));
            // The log reader runs, and is at the last entry.
            let held = service.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
            let start = service.realtime().cursor().expect("a cursor");
            let before = create(service, 0..2);
            let until = |cursor: String| {
                let request = ChangeRequest::table("spaces").since(&*start).until(cursor);
                service.realtime().changes(request).expect("a stream")
            };
            let names = |changes: ChangeStream| -> Vec<_> { changes.map(|change| short(&change.expect("a change"))).collect() };
            other.run("BEGIN; INSERT INTO spaces (name) VALUES ('gone'); ROLLBACK");
            assert_eq!(names(until(service.realtime().cursor().expect("a cursor"))), before);
            // The cursor is of a time at which the transaction runs.
            other.run("BEGIN; INSERT INTO spaces (name) VALUES ('gone')");
            let after = create(service, 2..3);
            let cursor = service.realtime().cursor().expect("a cursor");
            other.run("INSERT INTO spaces (name) VALUES ('gone')");
            let (open, late) = (until(cursor), until(service.realtime().cursor().expect("a cursor")));
            other.run("ROLLBACK");
            let all: Vec<_> = before.into_iter().chain(after).collect();
            assert_eq!((names(open), names(late)), (all.clone(), all));
            drop(held);
        }

        fn subscriptions_that_begin_while_transactions_are_open_wait_for_no_later_commit(db: &TestDatabase) {
            let service = &db.service;
            let [committed, rolled_back] = [(), ()].map(|()| RawConnection::postgres(&db.url()).expect("the server runs"));
            let request = || ChangeRequest::table("spaces");
            let held = service.realtime().changes(request()).expect("a stream");
            create(service, 0..1);
            committed.run("BEGIN; INSERT INTO spaces (name) VALUES ('open')");
            create(service, 1..2);
            rolled_back.run("BEGIN; INSERT INTO spaces (name) VALUES ('gone')");
            let cursor = service.realtime().cursor().expect("a cursor");
            let mut now = stream(service, request());
            let mut since = stream(service, request().since(&*cursor));
            let until = service.realtime().changes(request().until(&*cursor)).expect("a stream");
            committed.run("COMMIT");
            // Not after the younger transaction has ended.
            for stream in [&mut now, &mut since] {
                assert_eq!(next_short(stream, 1), ["INSERT open"]);
            }
            rolled_back.run("ROLLBACK");
            assert_eq!(until.count(), 0);
            // The log is at rest.
            let mut late = stream(service, request().since(&*cursor));
            assert_eq!(next_short(&mut late, 1), ["INSERT open"]);
            create(service, 2..4);
            for stream in [&mut now, &mut since, &mut late] {
                assert_eq!(next_short(stream, 2), ["INSERT 2", "INSERT 3"]);
            }
            drop(held);
        }

        fn subscriptions_that_begin_during_a_transaction_get_each_later_change_once(db: &TestDatabase) {
            let service = &db.service;
            let other = RawConnection::postgres(&db.url()).expect("the server runs");
            let held = service.realtime().changes(ChangeRequest::table("spaces")).expect("a stream");
            // Fewer changes than a subscription keeps in memory, and more.
            for count in [5, 100] {
                other.run("BEGIN; INSERT INTO spaces (name) VALUES ('open')");
                // More than a page of the log.
                db.raw.run("INSERT INTO spaces (name) SELECT 'before' FROM generate_series(1, 300)");
                let mut streams: Vec<_> = (0..20).map(|_| stream(service, ChangeRequest::table("spaces"))).collect();
                let after = create(service, 0..count);
                other.run("COMMIT");
                let all: Vec<_> = ["INSERT open".to_owned()].into_iter().chain(after).collect();
                for stream in &mut streams {
                    assert_eq!(next_short(stream, all.len()), all);
                }
                let last = create(service, count..count + 1);
                for stream in &mut streams {
                    assert_eq!(next_short(stream, 1), last);
                }
            }
            drop(held);
        }
    }
}

mod restored {
    //! A restored copy is another incarnation.

    use townsquare::{Config, ErrorKind, blocking::Client, realtime::ChangeRequest};
    use townsquare_tests::{fixture::assert_kind, on_engine, temp_dir};

    on_engine! { Sqlite in sqlite;
        fn a_cursor_of_the_original_is_refused_by_its_copy(db: &TestDatabase) {
            let cursor = db.client.realtime().cursor().expect("a cursor");
            let folder = temp_dir();
            let (backup, restored) = (folder.path().join("copy.db"), folder.path().join("restored"));
            db.service.backup(&backup).expect("a backup");
            Client::restore(&backup, &restored).expect("restored");
            let client = Client::open(Config::new().data_dir(&restored).catalog_api_key("")).expect("opens");
            let since = ChangeRequest::table("spaces").since(&*cursor);
            assert_kind(ErrorKind::CursorExpired, client.realtime().changes(since));
            client.realtime().cursor().expect("a cursor of its own");
            client.close();
        }
    }
}

//! Callbacks: what they may do, and what `unsubscribe` and `close` promise.

use std::{
    sync::{Arc, OnceLock, mpsc},
    thread,
    time::Duration,
};

use townsquare::{Subscription, blocking::Client, realtime::ChangeRequest, spaces::NewSpace};
use townsquare_tests::{
    on_both_engines,
    skip::skip,
    subprocess::in_subprocess,
    test_database::{Engine, TestDatabase},
    threads,
    wait::wait_until,
};

use super::fixture::{Recorder, next, short, stream};

fn spaces() -> ChangeRequest {
    ChangeRequest::table("spaces")
}

fn create(client: &Client, name: &str) {
    client.spaces().create_space(NewSpace::named(name)).expect("created");
}

#[test]
fn no_thread_looks_for_commits_of_other_processes_without_a_subscription() {
    in_subprocess(no_thread_looks_for_commits_of_other_processes_without_a_subscription, || {
        let db = TestDatabase::on(Engine::Sqlite).expect("SQLite is built in");
        // Linux cuts names after 15 characters.
        let watches = || threads::named("townsquare-watc").map(|names| names.len());
        let Some(before) = watches() else { return skip("threads cannot be listed") };
        db.service.realtime().cursor().expect("capture is on");
        create(&db.service, "x");
        assert_eq!((before, watches()), (0, Some(0)));
        let subscription = db.service.realtime().subscribe("x", spaces(), |_| {}).expect("subscribed");
        // A thread takes its name after it has started.
        wait_until("a thread looks for commits", || watches() == Some(1));
        subscription.unsubscribe();
        wait_until("the watch has ended", || watches() == Some(0));
    });
}

on_both_engines! {
    /// The patterns take seconds for one change. Meanwhile other subscriptions get it, come and go.
    fn slow_patterns_delay_no_other_subscription(db: &TestDatabase) {
        let pattern = format!("description=like.%{}_b%", "a".repeat(90));
        let streams: Vec<_> = (0..20).map(|_| stream(&db.client, spaces().filter(&pattern))).collect();
        let mut last = stream(&db.service, spaces().filter("name=like.%"));
        let mut good = stream(&db.service, spaces().filter("name=eq.town"));
        let recorder = Recorder::subscribe(&db.service, spaces());
        let space = NewSpace::named("town").public().description("a".repeat(400_000));
        db.service.spaces().create_space(space).expect("created");
        assert_eq!(short(&next(&mut good)), "INSERT town");
        recorder.wait_for(1);
        recorder.subscription.unsubscribe();
        drop(stream(&db.service, spaces().filter(&pattern)));
        assert!(last.next_within(Duration::ZERO).is_none(), "the patterns are still being judged");
        assert_eq!(short(&next(&mut last)), "INSERT town");
        drop(streams);
    }

    fn a_callback_that_blocks_holds_up_nobody_else(db: &TestDatabase) {
        let (release, released) = mpsc::channel::<()>();
        let blocked = Recorder::with(&db.service, spaces(), move |_| {
            let _ = released.recv();
        });
        let others: Vec<_> = (0..20).map(|_| Recorder::subscribe(&db.service, spaces())).collect();
        (0..5).for_each(|number| create(&db.service, &format!("{number}")));
        for other in &others {
            assert_eq!(other.wait_for(5).len(), 5);
        }
        assert!(blocked.changes().is_empty());
        drop(release);
        assert_eq!(blocked.wait_for(5).len(), 5);
    }

    fn a_callback_may_call_the_library_and_panic(db: &TestDatabase) {
        let service = db.service.clone();
        let recorder = Recorder::with(&db.service, spaces().filter("name=neq.made inside"), move |change| {
            let name = change.new.as_ref().expect("a row")["name"].clone();
            create(&service, "made inside");
            assert_ne!(name, "panic", "on purpose");
        });
        let inside = Recorder::subscribe(&db.service, spaces().filter("name=eq.made inside"));
        for name in ["one", "panic", "two"] {
            create(&db.service, name);
        }
        assert_eq!(recorder.wait_for(2), ["INSERT one", "INSERT two"]);
        assert_eq!(inside.wait_for(3).len(), 3);
    }

    fn after_unsubscribe_the_callback_never_runs_again(db: &TestDatabase) {
        let recorder = Recorder::subscribe(&db.service, spaces());
        create(&db.service, "one");
        recorder.wait_for(1);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| recorder.subscription.unsubscribe());
            }
        });
        let before = recorder.changes().len();
        create(&db.service, "two");
        let other = Recorder::subscribe(&db.service, spaces());
        create(&db.service, "three");
        other.wait_for(1);
        assert_eq!(recorder.changes().len(), before);
        assert!(recorder.closed().is_none() && !recorder.is_closed(), "on_close was called once");
        recorder.subscription.unsubscribe();
    }

    fn two_callbacks_may_unsubscribe_each_other(db: &TestDatabase) {
        for _ in 0..10 {
            let handles: Arc<[OnceLock<Subscription>; 2]> = Arc::default();
            let recorders = [0, 1].map(|own| {
                let handles = Arc::clone(&handles);
                Recorder::with(&db.service, spaces(), move |_| {
                    if let Some(other) = handles[1 - own].get() {
                        other.unsubscribe();
                    }
                })
            });
            for (handle, recorder) in handles.iter().zip(&recorders) {
                handle.set(recorder.subscription.clone()).expect("set once");
            }
            create(&db.service, "x");
            wait_until("one of them has ended", || recorders.iter().any(|recorder| !recorder.changes().is_empty()));
            recorders.iter().for_each(|recorder| recorder.subscription.unsubscribe());
            assert!(recorders.iter().all(|recorder| recorder.closed().is_none()));
        }
    }

    fn subscriptions_that_come_and_go_leave_nothing(db: &TestDatabase) {
        let lasting = Recorder::subscribe(&db.service, spaces());
        thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || {
                    for round in 0..50 {
                        let subscription = db.service.realtime().subscribe("x", spaces(), |_| {}).expect("subscribed");
                        if round % 10 == 0 {
                            create(&db.service, &format!("{number}/{round}"));
                        }
                        subscription.unsubscribe();
                        drop(stream(&db.client, ChangeRequest::table("fidgets").filter("type=eq.x")));
                    }
                });
            }
        });
        assert_eq!(lasting.wait_for(20).len(), 20);
        assert_eq!(db.service.realtime().stats().expect("figures").subscriptions, 1);
    }

    fn closing_the_client_ends_every_subscription(db: &TestDatabase) {
        let client = db.another().as_service();
        let main = db.another();
        let recorder = Recorder::subscribe(&main.as_service(), spaces());
        let mut changes = stream(&main, spaces());
        let waiting = thread::spawn(move || changes.next());
        main.close();
        assert!(recorder.closed().is_none(), "a closed client is no error");
        assert!(waiting.join().expect("no panic").is_none());
        drop(client);
    }

    fn closing_a_stream_from_another_thread_wakes_its_reader(db: &TestDatabase) {
        let mut changes = stream(&db.client, spaces());
        let closer = changes.closer();
        let waiting = thread::spawn(move || changes.next());
        closer.close();
        assert!(waiting.join().expect("no panic").is_none());
        wait_until("the stream is gone", || db.client.realtime().stats().expect("figures").subscriptions == 0);
    }
}

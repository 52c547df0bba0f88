//! A closed client leaves no thread; each test runs in a process of its own.

use std::time::Duration;

use townsquare::{blocking::Client, discovery::Timeframe};
use townsquare_tests::{
    catalog::Catalog,
    fixture::Fixture,
    skip::skip,
    subprocess::in_subprocess,
    threads,
    upstream::Reply,
    wait::{wait_until, wait_up_to},
};

fn can_count_threads() -> bool {
    let can = threads::named("").is_some();
    if !can {
        skip("counting threads: there is no /proc");
    }
    can
}

fn use_client(fixture: &Fixture) -> Client {
    let client = Client::open(fixture.config()).expect("opens");
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
    client.discovery().refresh().expect("refreshed");
    client
}

#[test]
fn no_thread_is_left_after_close() {
    in_subprocess(no_thread_is_left_after_close, || {
        let fixture = Fixture::of(Catalog::of(120).rows());
        if !can_count_threads() {
            return;
        }
        let before = threads::count();
        for _ in 0..3 {
            let client = use_client(&fixture);
            assert!(!threads::of_townsquare().is_empty(), "the library names its threads");
            client.close();
            // The kernel may list a thread for a moment after it was joined.
            wait_up_to(Duration::from_millis(500), "close has ended the threads", || {
                threads::of_townsquare().is_empty()
            });
        }
        wait_until("the process has the threads it began with", || threads::count() == before);
    });
}

#[test]
fn no_thread_is_left_after_a_drop_without_close() {
    in_subprocess(no_thread_is_left_after_a_drop_without_close, || {
        let fixture = Fixture::of(Catalog::of(120).rows());
        if !can_count_threads() {
            return;
        }
        let before = threads::count();
        let clones = (use_client(&fixture), use_client(&fixture));
        assert!(!threads::of_townsquare().is_empty());
        drop(clones);
        wait_until("the clients' threads have ended", || threads::of_townsquare().is_empty());
        wait_until("the process has the threads it began with", || threads::count() == before);
    });
}

#[test]
fn no_thread_is_left_after_a_drop_during_a_hanging_refresh() {
    in_subprocess(no_thread_is_left_after_a_drop_during_a_hanging_refresh, || {
        let fixture = Fixture::of(Catalog::of(120).rows());
        let client = use_client(&fixture);
        fixture.upstream.reply_with(|_| Reply::Never);
        fixture.clock.advance(Duration::from_secs(1000));
        let calls = fixture.upstream.request_count();
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a stale list");
        wait_until("the refresh hangs", || fixture.upstream.request_count() > calls);
        drop(client);
        wait_until("its threads have ended", || threads::of_townsquare().is_empty());
    });
}

#[test]
fn a_failed_open_leaves_no_thread() {
    in_subprocess(a_failed_open_leaves_no_thread, || {
        let fixture = Fixture::of([]);
        std::fs::write(fixture.folder.path().join("data"), "a file in place of the folder").expect("a file");
        for _ in 0..3 {
            assert!(Client::open(fixture.config()).is_err());
        }
        wait_until("nothing is left of them", || threads::of_townsquare().is_empty());
    });
}

#[test]
fn consecutive_clients_leak_no_file_descriptors() {
    in_subprocess(consecutive_clients_leak_no_file_descriptors, || {
        let open_files = || std::fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
        if open_files().is_none() {
            return skip("counting open files: there is no /proc");
        }
        let fixture = Fixture::of(Catalog::of(60).rows());
        use_client(&fixture).close();
        let before = open_files();
        for _ in 0..10 {
            use_client(&fixture).close();
        }
        wait_until("as many files are open as before", || open_files() <= before);
    });
}

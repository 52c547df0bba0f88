//! No thread is left behind (issue "The house"), each test in a process of its own.

use std::time::Duration;

use townsquare::{Timeframe, blocking::Client};
use townsquare_tests::{
    alone::alone, catalog::Catalog, skip::skip, threads, town::Town, upstream::Reply, wait::wait_until,
};

fn can_count() -> bool {
    let can = threads::named("").is_some();
    if !can {
        skip("counting threads: there is no /proc");
    }
    can
}

fn used(town: &Town) -> Client {
    let client = Client::open(town.config()).expect("opens");
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
    client.discovery().refresh().expect("refreshed");
    client
}

#[test]
fn no_thread_is_left_after_close() {
    alone(no_thread_is_left_after_close, || {
        let town = Town::of(Catalog::of(120).rows());
        if !can_count() {
            return;
        }
        let before = threads::count();
        for _ in 0..3 {
            let client = used(&town);
            assert!(!threads::of_townsquare().is_empty(), "the library names its threads");
            client.close();
            assert_eq!(threads::of_townsquare(), Vec::<String>::new(), "at the moment that close returns");
        }
        wait_until("the process has the threads it began with", || threads::count() == before);
    });
}

#[test]
fn no_thread_is_left_after_a_drop_without_close() {
    alone(no_thread_is_left_after_a_drop_without_close, || {
        let town = Town::of(Catalog::of(120).rows());
        if !can_count() {
            return;
        }
        let before = threads::count();
        let clones = (used(&town), used(&town));
        assert!(!threads::of_townsquare().is_empty());
        drop(clones);
        wait_until("the clients' threads have ended", || threads::of_townsquare().is_empty());
        wait_until("the process has the threads it began with", || threads::count() == before);
    });
}

#[test]
fn no_thread_is_left_by_a_drop_during_a_hanging_refresh() {
    alone(no_thread_is_left_by_a_drop_during_a_hanging_refresh, || {
        let town = Town::of(Catalog::of(120).rows());
        let client = used(&town);
        town.upstream.behave(|_| Reply::Never);
        town.hands.advance(Duration::from_secs(1000));
        let calls = town.upstream.count();
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a stale list");
        wait_until("the refresh hangs", || town.upstream.count() > calls);
        drop(client);
        wait_until("its threads have ended", || threads::of_townsquare().is_empty());
    });
}

#[test]
fn a_refused_open_leaves_no_thread() {
    alone(a_refused_open_leaves_no_thread, || {
        let town = Town::of([]);
        std::fs::write(town.folder.join("data"), "a file in place of the folder").expect("a file");
        for _ in 0..3 {
            assert!(Client::open(town.config()).is_err());
        }
        wait_until("nothing is left of them", || threads::of_townsquare().is_empty());
    });
}

#[test]
fn many_clients_in_turn_do_not_pile_up_files() {
    alone(many_clients_in_turn_do_not_pile_up_files, || {
        let open_files = || std::fs::read_dir("/proc/self/fd").map(Iterator::count).ok();
        if open_files().is_none() {
            return skip("counting open files: there is no /proc");
        }
        let town = Town::of(Catalog::of(60).rows());
        used(&town).close();
        let before = open_files();
        for _ in 0..10 {
            used(&town).close();
        }
        wait_until("as many files are open as before", || open_files() <= before);
    });
}

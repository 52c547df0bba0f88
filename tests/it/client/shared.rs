//! The single shared instance (SPEC 4.2), each test in a process of its own.

use std::thread;

use townsquare::{Config, ErrorKind, Timeframe, blocking::Client};
use townsquare_tests::{
    alone::{alone, assert_passed, child, name_of, role},
    catalog::Catalog,
    temp::TempFolder,
    town::{Town, refused},
};

#[test]
fn everybody_gets_the_same_client() {
    alone(everybody_gets_the_same_client, || {
        let town = Town::of(Catalog::of(60).rows());
        let clients: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Client::shared_with(town.config()))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic").expect("opens")).collect()
        });
        for client in &clients {
            client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
        }
        assert_eq!(town.upstream.lists(), 1, "one cache");
        Client::shared().expect("the one that is open").close();
        for client in &clients {
            refused(ErrorKind::Closed, client.discovery().stats());
        }
    });
}

#[test]
fn other_options_than_the_firsts_are_refused() {
    alone(other_options_than_the_firsts_are_refused, || {
        let (town, elsewhere) = (Town::of(Catalog::of(60).rows()), TempFolder::new());
        let first = Client::shared_with(town.config()).expect("opens");
        Client::shared_with(town.config()).expect("the same options");
        for other in [town.config().catalog_tries(2), town.config().data_dir(elsewhere.path()), Config::new()] {
            refused(ErrorKind::Config, Client::shared_with(other));
        }
        first.discovery().stats().expect("the first is unharmed");
        first.close();
        Client::shared_with(town.config().catalog_tries(2)).expect("after close a new one opens").close();
    });
}

#[test]
fn a_failed_first_open_does_not_stay() {
    alone(a_failed_first_open_does_not_stay, || {
        let folder = TempFolder::new();
        let taken = folder.join("taken");
        std::fs::write(&taken, "").expect("a file");
        refused(ErrorKind::Config, Client::shared_with(Config::new().data_dir(&taken)));
        Client::shared_with(Config::new().data_dir(folder.join("free"))).expect("opens").close();
    });
}

#[test]
fn the_default_is_read_from_the_environment() {
    let test = the_default_is_read_from_the_environment;
    if role().is_some() {
        Client::shared().expect("opens").close();
        return;
    }
    let folder = TempFolder::new();
    let (name, path) = (name_of(&test), folder.join("by variable"));
    let variables = [("TOWNSQUARE_DATA_DIR", path.to_str().expect("UTF-8"))];
    assert_passed(name, &child(name, "child", &variables).output().expect("starts"));
    assert!(path.join("townsquare.db").is_file());
}

//! The shared client (SPEC 4.2); each test runs in a process of its own.

use std::thread;

use townsquare::{Config, ErrorKind, blocking::Client, discovery::Timeframe};
use townsquare_tests::{
    catalog::Catalog,
    fixture::{Fixture, assert_kind},
    subprocess::{child, in_subprocess, name_of, role, run_child},
    temp_dir,
};

#[test]
fn shared_returns_the_same_client() {
    in_subprocess(shared_returns_the_same_client, || {
        let fixture = Fixture::of(Catalog::of(60).rows());
        let clients: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| Client::shared_with(fixture.config()))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic").expect("opens")).collect()
        });
        for client in &clients {
            client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
        }
        assert_eq!(fixture.upstream.list_count(), 1, "one cache");
        Client::shared().expect("the one that is open").close();
        for client in &clients {
            assert_kind(ErrorKind::Closed, client.discovery().stats());
        }
    });
}

#[test]
fn shared_with_other_options_is_refused() {
    in_subprocess(shared_with_other_options_is_refused, || {
        let (fixture, elsewhere) = (Fixture::of(Catalog::of(60).rows()), temp_dir());
        let first = Client::shared_with(fixture.config()).expect("opens");
        Client::shared_with(fixture.config()).expect("the same options");
        for other in [fixture.config().catalog_tries(2), fixture.config().data_dir(elsewhere.path()), Config::new()] {
            assert_kind(ErrorKind::Config, Client::shared_with(other));
        }
        first.discovery().stats().expect("the first is unharmed");
        first.close();
        Client::shared_with(fixture.config().catalog_tries(2)).expect("after close a new one opens").close();
    });
}

#[test]
fn two_spellings_of_a_folder_are_one_folder() {
    in_subprocess(two_spellings_of_a_folder_are_one_folder, || {
        let folder = temp_dir();
        let town = folder.path().join("town");
        std::env::set_current_dir(folder.path()).expect("a folder");
        let relative = || Config::new().data_dir("town").catalog_api_key("");
        let client = Client::shared_with(relative()).expect("opens");
        for same in [town.clone(), folder.path().join("./town"), town.canonicalize().expect("a folder")] {
            Client::shared_with(relative().data_dir(&same))
                .unwrap_or_else(|error| panic!("{}: {error}", same.display()));
        }
        assert_kind(ErrorKind::Config, Client::shared_with(relative().data_dir(folder.path().join("other"))));
        assert_kind(ErrorKind::Config, Client::shared_with(relative().data_dir(":memory:")));
        // The client keeps its folder, and the same configuration gets it.
        std::env::set_current_dir("/").expect("a folder");
        Client::shared_with(relative()).expect("the same options");
        Client::shared_with(relative().data_dir(&town)).expect("the same folder");
        client.close();
    });
}

#[test]
fn a_failed_first_open_can_be_repeated() {
    in_subprocess(a_failed_first_open_can_be_repeated, || {
        let folder = temp_dir();
        let taken = folder.path().join("taken");
        std::fs::write(&taken, "").expect("a file");
        assert_kind(ErrorKind::Config, Client::shared_with(Config::new().data_dir(&taken)));
        Client::shared_with(Config::new().data_dir(folder.path().join("free"))).expect("opens").close();
    });
}

#[test]
fn the_shared_configuration_is_read_from_the_environment() {
    let test = the_shared_configuration_is_read_from_the_environment;
    if role().is_some() {
        Client::shared().expect("opens").close();
        return;
    }
    let folder = temp_dir();
    let (name, path) = (name_of(&test), folder.path().join("by variable"));
    let variables = [("TOWNSQUARE_DATA_DIR", path.to_str().expect("UTF-8"))];
    run_child(&mut child(name, "child", &variables));
    assert!(path.join("townsquare.db").is_file());
}

//! The catalog of invented apps (`catalog_url="sample:"`), a catalog file by its path, and what the log says without either and
//! when a client is closed.

use std::{fs, thread};

use townsquare::{
    Config, ErrorKind,
    blocking::Client,
    discovery::{CATEGORIES, CatalogSource, MiniApps, Selection, Timeframe},
};
use townsquare_tests::{catalog::Catalog, subprocess::in_subprocess, temp_dir, upstream::Upstream, wait::wait_until};

use crate::log::Log;

fn open(config: Config) -> Client {
    Client::open(config.data_dir(":memory:")).expect("opens")
}

fn trending(client: &Client) -> MiniApps {
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1_000).expect("a list")
}

#[test]
fn the_sample_has_apps_of_every_category_and_none_of_the_real_world() {
    let client = open(Config::new().catalog_url("sample:"));
    let apps = trending(&client);
    assert_eq!(apps.total(), 40);
    let stats = client.discovery().stats().expect("open");
    assert_eq!((stats.source, stats.has_api_key, stats.skipped, stats.duplicates), (CatalogSource::File, false, 0, 0));
    for app in &apps {
        assert!(app.domain().ends_with(".example"), "{}: a name that nobody can own", app.domain());
        assert!(app.name().chars().count() <= 32 && app.tags().len() <= 5 && app.author().is_some(), "{}", app.name());
        assert!(app.description().is_some_and(|text| text.chars().count() <= 170), "{}", app.name());
        assert!(app.tagline().is_some_and(|text| text.chars().count() <= 30), "{}", app.name());
        assert!(app.category().is_some_and(|category| CATEGORIES.contains(&category)), "{}", app.name());
    }
    for category in ["games", "social", "finance", "music"] {
        let found = client.discovery().get_mini_apps_by_category([category], 20).expect("a list");
        assert!(found.len() >= 3, "{category}");
    }
    assert!(!client.discovery().search_mini_apps("harbour ches", 10).expect("a list").is_empty());
    let games = Selection::first(10).on_networks(["base"]);
    assert!(!client.discovery().get_mini_apps_by_category(["games"], games).expect("a list").is_empty());
    client.close();
}

#[test]
fn a_path_names_a_catalog_file() {
    in_subprocess(a_path_names_a_catalog_file, || {
        let folder = temp_dir();
        std::env::set_current_dir(folder.path()).expect("a folder");
        let file = folder.path().join("50% of:apps.json");
        Catalog::of(7).write(&file).expect("a file");
        fs::copy(&file, folder.path().join("apps.json")).expect("copied");
        for path in [file.to_str().expect("UTF-8"), "apps.json", "./apps.json"] {
            let client = open(Config::new().catalog_url(path));
            assert_eq!(trending(&client).total(), 7, "{path}");
            client.close();
        }
    });
}

#[test]
fn the_log_says_once_where_apps_come_from() {
    in_subprocess(the_log_says_once_where_apps_come_from, || {
        let log = Log::capture();
        let explains = || {
            let text = log.take();
            (text.matches("catalog_api_key").count(), text.contains("sample:") && text.contains("catalog_url"))
        };
        let client = open(Config::new());
        assert_eq!(explains(), (0, false), "a program without discovery is not told");
        assert!(trending(&client).is_empty());
        assert_eq!(explains(), (1, true));
        assert!(trending(&client).is_empty());
        client.discovery().refresh().expect("no error");
        assert_eq!(explains(), (0, false), "once for a client");
        client.close();
        for config in [Config::new().catalog_api_key(""), Config::new().catalog_url("sample:")] {
            let client = open(config);
            trending(&client);
            assert_eq!(explains(), (0, false), "the program has decided");
            client.close();
        }
    });
}

#[test]
fn the_log_has_no_warning_about_a_refresh_that_closing_ends() {
    in_subprocess(the_log_has_no_warning_about_a_refresh_that_closing_ends, || {
        let log = Log::capture();
        let upstream = Upstream::of(Catalog::of(7).rows());
        let _gate = upstream.hold_replies();
        for waits_for_request in [false, true].into_iter().cycle().take(10) {
            let client = open(Config::new().catalog_url(upstream.url()).catalog_api_key("key"));
            thread::scope(|scope| {
                let reader = scope.spawn(|| client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1));
                // Before and after the first request.
                wait_until("it is loading", || {
                    let is_refreshing = client.discovery().stats().expect("open").is_refreshing;
                    is_refreshing && (!waits_for_request || upstream.request_count() > 0)
                });
                client.close();
                assert_eq!(reader.join().expect("no panic").expect_err("closed").kind(), ErrorKind::Closed);
            });
            let text = log.take();
            assert!(!text.contains("The client is closed"), "{text}");
            upstream.clear_requests();
        }
    });
}

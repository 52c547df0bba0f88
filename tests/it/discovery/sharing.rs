//! Processes on one database share a catalog (SPEC 1.3; DESIGN 6: fallback, and one fetch for all).

use std::time::Duration;

use townsquare::{CatalogSource, Client, DiscoveryStats, ErrorKind, Selection, Timeframe};
use townsquare_tests::{
    alone::{assert_passed, child, name_of, role},
    catalog::Catalog,
    town::{FIFTEEN_MINUTES, Town, ids, morning, refused},
    upstream::{Gate, KEY, Reply, Upstream, in_order_of},
    wait::until,
};

const APPS: usize = 150;

async fn count(client: &Client) -> usize {
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len()
}

fn stats(client: &Client) -> DiscoveryStats {
    client.discovery().stats().expect("open")
}

#[tokio::test]
async fn a_second_client_takes_the_firsts_fresh_catalog_without_a_call() {
    let catalog = Catalog::of(APPS);
    let town = Town::of(catalog.rows());
    let (one, two) = (town.open().await, town.open().await);
    assert_eq!(count(&one).await, APPS);
    town.hands.advance(Duration::from_secs(60));
    let calls = town.upstream.count();
    let listed = two.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(town.upstream.count(), calls, "nobody pays twice for what is fresh");
    assert_eq!(ids(&listed), catalog.apps().map(|app| app.id).collect::<Vec<_>>());
    let (first, second) = (stats(&one), stats(&two));
    assert_eq!((second.source, second.fetched_at), (CatalogSource::Database, Some(morning())));
    assert_eq!(first.source, CatalogSource::Upstream);
    assert_eq!((second.total, second.received, second.is_stale), (first.total, first.received, false));
    let theirs = one.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(&listed[..], &theirs[..], "every field of every record is the same");
}

#[tokio::test]
async fn clients_that_start_at_once_make_one_fetch() {
    let town = Town::of(Catalog::of(APPS).rows());
    let gate = Gate::closed();
    let held = gate.clone();
    town.upstream.behave(move |_| Reply::Behind(held.clone()));
    let mut readers = Vec::new();
    for _ in 0..4 {
        let client = town.open().await;
        readers.push(tokio::spawn(async move { count(&client).await }));
    }
    until("one of them fetches", || town.upstream.count() > 0).await;
    gate.open();
    for reader in readers {
        assert_eq!(reader.await.expect("no panic"), APPS);
    }
    assert_eq!(town.upstream.lists(), 1, "never two refreshes at once, whoever makes them");
}

#[tokio::test]
async fn a_damaged_catalog_in_the_database_is_fetched_anew() {
    let damages = [
        "UPDATE townsquare_catalog SET header = '{}'",
        "UPDATE townsquare_catalog SET header = '7', generation = 'none'",
        "UPDATE townsquare_catalog SET parts = 1000000000",
        "UPDATE townsquare_catalog SET fetched_at = 'yesterday'",
        "UPDATE townsquare_catalog_parts SET records = '[]'",
        "UPDATE townsquare_catalog_parts SET records = '[{\"id\":7}]'",
        "DELETE FROM townsquare_catalog_parts",
    ];
    for damage in damages {
        let town = Town::of(Catalog::of(APPS).rows());
        let client = town.open().await;
        count(&client).await;
        client.close().await;
        let connection = rusqlite::Connection::open(town.folder.join("data/townsquare.db")).expect("SQLite");
        assert!(connection.execute(damage, []).expect("SQL") > 0, "{damage}");
        drop(connection);
        let client = town.open().await;
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await;
        assert_eq!(listed.unwrap_or_else(|error| panic!("{damage}: {error}")).len(), APPS, "{damage}");
        assert_eq!((stats(&client).source, town.upstream.lists()), (CatalogSource::Upstream, 2), "{damage}");
        client.close().await;
        // What replaced it serves the next one, and without upstream a damaged one is no answer, nor a crash.
        assert_eq!(count(&town.open().await).await, APPS, "{damage}");
        assert_eq!(town.upstream.lists(), 2, "{damage}");
    }
}

#[tokio::test]
async fn a_shared_catalog_is_as_old_as_its_fetch() {
    let town = Town::of(Catalog::of(APPS).rows());
    let one = town.open().await;
    count(&one).await;
    one.close().await;
    town.hands.advance(FIFTEEN_MINUTES - Duration::from_secs(10));
    let two = town.open().await;
    count(&two).await;
    assert_eq!(town.upstream.lists(), 1);
    town.hands.advance(Duration::from_secs(20));
    count(&two).await;
    until("the second client finds it stale at its true age", || town.upstream.lists() == 2).await;
}

#[tokio::test]
async fn orders_fetched_by_one_client_serve_the_other() {
    let catalog = Catalog::of(APPS);
    let town = Town::of(catalog.rows());
    let one = town.open().await;
    one.discovery().get_trending_mini_apps(Timeframe::Days7, 1000).await.expect("a list");
    let two = town.open().await;
    let calls = town.upstream.count();
    let week = two.discovery().get_trending_mini_apps(Timeframe::Days7, 1000).await.expect("a list");
    assert_eq!(ids(&week), in_order_of("7d", catalog.apps().map(|app| app.id).collect()));
    assert_eq!(town.upstream.count(), calls);
}

#[tokio::test]
async fn a_stale_client_takes_a_fresh_catalog_that_another_fetched() {
    let town = Town::of(Catalog::of(APPS).rows());
    let (one, two) = (town.open().await, town.open().await);
    count(&one).await;
    count(&two).await;
    town.upstream.serve(Catalog::of(APPS + 1).rows());
    town.hands.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    one.discovery().refresh().await.expect("refreshed");
    let calls = town.upstream.count();
    count(&two).await;
    until("the other's catalog is there", || stats(&two).total == APPS + 1).await;
    assert_eq!(town.upstream.count(), calls);
}

#[tokio::test]
async fn with_upstream_down_an_old_catalog_of_the_database_answers() {
    let catalog = Catalog::of(APPS);
    let town = Town::of(catalog.rows());
    let one = town.open().await;
    count(&one).await;
    one.close().await;
    town.hands.advance(FIFTEEN_MINUTES * 100);
    town.upstream.refuse();
    let two = town.open_with(town.impatient()).await;
    let listed = two.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("the database answers");
    assert_eq!(ids(&listed), catalog.apps().map(|app| app.id).collect::<Vec<_>>());
    assert!(listed.iter().all(|app| app.last_fetched() == morning()));
    assert!(!two.discovery().search_mini_apps("daily", 5).await.expect("a list").is_empty());
    let told = stats(&two);
    assert_eq!((told.source, told.fetched_at, told.is_stale), (CatalogSource::Database, Some(morning()), true));
    assert!(told.last_error.is_some());
    town.upstream.recover();
    town.hands.advance(FIFTEEN_MINUTES);
    let renewed = two.discovery().refresh().await.expect("recovers");
    assert_eq!((renewed.source, renewed.last_error, renewed.is_stale), (CatalogSource::Upstream, None, false));
}

#[tokio::test]
async fn another_sources_catalog_is_not_taken() {
    let town = Town::of(Catalog::of(APPS).rows());
    let one = town.open().await;
    count(&one).await;
    let other = Upstream::of(Catalog::of(70).seeded(5).rows());
    let two = town.open_with(town.config().catalog_url(other.url())).await;
    assert_eq!(count(&two).await, 70);
    assert_eq!((stats(&two).source, other.lists()), (CatalogSource::Upstream, 1));
    other.refuse();
    let third = Upstream::of([]);
    third.behave(|_| Reply::status(500));
    let three = town.open_with(town.impatient().catalog_url(third.url())).await;
    let call = three.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).await;
    refused(ErrorKind::Unavailable, call);
    // And each finds its own again.
    let again = town.open().await;
    assert_eq!((count(&again).await, stats(&again).source), (APPS, CatalogSource::Database));
}

#[tokio::test]
async fn networks_that_upstream_answered_survive_in_the_database_or_are_asked_again() {
    let catalog = Catalog::of(APPS);
    let town = Town::of(catalog.rows());
    let selection = || Selection::first(1000).on_networks(["base"]);
    let expected: Vec<_> = catalog
        .apps()
        .filter(|app| app.networks.is_empty() || app.networks.contains(&"base"))
        .map(|app| app.id)
        .collect();
    for _ in 0..2 {
        let client = town.open().await;
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, selection()).await.expect("a list");
        assert_eq!(ids(&listed), expected);
        client.close().await;
    }
}

#[tokio::test]
async fn the_database_holds_no_key() {
    let town = Town::of(Catalog::of(APPS).rows());
    let client = town.open().await;
    count(&client).await;
    client.discovery().refresh().await.expect("refreshed");
    client.close().await;
    let mut files = 0;
    for entry in std::fs::read_dir(town.folder.join("data")).expect("a folder") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
        files += 1;
    }
    assert!(files > 0);
}

#[test]
fn another_process_takes_the_catalog_without_a_call() {
    let test = another_process_takes_the_catalog_without_a_call;
    let open = |data_dir: &str, url: &str| {
        let config = townsquare::Config::new().data_dir(data_dir).catalog_url(url).catalog_api_key(KEY);
        townsquare::blocking::Client::open(config).expect("opens")
    };
    if role().is_some() {
        let variable = |name: &str| std::env::var(name).expect("the parent sets it");
        let client = open(&variable("SHARED_FOLDER"), &variable("SHARED_URL"));
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).expect("a list");
        assert_eq!((listed.len(), client.discovery().stats().expect("open").source), (APPS, CatalogSource::Database));
        client.close();
        return;
    }
    let town = Town::of(Catalog::of(APPS).rows());
    let folder = town.folder.join("data");
    let folder = folder.to_str().expect("UTF-8");
    let client = open(folder, &town.upstream.url());
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
    let calls = town.upstream.count();
    let name = name_of(&test);
    let variables = [("SHARED_FOLDER", folder), ("SHARED_URL", &town.upstream.url())];
    let output = child(name, "other process", &variables).output().expect("the test binary starts");
    assert_passed(name, &output);
    assert_eq!(town.upstream.count(), calls);
    client.close();
}

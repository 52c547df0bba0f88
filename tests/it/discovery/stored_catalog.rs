//! The catalog stored in the database and shared by its clients (SPEC 1.3; DESIGN 6).

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use townsquare::{
    Client, ErrorKind,
    blocking::{self, wait},
    discovery::{CatalogSource, DiscoveryStats, Selection, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD},
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, ids, start_time},
    on_both_engines,
    subprocess::{child, name_of, role, run_child},
    test_database::Engine,
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
async fn a_second_client_loads_the_fresh_stored_catalog() {
    let catalog = Catalog::of(APPS);
    let fixture = Fixture::of(catalog.rows());
    let (one, two) = (fixture.open().await, fixture.open().await);
    assert_eq!(count(&one).await, APPS);
    fixture.clock.advance(Duration::from_secs(60));
    let calls = fixture.upstream.request_count();
    let listed = two.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(fixture.upstream.request_count(), calls, "nobody pays twice for what is fresh");
    assert_eq!(ids(&listed), catalog.apps().map(|app| app.id).collect::<Vec<_>>());
    let (first, second) = (stats(&one), stats(&two));
    assert_eq!((second.source, second.fetched_at), (CatalogSource::Database, Some(start_time())));
    assert_eq!(first.source, CatalogSource::Upstream);
    assert_eq!((second.total, second.received, second.is_stale), (first.total, first.received, false));
    let theirs = one.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(&listed[..], &theirs[..], "every field of every record is the same");
}

#[tokio::test]
async fn clients_opened_concurrently_share_one_fetch() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let gate = fixture.upstream.hold_replies();
    let mut readers = Vec::new();
    for _ in 0..4 {
        let client = fixture.open().await;
        readers.push(tokio::spawn(async move { count(&client).await }));
    }
    until("one of them fetches", || fixture.upstream.request_count() > 0).await;
    gate.open();
    for reader in readers {
        assert_eq!(reader.await.expect("no panic"), APPS);
    }
    assert_eq!(fixture.upstream.list_count(), 1, "never two refreshes at once, whoever makes them");
}

#[tokio::test]
async fn a_corrupt_stored_catalog_is_fetched_again() {
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
        let fixture = Fixture::of(Catalog::of(APPS).rows());
        let client = fixture.open().await;
        count(&client).await;
        client.close().await;
        let connection = rusqlite::Connection::open(fixture.folder.path().join("data/townsquare.db")).expect("SQLite");
        assert!(connection.execute(damage, []).expect("SQL") > 0, "{damage}");
        drop(connection);
        let client = fixture.open().await;
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await;
        assert_eq!(listed.unwrap_or_else(|error| panic!("{damage}: {error}")).len(), APPS, "{damage}");
        assert_eq!((stats(&client).source, fixture.upstream.list_count()), (CatalogSource::Upstream, 2), "{damage}");
        client.close().await;
        // The next client loads the new catalog; without upstream a corrupt one is an error.
        assert_eq!(count(&fixture.open().await).await, APPS, "{damage}");
        assert_eq!(fixture.upstream.list_count(), 2, "{damage}");
    }
}

#[tokio::test]
async fn a_stored_catalog_has_the_age_of_its_fetch() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let one = fixture.open().await;
    count(&one).await;
    one.close().await;
    fixture.clock.advance(FIFTEEN_MINUTES - Duration::from_secs(10));
    let two = fixture.open().await;
    count(&two).await;
    assert_eq!(fixture.upstream.list_count(), 1);
    fixture.clock.advance(Duration::from_secs(20));
    count(&two).await;
    until("the second client finds it stale at its true age", || fixture.upstream.list_count() == 2).await;
}

#[tokio::test]
async fn a_timeframe_fetched_by_one_client_serves_the_other() {
    let catalog = Catalog::of(APPS);
    let fixture = Fixture::of(catalog.rows());
    let one = fixture.open().await;
    one.discovery().get_trending_mini_apps(Timeframe::Days7, 1000).await.expect("a list");
    let two = fixture.open().await;
    let calls = fixture.upstream.request_count();
    let week = two.discovery().get_trending_mini_apps(Timeframe::Days7, 1000).await.expect("a list");
    assert_eq!(ids(&week), in_order_of("7d", catalog.apps().map(|app| app.id).collect()));
    assert_eq!(fixture.upstream.request_count(), calls);
}

#[tokio::test]
async fn a_stale_client_loads_a_catalog_that_another_stored() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let (one, two) = (fixture.open().await, fixture.open().await);
    count(&one).await;
    count(&two).await;
    fixture.upstream.serve(Catalog::of(APPS + 1).rows());
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    one.discovery().refresh().await.expect("refreshed");
    let calls = fixture.upstream.request_count();
    count(&two).await;
    until("the other's catalog is there", || stats(&two).total == APPS + 1).await;
    assert_eq!(fixture.upstream.request_count(), calls);
}

#[tokio::test]
async fn a_stale_stored_catalog_is_used_while_the_upstream_is_down() {
    let catalog = Catalog::of(APPS);
    let fixture = Fixture::of(catalog.rows());
    let one = fixture.open().await;
    count(&one).await;
    one.close().await;
    fixture.clock.advance(FIFTEEN_MINUTES * 100);
    fixture.upstream.refuse_connections();
    let two = fixture.open_with(fixture.one_try()).await;
    let listed = two.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("the database answers");
    assert_eq!(ids(&listed), catalog.apps().map(|app| app.id).collect::<Vec<_>>());
    assert!(listed.iter().all(|app| app.last_fetched() == start_time()));
    assert!(!two.discovery().search_mini_apps(FREQUENT_WORD, 5).await.expect("a list").is_empty());
    let told = stats(&two);
    assert_eq!((told.source, told.fetched_at, told.is_stale), (CatalogSource::Database, Some(start_time()), true));
    assert!(told.last_error.is_some());
    fixture.upstream.recover();
    fixture.clock.advance(FIFTEEN_MINUTES);
    let renewed = two.discovery().refresh().await.expect("recovers");
    assert_eq!((renewed.source, renewed.last_error, renewed.is_stale), (CatalogSource::Upstream, None, false));
}

/// The generation of the stored catalog, and the number of parts of all generations.
fn stored_generation(fixture: &Fixture) -> Option<(String, i64)> {
    let connection = rusqlite::Connection::open(fixture.folder.path().join("data/townsquare.db")).expect("SQLite");
    let sql = "SELECT generation, (SELECT count(*) FROM townsquare_catalog_parts) FROM townsquare_catalog";
    connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).ok()
}

#[tokio::test]
async fn an_unchanged_catalog_is_not_stored_again() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let one = fixture.open().await;
    count(&one).await;
    one.close().await;
    let first = stored_generation(&fixture);
    assert!(first.as_ref().is_some_and(|(_, parts)| *parts == 1), "{first:?}");
    fixture.clock.advance(FIFTEEN_MINUTES * 2);
    let later = fixture.clock.clock().now();
    let two = fixture.open().await;
    let theirs = two.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!((stats(&two).source, fixture.upstream.list_count()), (CatalogSource::Upstream, 2));
    two.close().await;
    assert_eq!(stored_generation(&fixture), first, "only the header was written");
    // The header is new: the next client finds the catalog fresh, with the time of the second fetch in every record.
    let three = fixture.open().await;
    let listed = three.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!((stats(&three).source, stats(&three).fetched_at), (CatalogSource::Database, Some(later)));
    assert_eq!(&listed[..], &theirs[..]);
    assert!(listed.iter().all(|app| app.last_fetched() == later));
    // A changed catalog is stored.
    fixture.upstream.serve(Catalog::of(APPS + 1).rows());
    three.discovery().refresh().await.expect("refreshed");
    three.close().await;
    let changed = stored_generation(&fixture);
    assert!(changed != first && changed.is_some_and(|(_, parts)| parts == 1));
}

on_both_engines! {
    fn each_fetch_has_a_larger_lease_token_and_an_unchanged_catalog_keeps_its_generation(db: &TestDatabase) {
        let upstream = Upstream::of(Catalog::of(APPS).rows());
        let prefix = match db.engine {
            Engine::Sqlite => "townsquare_",
            Engine::Postgres => "townsquare.",
        };
        let generation = || db.raw.value(&format!("SELECT generation FROM {prefix}catalog"));
        let mut generations = Vec::new();
        for fetches in 1..=3 {
            let client = blocking::Client::open(db.config().catalog_url(upstream.url()).catalog_api_key(KEY)).expect("opens");
            assert!(wait(count(client.inner())) >= APPS);
            assert_eq!(stats(client.inner()).source, CatalogSource::Upstream);
            client.close();
            assert_eq!(db.raw.value(&format!("SELECT token FROM {prefix}leases")), fetches.to_string());
            generations.push(generation());
            db.elapse(FIFTEEN_MINUTES * 2);
            if fetches == 2 {
                upstream.serve(Catalog::of(APPS + 1).rows());
            }
        }
        assert!(generations[0] == generations[1] && generations[1] != generations[2], "{generations:?}");
        assert_eq!(db.raw.count(&format!("{prefix}catalog_parts")), 1, "parts of older generations are deleted");
    }
}

#[tokio::test]
async fn a_client_whose_lease_was_taken_does_not_save() {
    // One page, so one request for each fetch.
    let fixture = Fixture::of(Catalog::of(60).rows());
    let (first_gate, second_gate) = (Gate::closed(), Gate::closed());
    let (held_first, held_second) = (first_gate.clone(), second_gate.clone());
    let is_later = AtomicBool::new(false);
    fixture.upstream.reply_with(move |_| {
        let is_first = !is_later.swap(true, Ordering::Relaxed);
        Reply::Behind(if is_first { held_first.clone() } else { held_second.clone() })
    });
    let (one, two) = (fixture.open().await, fixture.open().await);
    let start = |client: &Client| {
        let client = client.clone();
        tokio::spawn(async move { count(&client).await })
    };
    let first = start(&one);
    until("the first client fetches", || fixture.upstream.request_count() == 1).await;
    // Its lease ends before its fetch does, so the second client takes the lease.
    fixture.clock.advance(Duration::from_secs(60));
    let second = start(&two);
    until("the second client fetches", || fixture.upstream.request_count() == 2).await;
    first_gate.open();
    assert_eq!(first.await.expect("no panic"), 60, "the first client uses what it fetched");
    one.close().await;
    assert_eq!(stored_generation(&fixture), None, "but the second client holds the lease");
    second_gate.open();
    assert_eq!(second.await.expect("no panic"), 60);
    two.close().await;
    assert!(stored_generation(&fixture).is_some(), "the second client saved");
}

#[tokio::test]
async fn a_stored_catalog_of_another_source_is_ignored() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let one = fixture.open().await;
    count(&one).await;
    let other = Upstream::of(Catalog::of(70).seeded(5).rows());
    let two = fixture.open_with(fixture.config().catalog_url(other.url())).await;
    assert_eq!(count(&two).await, 70);
    assert_eq!((stats(&two).source, other.list_count()), (CatalogSource::Upstream, 1));
    other.refuse_connections();
    let third = Upstream::of([]);
    third.reply_with(|_| Reply::status(500));
    let three = fixture.open_with(fixture.one_try().catalog_url(third.url())).await;
    let call = three.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).await;
    assert_kind(ErrorKind::Unavailable, call);
    // Each source still has its own stored catalog.
    let again = fixture.open().await;
    assert_eq!((count(&again).await, stats(&again).source), (APPS, CatalogSource::Database));
}

#[tokio::test]
async fn network_lists_are_stored_or_fetched_again() {
    let catalog = Catalog::of(APPS);
    let fixture = Fixture::of(catalog.rows());
    let selection = || Selection::first(1000).on_networks(["base"]);
    let expected: Vec<_> = catalog
        .apps()
        .filter(|app| app.networks.is_empty() || app.networks.contains(&"base"))
        .map(|app| app.id)
        .collect();
    for _ in 0..2 {
        let client = fixture.open().await;
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, selection()).await.expect("a list");
        assert_eq!(ids(&listed), expected);
        client.close().await;
    }
}

#[tokio::test]
async fn the_database_does_not_contain_the_key() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open().await;
    count(&client).await;
    client.discovery().refresh().await.expect("refreshed");
    client.close().await;
    let mut files = 0;
    for entry in std::fs::read_dir(fixture.folder.path().join("data")).expect("a folder") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
        files += 1;
    }
    assert!(files > 0);
}

#[test]
fn another_process_loads_the_stored_catalog() {
    let test = another_process_loads_the_stored_catalog;
    let open = |data_dir: &str, url: &str| {
        let config = townsquare::Config::new().data_dir(data_dir).catalog_url(url).catalog_api_key(KEY);
        blocking::Client::open(config).expect("opens")
    };
    if role().is_some() {
        let variable = |name: &str| std::env::var(name).expect("the parent sets it");
        let client = open(&variable("SHARED_FOLDER"), &variable("SHARED_URL"));
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).expect("a list");
        assert_eq!((listed.len(), client.discovery().stats().expect("open").source), (APPS, CatalogSource::Database));
        client.close();
        return;
    }
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let folder = fixture.folder.path().join("data");
    let folder = folder.to_str().expect("UTF-8");
    let client = open(folder, &fixture.upstream.url());
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).expect("a list");
    let calls = fixture.upstream.request_count();
    let name = name_of(&test);
    let variables = [("SHARED_FOLDER", folder), ("SHARED_URL", &fixture.upstream.url())];
    run_child(&mut child(name, "other process", &variables));
    assert_eq!(fixture.upstream.request_count(), calls);
    client.close();
}

//! A sudden fall is refused (UPSTREAM 1: from 691 to 99 and from 199 to 0 rows by accident; DESIGN 6).

use std::time::Duration;

use townsquare::{CatalogSource, Client, DiscoveryStats, ErrorKind, Timeframe};
use townsquare_tests::{
    catalog::Catalog,
    town::{FIFTEEN_MINUTES, Town, morning, refused},
    upstream::Reply,
    wait::until,
};

async fn count(client: &Client) -> usize {
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len()
}

fn stats(client: &Client) -> DiscoveryStats {
    client.discovery().stats().expect("open")
}

/// A client that has seen `before` apps, whose upstream has `after` now.
async fn fallen(before: usize, after: usize) -> (Town, Client) {
    let town = Town::of(Catalog::of(before).rows());
    let client = town.open().await;
    assert_eq!(count(&client).await, before);
    town.upstream.serve(Catalog::of(after).rows());
    town.hands.advance(Duration::from_secs(1));
    (town, client)
}

#[tokio::test]
async fn a_fall_under_half_of_fifty_or_more_is_refused_and_told() {
    for (before, after) in [(50, 24), (50, 0), (51, 25), (691, 99), (199, 0), (300, 1)] {
        let (_town, client) = fallen(before, after).await;
        let error = refused(ErrorKind::Unavailable, client.discovery().refresh().await);
        assert!(error.to_string().starts_with("Refresh mini apps failed: "), "{error}");
        assert_eq!(count(&client).await, before, "{before} to {after}: the old one stays");
        let stats = stats(&client);
        assert_eq!((stats.total, stats.fetched_at, stats.source), (before, Some(morning()), CatalogSource::Upstream));
        assert!(stats.is_stale);
        let told = stats.last_error.expect("the refusal is told");
        assert!(told.contains(&before.to_string()) && told.contains(&after.to_string()), "{told}");
    }
}

#[tokio::test]
async fn a_fall_to_nothing_is_refused_however_small_the_catalog_was() {
    for before in [1, 2, 49] {
        let (_town, client) = fallen(before, 0).await;
        refused(ErrorKind::Unavailable, client.discovery().refresh().await);
        assert_eq!(count(&client).await, before);
        assert!(stats(&client).last_error.is_some());
    }
}

#[tokio::test]
async fn a_fall_to_half_or_of_a_small_catalog_is_taken() {
    for (before, after) in [(50, 25), (49, 1), (100, 50), (60, 59), (10, 500)] {
        let (_town, client) = fallen(before, after).await;
        let stats = client.discovery().refresh().await.unwrap_or_else(|error| panic!("{before} to {after}: {error}"));
        assert_eq!((stats.total, stats.last_error), (after, None));
        assert_eq!(count(&client).await, after);
    }
}

#[tokio::test]
async fn force_takes_even_a_collapsed_catalog() {
    for (before, after) in [(200, 3), (60, 0)] {
        let (town, client) = fallen(before, after).await;
        refused(ErrorKind::Unavailable, client.discovery().refresh().await);
        let forced = client.discovery().force_refresh().await.expect("force takes it");
        assert_eq!((forced.total, forced.last_error, forced.is_stale), (after, None, false));
        assert_eq!(count(&client).await, after);
        // From here on it is the catalog that others are measured against.
        town.upstream.serve(Catalog::of(before).rows());
        assert_eq!(client.discovery().refresh().await.expect("growth is welcome").total, before);
    }
}

#[tokio::test]
async fn a_collapse_is_refused_in_the_background_too() {
    let (town, client) = fallen(200, 3).await;
    town.hands.advance(FIFTEEN_MINUTES);
    assert_eq!(count(&client).await, 200);
    until("the refusal is told", || stats(&client).last_error.is_some()).await;
    assert_eq!(count(&client).await, 200);
}

#[tokio::test]
async fn rows_that_are_all_bad_are_a_collapse() {
    let (town, client) = fallen(60, 60).await;
    town.upstream.serve((0..60).map(|_| townsquare_tests::catalog::Row::raw("null")));
    refused(ErrorKind::Unavailable, client.discovery().refresh().await);
    assert_eq!(count(&client).await, 60);
}

#[tokio::test]
async fn a_collapse_is_refused_against_the_databases_catalog_as_well() {
    let (town, client) = fallen(200, 3).await;
    client.close().await;
    town.hands.advance(FIFTEEN_MINUTES * 2);
    let client = town.open().await;
    assert_eq!(count(&client).await, 200, "a restart does not make an accident good");
    let stats = stats(&client);
    assert_eq!((stats.source, stats.fetched_at), (CatalogSource::Database, Some(morning())));
}

#[tokio::test]
async fn a_timeframe_that_collapses_does_not_replace_its_good_order() {
    let town = Town::of(Catalog::of(120).rows());
    let client = town.open().await;
    let week = || client.discovery().get_trending_mini_apps(Timeframe::Days7, 1000);
    assert_eq!(week().await.expect("a list").len(), 120);
    town.upstream.behave(|request| match request.window() {
        "24h" => Reply::Honest,
        _ => Reply::body(r#"{"frames":[],"next":{"cursor":null}}"#),
    });
    town.hands.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    let _ = client.discovery().refresh().await;
    assert_eq!(week().await.expect("a list").len(), 120, "nobody lost 120 apps within the week");
    assert!(stats(&client).last_error.is_some(), "and it is told");
}

//! Collapsed catalogs are refused (UPSTREAM 1: upstream fell from 691 to 99 and from 199 to 0 rows; DESIGN 6).

use std::time::Duration;

use townsquare::{
    Client, ErrorKind,
    discovery::{CatalogSource, DiscoveryStats, Selection, Timeframe},
};
use townsquare_tests::{
    catalog::Catalog,
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, start_time},
    upstream::Reply,
    wait::until,
};

async fn count(client: &Client) -> usize {
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len()
}

fn stats(client: &Client) -> DiscoveryStats {
    client.discovery().stats().expect("open")
}

/// Opens a client on `before` apps, then lets the upstream serve `after` apps.
async fn collapsed(before: usize, after: usize) -> (Fixture, Client) {
    let fixture = Fixture::of(Catalog::of(before).rows());
    let client = fixture.open().await;
    assert_eq!(count(&client).await, before);
    fixture.upstream.serve(Catalog::of(after).rows());
    fixture.clock.advance(Duration::from_secs(1));
    (fixture, client)
}

#[tokio::test]
async fn a_fall_below_half_of_fifty_or_more_is_refused_and_reported() {
    for (before, after) in [(50, 24), (50, 0), (51, 25), (691, 99), (199, 0), (300, 1)] {
        let (_fixture, client) = collapsed(before, after).await;
        let error = assert_kind(ErrorKind::Unavailable, client.discovery().refresh().await);
        assert!(error.to_string().starts_with("Refresh mini apps failed: "), "{error}");
        assert_eq!(count(&client).await, before, "{before} to {after}: the old one stays");
        let stats = stats(&client);
        assert_eq!(
            (stats.total, stats.fetched_at, stats.source),
            (before, Some(start_time()), CatalogSource::Upstream)
        );
        assert!(stats.is_stale);
        let told = stats.last_error.expect("the refusal is told");
        assert!(told.contains(&before.to_string()) && told.contains(&after.to_string()), "{told}");
    }
}

#[tokio::test]
async fn a_fall_to_zero_apps_is_always_refused() {
    for before in [1, 2, 49] {
        let (_fixture, client) = collapsed(before, 0).await;
        assert_kind(ErrorKind::Unavailable, client.discovery().refresh().await);
        assert_eq!(count(&client).await, before);
        assert!(stats(&client).last_error.is_some());
    }
}

#[tokio::test]
async fn a_fall_to_half_or_of_a_small_catalog_is_accepted() {
    for (before, after) in [(50, 25), (49, 1), (100, 50), (60, 59), (10, 500)] {
        let (_fixture, client) = collapsed(before, after).await;
        let stats = client.discovery().refresh().await.unwrap_or_else(|error| panic!("{before} to {after}: {error}"));
        assert_eq!((stats.total, stats.last_error), (after, None));
        assert_eq!(count(&client).await, after);
    }
}

#[tokio::test]
async fn a_forced_refresh_accepts_a_collapsed_catalog() {
    for (before, after) in [(200, 3), (60, 0)] {
        let (fixture, client) = collapsed(before, after).await;
        assert_kind(ErrorKind::Unavailable, client.discovery().refresh().await);
        let forced = client.discovery().force_refresh().await.expect("force takes it");
        assert_eq!((forced.total, forced.last_error, forced.is_stale), (after, None, false));
        assert_eq!(count(&client).await, after);
        // Later refreshes are compared with this catalog.
        fixture.upstream.serve(Catalog::of(before).rows());
        assert_eq!(client.discovery().refresh().await.expect("growth is welcome").total, before);
    }
}

#[tokio::test]
async fn a_collapse_in_a_background_refresh_is_refused() {
    let (fixture, client) = collapsed(200, 3).await;
    fixture.clock.advance(FIFTEEN_MINUTES);
    assert_eq!(count(&client).await, 200);
    until("the refusal is told", || stats(&client).last_error.is_some()).await;
    assert_eq!(count(&client).await, 200);
}

#[tokio::test]
async fn a_list_of_malformed_rows_is_a_collapse() {
    let (fixture, client) = collapsed(60, 60).await;
    fixture.upstream.serve((0..60).map(|_| townsquare_tests::catalog::Row::raw("null")));
    assert_kind(ErrorKind::Unavailable, client.discovery().refresh().await);
    assert_eq!(count(&client).await, 60);
}

#[tokio::test]
async fn a_collapse_against_the_stored_catalog_is_refused() {
    let (fixture, client) = collapsed(200, 3).await;
    client.close().await;
    fixture.clock.advance(FIFTEEN_MINUTES * 2);
    let client = fixture.open().await;
    assert_eq!(count(&client).await, 200, "a restart does not make an accident good");
    let stats = stats(&client);
    assert_eq!((stats.source, stats.fetched_at), (CatalogSource::Database, Some(start_time())));
}

#[tokio::test]
async fn a_collapsed_timeframe_keeps_its_old_order() {
    let fixture = Fixture::of(Catalog::of(120).rows());
    let client = fixture.open().await;
    let week = || client.discovery().get_trending_mini_apps(Timeframe::Days7, 1000);
    assert_eq!(week().await.expect("a list").len(), 120);
    fixture.upstream.reply_with(|request| match request.window() {
        "24h" => Reply::Page,
        _ => Reply::body(r#"{"frames":[],"next":{"cursor":null}}"#),
    });
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    let _ = client.discovery().refresh().await;
    assert_eq!(week().await.expect("a list").len(), 120, "nobody lost 120 apps within the week");
    assert!(stats(&client).last_error.is_some(), "and it is told");
}

#[tokio::test]
async fn a_forced_refresh_accepts_collapsed_further_lists() {
    let fixture = Fixture::of(Catalog::of(120).rows());
    let client = fixture.open().await;
    let discovery = client.discovery();
    let week = || discovery.get_trending_mini_apps(Timeframe::Days7, 1000);
    let on_base = || discovery.get_trending_mini_apps(Timeframe::Hours24, Selection::first(1000).on_networks(["base"]));
    let before = (week().await.expect("a list").len(), on_base().await.expect("a list").len());
    assert!(before.0 == 120 && before.1 > 4, "{before:?}");
    let lists = Catalog::of(4);
    let page = format!(r#"{{"frames":[{}],"next":{{"cursor":null}}}}"#, bodies(&lists));
    fixture.upstream.reply_with(move |request| match (request.window(), request.networks().is_empty()) {
        ("24h", true) => Reply::Page,
        ("24h", false) => Reply::body(r#"{"frames":[],"next":{"cursor":null}}"#),
        _ => Reply::body(page.clone()),
    });
    fixture.clock.advance(Duration::from_secs(1));
    let told = discovery.refresh().await.expect("the main list is good");
    assert_eq!(told.stale_lists, ["7d", "networks=base"], "collapsed lists are refused");
    assert!(told.last_error.is_some_and(|error| error.starts_with("7d: ") && error.contains("120 to 4")));
    assert_eq!((week().await.expect("a list").len(), on_base().await.expect("a list").len()), before);
    // At once, although the lists failed a moment ago.
    let forced = discovery.force_refresh().await.expect("force takes them");
    assert_eq!((forced.stale_lists, forced.last_error), (Vec::<String>::new(), None));
    assert_eq!((week().await.expect("a list").len(), on_base().await.expect("a list").len()), (4, 0));
    // Later refreshes compare with these lists: growth is welcome.
    fixture.upstream.recover();
    fixture.clock.advance(Duration::from_secs(1));
    discovery.refresh().await.expect("refreshed");
    assert_eq!((week().await.expect("a list").len(), on_base().await.expect("a list").len()), before);
}

/// The rows of a catalog, as the items of a page.
fn bodies(catalog: &Catalog) -> String {
    let bodies: Vec<String> = catalog.rows().map(|row| row.body).collect();
    bodies.join(",")
}

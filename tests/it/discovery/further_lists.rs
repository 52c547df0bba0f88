//! The main list and the further lists (timeframes, networks) succeed and fail on their own (DESIGN 6).

use std::time::Duration;

use serde_json::json;
use townsquare::{
    Client, ErrorKind,
    discovery::{DiscoveryStats, MiniApps, Selection, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, Row, full_frame},
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, ids},
    upstream::{Gate, Reply, in_order_of},
    wait::until,
};

const APPS: usize = 60;

async fn list(client: &Client, timeframe: Timeframe) -> MiniApps {
    client.discovery().get_trending_mini_apps(timeframe, 1000).await.expect("a list")
}

fn stats(client: &Client) -> DiscoveryStats {
    client.discovery().stats().expect("open")
}

/// The ids of a catalog in a window's order.
fn expected(catalog: Catalog, window: &str) -> Vec<String> {
    in_order_of(window, catalog.apps().map(|app| app.id).collect())
}

/// Counts the requests for the first page of a window's list.
fn fetches(fixture: &Fixture, window: &str) -> usize {
    let requests = fixture.upstream.requests();
    requests.iter().filter(|request| request.window() == window && request.page() == 0).count()
}

#[tokio::test]
async fn a_failing_list_keeps_its_order_and_the_main_list_is_refreshed() {
    let (old, new) = (Catalog::of(APPS), Catalog::of(APPS + 1));
    let fixture = Fixture::of(old.rows());
    let client = fixture.open_with(fixture.one_try()).await;
    list(&client, Timeframe::Days7).await;
    list(&client, Timeframe::Hour1).await;
    fixture.upstream.serve(new.rows());
    fixture.upstream.reply_with(|request| match request.window() {
        "7d" => Reply::status(500),
        _ => Reply::Page,
    });
    fixture.clock.advance(FIFTEEN_MINUTES);
    let refreshed = client.discovery().refresh().await.expect("the main list was refreshed");
    assert_eq!((refreshed.total, refreshed.is_stale), (APPS + 1, false));
    assert_eq!(refreshed.stale_lists, ["7d"]);
    assert!(refreshed.last_error.is_some_and(|told| told.contains("500") && told.starts_with("7d: ")));
    assert_eq!(ids(&list(&client, Timeframe::Hours24).await), expected(new, "24h"));
    assert_eq!(ids(&list(&client, Timeframe::Hour1).await), expected(new, "1h"), "the other list was refreshed");

    // Within the backoff neither reads nor the next refresh of the main list fetch it.
    let calls = fetches(&fixture, "7d");
    assert_eq!(calls, 2);
    assert_eq!(ids(&list(&client, Timeframe::Days7).await), expected(old, "7d"), "the old order");
    client.discovery().refresh().await.expect("refreshed");
    assert_eq!(fetches(&fixture, "7d"), calls, "it is not paid for again");

    fixture.upstream.recover();
    fixture.clock.advance(Duration::from_secs(5));
    list(&client, Timeframe::Days7).await;
    until("a read renews the list alone", || stats(&client).stale_lists.is_empty()).await;
    assert_eq!(ids(&list(&client, Timeframe::Days7).await), expected(new, "7d"));
    assert_eq!(stats(&client).last_error, None);
}

#[tokio::test]
async fn a_failing_main_list_does_not_cost_a_further_list_its_refresh() {
    let old = Catalog::of(APPS);
    let fixture = Fixture::of(old.rows());
    let client = fixture.open_with(fixture.one_try()).await;
    list(&client, Timeframe::Days7).await;
    // Another order of the same apps.
    fixture.upstream.serve(old.rows().collect::<Vec<_>>().into_iter().rev());
    fixture.upstream.reply_with(|request| match request.window() {
        "24h" => Reply::status(500),
        _ => Reply::Page,
    });
    fixture.clock.advance(FIFTEEN_MINUTES);
    assert_kind(ErrorKind::Unavailable, client.discovery().refresh().await);
    assert_eq!(ids(&list(&client, Timeframe::Hours24).await), expected(old, "24h"));
    assert_eq!(ids(&list(&client, Timeframe::Days7).await), expected(old, "24h"), "reversed twice");
    let told = stats(&client);
    assert!(told.is_stale && told.stale_lists.is_empty(), "{told:?}");
}

#[tokio::test]
async fn a_list_that_was_not_read_for_an_interval_is_dropped() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open().await;
    list(&client, Timeframe::Days7).await;
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    list(&client, Timeframe::Hours24).await;
    until("the refresh has ended", || fetches(&fixture, "24h") == 2 && !stats(&client).is_refreshing).await;
    assert_eq!(fetches(&fixture, "7d"), 1, "nobody pays for what nobody reads");
    list(&client, Timeframe::Days7).await;
    assert_eq!(fetches(&fixture, "7d"), 2, "the next reader fetches it");
    assert_eq!(fetches(&fixture, "24h"), 2);
}

#[tokio::test]
async fn the_number_of_further_lists_is_limited() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open_with(fixture.config().catalog_max_lists(1)).await;
    list(&client, Timeframe::Days7).await;
    assert_eq!(ids(&list(&client, Timeframe::Hour1).await), expected(Catalog::of(APPS), "24h"), "the default order");
    let on_base = Selection::first(5).on_networks(["base"]);
    assert_kind(ErrorKind::Unavailable, client.discovery().get_trending_mini_apps(Timeframe::Hours24, on_base).await);
    assert_eq!(fixture.upstream.list_count(), 2);
}

#[tokio::test]
async fn refresh_does_not_take_the_fetch_of_a_further_list_for_its_own() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open().await;
    list(&client, Timeframe::Hours24).await;
    let gate = Gate::closed();
    let held = gate.clone();
    fixture.upstream.reply_with(move |request| match request.window() {
        "7d" => Reply::Behind(held.clone()),
        _ => Reply::Page,
    });
    let reader = client.clone();
    let reading = tokio::spawn(async move { list(&reader, Timeframe::Days7).await.len() });
    until("the further list is fetched", || fetches(&fixture, "7d") == 1).await;
    fixture.upstream.serve(Catalog::of(APPS + 1).rows());
    fixture.clock.advance(Duration::from_secs(1));
    let refreshing = client.clone();
    let refresh = tokio::spawn(async move { refreshing.discovery().refresh().await });
    tokio::task::yield_now().await;
    gate.open();
    assert_eq!(refresh.await.expect("no panic").expect("refreshed").total, APPS + 1);
    assert_eq!(fetches(&fixture, "24h"), 2);
    assert!(reading.await.expect("no panic") >= APPS);
}

#[tokio::test]
async fn refresh_fetches_again_when_the_running_refresh_has_fetched_the_main_list() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open().await;
    list(&client, Timeframe::Days7).await;
    let gate = Gate::closed();
    let held = gate.clone();
    fixture.upstream.reply_with(move |request| match request.window() {
        "7d" => Reply::Behind(held.clone()),
        _ => Reply::Page,
    });
    fixture.clock.advance(Duration::from_secs(1));
    let begin = || {
        let client = client.clone();
        tokio::spawn(async move { client.discovery().refresh().await })
    };
    let first = begin();
    until("the first refresh fetches its further list", || fetches(&fixture, "7d") == 2).await;
    fixture.upstream.serve(Catalog::of(APPS + 1).rows());
    fixture.clock.advance(Duration::from_secs(1));
    let second = begin();
    tokio::task::yield_now().await;
    gate.open();
    first.await.expect("no panic").expect("refreshed");
    assert_eq!(second.await.expect("no panic").expect("refreshed").total, APPS + 1);
    assert_eq!(fetches(&fixture, "24h"), 3);
}

#[tokio::test]
async fn a_catalog_that_was_cut_off_at_the_last_allowed_page_is_truncated() {
    let fixture = Fixture::of(Catalog::of(150).rows());
    let client = fixture.open_with(fixture.config().catalog_max_pages(1)).await;
    assert_eq!(list(&client, Timeframe::Hours24).await.len(), 100);
    assert!(stats(&client).truncated);
    let other = fixture.open().await;
    list(&other, Timeframe::Hours24).await;
    assert!(stats(&other).truncated, "the database keeps it");
    fixture.clock.advance(Duration::from_secs(1));
    assert!(!other.discovery().refresh().await.expect("refreshed").truncated);
}

#[tokio::test]
async fn a_read_waits_for_a_refresh_beyond_the_maximum_staleness() {
    let (old, new) = (Catalog::of(APPS), Catalog::of(APPS + 1));
    let fixture = Fixture::of(old.rows());
    let client = fixture.open_with(fixture.one_try().max_staleness(FIFTEEN_MINUTES * 2)).await;
    list(&client, Timeframe::Hours24).await;
    fixture.upstream.serve(new.rows());
    fixture.clock.advance(FIFTEEN_MINUTES * 2);
    assert_eq!(list(&client, Timeframe::Hours24).await.len(), APPS + 1, "the first read has the new catalog");
    // A failing upstream leaves the old catalog, and within the backoff no read waits.
    fixture.upstream.reply_with(|_| Reply::status(500));
    fixture.clock.advance(FIFTEEN_MINUTES * 2);
    for _ in 0..3 {
        assert_eq!(list(&client, Timeframe::Hours24).await.len(), APPS + 1);
    }
    assert!(stats(&client).is_stale);
    assert_eq!(fetches(&fixture, "24h"), 3);
}

#[tokio::test]
async fn one_row_with_chains_leaves_the_network_filter_to_the_upstream() {
    let catalog = Catalog::of(APPS);
    let mut frame = full_frame("chains.example");
    frame["manifest"]["miniapp"]["required_chains"] = json!(["eip155:8453"]);
    let fixture = Fixture::of(catalog.rows().chain([Row::from(frame)]));
    let client = fixture.open().await;
    let mut expected: Vec<_> = catalog
        .apps()
        .filter(|app| app.networks.is_empty() || app.networks.contains(&"base"))
        .map(|app| app.id)
        .collect();
    assert!(expected.len() < APPS);
    expected.push("chains.example/home".into());
    let on_base = Selection::first(1000).on_networks(["base"]);
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, on_base).await.expect("a list");
    assert_eq!(ids(&listed), expected);
    assert!(fixture.upstream.requests().iter().any(|request| request.networks() == ["base"]));
}

async fn answer(client: &Client, query: &str) -> (u16, serde_json::Value) {
    let target = format!("/api/miniapp-discovery{query}");
    let response = client.discovery().handle("GET", &target, b"", &[]).await.expect("open");
    (response.status, serde_json::from_slice(&response.body).expect("JSON"))
}

fn answered_ids(body: &serde_json::Value) -> Vec<String> {
    let apps = body["apps"].as_array().expect("a list").iter();
    apps.map(|app| app["id"].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test]
async fn requests_to_the_endpoint_fetch_the_main_list_alone() {
    let apps = Catalog::of(APPS);
    let fixture = Fixture::of(apps.rows());
    let client = fixture.open().await;
    let facets = "/categories?networks=base";
    for _ in 0..2 {
        for window in ["1h", "6h", "12h", "7d"] {
            let (status, body) = answer(&client, &format!("?timeWindow={window}&limit=1000")).await;
            assert_eq!((status, answered_ids(&body)), (200, expected(apps, "24h")), "the default order");
        }
        for query in ["?networks=base,celo", "?networks=solana&timeWindow=7d", facets] {
            let (status, body) = answer(&client, query).await;
            assert_eq!((status, &body["success"]), (503, &json!(false)), "{query}");
        }
        for body in [
            json!({"action": "trending", "timeWindow": "7d"}),
            json!({"action": "search", "query": "a", "networks": ["base"]}),
        ] {
            let body = body.to_string();
            client.discovery().handle("POST", "/api/miniapp-discovery", body.as_bytes(), &[]).await.expect("open");
        }
        assert_eq!(answer(&client, "?networks=bitcoin").await.0, 400, "an unknown network");
    }
    assert_eq!(fixture.upstream.list_count(), 1);
    // Nor does a later refresh fetch what requests asked for.
    fixture.clock.advance(FIFTEEN_MINUTES);
    client.discovery().refresh().await.expect("refreshed");
    assert_eq!(fixture.upstream.list_count(), 2);

    // What the program itself has read, requests may read too, and have fetched again.
    list(&client, Timeframe::Days7).await;
    assert_eq!(fixture.upstream.list_count(), 3);
    assert_eq!(answered_ids(&answer(&client, "?timeWindow=7d&limit=1000").await.1), expected(apps, "7d"));
    fixture.clock.advance(2 * FIFTEEN_MINUTES);
    client.discovery().refresh().await.expect("refreshed without the list, which nobody read for an interval");
    assert_eq!(answered_ids(&answer(&client, "?timeWindow=7d&limit=1000").await.1), expected(apps, "7d"));
    assert_eq!((fetches(&fixture, "7d"), fetches(&fixture, "1h")), (2, 0));
}

#[tokio::test]
async fn requests_fetch_further_lists_if_the_host_allows_it() {
    let apps = Catalog::of(APPS);
    let fixture = Fixture::of(apps.rows());
    let client = fixture.open_with(fixture.config().endpoint_lists(true)).await;
    assert_eq!(answered_ids(&answer(&client, "?timeWindow=7d&limit=1000").await.1), expected(apps, "7d"));
    assert_eq!(answer(&client, "?networks=base").await.0, 200);
    assert_eq!(fixture.upstream.list_count(), 3);
}

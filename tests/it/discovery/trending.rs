//! Trending lists (SPEC 4.2 getTrendingMiniApps; UPSTREAM 1: lists are in trending order).

use townsquare::{
    ErrorKind,
    discovery::{Selection, Timeframe},
};
use townsquare_tests::{
    catalog::Catalog,
    fixture::{Fixture, assert_kind, ids, start_time},
    upstream::in_order_of,
};

const APPS: usize = 230;

fn fixture() -> (Fixture, Vec<String>) {
    let catalog = Catalog::of(APPS);
    (Fixture::of(catalog.rows()), catalog.apps().map(|app| app.id).collect())
}

#[tokio::test]
async fn every_timeframe_has_the_upstreams_order() {
    let (fixture, apps) = fixture();
    let client = fixture.open().await;
    for timeframe in Timeframe::ALL {
        let listed = client.discovery().get_trending_mini_apps(timeframe, 1000).await.expect("a list");
        assert_eq!(ids(&listed), in_order_of(timeframe.as_str(), apps.clone()), "{timeframe}");
    }
}

#[tokio::test]
async fn ranks_start_at_one_in_the_order_of_the_list() {
    let (fixture, apps) = fixture();
    let client = fixture.open().await;
    for timeframe in [Timeframe::Hours24, Timeframe::Days7] {
        let listed = client.discovery().get_trending_mini_apps(timeframe, 1000).await.expect("a list");
        let ranks: Vec<_> = listed.iter().map(|app| app.engagement().trending_rank).collect();
        assert_eq!(ranks, (1..=APPS as u32).map(Some).collect::<Vec<_>>(), "{timeframe}");
    }
    let one_category = Selection::first(1000).in_categories(["games"]);
    let games = client.discovery().get_trending_mini_apps(Timeframe::Hours24, one_category).await.expect("a list");
    assert!(games.len() > 1);
    for app in &games {
        let place = apps.iter().position(|id| **id == *app.id()).expect("an app of the catalog");
        assert_eq!(app.engagement().trending_rank, Some(place as u32 + 1), "a filter does not renumber");
    }
}

#[tokio::test]
async fn limits_range_from_1_to_1000_and_default_to_50() {
    let (fixture, apps) = fixture();
    let client = fixture.open().await;
    let discovery = client.discovery();
    for limit in [1, 7, 230, 1000] {
        let listed = discovery.get_trending_mini_apps(Timeframe::Hours24, limit).await.expect("a list");
        assert_eq!(ids(&listed), apps[..(limit as usize).min(APPS)], "limit {limit}");
    }
    let listed = discovery.get_trending_mini_apps(Timeframe::Hours24, Selection::default()).await.expect("a list");
    assert_eq!(listed.len(), 50);
    for limit in [0, 1001, u32::MAX] {
        let error =
            assert_kind(ErrorKind::InvalidInput, discovery.get_trending_mini_apps(Timeframe::Hours24, limit).await);
        assert!(error.to_string().starts_with("Get trending mini apps failed: "), "{error}");
        assert!(error.message().contains("limit"), "{error}");
        assert_kind(ErrorKind::InvalidInput, discovery.get_mini_apps_by_category(["games"], limit).await);
        assert_kind(ErrorKind::InvalidInput, discovery.search_mini_apps("x", limit).await);
    }
}

#[test]
fn there_are_five_timeframes() {
    for bad in ["", "2h", "24H", " 24h", "7D", "24h,7d", "1h\0"] {
        let error = assert_kind(ErrorKind::InvalidInput, bad.parse::<Timeframe>());
        assert!(error.message().contains("1h, 6h, 12h, 24h, 7d"), "{error}");
    }
}

#[tokio::test]
async fn a_timeframe_is_fetched_at_its_first_read_and_cached() {
    let (fixture, _) = fixture();
    let client = fixture.open().await;
    let discovery = client.discovery();
    assert_eq!(fixture.upstream.request_count(), 0, "opening costs nothing");
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    assert!(fixture.upstream.requests().iter().all(|request| request.window() == "24h"));
    assert_eq!(fixture.upstream.list_count(), 1);
    discovery.get_trending_mini_apps(Timeframe::Hour1, 1).await.expect("a list");
    assert_eq!(fixture.upstream.list_count(), 2);
    assert_eq!(fixture.upstream.requests().last().map(|request| request.window().to_owned()), Some("1h".into()));
    for timeframe in [Timeframe::Hours24, Timeframe::Hour1] {
        discovery.get_trending_mini_apps(timeframe, 1000).await.expect("a list");
    }
    discovery.get_mini_apps_by_category(["games"], 5).await.expect("a list");
    discovery.search_mini_apps("puzzle", 5).await.expect("a list");
    assert_eq!(fixture.upstream.list_count(), 2, "what is fresh is not paid for twice");
}

#[tokio::test]
async fn filters_combine_with_a_timeframe_and_with_each_other() {
    let catalog = Catalog::of(APPS);
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    let apps: Vec<_> = catalog.apps().collect();
    for timeframe in Timeframe::ALL {
        let selection = Selection::first(1000).in_categories(["games", "music"]).on_networks(["base", "celo"]);
        let listed = client.discovery().get_trending_mini_apps(timeframe, selection).await.expect("a list");
        let expected: Vec<_> = in_order_of(timeframe.as_str(), apps.clone())
            .into_iter()
            .filter(|app| matches!(app.category, Some("games" | "music")))
            .filter(|app| app.networks.is_empty() || app.networks.iter().any(|name| ["base", "celo"].contains(name)))
            .map(|app| app.id)
            .collect();
        assert!(!expected.is_empty());
        assert_eq!(ids(&listed), expected, "{timeframe}");
    }
}

#[tokio::test]
async fn records_contain_their_fetch_time() {
    let (fixture, _) = fixture();
    let client = fixture.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 3).await.expect("a list");
    assert!(listed.iter().all(|app| app.last_fetched() == start_time()));
}

#[test]
fn the_blocking_client_returns_the_same_lists() {
    let (fixture, apps) = fixture();
    let client = townsquare::blocking::Client::open(fixture.config()).expect("opens");
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 20).expect("a list");
    assert_eq!(ids(&listed), apps[..20]);
    client.close();
}

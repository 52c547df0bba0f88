//! Without a key: no call, no results, no error (SPEC 1.5, 5.1, 7; DESIGN 6).

use townsquare::{CatalogSource, Client, Config, Timeframe, blocking};
use townsquare_tests::{
    alone::{alone, assert_passed, child, name_of, role},
    catalog::Catalog,
    town::Town,
    upstream::KEY,
};

async fn assert_nothing(town: &Town, client: &Client) {
    let discovery = client.discovery();
    for timeframe in Timeframe::ALL {
        assert!(discovery.get_trending_mini_apps(timeframe, 50).await.expect("no error").is_empty());
    }
    assert!(discovery.get_mini_apps_by_category(["games"], 50).await.expect("no error").is_empty());
    assert!(discovery.search_mini_apps("puzzle", 50).await.expect("no error").is_empty());
    for stats in [discovery.refresh().await, discovery.force_refresh().await, discovery.stats()] {
        let stats = stats.expect("no error");
        assert_eq!((stats.total, stats.has_api_key, stats.last_error), (0, false, None));
        assert_eq!((stats.source, stats.fetched_at), (CatalogSource::None, None));
    }
    let response = discovery.handle("GET", "/api/miniapp-discovery", b"").await.expect("open");
    let body: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!((response.status, &body["success"], &body["apps"]), (200, &true.into(), &serde_json::json!([])));
    assert_eq!(body["stats"]["hasApiKey"], false);
    assert_eq!(town.upstream.count(), 0, "no call");
}

#[tokio::test]
async fn an_empty_key_gives_empty_results_without_a_call() {
    let town = Town::of(Catalog::of(60).rows());
    for key in ["", "  "] {
        let client = town.open_with(town.config().catalog_api_key(key)).await;
        assert_nothing(&town, &client).await;
    }
}

#[tokio::test]
async fn an_empty_key_gives_empty_results_whatever_the_database_holds() {
    let town = Town::of(Catalog::of(60).rows());
    let client = town.open().await;
    assert_eq!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), 60);
    client.close().await;
    town.upstream.forget();
    let client = town.open_with(town.config().catalog_api_key("")).await;
    assert_nothing(&town, &client).await;
}

#[test]
fn a_missing_key_gives_empty_results_without_a_call() {
    alone(a_missing_key_gives_empty_results_without_a_call, || {
        let town = Town::of(Catalog::of(60).rows());
        let config = Config::new().data_dir(town.folder.join("data")).catalog_url(town.upstream.url());
        let client = blocking::Client::open(config).expect("opens");
        blocking::wait(assert_nothing(&town, client.inner()));
        client.close();
    });
}

#[test]
fn the_key_is_read_from_the_environment() {
    let test = the_key_is_read_from_the_environment;
    if role().is_some() {
        let town = Town::of(Catalog::of(60).rows());
        let config = Config::new().data_dir(town.folder.join("data")).catalog_url(town.upstream.url());
        let client = blocking::Client::open(config).expect("opens");
        assert_eq!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).expect("a list").len(), 5);
        assert_eq!(town.upstream.requests()[0].header("x-api-key"), Some(KEY));
        // An empty key that is given wins over the environment's.
        let client = blocking::Client::open(town.config().catalog_api_key("")).expect("opens");
        assert!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).expect("no error").is_empty());
        return;
    }
    let name = name_of(&test);
    let output = child(name, "with key", &[("CATALOG_API_KEY", KEY)]).output().expect("the test binary starts");
    assert_passed(name, &output);
}

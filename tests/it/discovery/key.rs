//! A client without API key: no request, empty results, no error (SPEC 1.5, 5.1, 7; DESIGN 6).

use townsquare::{
    Client, Config, blocking,
    discovery::{CatalogSource, Timeframe},
};
use townsquare_tests::{
    catalog::Catalog,
    fixture::Fixture,
    subprocess::{child, in_subprocess, name_of, role, run_child},
    upstream::KEY,
};

async fn assert_empty_results(fixture: &Fixture, client: &Client) {
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
    let response = discovery.handle("GET", "/api/miniapp-discovery", b"", &[]).await.expect("open");
    let body: serde_json::Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!((response.status, &body["success"], &body["apps"]), (200, &true.into(), &serde_json::json!([])));
    assert_eq!(body["stats"]["hasApiKey"], false);
    assert_eq!(fixture.upstream.request_count(), 0, "no call");
}

#[tokio::test]
async fn an_empty_key_gives_empty_results_without_a_request() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    for key in ["", "  "] {
        let client = fixture.open_with(fixture.config().catalog_api_key(key)).await;
        assert_empty_results(&fixture, &client).await;
    }
}

#[tokio::test]
async fn an_empty_key_gives_empty_results_whatever_the_database_holds() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    assert_eq!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), 60);
    client.close().await;
    fixture.upstream.clear_requests();
    let client = fixture.open_with(fixture.config().catalog_api_key("")).await;
    assert_empty_results(&fixture, &client).await;
}

#[test]
fn a_missing_key_gives_empty_results_without_a_request() {
    in_subprocess(a_missing_key_gives_empty_results_without_a_request, || {
        let fixture = Fixture::of(Catalog::of(60).rows());
        let config = Config::new().data_dir(fixture.folder.path().join("data")).catalog_url(fixture.upstream.url());
        let client = blocking::Client::open(config).expect("opens");
        blocking::wait(assert_empty_results(&fixture, client.inner()));
        client.close();
    });
}

#[test]
fn the_key_is_read_from_the_environment() {
    let test = the_key_is_read_from_the_environment;
    if role().is_some() {
        let fixture = Fixture::of(Catalog::of(60).rows());
        let config = Config::new().data_dir(fixture.folder.path().join("data")).catalog_url(fixture.upstream.url());
        let client = blocking::Client::open(config).expect("opens");
        assert_eq!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).expect("a list").len(), 5);
        assert_eq!(fixture.upstream.requests()[0].header("x-api-key"), Some(KEY));
        // An explicit empty key takes precedence over the environment.
        let client = blocking::Client::open(fixture.config().catalog_api_key("")).expect("opens");
        assert!(client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).expect("no error").is_empty());
        return;
    }
    let name = name_of(&test);
    run_child(&mut child(name, "with key", &[("CATALOG_API_KEY", KEY)]));
}

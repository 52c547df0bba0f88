//! Other ways to a catalog: Farcaster's own list (UPSTREAM 1), and an HTTP proxy of the environment.

use std::sync::Arc;

use serde_json::{Value, json};
use townsquare::{
    Config,
    blocking::Client,
    discovery::{CatalogSource, Selection, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, full_frame},
    fixture::{Fixture, ids},
    subprocess::{child, name_of, role, run_child},
    upstream::{KEY, Reply},
};

/// A row of Farcaster's list.
fn camel_row(index: usize, chains: &[&str]) -> Value {
    json!({
        "rank": index + 1,
        "miniApp": {
            "domain": format!("app-{index}.example"),
            "name": format!("App {index}"),
            "homeUrl": format!("https://app-{index}.example/"),
            "iconUrl": format!("https://app-{index}.example/icon.png"),
            "primaryCategory": "games",
            "requiredChains": chains,
            "author": {"fid": index, "username": "ann", "displayName": "Ann", "pfp": {"url": "https://p.example/a.png"}},
        },
    })
}

#[tokio::test]
async fn farcasters_list_needs_no_key_and_has_one_order() {
    let rows = Arc::new([camel_row(0, &[]), camel_row(1, &["eip155:8453"]), camel_row(2, &["eip155:1"])]);
    let fixture = Fixture::of([]);
    fixture.upstream.reply_with(move |request| {
        let first = request.parameter("cursor").is_none();
        let (frames, cursor) = if first { (&rows[..2], json!("c")) } else { (&rows[2..], json!(null)) };
        Reply::body(json!({"result": {"frames": frames}, "next": {"cursor": cursor}}).to_string())
    });
    let config = fixture.config().catalog_format("farcaster").catalog_api_key("");
    let client = fixture.open_with(config).await;
    let discovery = client.discovery();
    let all = discovery.get_trending_mini_apps(Timeframe::Days7, 10).await.expect("a list");
    assert_eq!(ids(&all), ["app-0.example", "app-1.example", "app-2.example"]);
    assert_eq!(all[0].author().and_then(|author| author.pfp_url), Some("https://p.example/a.png"));
    let on_base = Selection::first(10).on_networks(["base"]);
    let on_base = discovery.get_trending_mini_apps(Timeframe::Hours24, on_base).await.expect("a list");
    assert_eq!(ids(&on_base), ["app-0.example", "app-1.example"], "the rows name their chains");
    let stats = discovery.stats().expect("open");
    assert_eq!((stats.source, stats.total, stats.has_api_key), (CatalogSource::Upstream, 3, false));
    let requests = fixture.upstream.requests();
    assert_eq!(requests.len(), 2, "one list for every timeframe and network");
    for request in requests {
        assert_eq!(request.path, "/v1/top-frameapps");
        assert_eq!((request.parameter("time_window"), request.header("x-api-key")), (None, None));
    }
}

#[tokio::test]
async fn bodies_are_recognised_by_their_shape() {
    // A file may have either shape, and rows of both.
    let fixture = Fixture::of([]);
    let file = fixture.folder.path().join("catalog.json");
    let body = json!({"result": {"frames": [camel_row(0, &[]), full_frame("full.example"), 7]}});
    std::fs::write(&file, body.to_string()).expect("a file");
    let client = fixture.open_with(fixture.config().catalog_url(format!("file:{}", file.display()))).await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 10).await.expect("a list");
    assert_eq!(ids(&listed), ["app-0.example", "full.example/home"]);
    assert_eq!(client.discovery().stats().expect("open").skipped, 1);
}

#[test]
fn the_upstream_is_reached_through_the_proxy_of_the_environment() {
    let test = the_upstream_is_reached_through_the_proxy_of_the_environment;
    if let Some(role) = role() {
        let folder = townsquare_tests::temp_dir();
        let base = std::env::var("PROXY_BASE").expect("the parent sets it");
        let config = Config::new().data_dir(folder.path()).catalog_url(base).catalog_api_key(KEY).catalog_tries(1);
        let opened = Client::open(config);
        if role == "bad proxy" {
            let error = opened.expect_err("no proxy URL").to_string();
            assert!(error.contains("http_proxy") && !error.contains("MARKED"), "{error}");
            return;
        }
        let client = opened.expect("opens");
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 100);
        match role.as_str() {
            "through" => assert_eq!(listed.expect("the proxy answers").len(), 60),
            _ => assert!(listed.is_err(), "the host does not exist"),
        }
        return;
    }
    // The fake upstream is the proxy: it gets the request for the other host.
    let proxy = Fixture::of(Catalog::of(60).rows());
    let url = proxy.upstream.url();
    let run = |role: &str, base: &str, variables: &[(&str, &str)]| {
        let mut command = child(name_of(&test), role, &[("PROXY_BASE", base)]);
        for variable in
            ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"]
        {
            command.env_remove(variable);
        }
        run_child(command.envs(variables.iter().copied()));
    };
    let base = "http://catalog.invalid";
    for variable in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        proxy.upstream.clear_requests();
        run("through", base, &[(variable, &url)]);
        let requests = proxy.upstream.requests();
        assert_eq!(requests.len(), 1, "{variable}");
        assert_eq!(requests[0].header("host"), Some("catalog.invalid"), "{variable}");
    }
    run("through", base, &[("http_proxy", url.trim_start_matches("http://"))]);
    proxy.upstream.clear_requests();
    run("directly", base, &[("http_proxy", &url), ("no_proxy", "catalog.invalid")]);
    run("directly", base, &[("HTTP_PROXY", &url), ("REQUEST_METHOD", "GET")]);
    run("directly", base, &[("https_proxy", &url)]);
    assert_eq!(proxy.upstream.request_count(), 0);
    run("bad proxy", base, &[("http_proxy", "socks5://MARKED@host")]);
}

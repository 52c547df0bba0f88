//! Reading the catalog page by page: cursors, limits and retries (UPSTREAM 1; DESIGN 6).

use std::time::Duration;

use townsquare::discovery::Timeframe;
use townsquare_tests::{
    catalog::Catalog,
    fixture::{Fixture, ids},
    upstream::{KEY, PATH, Reply},
    wait::within,
};

#[tokio::test]
async fn pages_are_followed_by_cursor_with_the_key_in_its_header() {
    let catalog = Catalog::of(250);
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(ids(&listed), catalog.apps().map(|app| app.id).collect::<Vec<_>>());
    let requests = fixture.upstream.requests();
    assert_eq!(
        requests.iter().map(townsquare_tests::upstream::Request::offset).collect::<Vec<_>>(),
        [Some(0), Some(100), Some(200)]
    );
    for request in &requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", PATH));
        assert_eq!(request.header("x-api-key"), Some(KEY));
        assert_eq!(request.header("accept"), Some("application/json"));
        assert_eq!((request.parameter("limit"), request.parameter("time_window")), (Some("100"), Some("24h")));
        assert!(!request.query.iter().any(|(_, value)| value.contains(KEY)), "the key is in no URL");
    }
}

#[tokio::test]
async fn page_size_page_limit_and_key_header_are_configurable() {
    let fixture = Fixture::of(Catalog::of(250).rows());
    let config = fixture.config().catalog_page_size(20).catalog_max_pages(3);
    let client = fixture.open_with(config).await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!((listed.len(), fixture.upstream.request_count()), (60, 3), "paged only as far as is configured");
    assert!(fixture.upstream.requests().iter().all(|request| request.parameter("limit") == Some("20")));

    let fixture = Fixture::of(Catalog::of(5).rows());
    fixture.upstream.reply_with(|_| Reply::body(r#"{"frames":[],"next":{"cursor":null}}"#));
    let client = fixture.open_with(fixture.config().catalog_key_header("Authorization")).await;
    let _ = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).await;
    let requests = fixture.upstream.requests();
    assert!(!requests.is_empty());
    assert!(requests.iter().all(|request| request.header("authorization") == Some(KEY)));
    assert!(requests.iter().all(|request| request.header("x-api-key").is_none()));
}

#[tokio::test]
async fn a_base_url_may_have_a_path_and_a_trailing_slash() {
    let fixture = Fixture::of(Catalog::of(5).rows());
    fixture.upstream.reply_with(|_| {
        Reply::body(r#"{"frames":[{"frames_url":"https://a.example","title":"A"}],"next":{"cursor":null}}"#)
    });
    for (base, path) in
        [("/", PATH.to_owned()), ("/proxy/neynar", format!("/proxy/neynar{PATH}")), ("/p/", format!("/p{PATH}"))]
    {
        fixture.upstream.clear_requests();
        let config = fixture.config().data_dir(fixture.folder.path().join("other").join(base.replace('/', "_")));
        let client = fixture.open_with(config.catalog_url(format!("{}{base}", fixture.upstream.url()))).await;
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, 5).await.expect("a list");
        assert_eq!(fixture.upstream.requests()[0].path, path, "{base}");
    }
}

#[tokio::test]
async fn overlapping_pages_give_each_app_once() {
    let catalog = Catalog::of(150);
    let rows: Vec<_> = catalog.rows().collect();
    let overlapping = rows[..100].iter().chain(&rows[90..]).chain(&rows[..5]).cloned();
    let fixture = Fixture::of(overlapping);
    let client = fixture.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(ids(&listed), catalog.apps().map(|app| app.id).collect::<Vec<_>>(), "the first keeps its place");
    let stats = client.discovery().stats().expect("open");
    assert_eq!((stats.total, stats.received, stats.duplicates, stats.skipped), (150, 165, 15, 0));
}

#[tokio::test]
async fn a_page_that_fails_twice_is_tried_a_third_time() {
    let fixture = Fixture::of(Catalog::of(150).rows());
    let tries = std::sync::atomic::AtomicUsize::new(0);
    fixture.upstream.reply_with(move |request| match request.page() {
        1 if tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < 2 => Reply::status(500),
        _ => Reply::Page,
    });
    let client = fixture.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(
        (listed.len(), fixture.upstream.request_count()),
        (150, 4),
        "one page twice more, none of the others again"
    );
    assert_eq!(client.discovery().stats().expect("open").last_error, None);
}

#[tokio::test]
async fn endless_cursors_stop_at_the_page_limit() {
    let fixture = Fixture::of(Catalog::of(10).rows());
    fixture.upstream.reply_with(|_| Reply::EndlessPages);
    let client = fixture.open_with(fixture.config().catalog_max_pages(7)).await;
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000);
    let _ = within("endless pages", Duration::from_secs(10), call).await;
    assert!(fixture.upstream.request_count() <= 7 * 3, "{}", fixture.upstream.request_count());
}

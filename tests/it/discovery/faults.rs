//! Failing upstreams (UPSTREAM 1 "Errors seen in the wild"; DESIGN 6): reads use the last catalog, the stats report the
//! error, and a recovery clears it.

use std::{
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use townsquare::{
    Config, ErrorKind,
    discovery::{CatalogSource, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD},
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, ids, start_time},
    upstream::{KEY, Reply, Request, Upstream},
    wait::{until, within},
};

const APPS: usize = 250;
const ENOUGH: Duration = Duration::from_secs(30);

struct Fault {
    name: &'static str,
    begin: fn(&Upstream),
    /// Words of `last_error` in lower case; any one must occur.
    words: &'static [&'static str],
}

fn on_page(page: usize, reply: Reply) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| if request.page() == page { reply.clone() } else { Reply::Page }
}

const GIBIBYTE: u64 = 1 << 30;
const TOO_LARGE: &[&str] = &["large", "bytes", "mib", "size"];
const BROKEN_OFF: &[&str] = &["connection", "reset", "body", "cut", "read", "closed", "broke off"];
const SLOW: &[&str] = &["time", "longer", "slow", "answer"];

const FAULTS: &[Fault] = &[
    Fault { name: "refused connection", begin: Upstream::refuse_connections, words: &["refused", "connect"] },
    Fault { name: "time-out", begin: |upstream| upstream.reply_with(|_| Reply::Never), words: SLOW },
    Fault {
        name: "trickling body",
        begin: |upstream| upstream.reply_with(|_| Reply::Trickle(Duration::from_millis(20))),
        words: SLOW,
    },
    Fault { name: "401", begin: |upstream| upstream.reply_with(|_| Reply::status(401)), words: &["401"] },
    Fault { name: "402", begin: |upstream| upstream.reply_with(|_| Reply::status(402)), words: &["402"] },
    Fault { name: "403", begin: |upstream| upstream.reply_with(|_| Reply::status(403)), words: &["403"] },
    Fault { name: "404", begin: |upstream| upstream.reply_with(|_| Reply::status(404)), words: &["404"] },
    Fault { name: "429", begin: |upstream| upstream.reply_with(|_| Reply::rate_limited(None)), words: &["429"] },
    Fault {
        name: "429, an hour",
        begin: |upstream| upstream.reply_with(|_| Reply::rate_limited(Some("3600"))),
        words: &["429"],
    },
    Fault {
        name: "429, a date",
        begin: |upstream| upstream.reply_with(|_| Reply::rate_limited(Some("Fri, 31 Dec 2100 23:59:59 GMT"))),
        words: &["429"],
    },
    Fault {
        name: "429, nonsense",
        begin: |upstream| upstream.reply_with(|_| Reply::rate_limited(Some("-5 soon"))),
        words: &["429"],
    },
    Fault {
        name: "429, the end of time",
        begin: |upstream| upstream.reply_with(|_| Reply::rate_limited(Some("18446744073709551615"))),
        words: &["429"],
    },
    Fault { name: "500", begin: |upstream| upstream.reply_with(|_| Reply::status(500)), words: &["500"] },
    Fault { name: "503", begin: |upstream| upstream.reply_with(|_| Reply::status(503)), words: &["503"] },
    Fault { name: "HTML with 200", begin: |upstream| upstream.reply_with(|_| Reply::html()), words: &["html"] },
    Fault {
        name: "rows that are no apps",
        begin: |upstream| upstream.reply_with(|_| Reply::body(r#"{"frames":[{"x":1},[]]}"#)),
        words: &["none of the 2 rows"],
    },
    Fault {
        name: "an error body with 200",
        begin: |upstream| upstream.reply_with(|_| Reply::body(r#"{"message":"no"}"#)),
        words: &["frames"],
    },
    Fault {
        name: "an empty body",
        begin: |upstream| upstream.reply_with(|_| Reply::body("")),
        words: &["json", "cut off", "empty"],
    },
    Fault {
        name: "204",
        begin: |upstream| upstream.reply_with(|_| Reply::Response(204, vec![], vec![])),
        words: &["204", "json", "cut off", "empty"],
    },
    Fault {
        name: "cut-off JSON",
        begin: |upstream| upstream.reply_with(|_| Reply::CutOff),
        words: &["cut off", "json"],
    },
    Fault { name: "reset", begin: |upstream| upstream.reply_with(|_| Reply::Reset), words: BROKEN_OFF },
    Fault { name: "reset mid-body", begin: |upstream| upstream.reply_with(|_| Reply::ResetMidBody), words: BROKEN_OFF },
    Fault { name: "1 GB body", begin: |upstream| upstream.reply_with(|_| Reply::Flood(GIBIBYTE)), words: TOO_LARGE },
    Fault {
        name: "gzip bomb",
        begin: |upstream| upstream.reply_with(|_| Reply::Bomb(64 * GIBIBYTE)),
        words: TOO_LARGE,
    },
    Fault {
        name: "looping cursor",
        begin: |upstream| upstream.reply_with(|_| Reply::Loop),
        words: &["cursor", "circle", "loop"],
    },
    Fault {
        name: "third page fails",
        begin: |upstream| upstream.reply_with(on_page(2, Reply::status(500))),
        words: &["500"],
    },
    Fault { name: "second page hangs", begin: |upstream| upstream.reply_with(on_page(1, Reply::Never)), words: SLOW },
    Fault {
        name: "second page cut off",
        begin: |upstream| upstream.reply_with(on_page(1, Reply::CutOff)),
        words: &["cut off", "json"],
    },
    Fault {
        name: "zero rows",
        begin: |upstream| upstream.serve([]),
        words: &["0", "collapse", "lost", "shrank", "shrunk", "empty", "fell"],
    },
    Fault {
        name: "redirect to itself",
        begin: |upstream| {
            let itself = format!("{}/v2/farcaster/frame/catalog/", upstream.url());
            upstream.reply_with(move |_| Reply::Redirect(302, itself.clone()));
        },
        words: &["redirect", "302"],
    },
];

fn assert_contains(fault: &Fault, text: &str) {
    let lower = text.to_lowercase();
    assert!(
        fault.words.iter().any(|word| lower.contains(word)),
        "{}: {text:?} says none of {:?}",
        fault.name,
        fault.words
    );
    assert!(!text.contains(KEY), "{}: {text}", fault.name);
}

/// Returns a configuration in which only the faults that hang reach a time-out. All others must fail for their own reason.
fn config_for(fault: &Fault, fixture: &Fixture) -> Config {
    if fault.words == SLOW { fixture.short_timeouts() } else { fixture.one_try() }
}

async fn keeps_catalog(fault: &'static Fault) {
    let catalog = Catalog::of(APPS);
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open_with(config_for(fault, &fixture)).await;
    let discovery = client.discovery();
    let expected: Vec<_> = catalog.apps().map(|app| app.id).collect();
    let list = || async {
        let call = discovery.get_trending_mini_apps(Timeframe::Hours24, 1000);
        within(fault.name, Duration::from_secs(5), call).await.expect("the last good catalog answers")
    };
    within("the first list", ENOUGH, discovery.get_trending_mini_apps(Timeframe::Hours24, 1)).await.expect("a list");
    let sent_before = fixture.upstream.sent_bytes();

    (fault.begin)(&fixture.upstream);
    fixture.clock.advance(Duration::from_secs(60));
    let error = assert_kind(ErrorKind::Unavailable, within(fault.name, ENOUGH, discovery.refresh()).await);
    assert!(error.to_string().starts_with("Refresh mini apps failed: "), "{error}");
    assert!(error.is_retryable());
    assert_contains(fault, error.message());
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");

    assert_eq!(ids(&list().await), expected, "{}", fault.name);
    assert!(!discovery.search_mini_apps(FREQUENT_WORD, 5).await.expect("a list").is_empty());
    let stats = discovery.stats().expect("open");
    assert_contains(fault, stats.last_error.as_deref().unwrap_or_default());
    assert!(stats.is_stale, "{}: the last attempt failed", fault.name);
    assert!(!stats.is_refreshing, "{}", fault.name);
    assert_eq!((stats.source, stats.fetched_at), (CatalogSource::Upstream, Some(start_time())), "{}", fault.name);
    assert_eq!((stats.total, stats.received), (APPS, APPS), "{}", fault.name);
    assert!(
        fixture.upstream.sent_bytes() - sent_before < 200 << 20,
        "{}: {} bytes",
        fault.name,
        fixture.upstream.sent_bytes()
    );

    fixture.upstream.serve(catalog.rows());
    fixture.upstream.recover();
    fixture.clock.advance(Duration::from_secs(4000));
    let stats =
        within(fault.name, ENOUGH, discovery.refresh()).await.unwrap_or_else(|error| panic!("{}: {error}", fault.name));
    assert_eq!((stats.last_error, stats.is_stale, stats.total), (None, false, APPS), "{}", fault.name);
    assert_eq!(stats.fetched_at, Some(start_time() + Duration::from_secs(4060)), "{}", fault.name);
}

#[tokio::test]
async fn the_catalog_survives_every_upstream_fault() {
    for_every_fault(FAULTS.iter(), |fault| Box::pin(keeps_catalog(fault))).await;
}

/// Runs a check for each fault and reports all failures.
async fn for_every_fault(
    faults: impl Iterator<Item = &'static Fault>,
    check: fn(&'static Fault) -> Pin<Box<dyn Future<Output = ()> + Send>>,
) {
    let mut failed = Vec::new();
    for fault in faults {
        if tokio::spawn(check(fault)).await.is_err() {
            failed.push(fault.name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}; each is told above");
}

#[tokio::test]
async fn without_a_catalog_every_upstream_fault_is_unavailable() {
    // Zero rows are a valid catalog when there was none before.
    let faults = FAULTS.iter().filter(|fault| fault.name != "zero rows" && fault.words != TOO_LARGE);
    for_every_fault(faults, |fault| Box::pin(fails_without_catalog(fault))).await;
}

async fn fails_without_catalog(fault: &'static Fault) {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    (fault.begin)(&fixture.upstream);
    let client = fixture.open_with(config_for(fault, &fixture)).await;
    let discovery = client.discovery();
    let call = discovery.get_trending_mini_apps(Timeframe::Hours24, 10);
    let error = assert_kind(ErrorKind::Unavailable, within(fault.name, ENOUGH, call).await);
    assert!(error.to_string().starts_with("Get trending mini apps failed: "), "{error}");
    assert_contains(fault, error.message());
    let call = discovery.search_mini_apps(FREQUENT_WORD, 10);
    assert_kind(ErrorKind::Unavailable, within(fault.name, ENOUGH, call).await);
    let stats = discovery.stats().expect("open");
    assert_eq!((stats.source, stats.fetched_at, stats.total), (CatalogSource::None, None, 0), "{}", fault.name);
    assert_contains(fault, stats.last_error.as_deref().unwrap_or_default());
    fixture.upstream.recover();
    fixture.clock.advance(Duration::from_secs(4000));
    if fault.name == "429, the end of time" {
        discovery.refresh().await.expect("who asks for a refresh gets one, whatever was said about readers");
    }
    let listed = within(fault.name, ENOUGH, discovery.get_trending_mini_apps(Timeframe::Hours24, 10)).await;
    assert_eq!(listed.unwrap_or_else(|error| panic!("{}: {error}", fault.name)).len(), 10);
    assert_eq!(discovery.stats().expect("open").last_error, None, "{}", fault.name);
}

#[tokio::test]
async fn a_stale_read_succeeds_when_the_background_refresh_fails() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open_with(fixture.one_try()).await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    fixture.upstream.refuse_connections();
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    assert_eq!(discovery.get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), APPS);
    until("the failure is told", || discovery.stats().expect("open").last_error.is_some()).await;
    assert_eq!(discovery.get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), APPS);
}

#[tokio::test]
async fn a_timeframe_that_cannot_be_fetched_is_reported_as_stale() {
    let fixture = Fixture::of(Catalog::of(APPS).rows());
    let client = fixture.open_with(fixture.one_try()).await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    fixture.upstream.reply_with(|request| match request.window() {
        "24h" => Reply::Page,
        _ => Reply::status(500),
    });
    // The catalog answers, in another order.
    let listed = within("a read", ENOUGH, discovery.get_trending_mini_apps(Timeframe::Days7, 1000)).await;
    assert_eq!(listed.expect("a list").len(), APPS);
    assert!(discovery.stats().expect("open").last_error.is_some_and(|told| told.contains("500")));
    let calls = fixture.upstream.request_count();
    for _ in 0..20 {
        discovery.get_trending_mini_apps(Timeframe::Days7, 5).await.expect("a list");
    }
    assert_eq!(fixture.upstream.request_count(), calls, "not every reader tries again");
    fixture.upstream.recover();
    fixture.clock.advance(FIFTEEN_MINUTES);
    discovery.refresh().await.expect("refreshed");
    let listed = discovery.get_trending_mini_apps(Timeframe::Days7, 1).await.expect("a list");
    assert_eq!(listed[0].id(), Catalog::of(APPS).app(APPS - 1).id, "in its own order again");
    assert_eq!(discovery.stats().expect("open").last_error, None);
}

#[tokio::test]
async fn a_refresh_waits_for_a_short_retry_after() {
    let fixture = Fixture::of(Catalog::of(50).rows());
    let tries = AtomicUsize::new(0);
    fixture.upstream.reply_with(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::rate_limited(Some("1")),
        _ => Reply::Page,
    });
    let client = fixture.open().await;
    let begun = Instant::now();
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50);
    assert_eq!(within("the second try", ENOUGH, call).await.expect("a list").len(), 50);
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(fixture.upstream.request_count(), 2);
}

#[tokio::test]
async fn a_long_retry_after_is_reported_and_delays_the_next_refresh() {
    let fixture = Fixture::of(Catalog::of(50).rows());
    let client = fixture.open().await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    fixture.upstream.reply_with(|_| Reply::rate_limited(Some("3600")));
    let error = assert_kind(ErrorKind::Unavailable, within("a refusal", ENOUGH, discovery.refresh()).await);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    let before = fixture.upstream.request_count();
    assert_eq!(before, 2, "a try that is bound to fail is not made");
    for _ in 0..3 {
        fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(60));
        for _ in 0..10 {
            discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
            until("no refresh is under way", || !discovery.stats().expect("open").is_refreshing).await;
        }
    }
    assert_eq!(fixture.upstream.request_count(), before, "readers leave upstream alone for the hour it asked for");
    fixture.upstream.recover();
    fixture.clock.advance(FIFTEEN_MINUTES);
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    until("it recovers after the hour", || discovery.stats().expect("open").last_error.is_none()).await;
}

#[tokio::test]
async fn a_refused_key_is_not_retried() {
    for status in [400, 401, 402, 403, 404] {
        let fixture = Fixture::of(Catalog::of(50).rows());
        fixture.upstream.reply_with(move |_| Reply::status(status));
        let client = fixture.open().await;
        let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1);
        assert_kind(ErrorKind::Unavailable, within("a refusal", ENOUGH, call).await);
        assert_eq!(fixture.upstream.request_count(), 1, "{status} is an answer that the next try gets too");
    }
}

#[tokio::test]
async fn a_padded_page_within_the_size_limit_is_read() {
    let fixture = Fixture::of(Catalog::of(50).rows());
    fixture.upstream.reply_with(|_| Reply::Flood(20 << 20));
    let client = fixture.open_with(fixture.one_try()).await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50).await.expect("20 MiB are allowed");
    assert_eq!(listed.len(), 50);

    let fixture = Fixture::of(Catalog::of(50).rows());
    fixture.upstream.reply_with(|_| Reply::Flood(2 << 20));
    let client = fixture.open_with(fixture.one_try().catalog_max_page_bytes(1 << 20)).await;
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50);
    assert_kind(ErrorKind::Unavailable, within("a page over the bound", ENOUGH, call).await);
}

#[tokio::test]
async fn all_pages_share_the_refresh_timeout() {
    let fixture = Fixture::of(Catalog::of(1000).rows());
    fixture.upstream.reply_with(|request| match request.page() {
        0 => Reply::Page,
        _ => Reply::Trickle(Duration::from_micros(1)),
    });
    // Each page may take longer than the test waits.
    let client = fixture.open_with(fixture.one_try().catalog_refresh_timeout(Duration::from_secs(1))).await;
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50);
    assert_kind(ErrorKind::Unavailable, within("the whole refresh", Duration::from_secs(12), call).await);
}

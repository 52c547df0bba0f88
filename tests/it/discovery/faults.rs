//! Failing upstreams (issue "Survives"; UPSTREAM 1 "Errors seen in the wild"; DESIGN 6): the last good catalog
//! answers, the stats say why it is no newer, and a recovery clears that.

use std::{
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use townsquare::{CatalogSource, ErrorKind, Timeframe};
use townsquare_tests::{
    catalog::Catalog,
    town::{FIFTEEN_MINUTES, Town, ids, morning, refused},
    upstream::{KEY, Reply, Request, Upstream},
    wait::{until, within},
};

const APPS: usize = 250;
const ENOUGH: Duration = Duration::from_secs(12);

struct Fault {
    name: &'static str,
    begin: fn(&Upstream),
    /// What `last_error` says, any of these, in lower case.
    says: &'static [&'static str],
}

fn on_page(page: usize, reply: Reply) -> impl Fn(&Request) -> Reply + Send + Sync {
    move |request| if request.page() == page { reply.clone() } else { Reply::Honest }
}

const GIBIBYTE: u64 = 1 << 30;
const TOO_LARGE: &[&str] = &["large", "bytes", "mib", "size"];
const BROKEN_OFF: &[&str] = &["connection", "reset", "body", "cut", "read", "closed", "broke off"];
const SLOW: &[&str] = &["time", "longer", "slow", "answer"];

const FAULTS: &[Fault] = &[
    Fault { name: "refused connection", begin: Upstream::refuse, says: &["refused", "connect"] },
    Fault { name: "time-out", begin: |upstream| upstream.behave(|_| Reply::Never), says: SLOW },
    Fault {
        name: "trickling body",
        begin: |upstream| upstream.behave(|_| Reply::Trickle(Duration::from_millis(20))),
        says: SLOW,
    },
    Fault { name: "401", begin: |upstream| upstream.behave(|_| Reply::status(401)), says: &["401"] },
    Fault { name: "402", begin: |upstream| upstream.behave(|_| Reply::status(402)), says: &["402"] },
    Fault { name: "403", begin: |upstream| upstream.behave(|_| Reply::status(403)), says: &["403"] },
    Fault { name: "404", begin: |upstream| upstream.behave(|_| Reply::status(404)), says: &["404"] },
    Fault { name: "429", begin: |upstream| upstream.behave(|_| Reply::too_fast(None)), says: &["429"] },
    Fault {
        name: "429, an hour",
        begin: |upstream| upstream.behave(|_| Reply::too_fast(Some("3600"))),
        says: &["429"],
    },
    Fault {
        name: "429, a date",
        begin: |upstream| upstream.behave(|_| Reply::too_fast(Some("Fri, 31 Dec 2100 23:59:59 GMT"))),
        says: &["429"],
    },
    Fault {
        name: "429, nonsense",
        begin: |upstream| upstream.behave(|_| Reply::too_fast(Some("-5 soon"))),
        says: &["429"],
    },
    Fault {
        name: "429, the end of time",
        begin: |upstream| upstream.behave(|_| Reply::too_fast(Some("18446744073709551615"))),
        says: &["429"],
    },
    Fault { name: "500", begin: |upstream| upstream.behave(|_| Reply::status(500)), says: &["500"] },
    Fault { name: "503", begin: |upstream| upstream.behave(|_| Reply::status(503)), says: &["503"] },
    Fault { name: "HTML with 200", begin: |upstream| upstream.behave(|_| Reply::html()), says: &["html"] },
    Fault {
        name: "an error body with 200",
        begin: |upstream| upstream.behave(|_| Reply::body(r#"{"message":"no"}"#)),
        says: &["frames"],
    },
    Fault {
        name: "an empty body",
        begin: |upstream| upstream.behave(|_| Reply::body("")),
        says: &["json", "cut off", "empty"],
    },
    Fault {
        name: "204",
        begin: |upstream| upstream.behave(|_| Reply::Answer(204, vec![], vec![])),
        says: &["204", "json", "cut off", "empty"],
    },
    Fault { name: "cut-off JSON", begin: |upstream| upstream.behave(|_| Reply::CutOff), says: &["cut off", "json"] },
    Fault { name: "reset", begin: |upstream| upstream.behave(|_| Reply::Reset), says: BROKEN_OFF },
    Fault { name: "reset mid-body", begin: |upstream| upstream.behave(|_| Reply::ResetMidBody), says: BROKEN_OFF },
    Fault { name: "1 GB body", begin: |upstream| upstream.behave(|_| Reply::Flood(GIBIBYTE)), says: TOO_LARGE },
    Fault { name: "gzip bomb", begin: |upstream| upstream.behave(|_| Reply::Bomb(64 * GIBIBYTE)), says: TOO_LARGE },
    Fault {
        name: "looping cursor",
        begin: |upstream| upstream.behave(|_| Reply::Loop),
        says: &["cursor", "circle", "loop"],
    },
    Fault {
        name: "third page fails",
        begin: |upstream| upstream.behave(on_page(2, Reply::status(500))),
        says: &["500"],
    },
    Fault { name: "second page hangs", begin: |upstream| upstream.behave(on_page(1, Reply::Never)), says: SLOW },
    Fault {
        name: "second page cut off",
        begin: |upstream| upstream.behave(on_page(1, Reply::CutOff)),
        says: &["cut off", "json"],
    },
    Fault {
        name: "zero rows",
        begin: |upstream| upstream.serve([]),
        says: &["0", "collapse", "lost", "shrank", "shrunk", "empty", "fell"],
    },
    Fault {
        name: "redirect to itself",
        begin: |upstream| {
            let itself = format!("{}/v2/farcaster/frame/catalog/", upstream.url());
            upstream.behave(move |_| Reply::Redirect(302, itself.clone()));
        },
        says: &["redirect", "302"],
    },
];

fn assert_says(fault: &Fault, text: &str) {
    let lower = text.to_lowercase();
    assert!(
        fault.says.iter().any(|word| lower.contains(word)),
        "{}: {text:?} says none of {:?}",
        fault.name,
        fault.says
    );
    assert!(!text.contains(KEY), "{}: {text}", fault.name);
}

async fn survives(fault: &'static Fault) {
    let catalog = Catalog::of(APPS);
    let town = Town::of(catalog.rows());
    // The bodies that are too large take their time to arrive, and must fail for their size.
    let config = match fault.says == TOO_LARGE {
        true => town.impatient().catalog_timeout(ENOUGH).catalog_refresh_timeout(ENOUGH),
        false => town.impatient(),
    };
    let client = town.open_with(config).await;
    let discovery = client.discovery();
    let expected: Vec<_> = catalog.apps().map(|app| app.id).collect();
    let list = || async {
        let call = discovery.get_trending_mini_apps(Timeframe::Hours24, 1000);
        within(fault.name, Duration::from_secs(1), call).await.expect("the last good catalog answers")
    };
    within("the first list", ENOUGH, discovery.get_trending_mini_apps(Timeframe::Hours24, 1)).await.expect("a list");
    let sent_before = town.upstream.sent();

    (fault.begin)(&town.upstream);
    town.hands.advance(Duration::from_secs(60));
    let error = refused(ErrorKind::Unavailable, within(fault.name, ENOUGH, discovery.refresh()).await);
    assert!(error.to_string().starts_with("Refresh mini apps failed: "), "{error}");
    assert!(error.is_retryable());
    assert_says(fault, error.message());
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");

    assert_eq!(ids(&list().await), expected, "{}", fault.name);
    assert!(!discovery.search_mini_apps("daily", 5).await.expect("a list").is_empty());
    let stats = discovery.stats().expect("open");
    assert_says(fault, stats.last_error.as_deref().unwrap_or_default());
    assert!(stats.is_stale, "{}: the last attempt failed", fault.name);
    assert!(!stats.is_refreshing, "{}", fault.name);
    assert_eq!((stats.source, stats.fetched_at), (CatalogSource::Upstream, Some(morning())), "{}", fault.name);
    assert_eq!((stats.total, stats.received), (APPS, APPS), "{}", fault.name);
    assert!(town.upstream.sent() - sent_before < 200 << 20, "{}: {} bytes", fault.name, town.upstream.sent());

    town.upstream.serve(catalog.rows());
    town.upstream.recover();
    town.hands.advance(Duration::from_secs(4000));
    let stats =
        within(fault.name, ENOUGH, discovery.refresh()).await.unwrap_or_else(|error| panic!("{}: {error}", fault.name));
    assert_eq!((stats.last_error, stats.is_stale, stats.total), (None, false, APPS), "{}", fault.name);
    assert_eq!(stats.fetched_at, Some(morning() + Duration::from_secs(4060)), "{}", fault.name);
}

#[tokio::test]
async fn the_last_good_catalog_survives_every_fault_and_a_recovery_clears_it() {
    every(FAULTS.iter(), |fault| Box::pin(survives(fault))).await;
}

/// Runs a check for each fault, and tells all that failed instead of the first.
async fn every(
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
async fn with_nothing_to_answer_from_every_fault_is_unavailable() {
    // Zero rows from a source that never had any is a catalog, if an empty one.
    let faults = FAULTS.iter().filter(|fault| fault.name != "zero rows" && fault.says != TOO_LARGE);
    every(faults, |fault| Box::pin(has_nothing(fault))).await;
}

async fn has_nothing(fault: &'static Fault) {
    let town = Town::of(Catalog::of(APPS).rows());
    (fault.begin)(&town.upstream);
    let client = town.open_with(town.impatient()).await;
    let discovery = client.discovery();
    let call = discovery.get_trending_mini_apps(Timeframe::Hours24, 10);
    let error = refused(ErrorKind::Unavailable, within(fault.name, ENOUGH, call).await);
    assert!(error.to_string().starts_with("Get trending mini apps failed: "), "{error}");
    assert_says(fault, error.message());
    let call = discovery.search_mini_apps("daily", 10);
    refused(ErrorKind::Unavailable, within(fault.name, ENOUGH, call).await);
    let stats = discovery.stats().expect("open");
    assert_eq!((stats.source, stats.fetched_at, stats.total), (CatalogSource::None, None, 0), "{}", fault.name);
    assert_says(fault, stats.last_error.as_deref().unwrap_or_default());
    town.upstream.recover();
    town.hands.advance(Duration::from_secs(4000));
    if fault.name == "429, the end of time" {
        discovery.refresh().await.expect("who asks for a refresh gets one, whatever was said about readers");
    }
    let listed = within(fault.name, ENOUGH, discovery.get_trending_mini_apps(Timeframe::Hours24, 10)).await;
    assert_eq!(listed.unwrap_or_else(|error| panic!("{}: {error}", fault.name)).len(), 10);
    assert_eq!(discovery.stats().expect("open").last_error, None, "{}", fault.name);
}

#[tokio::test]
async fn a_stale_read_survives_a_fault_in_the_background() {
    let town = Town::of(Catalog::of(APPS).rows());
    let client = town.open_with(town.impatient()).await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    town.upstream.refuse();
    town.hands.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    assert_eq!(discovery.get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), APPS);
    until("the failure is told", || discovery.stats().expect("open").last_error.is_some()).await;
    assert_eq!(discovery.get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), APPS);
}

#[tokio::test]
async fn a_timeframe_that_cannot_be_fetched_is_told_until_it_can() {
    let town = Town::of(Catalog::of(APPS).rows());
    let client = town.open_with(town.impatient()).await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    town.upstream.behave(|request| match request.window() {
        "24h" => Reply::Honest,
        _ => Reply::status(500),
    });
    // There is a catalog to answer from, if in another order.
    let listed = within("a read", ENOUGH, discovery.get_trending_mini_apps(Timeframe::Days7, 1000)).await;
    assert_eq!(listed.expect("a list").len(), APPS);
    assert!(discovery.stats().expect("open").last_error.is_some_and(|told| told.contains("500")));
    let calls = town.upstream.count();
    for _ in 0..20 {
        discovery.get_trending_mini_apps(Timeframe::Days7, 5).await.expect("a list");
    }
    assert_eq!(town.upstream.count(), calls, "not every reader tries again");
    town.upstream.recover();
    town.hands.advance(FIFTEEN_MINUTES);
    discovery.refresh().await.expect("refreshed");
    let listed = discovery.get_trending_mini_apps(Timeframe::Days7, 1).await.expect("a list");
    assert_eq!(listed[0].id(), Catalog::of(APPS).app(APPS - 1).id, "in its own order again");
    assert_eq!(discovery.stats().expect("open").last_error, None);
}

#[tokio::test]
async fn a_short_retry_after_is_waited_for() {
    let town = Town::of(Catalog::of(50).rows());
    let tries = AtomicUsize::new(0);
    town.upstream.behave(move |_| match tries.fetch_add(1, Ordering::SeqCst) {
        0 => Reply::too_fast(Some("1")),
        _ => Reply::Honest,
    });
    let client = town.open().await;
    let begun = Instant::now();
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50);
    assert_eq!(within("the second try", ENOUGH, call).await.expect("a list").len(), 50);
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(town.upstream.count(), 2);
}

#[tokio::test]
async fn a_long_retry_after_is_told_and_kept_by_readers() {
    let town = Town::of(Catalog::of(50).rows());
    let client = town.open().await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    town.upstream.behave(|_| Reply::too_fast(Some("3600")));
    let error = refused(ErrorKind::Unavailable, within("a refusal", ENOUGH, discovery.refresh()).await);
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
    let before = town.upstream.count();
    assert_eq!(before, 2, "a try that is bound to fail is not made");
    for _ in 0..3 {
        town.hands.advance(FIFTEEN_MINUTES + Duration::from_secs(60));
        for _ in 0..10 {
            discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
            until("no refresh is under way", || !discovery.stats().expect("open").is_refreshing).await;
        }
    }
    assert_eq!(town.upstream.count(), before, "readers leave upstream alone for the hour it asked for");
    town.upstream.recover();
    town.hands.advance(FIFTEEN_MINUTES);
    discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    until("it recovers after the hour", || discovery.stats().expect("open").last_error.is_none()).await;
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again_and_again() {
    for status in [400, 401, 402, 403, 404] {
        let town = Town::of(Catalog::of(50).rows());
        town.upstream.behave(move |_| Reply::status(status));
        let client = town.open().await;
        let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1);
        refused(ErrorKind::Unavailable, within("a refusal", ENOUGH, call).await);
        assert_eq!(town.upstream.count(), 1, "{status} is an answer that the next try gets too");
    }
}

#[tokio::test]
async fn a_page_within_the_bound_is_read_however_it_is_padded() {
    let town = Town::of(Catalog::of(50).rows());
    town.upstream.behave(|_| Reply::Flood(20 << 20));
    let client = town.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50).await.expect("20 MiB are allowed");
    assert_eq!(listed.len(), 50);

    let town = Town::of(Catalog::of(50).rows());
    town.upstream.behave(|_| Reply::Flood(2 << 20));
    let client = town.open_with(town.impatient().catalog_max_page_bytes(1 << 20)).await;
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50);
    refused(ErrorKind::Unavailable, within("a page over the bound", ENOUGH, call).await);
}

#[tokio::test]
async fn all_pages_together_keep_the_time_of_a_refresh() {
    let town = Town::of(Catalog::of(1000).rows());
    town.upstream.behave(|request| match request.page() {
        0 => Reply::Honest,
        _ => Reply::Trickle(Duration::from_micros(1)),
    });
    let config = town.config().catalog_timeout(Duration::from_secs(5)).catalog_refresh_timeout(Duration::from_secs(1));
    let client = town.open_with(config).await;
    let begun = Instant::now();
    let call = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50);
    refused(ErrorKind::Unavailable, within("the whole refresh", ENOUGH, call).await);
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

//! Freshness: fifteen minutes, stale-while-revalidate, one refresh at a time (SPEC 1.3, 1.4, 8; DESIGN 6).

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use townsquare::{
    Client, ErrorKind,
    discovery::{DiscoveryStats, ENDPOINT_PATH, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD},
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, hours, ids, start_time},
    upstream::Reply,
    wait::{until, within},
};

const SOON: Duration = Duration::from_secs(5);

async fn first(client: &Client) -> String {
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    listed[0].id().to_owned()
}

fn stats(client: &Client) -> DiscoveryStats {
    client.discovery().stats().expect("open")
}

/// Returns an old and a new catalog with the ids of their first apps.
fn two_catalogs() -> (Catalog, Catalog, String, String) {
    let (old, new) = (Catalog::of(120), Catalog::of(120).seeded(7));
    (old, new, old.app(0).id, new.app(0).id)
}

#[tokio::test]
async fn a_catalog_is_fresh_for_fifteen_minutes() {
    let (old, new, old_first, new_first) = two_catalogs();
    let fixture = Fixture::of(old.rows());
    let client = fixture.open().await;
    assert_eq!(first(&client).await, old_first);
    fixture.upstream.serve(new.rows());
    fixture.clock.advance(FIFTEEN_MINUTES - Duration::from_secs(1));
    assert_eq!(first(&client).await, old_first);
    assert!(!stats(&client).is_stale && !stats(&client).is_refreshing);
    assert_eq!(fixture.upstream.list_count(), 1, "nothing fresh is fetched again");
    fixture.clock.advance(Duration::from_secs(2));
    assert!(stats(&client).is_stale);
    assert_eq!(fixture.upstream.list_count(), 1, "only a read refreshes: there is no scheduled job (SPEC 1.7)");
    assert_eq!(first(&client).await, old_first, "the read that finds it stale is answered from it");
    until("the stale catalog is replaced", || fixture.upstream.list_count() == 2 && !stats(&client).is_refreshing)
        .await;
    assert_eq!(first(&client).await, new_first);
    let stats = stats(&client);
    assert_eq!(stats.fetched_at, Some(start_time() + FIFTEEN_MINUTES + Duration::from_secs(1)));
    assert!(!stats.is_stale);
}

#[tokio::test]
async fn the_refresh_interval_is_configurable() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open_with(fixture.config().refresh_interval(Duration::from_secs(60))).await;
    first(&client).await;
    fixture.clock.advance(Duration::from_secs(59));
    first(&client).await;
    assert!(!stats(&client).is_stale);
    fixture.clock.advance(Duration::from_secs(2));
    first(&client).await;
    until("a second list is fetched", || fixture.upstream.list_count() == 2).await;
}

#[tokio::test]
async fn a_stale_read_does_not_wait_for_a_hanging_upstream() {
    let fixture = Fixture::of(Catalog::of(120).rows());
    let client = fixture.open().await;
    let before = first(&client).await;
    fixture.upstream.reply_with(|_| Reply::Never);
    fixture.clock.advance(FIFTEEN_MINUTES * 2);
    for _ in 0..50 {
        assert_eq!(within("a stale read", SOON, first(&client)).await, before);
    }
    until("the refresh is under way", || fixture.upstream.list_count() == 2).await;
    assert!(stats(&client).is_refreshing);
    within("search", SOON, client.discovery().search_mini_apps("puzzle", 5)).await.expect("a list");
    within("a category", SOON, client.discovery().get_mini_apps_by_category(["games"], 5)).await.expect("a list");
    assert_eq!(fixture.upstream.list_count(), 2, "one refresh, however many find it stale");
    within("close", SOON, client.close()).await;
}

#[tokio::test]
async fn a_thousand_concurrent_first_reads_share_one_refresh() {
    let fixture = Fixture::of(Catalog::of(250).rows());
    let gate = fixture.upstream.hold_replies();
    let client = fixture.open().await;
    let begun = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..1000)
        .map(|reader| {
            let (client, begun) = (client.clone(), Arc::clone(&begun));
            tokio::spawn(async move {
                begun.fetch_add(1, Ordering::SeqCst);
                let discovery = client.discovery();
                match reader % 3 {
                    0 => discovery.get_trending_mini_apps(Timeframe::Hours24, 10).await,
                    1 => discovery.get_mini_apps_by_category(["games"], 10).await,
                    _ => discovery.search_mini_apps(FREQUENT_WORD, 10).await,
                }
            })
        })
        .collect();
    until("every reader has begun", || begun.load(Ordering::SeqCst) == 1000 && fixture.upstream.request_count() > 0)
        .await;
    gate.open();
    for reader in readers {
        assert!(!reader.await.expect("no panic").expect("a list").is_empty());
    }
    assert_eq!((fixture.upstream.list_count(), fixture.upstream.request_count()), (1, 3));
}

#[tokio::test]
async fn a_thousand_concurrent_first_reads_share_one_failure() {
    let fixture = Fixture::of([]);
    let gate = fixture.upstream.hold_replies();
    let client = fixture.open_with(fixture.short_timeouts()).await;
    let readers: Vec<_> = (0..1000)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.discovery().get_trending_mini_apps(Timeframe::Hours24, 10).await })
        })
        .collect();
    for reader in readers {
        assert_kind(ErrorKind::Unavailable, reader.await.expect("no panic"));
    }
    assert!(fixture.upstream.list_count() <= 3, "{} refreshes for one failure", fixture.upstream.list_count());
    gate.open();
}

#[tokio::test]
async fn refreshes_that_begin_during_a_fetch_share_the_next_one() {
    let (old, new, _, new_first) = two_catalogs();
    let fixture = Fixture::of(old.rows());
    let client = fixture.open().await;
    first(&client).await;
    fixture.upstream.serve(new.rows());
    let gate = fixture.upstream.hold_replies();
    let begin = || {
        let client = client.clone();
        tokio::spawn(async move { client.discovery().refresh().await })
    };
    let mut calls = vec![begin()];
    until("the first refresh is under way", || fixture.upstream.list_count() == 2).await;
    let begun = Arc::new(AtomicUsize::new(0));
    for _ in 0..50 {
        let (client, begun) = (client.clone(), Arc::clone(&begun));
        calls.push(tokio::spawn(async move {
            begun.fetch_add(1, Ordering::SeqCst);
            client.discovery().refresh().await
        }));
    }
    until("all have begun", || begun.load(Ordering::SeqCst) == 50).await;
    assert!(stats(&client).is_refreshing);
    gate.open();
    for call in calls {
        let stats = call.await.expect("no panic").expect("refreshed");
        assert_eq!((stats.total, stats.last_error, stats.is_stale), (120, None, false));
    }
    assert_eq!(fixture.upstream.list_count(), 3, "the first, the one under way, and one for all later calls");
    assert_eq!(first(&client).await, new_first);
}

#[tokio::test]
async fn refresh_returns_a_catalog_that_was_fetched_after_the_call() {
    for is_forced in [false, true] {
        let (old, new) = (Catalog::of(60), Catalog::of(60).seeded(7));
        let fixture = Fixture::of(old.rows());
        let client = fixture.open().await;
        first(&client).await;
        let gate = fixture.upstream.hold_replies();
        fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
        first(&client).await;
        until("the background refresh is under way", || fixture.upstream.list_count() == 2).await;
        // The fetch that runs gets the old rows.
        fixture.upstream.serve(new.rows());
        let discovery = client.discovery();
        let refresh = async { if is_forced { discovery.force_refresh().await } else { discovery.refresh().await } };
        let mut refresh = pin!(refresh);
        // The call is made before the upstream replies.
        assert!(poll_once(refresh.as_mut()).await.is_none());
        gate.open();
        within("refresh", SOON, refresh).await.expect("refreshed");
        assert_eq!(first(&client).await, new.app(0).id, "forced: {is_forced}");
        assert_eq!(fixture.upstream.list_count(), 3);
    }
}

#[tokio::test]
async fn a_refresh_over_http_joins_the_fetch_that_runs() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    first(&client).await;
    let gate = fixture.upstream.hold_replies();
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    first(&client).await;
    until("the background refresh is under way", || fixture.upstream.list_count() == 2).await;
    let discovery = client.discovery();
    let mut handled = pin!(discovery.handle("POST", ENDPOINT_PATH, br#"{"action":"refresh"}"#, &[]));
    assert!(poll_once(handled.as_mut()).await.is_none());
    gate.open();
    let response = within("the endpoint", SOON, handled).await.expect("open");
    assert_eq!((response.status, fixture.upstream.list_count()), (200, 2));
}

/// Polls a future once. Returns its result if it is ready.
async fn poll_once<F: Future>(mut future: Pin<&mut F>) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        })
    })
    .await
}

#[tokio::test]
async fn a_refresh_never_blocks_a_reader() {
    let (old, new, old_first, _) = two_catalogs();
    let fixture = Fixture::of(old.rows());
    let client = fixture.open().await;
    first(&client).await;
    fixture.upstream.serve(new.rows());
    let gate = fixture.upstream.hold_replies();
    let refreshing = client.clone();
    let refresh = tokio::spawn(async move { refreshing.discovery().refresh().await });
    until("the refresh is under way", || fixture.upstream.list_count() == 2).await;
    for _ in 0..100 {
        assert_eq!(within("a read", SOON, first(&client)).await, old_first);
    }
    gate.open();
    refresh.await.expect("no panic").expect("refreshed");
}

#[tokio::test]
async fn refresh_fetches_a_catalog_of_any_age() {
    let (old, new, _, new_first) = two_catalogs();
    let fixture = Fixture::of(old.rows());
    let client = fixture.open().await;
    first(&client).await;
    fixture.upstream.serve(new.rows());
    fixture.clock.advance(Duration::from_secs(1));
    let stats = client.discovery().refresh().await.expect("refreshed");
    assert_eq!((stats.total, stats.fetched_at), (120, Some(start_time() + Duration::from_secs(1))));
    assert_eq!(first(&client).await, new_first);
    let expected: Vec<_> = new.apps().map(|app| app.id).collect();
    let all = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list");
    assert_eq!(ids(&all), expected, "nothing of the old one is left");
}

#[tokio::test]
async fn a_refresh_renews_the_timeframes_that_were_read() {
    let (old, new, ..) = two_catalogs();
    let fixture = Fixture::of(old.rows());
    let client = fixture.open().await;
    let week = || client.discovery().get_trending_mini_apps(Timeframe::Days7, 1000);
    week().await.expect("a list");
    fixture.upstream.serve(new.rows());
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    client.discovery().refresh().await.expect("refreshed");
    let mut expected: Vec<_> = new.apps().map(|app| app.id).collect();
    expected.reverse();
    assert_eq!(ids(&week().await.expect("a list")), expected);
}

#[tokio::test]
async fn a_dropped_read_does_not_cancel_the_refresh() {
    let fixture = Fixture::of(Catalog::of(120).rows());
    let gate = fixture.upstream.hold_replies();
    let client = fixture.open().await;
    let begin = || {
        let client = client.clone();
        tokio::spawn(async move { first(&client).await })
    };
    let (short_timeouts, patient) = (begin(), begin());
    until("the refresh is under way", || fixture.upstream.request_count() > 0).await;
    short_timeouts.abort();
    gate.open();
    within("the other reader", SOON, patient).await.expect("no panic");
    assert_eq!(fixture.upstream.list_count(), 1);
}

#[tokio::test]
async fn a_failed_refresh_backs_off() {
    let fixture = Fixture::of(Catalog::of(120).rows());
    let client = fixture.open_with(fixture.one_try()).await;
    first(&client).await;
    fixture.upstream.reply_with(|_| Reply::status(500));
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    for _ in 0..50 {
        first(&client).await;
        until("the refresh has ended", || !stats(&client).is_refreshing).await;
    }
    assert!(fixture.upstream.list_count() <= 4, "{} refreshes while no time passed", fixture.upstream.list_count());
    assert!(stats(&client).last_error.is_some());
    fixture.upstream.recover();
    fixture.clock.advance(FIFTEEN_MINUTES);
    first(&client).await;
    until("it recovers by itself", || stats(&client).last_error.is_none()).await;
}

#[tokio::test]
async fn a_wall_clock_step_causes_no_stall_and_no_extra_refresh() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    first(&client).await;
    for step in [-48, 96, -24] {
        fixture.clock.step(hours(step));
        first(&client).await;
        assert!(!stats(&client).is_refreshing);
    }
    assert_eq!(fixture.upstream.list_count(), 1, "age is measured, not read off the wall");
    fixture.clock.step(hours(-1000));
    fixture.clock.advance(FIFTEEN_MINUTES + Duration::from_secs(1));
    first(&client).await;
    until("it is refreshed all the same", || fixture.upstream.list_count() == 2).await;
}

#[tokio::test]
async fn a_list_fetched_after_the_clock_was_set_back_is_fresh() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    first(&client).await;
    fixture.clock.step(hours(-1));
    for _ in 0..5 {
        client.discovery().get_trending_mini_apps(Timeframe::Days7, 10).await.expect("a list");
        until("no refresh runs", || !stats(&client).is_refreshing).await;
    }
    assert_eq!(fixture.upstream.list_count(), 2, "the main list and the order of seven days, once each");
}

//! `close` waits for nothing that hangs, and later calls fail (DESIGN 4).

use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;
use townsquare::{
    Client, ErrorKind, blocking,
    discovery::Timeframe,
    storage::{RequestBody, UploadOptions, UrlMethod},
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD},
    fixture::{Fixture, assert_kind},
    upstream::Reply,
    wait::{until, within},
};

// Less than the ten seconds after which a close leaves the threads alone.
const SOON: Duration = Duration::from_secs(9);

#[tokio::test]
async fn every_call_on_a_closed_client_fails_as_closed() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    let clone = client.clone();
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    assert!(!client.is_closed());
    within("close", SOON, client.close()).await;
    for client in [&client, &clone] {
        assert!(client.is_closed());
        let discovery = client.discovery();
        let errors = [
            assert_kind(ErrorKind::Closed, discovery.get_trending_mini_apps(Timeframe::Hours24, 1).await),
            assert_kind(ErrorKind::Closed, discovery.get_mini_apps_by_category(["games"], 1).await),
            assert_kind(ErrorKind::Closed, discovery.search_mini_apps(FREQUENT_WORD, 1).await),
            assert_kind(ErrorKind::Closed, discovery.search_mini_apps("", 1).await),
            assert_kind(ErrorKind::Closed, discovery.refresh().await),
            assert_kind(ErrorKind::Closed, discovery.force_refresh().await),
            assert_kind(ErrorKind::Closed, discovery.stats()),
            assert_kind(ErrorKind::Closed, discovery.handle("GET", "/", b"", &[]).await),
        ];
        assert!(errors.iter().all(|error| error.message() == "The client is closed"), "{errors:?}");
    }
}

#[tokio::test]
async fn close_may_be_called_twice_and_concurrently() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    let closers: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.close().await })
        })
        .collect();
    for closer in closers {
        within("close", SOON, closer).await.expect("no panic");
    }
    within("close once more", SOON, client.close()).await;
}

#[tokio::test]
async fn close_during_a_hanging_refresh_does_not_hang() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    fixture.upstream.reply_with(|_| Reply::Never);
    let calls: Vec<_> = (0..5)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.discovery().refresh().await })
        })
        .collect();
    until("the refresh is under way", || fixture.upstream.list_count() == 2).await;
    let begun = Instant::now();
    within("close", SOON, client.close()).await;
    assert!(begun.elapsed() < Duration::from_secs(9), "{:?}", begun.elapsed());
    for call in calls {
        assert_kind(ErrorKind::Closed, within("a refresh that was called off", SOON, call).await.expect("no panic"));
    }
}

#[tokio::test]
async fn close_during_the_first_read_does_not_hang() {
    let fixture = Fixture::of([]);
    fixture.upstream.reply_with(|_| Reply::Trickle(Duration::from_millis(200)));
    let client = fixture.open().await;
    let reader = {
        let client = client.clone();
        tokio::spawn(async move { client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.map(|_| ()) })
    };
    until("the read is under way", || fixture.upstream.request_count() > 0).await;
    within("close", SOON, client.close()).await;
    assert_kind(ErrorKind::Closed, within("the reader", SOON, reader).await.expect("no panic"));
}

#[tokio::test]
async fn lists_outlive_their_client() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 60).await.expect("a list");
    client.close().await;
    drop(client);
    drop(fixture);
    assert_eq!(listed.len(), 60);
    assert!(listed.iter().all(|app| !app.name().is_empty()));
}

#[tokio::test]
async fn a_folder_can_be_reopened_and_removed_after_close() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    for _ in 0..5 {
        let client = fixture.open().await;
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
        client.close().await;
    }
    std::fs::remove_dir_all(fixture.folder.path().join("data")).expect("nothing holds it");
    assert_eq!(fixture.upstream.list_count(), 1);
}

#[test]
fn a_client_may_be_dropped_inside_a_runtime() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    for workers in [1, 2] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let client = Client::open(fixture.config()).await.expect("opens");
            client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
            drop(client);
            let closed = blocking::Client::open(fixture.config()).expect("opens inside a runtime too");
            closed.close();
        });
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime without drivers");
    runtime.block_on(async {
        let client = Client::open(fixture.config()).await.expect("needs nothing of its caller's runtime");
        client.discovery().refresh().await.expect("refreshed");
        client.close().await;
    });
}

/// Each source stalls after a hundred bytes.
#[tokio::test]
async fn close_ends_stalled_uploads() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    let (mut senders, mut calls) = (Vec::new(), tokio::task::JoinSet::new());
    let service = client.as_service();
    let signed = service.storage().signed_url("assets", "stalled", UrlMethod::Put, Duration::from_secs(60)).await;
    let put = format!("/files{}", signed.expect("signed"));
    for (method, target) in [("", ""), ("PUT", &put), ("POST", "/api/miniapp-discovery")] {
        let target = target.to_owned();
        // A pipe has room for 64 bytes: the rest is written when the call reads.
        let (mut sender, source) = tokio::io::duplex(64);
        let service = client.as_service();
        calls.spawn(async move {
            let upload = async {
                if method.is_empty() {
                    let upload = service.storage().upload_reader("assets", "read", source, UploadOptions::new());
                    return upload.await.map(|_| 0);
                }
                let body = RequestBody::from_reader(source);
                Ok(service.handle_request(method, &target, &[], body).await?.status)
            };
            upload.await
        });
        within("the call reads", SOON, sender.write_all(&[b'x'; 100])).await.expect("written");
        senders.push(sender);
    }
    within("close", SOON, client.close()).await;
    for outcome in within("the calls end", SOON, calls.join_all()).await {
        match outcome {
            Ok(status) => assert_eq!(status, 503),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Closed, "{error}"),
        }
    }
    drop(senders);
}

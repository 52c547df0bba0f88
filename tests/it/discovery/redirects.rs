//! Redirects of the upstream: the API key is sent to no other origin.

use std::time::Duration;

use townsquare::{Client, ErrorKind, discovery::Timeframe};
use townsquare_tests::{
    catalog::Catalog,
    fixture::{Fixture, assert_kind},
    upstream::{KEY, PATH, Reply, Upstream},
    wait::within,
};

const ENOUGH: Duration = Duration::from_secs(10);

async fn refresh(client: &Client) -> Result<townsquare::discovery::DiscoveryStats, townsquare::Error> {
    within("a redirected refresh", ENOUGH, client.discovery().refresh()).await
}

fn assert_never_saw_the_key(recorder: &Upstream) {
    for request in recorder.requests() {
        let everything = format!("{request:?}");
        assert!(!everything.contains(KEY), "the key went to another place: {everything}");
    }
}

#[tokio::test]
async fn the_key_is_sent_to_no_other_origin() {
    for status in [301, 302, 303, 307, 308] {
        let fixture = Fixture::of(Catalog::of(60).rows());
        let recorder = Upstream::of(Catalog::of(60).seeded(9).rows());
        let client = fixture.open_with(fixture.one_try()).await;
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
        let port = recorder.address().port();
        let elsewhere = [
            recorder.url(),
            format!("{}{PATH}", recorder.url()),
            format!("//127.0.0.1:{port}{PATH}"),
            format!("http://localhost:{port}{PATH}"),
            format!("http://user:pw@127.0.0.1:{port}{PATH}"),
        ];
        for to in elsewhere {
            fixture.upstream.reply_with({
                let to = to.clone();
                move |_| Reply::Redirect(status, to.clone())
            });
            let error = assert_kind(ErrorKind::Unavailable, refresh(&client).await);
            assert!(!format!("{error:?} {error}").contains(KEY));
            assert_never_saw_the_key(&recorder);
        }
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
        assert_eq!(listed[0].id(), Catalog::of(60).app(0).id, "nothing was taken from elsewhere");
        assert!(client.discovery().stats().expect("open").last_error.is_some());
    }
}

#[tokio::test]
async fn no_redirect_reads_a_file() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open_with(fixture.one_try()).await;
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    let file = fixture.folder.path().join("planted.json");
    Catalog::of(60).seeded(9).write(&file).expect("a file");
    for to in
        [format!("file://{}", file.display()), format!("file:{}", file.display()), "data:application/json,{}".into()]
    {
        fixture.upstream.reply_with(move |_| Reply::Redirect(302, to.clone()));
        assert_kind(ErrorKind::Unavailable, refresh(&client).await);
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
        assert_eq!(listed[0].id(), Catalog::of(60).app(0).id);
    }
}

#[tokio::test]
async fn chained_redirects_stay_within_the_origin() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let recorder = Upstream::of(Catalog::of(60).seeded(9).rows());
    let to = format!("{}{PATH}", recorder.url());
    fixture.upstream.reply_with(move |request| match request.path == PATH {
        true => Reply::Redirect(307, "/elsewhere".into()),
        false => Reply::Redirect(307, to.clone()),
    });
    let client = fixture.open_with(fixture.one_try()).await;
    assert_kind(ErrorKind::Unavailable, refresh(&client).await);
    assert_never_saw_the_key(&recorder);
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_or_reported() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    fixture.upstream.reply_with(|request| match request.parameter("moved") {
        Some(_) => Reply::Page,
        None => Reply::Redirect(308, format!("{PATH}?limit=100&time_window=24h&moved=1")),
    });
    let client = fixture.open_with(fixture.one_try()).await;
    match refresh(&client).await {
        Ok(stats) => assert_eq!(stats.total, 60),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
    }
}

#[tokio::test]
async fn a_proxy_of_the_environment_does_not_get_the_key() {
    // The first test is only valid when requests go directly to the recorder.
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    assert_eq!(fixture.upstream.requests()[0].header("host"), Some(fixture.upstream.address().to_string().as_str()));
}

//! Redirects (issue: "to other hosts or to `file:`: not followed with the key").

use std::time::Duration;

use townsquare::{Client, ErrorKind, Timeframe};
use townsquare_tests::{
    catalog::Catalog,
    town::{Town, refused},
    upstream::{KEY, PATH, Reply, Upstream},
    wait::within,
};

const ENOUGH: Duration = Duration::from_secs(10);

async fn refresh(client: &Client) -> Result<townsquare::DiscoveryStats, townsquare::Error> {
    within("a redirected refresh", ENOUGH, client.discovery().refresh()).await
}

fn assert_never_saw_the_key(recorder: &Upstream) {
    for request in recorder.requests() {
        let everything = format!("{request:?}");
        assert!(!everything.contains(KEY), "the key went to another place: {everything}");
    }
}

#[tokio::test]
async fn the_key_goes_to_no_other_origin() {
    for status in [301, 302, 303, 307, 308] {
        let town = Town::of(Catalog::of(60).rows());
        let recorder = Upstream::of(Catalog::of(60).seeded(9).rows());
        let client = town.open_with(town.impatient()).await;
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
            town.upstream.behave({
                let to = to.clone();
                move |_| Reply::Redirect(status, to.clone())
            });
            let error = refused(ErrorKind::Unavailable, refresh(&client).await);
            assert!(!format!("{error:?} {error}").contains(KEY));
            assert_never_saw_the_key(&recorder);
        }
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
        assert_eq!(listed[0].id(), Catalog::of(60).app(0).id, "nothing was taken from elsewhere");
        assert!(client.discovery().stats().expect("open").last_error.is_some());
    }
}

#[tokio::test]
async fn no_redirect_leads_into_the_file_system() {
    let town = Town::of(Catalog::of(60).rows());
    let client = town.open_with(town.impatient()).await;
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    let file = town.folder.join("planted.json");
    Catalog::of(60).seeded(9).write(&file).expect("a file");
    for to in
        [format!("file://{}", file.display()), format!("file:{}", file.display()), "data:application/json,{}".into()]
    {
        town.upstream.behave(move |_| Reply::Redirect(302, to.clone()));
        refused(ErrorKind::Unavailable, refresh(&client).await);
        let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
        assert_eq!(listed[0].id(), Catalog::of(60).app(0).id);
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_leads_nowhere_else_either() {
    let town = Town::of(Catalog::of(60).rows());
    let recorder = Upstream::of(Catalog::of(60).seeded(9).rows());
    let to = format!("{}{PATH}", recorder.url());
    town.upstream.behave(move |request| match request.path == PATH {
        true => Reply::Redirect(307, "/elsewhere".into()),
        false => Reply::Redirect(307, to.clone()),
    });
    let client = town.open_with(town.impatient()).await;
    refused(ErrorKind::Unavailable, refresh(&client).await);
    assert_never_saw_the_key(&recorder);
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_followed_or_told() {
    let town = Town::of(Catalog::of(60).rows());
    town.upstream.behave(|request| match request.parameter("moved") {
        Some(_) => Reply::Honest,
        None => Reply::Redirect(308, format!("{PATH}?limit=100&time_window=24h&moved=1")),
    });
    let client = town.open_with(town.impatient()).await;
    match refresh(&client).await {
        Ok(stats) => assert_eq!(stats.total, 60),
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
    }
}

#[tokio::test]
async fn the_environments_proxy_is_no_way_out_for_the_key_on_loopback_tests() {
    // The recorder of the first test is only proof when requests arrive directly.
    let town = Town::of(Catalog::of(60).rows());
    let client = town.open().await;
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    assert_eq!(town.upstream.requests()[0].header("host"), Some(town.upstream.address().to_string().as_str()));
}

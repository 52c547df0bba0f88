//! The mini app record: every field of UPSTREAM 2, read and normalised as UPSTREAM 1 states.

use serde_json::{Value, json};
use townsquare::{
    Client,
    discovery::{MiniApp, Timeframe},
};
use townsquare_tests::{
    catalog::{Row, full_frame},
    fixture::{Fixture, start_time},
};

async fn read(frames: impl IntoIterator<Item = Value>) -> (Fixture, Client, Vec<MiniApp>) {
    let fixture = Fixture::of(frames.into_iter().map(Row::from));
    let client = fixture.open().await;
    let apps = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").to_vec();
    (fixture, client, apps)
}

async fn read_one(frame: Value) -> MiniApp {
    let (_, _, apps) = read([frame]).await;
    assert_eq!(apps.len(), 1);
    apps[0].clone()
}

fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut frame = full_frame("full.example");
    change(&mut frame);
    frame
}

#[tokio::test]
async fn every_field_is_read() {
    let app = read_one(full_frame("full.example")).await;
    assert_eq!((app.id(), app.domain()), ("full.example/home", "full.example"));
    assert_eq!((app.name(), app.description()), ("Full House", Some("The description")));
    assert_eq!((app.icon_url(), app.home_url()), ("https://full.example/icon.png", "https://full.example/home"));
    assert_eq!(app.category(), Some("games"));
    assert_eq!(app.networks().collect::<Vec<_>>(), ["base", "optimism"]);
    assert_eq!(app.tags().collect::<Vec<_>>(), ["one", "two"]);
    let shots: Vec<_> = app.screenshots().collect();
    assert_eq!(shots, ["https://full.example/1.png", "https://full.example/2.png"]);
    assert_eq!(app.hero_image_url(), Some("https://full.example/hero.png"));
    assert_eq!((app.tagline(), app.subtitle()), (Some("The tagline"), Some("The subtitle")));
    assert_eq!((app.version(), app.button_title()), ("1", Some("Open it")));
    assert_eq!(app.splash_image_url(), Some("https://full.example/splash.png"));
    assert_eq!(app.splash_background_color(), Some("#ff8800"));
    let author = app.author().expect("an author");
    assert_eq!((author.fid, author.username, author.display_name), (42, "fullhouse", Some("Full of House")));
    assert_eq!(author.pfp_url, Some("https://pictures.example/42.png"));
    assert_eq!((author.follower_count, author.score, author.is_power_user), (1234, Some(0.75), true));
    assert_eq!((app.engagement().follower_count, app.engagement().trending_rank), (1234, Some(1)));
    assert_eq!(app.last_fetched(), start_time());
}

#[tokio::test]
async fn the_json_of_a_record_is_that_of_the_endpoint() {
    let app = read_one(full_frame("full.example")).await.to_json();
    let expected = json!({
        "id": "full.example/home",
        "domain": "full.example",
        "name": "Full House",
        "description": "The description",
        "iconUrl": "https://full.example/icon.png",
        "homeUrl": "https://full.example/home",
        "category": "games",
        "networks": ["base", "optimism"],
        "tags": ["one", "two"],
        "author": {
            "fid": 42, "username": "fullhouse", "displayName": "Full of House",
            "pfpUrl": "https://pictures.example/42.png", "followerCount": 1234, "score": 0.75, "isPowerUser": true,
        },
        "engagement": { "followerCount": 1234, "trendingRank": 1 },
        "lastFetched": "2026-01-02T03:04:05.678901Z",
    });
    for (name, value) in expected.as_object().expect("an object") {
        assert_eq!(&app[name], value, "{name}");
    }
    let metadata = &app["metadata"];
    assert_eq!((&metadata["version"], &metadata["buttonTitle"]), (&json!("1"), &json!("Open it")));
    assert_eq!(metadata["screenshots"], json!(["https://full.example/1.png", "https://full.example/2.png"]));
    assert_eq!(
        (&metadata["heroImage"], &metadata["tagline"]),
        (&json!("https://full.example/hero.png"), &json!("The tagline"))
    );
}

#[tokio::test]
async fn a_row_with_only_the_required_fields_is_an_app() {
    let frame = json!({ "version": "next", "image": "https://bare.example/i.png", "frames_url": "https://bare.example/f", "title": "Go" });
    let app = read_one(frame).await;
    assert_eq!((app.id(), app.name(), app.home_url()), ("bare.example/f", "Go", "https://bare.example/f"));
    assert_eq!((app.icon_url(), app.version()), ("https://bare.example/i.png", "next"));
    assert_eq!((app.author(), app.category(), app.description()), (None, None, None));
    assert!(app.networks().is_empty() && app.tags().is_empty() && app.screenshots().is_empty());
    assert_eq!(app.engagement().follower_count, 0);
    let json = app.to_json();
    for absent in ["description", "category"] {
        assert!(json.get(absent).is_none(), "{absent}");
    }
}

#[tokio::test]
async fn the_miniapp_manifest_wins_over_the_frame_manifest() {
    let old = json!({ "version": "0", "name": "Old", "home_url": "https://old.example", "icon_url": "https://old.example/i.png", "primary_category": "social" });
    let app = read_one(changed(|frame| frame["manifest"]["frame"] = old.clone())).await;
    assert_eq!((app.name(), app.home_url(), app.version()), ("Full House", "https://full.example/home", "1"));
    let app = read_one(changed(|frame| frame["manifest"] = json!({ "frame": old }))).await;
    assert_eq!((app.name(), app.id(), app.version()), ("Old", "old.example", "0"));
    assert_eq!(app.category(), Some("social"));
}

#[tokio::test]
async fn missing_fields_have_fallbacks() {
    let miniapp = "/manifest/miniapp";
    let without = |part: &'static str| {
        changed(move |frame| {
            frame.pointer_mut(miniapp).and_then(Value::as_object_mut).expect("an object").remove(part);
        })
    };
    assert_eq!(read_one(without("name")).await.name(), "Button", "name falls back to the title");
    assert_eq!(read_one(without("icon_url")).await.icon_url(), "https://full.example/image.png", "icon to image");
    let app = read_one(without("home_url")).await;
    assert_eq!((app.home_url(), app.id()), ("https://full.example/frame", "full.example/frame"), "home to frames_url");
    assert_eq!(read_one(without("version")).await.version(), "next", "manifest's version to the frame's");
    let author =
        read_one(changed(|frame| drop(frame["author"].as_object_mut().expect("an object").remove("power_badge"))))
            .await;
    assert!(!author.author().expect("an author").is_power_user);
}

#[tokio::test]
async fn an_id_is_the_normalised_home_url_without_its_scheme() {
    let cases = [
        ("https://Full.EXAMPLE", "full.example"),
        ("HTTPS://full.example/", "full.example"),
        ("https://full.example:443/", "full.example"),
        ("http://full.example:80/a", "full.example/a"),
        ("https://full.example:8443/a", "full.example:8443/a"),
        ("http://full.example:443/a", "full.example:443/a"),
        ("https://full.example/Path/Case/", "full.example/Path/Case"),
        ("https://full.example/a#fragment", "full.example/a"),
        ("https://full.example/a?q=1#x", "full.example/a?q=1"),
        ("  https://full.example/trimmed \n", "full.example/trimmed"),
    ];
    for (home, id) in cases {
        let app = read_one(changed(|frame| frame["manifest"]["miniapp"]["home_url"] = home.into())).await;
        assert_eq!((app.id(), app.domain()), (id, "full.example"), "{home}");
    }
}

#[tokio::test]
async fn equal_home_urls_are_one_app() {
    let homes = [
        "https://a.example/x/",
        "https://A.example:443/x",
        "https://a.example/x#y",
        "http://a.example/x",
        "https://a.example/X",
    ];
    let frames = homes.iter().map(|home| changed(|frame| frame["manifest"]["miniapp"]["home_url"] = (*home).into()));
    let (_fixture, client, apps) = read(frames).await;
    assert_eq!(apps.iter().map(|app| app.id()).collect::<Vec<_>>(), ["a.example/x", "a.example/X"]);
    assert_eq!(client.discovery().stats().expect("open").duplicates, 3);
}

#[tokio::test]
async fn a_row_without_a_valid_home_url_is_malformed() {
    let bad = [
        "ftp://a.example",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "a.example",
        "https://",
        "data:text/html,x",
        "https:// a",
    ];
    let frames = bad.iter().map(|home| {
        changed(|frame| {
            frame["manifest"]["miniapp"]["home_url"] = (*home).into();
            frame["frames_url"] = (*home).into();
        })
    });
    let (_fixture, client, apps) = read(frames.chain([full_frame("good.example")])).await;
    assert_eq!(apps.iter().map(|app| app.id()).collect::<Vec<_>>(), ["good.example/home"]);
    let stats = client.discovery().stats().expect("open");
    assert_eq!((stats.received, stats.skipped, stats.duplicates, stats.total), (8, 7, 0, 1));
}

#[tokio::test]
async fn invalid_urls_are_dropped() {
    let bad = "javascript:alert(1)";
    let app = read_one(changed(|frame| {
        let manifest = &mut frame["manifest"]["miniapp"];
        for part in ["icon_url", "hero_image_url", "splash_image_url", "image_url"] {
            manifest[part] = bad.into();
        }
        manifest["screenshot_urls"] =
            json!([bad, "https://full.example/ok.png", "data:image/png;base64,x", "http://full.example/2.png"]);
        frame["author"]["pfp_url"] = bad.into();
    }))
    .await;
    assert_eq!(app.icon_url(), "https://full.example/image.png");
    assert_eq!((app.hero_image_url(), app.splash_image_url()), (None, None));
    let shots: Vec<_> = app.screenshots().collect();
    assert_eq!(shots, ["https://full.example/ok.png", "http://full.example/2.png"]);
    assert_eq!(app.author().expect("an author").pfp_url, None);
    assert!(!format!("{app:?}").contains("javascript"));
}

#[tokio::test]
async fn apps_with_noindex_are_excluded_and_counted() {
    let hidden = changed(|frame| frame["manifest"]["miniapp"]["noindex"] = true.into());
    let mut shown = full_frame("shown.example");
    shown["manifest"]["miniapp"]["noindex"] = false.into();
    let (_fixture, client, apps) = read([hidden, shown]).await;
    assert_eq!(apps.iter().map(|app| app.id()).collect::<Vec<_>>(), ["shown.example/home"]);
    assert_eq!(client.discovery().stats().expect("open").skipped, 1);
}

#[tokio::test]
async fn texts_are_trimmed_and_limited_in_characters() {
    let long = |count: usize| "é".repeat(count);
    for (kept, sent) in [(200, 200), (200, 201), (200, 5000), (199, 199)] {
        let app =
            read_one(changed(|frame| frame["manifest"]["miniapp"]["name"] = format!(" \t{}\n ", long(sent)).into()))
                .await;
        assert_eq!(app.name(), long(kept), "{sent}");
    }
    for (kept, sent) in [(2000, 2000), (2000, 2001), (171, 171)] {
        let app = read_one(changed(|frame| frame["manifest"]["miniapp"]["description"] = long(sent).into())).await;
        assert_eq!(app.description(), Some(&*long(kept)), "{sent}");
    }
    let blank = read_one(changed(|frame| frame["manifest"]["miniapp"]["name"] = "   ".into())).await;
    assert_eq!(blank.name(), "Button", "a blank name is none");
    let kept =
        read_one(changed(|frame| frame["manifest"]["miniapp"]["name"] = "a  b\u{202e}\u{0}<b>&amp;".into())).await;
    assert_eq!(kept.name(), "a  b\u{202e}\u{0}<b>&amp;", "otherwise kept as sent");
}

#[tokio::test]
async fn many_tags_and_icons_that_are_not_https_are_kept() {
    let tags: Vec<_> = (0..13).map(|index| format!("tag{index}")).collect();
    let app = read_one(changed(|frame| {
        frame["manifest"]["miniapp"]["tags"] = tags.clone().into();
        frame["manifest"]["miniapp"]["icon_url"] = "http://full.example/i.png".into();
    }))
    .await;
    assert_eq!(app.tags().collect::<Vec<_>>(), tags, "lenient in");
    assert_eq!(app.icon_url(), "http://full.example/i.png");
}

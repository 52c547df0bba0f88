//! Search results (SPEC 4.2 searchMiniApps; DESIGN 6).

use serde_json::{Value, json};
use townsquare::{Client, ErrorKind, discovery::Selection};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD, Row},
    fixture::{Fixture, assert_kind, ids},
};

fn app(name: &str, change: impl FnOnce(&mut Value)) -> Row {
    let ascii: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    // A name without ASCII letters needs a unique host too.
    let host = if ascii.is_empty() { format!("n{}", name.chars().map(u32::from).sum::<u32>()) } else { ascii };
    let mut frame = json!({
        "version": "next", "image": "", "frames_url": format!("https://{host}.site"), "title": "Open",
        "manifest": { "frame": { "version": "1", "name": name, "home_url": format!("https://{host}.site"), "icon_url": "" } },
    });
    change(&mut frame);
    frame.into()
}

fn plain(name: &str) -> Row {
    app(name, |_| {})
}

async fn names(client: &Client, query: &str) -> Vec<String> {
    let found = client.discovery().search_mini_apps(query, 50).await.expect("a list");
    found.iter().map(|app| app.name().to_owned()).collect()
}

async fn fixture_of(rows: impl IntoIterator<Item = Row>) -> (Fixture, Client) {
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    (fixture, client)
}

#[tokio::test]
async fn a_blank_query_is_an_empty_list() {
    let (fixture, client) = fixture_of([plain("Alpha")]).await;
    for blank in ["", " ", "\t\n", "\u{3000}"] {
        assert!(names(&client, blank).await.is_empty(), "{blank:?}");
    }
    drop(fixture);
}

#[tokio::test]
async fn case_accents_and_width_do_not_matter() {
    let (_fixture, client) = fixture_of([plain("Café Größe"), plain("Ｗｉｄｅ"), plain("ÎLE")]).await;
    for (query, name) in [
        ("cafe", "Café Größe"),
        ("CAFÉ", "Café Größe"),
        ("cafe\u{301}", "Café Größe"),
        ("grosse", "Café Größe"),
        ("GRÖSSE", "Café Größe"),
        ("wide", "Ｗｉｄｅ"),
        ("ile", "ÎLE"),
    ] {
        assert_eq!(names(&client, query).await, [name], "{query}");
    }
}

#[tokio::test]
async fn all_words_must_match_in_any_order() {
    let (_fixture, client) =
        fixture_of([plain("Pixel Harbor Quest"), plain("Pixel Garden"), plain("Harbor Radio")]).await;
    for query in ["pixel harbor", "harbor pixel", "QUEST  harbor,pixel"] {
        assert_eq!(names(&client, query).await[0], "Pixel Harbor Quest", "{query}");
    }
}

#[tokio::test]
async fn the_last_word_matches_as_a_prefix() {
    let (_fixture, client) =
        fixture_of([plain("Lanternfish"), plain("Lantern"), plain("Meadow Lantern"), plain("Other")]).await;
    for query in ["la", "lan", "lante"] {
        let found = names(&client, query).await;
        assert_eq!(found.len(), 3, "{query}: {found:?}");
    }
    assert_eq!(names(&client, "lantern").await[0], "Lantern", "the whole word before the prefix");
    assert_eq!(names(&client, "meadow la").await[0], "Meadow Lantern");
}

#[tokio::test]
async fn one_typo_is_allowed_from_five_letters_and_two_from_nine() {
    let (_fixture, client) =
        fixture_of([plain("Moonbeam"), plain("Thunderstruck"), plain("Cat"), plain("Zebra")]).await;
    for query in ["monbeam", "mooonbeam", "moonbaem", "mounbeam"] {
        assert_eq!(names(&client, query).await, ["Moonbeam"], "{query}");
    }
    for query in ["thundrstuck", "thumderstrukc"] {
        assert_eq!(names(&client, query).await, ["Thunderstruck"], "{query}");
    }
    assert!(names(&client, "cbt").await.is_empty(), "no typo in three letters");
    assert!(names(&client, "mxxnbeam").await.is_empty(), "no two typos in eight letters");
    assert_eq!(names(&client, "zebre").await, ["Zebra"]);
}

#[tokio::test]
async fn a_name_weighs_more_than_tags_and_tags_more_than_text() {
    let manifest = |part: &'static str, value: Value| move |frame: &mut Value| frame["manifest"]["frame"][part] = value;
    let (_fixture, client) = fixture_of([
        app("Alpha", manifest("description", json!("All about falcons."))),
        app("Beta", manifest("tagline", json!("The falcons"))),
        app("Gamma", manifest("tags", json!(["falcons"]))),
        plain("Falcons"),
        app("Delta", |frame| frame["author"] = json!({ "fid": 1, "username": "falcons" })),
    ])
    .await;
    let found = names(&client, "falcons").await;
    assert_eq!(found.len(), 5, "{found:?}");
    assert_eq!(found[..2], ["Falcons", "Gamma"]);
    let place = |name: &str| found.iter().position(|found| found == name);
    assert!(place("Beta") < place("Alpha"), "a tagline before a description: {found:?}");
}

#[tokio::test]
async fn author_category_and_domain_are_searched() {
    let (_fixture, client) = fixture_of([
        app("Alpha", |frame| {
            frame["author"] = json!({ "fid": 1, "username": "wonderbird", "display_name": "Gustav Gans" });
        }),
        app("Beta", |frame| frame["manifest"]["frame"]["primary_category"] = "health-fitness".into()),
        app("Gamma", |frame| frame["manifest"]["frame"]["home_url"] = "https://peculiarhost.site/x".into()),
        app("Delta", |frame| frame["manifest"]["frame"]["subtitle"] = "Superb subtitle".into()),
    ])
    .await;
    for (query, name) in [
        ("wonderbird", "Alpha"),
        ("gustav", "Alpha"),
        ("fitness", "Beta"),
        ("peculiarhost", "Gamma"),
        ("superb", "Delta"),
    ] {
        assert_eq!(names(&client, query).await, [name], "{query}");
    }
}

#[tokio::test]
async fn at_most_four_apps_follow_those_of_an_address() {
    let at =
        |name: &str, url: &'static str| app(name, move |frame| frame["manifest"]["frame"]["home_url"] = url.into());
    let named = (0..10).map(|number| plain(&format!("Far {number}")));
    let rows = named.chain([at("Store", "https://far.store"), at("Other page", "https://far.store/other")]);
    let (_fixture, client) = fixture_of(rows).await;
    for query in ["https://far.store", "far.store", "https://www.far.store/"] {
        let found = client.discovery().search_mini_apps(query, 50).await.expect("a list");
        let names: Vec<_> = found.iter().map(|app| app.name()).collect();
        assert_eq!((&names[..2], names.len(), found.total()), (&["Store", "Other page"][..], 6, 6), "{query}");
        assert_eq!(client.discovery().search_mini_apps(query, 1).await.expect("a list").total(), 6, "{query}");
    }
    assert_eq!(names(&client, "far").await.len(), 12);
    // Without a hit, the words of the host are searched for.
    assert_eq!(names(&client, "https://far.example").await.len(), 12);
}

#[tokio::test]
async fn ties_are_broken_by_trending_rank() {
    let rows = (0..30).map(|index| {
        app("Same Name", move |frame| frame["manifest"]["frame"]["home_url"] = format!("https://h{index}.site").into())
    });
    let (_fixture, client) = fixture_of(rows).await;
    let found = client.discovery().search_mini_apps("same name", 50).await.expect("a list");
    let ranks: Vec<_> = found.iter().map(|app| app.engagement().trending_rank).collect();
    assert_eq!(ranks, (1..=30).map(Some).collect::<Vec<_>>());
}

#[tokio::test]
async fn search_applies_limit_and_filters() {
    let catalog = Catalog::of(800).with_chains();
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    let discovery = client.discovery();
    assert_eq!(discovery.search_mini_apps(FREQUENT_WORD, 3).await.expect("a list").len(), 3);
    let all = discovery.search_mini_apps(FREQUENT_WORD, 1000).await.expect("a list");
    assert!(all.len() > 50, "{}", all.len());
    assert_eq!(discovery.search_mini_apps(FREQUENT_WORD, Selection::default()).await.expect("a list").len(), 50);
    let selection = Selection::first(1000).in_categories(["games", "music"]).on_networks(["base"]);
    let filtered = discovery.search_mini_apps(FREQUENT_WORD, selection).await.expect("a list");
    let expected: Vec<_> = all
        .iter()
        .filter(|app| matches!(app.category(), Some("games" | "music")))
        .filter(|app| app.networks().is_empty() || app.networks().any(|name| name == "base"))
        .map(|app| app.id())
        .collect();
    assert!(!expected.is_empty());
    assert_eq!(ids(&filtered), expected);
    assert_kind(ErrorKind::InvalidInput, discovery.search_mini_apps(FREQUENT_WORD, 0).await);
}

#[tokio::test]
async fn hostile_queries_do_not_fail() {
    let fixture = Fixture::of(Catalog::of(300).rows());
    let client = fixture.open().await;
    let long_word = "x".repeat(1 << 20);
    let many_words = "pixel ".repeat(50_000);
    let queries = [
        "\0",
        "\u{ffff}\u{202e}",
        "'; DROP TABLE apps; --",
        "\"unclosed",
        "a AND OR NOT (",
        "*",
        "name:*",
        "😀😀",
        "\u{1f468}\u{200d}\u{1f469}",
        "%00%ff",
        "....",
        &long_word,
        &many_words,
        "ﷺﷺﷺ",
        "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    ];
    for query in queries {
        let call = client.discovery().search_mini_apps(query, 10);
        let shown: String = query.chars().take(12).collect();
        match townsquare_tests::wait::within(&shown, std::time::Duration::from_secs(15), call).await {
            Ok(found) => assert!(found.len() <= 10),
            Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidInput, "{shown}: {error}"),
        }
    }
}

#[tokio::test]
async fn words_of_other_scripts_are_found() {
    let (_fixture, client) =
        fixture_of([plain("Москва Игра"), plain("東京マップ"), plain("مدينة"), plain("Latin")]).await;
    for (query, name) in
        [("москва", "Москва Игра"), ("ИГРА", "Москва Игра"), ("東京", "東京マップ"), ("مدينة", "مدينة")]
    {
        assert_eq!(names(&client, query).await.first().map(String::as_str), Some(name), "{query}");
    }
}

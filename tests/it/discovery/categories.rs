//! Lists by category (SPEC 4.2 getMiniAppsByCategory; UPSTREAM 1).

use serde_json::json;
use townsquare::{
    ErrorKind,
    discovery::{Selection, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, Row},
    fixture::{Fixture, assert_kind, ids},
    upstream::CATEGORIES,
};

fn row(index: usize, category: Option<&str>) -> Row {
    let mut manifest = json!({ "version": "1", "name": format!("App {index}"), "home_url": format!("https://a{index}.example"), "icon_url": "https://i.example/i.png" });
    if let Some(category) = category {
        manifest["primary_category"] = category.into();
    }
    json!({ "version": "next", "image": "", "frames_url": format!("https://a{index}.example"), "manifest": { "frame": manifest } }).into()
}

#[tokio::test]
async fn each_category_lists_its_apps_in_trending_order() {
    let catalog = Catalog::of(400);
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    for category in CATEGORIES {
        let listed = client.discovery().get_mini_apps_by_category([category], 1000).await.expect("a list");
        let expected: Vec<_> = catalog.apps().filter(|app| app.category == Some(category)).map(|app| app.id).collect();
        assert_eq!(ids(&listed), expected, "{category}");
        assert!(listed.iter().all(|app| app.category() == Some(category)));
    }
    assert_eq!(fixture.upstream.list_count(), 1, "the catalog in memory knows its categories");
}

#[tokio::test]
async fn several_categories_make_one_list_in_trending_order() {
    let catalog = Catalog::of(400);
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    let wanted = ["music", "games", "social"];
    let listed = client.discovery().get_mini_apps_by_category(wanted, 40).await.expect("a list");
    let expected = catalog.apps().filter(|app| app.category.is_some_and(|name| wanted.contains(&name)));
    assert_eq!(ids(&listed), expected.take(40).map(|app| app.id).collect::<Vec<_>>());
    let twice = client.discovery().get_mini_apps_by_category(["games", "games"], 1000).await.expect("a list");
    let once = client.discovery().get_mini_apps_by_category(["games"], 1000).await.expect("a list");
    assert_eq!(ids(&twice), ids(&once), "a category named twice counts once");
}

#[tokio::test]
async fn a_category_matches_in_any_case() {
    let words = ["Games", "GAMES", "games", "game", "gaming", "Art-Creativity", "Games & Entertainment"];
    let fixture = Fixture::of(words.iter().enumerate().map(|(index, word)| row(index, Some(word))));
    let client = fixture.open().await;
    let discovery = client.discovery();
    let all = discovery.get_trending_mini_apps(Timeframe::Hours24, 50).await.expect("a list");
    let categories: Vec<_> = all.iter().map(|app| app.category().unwrap_or_default()).collect();
    assert_eq!(categories, ["games", "games", "games", "game", "gaming", "art-creativity", "Games & Entertainment"]);
    for (wanted, count) in [("games", 3), ("game", 1), ("gaming", 1), ("Games & Entertainment", 1)] {
        assert_eq!(discovery.get_mini_apps_by_category([wanted], 50).await.expect("a list").len(), count, "{wanted}");
    }
}

#[tokio::test]
async fn a_category_without_apps_is_empty_and_an_unknown_one_is_refused() {
    let fixture = Fixture::of([row(0, Some("games")), row(1, None), row(2, Some("a word of its own"))]);
    let client = fixture.open().await;
    let discovery = client.discovery();
    assert!(discovery.get_mini_apps_by_category(["music"], 50).await.expect("a list").is_empty());
    assert_eq!(discovery.get_mini_apps_by_category(["a word of its own"], 50).await.expect("a list").len(), 1);
    for unknown in ["gamez", "another word", "games,music"] {
        let error = assert_kind(ErrorKind::InvalidInput, discovery.get_mini_apps_by_category([unknown], 50).await);
        assert!(error.message().contains(unknown), "{error}");
        assert!(error.to_string().starts_with("Get mini apps by category failed: "), "{error}");
        let selection = || Selection::first(5).in_categories([unknown]);
        assert_kind(ErrorKind::InvalidInput, discovery.get_trending_mini_apps(Timeframe::Hours24, selection()).await);
        assert_kind(ErrorKind::InvalidInput, discovery.search_mini_apps("app", selection()).await);
    }
    assert_kind(ErrorKind::InvalidInput, discovery.get_mini_apps_by_category(["games", "gamez"], 50).await);
}

#[tokio::test]
async fn an_app_without_category_is_in_no_category() {
    let fixture = Fixture::of((0..20).map(|index| row(index, None)));
    let client = fixture.open().await;
    for category in CATEGORIES {
        assert!(client.discovery().get_mini_apps_by_category([category], 50).await.expect("a list").is_empty());
    }
}

#[tokio::test]
async fn categories_combine_with_networks() {
    let catalog = Catalog::of(300).with_chains();
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    let selection = Selection::first(1000).on_networks(["base"]);
    let listed = client.discovery().get_mini_apps_by_category(["games", "finance"], selection).await.expect("a list");
    let expected = catalog
        .apps()
        .filter(|app| matches!(app.category, Some("games" | "finance")))
        .filter(|app| app.networks.is_empty() || app.networks.contains(&"base"));
    assert_eq!(ids(&listed), expected.map(|app| app.id).collect::<Vec<_>>());
}

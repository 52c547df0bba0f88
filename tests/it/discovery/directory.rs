//! A directory page on discovery alone: pages and totals, one app, facets, new and similar apps, suggestions, near-copies
//! and changes (DESIGN 6).

use std::{collections::HashSet, sync::mpsc, time::Duration};

use serde_json::{Value, json};
use townsquare::{
    Client, ErrorKind, Timestamp, blocking,
    discovery::{DiscoveryStats, Facet, MiniApps, Selection, Timeframe},
};
use townsquare_tests::{
    catalog::{Catalog, FREQUENT_WORD, Row},
    fixture::{FIFTEEN_MINUTES, Fixture, assert_kind, ids, start_time},
    on_both_engines,
    upstream::KEY,
    wait::{DEADLINE, until},
};

/// An app of an author, with changes to its manifest.
fn app(name: &str, url: &str, fid: u64, change: impl FnOnce(&mut Value)) -> Row {
    let mut frame = json!({
        "version": "next", "image": "", "frames_url": url, "title": "Open",
        "author": { "fid": fid, "username": format!("author{fid}") },
        "manifest": { "frame": { "version": "1", "name": name, "home_url": url, "icon_url": "" } },
    });
    change(&mut frame["manifest"]["frame"]);
    frame.into()
}

fn plain(name: &str, url: &str) -> Row {
    app(name, url, 1, |_| {})
}

fn names(apps: &MiniApps) -> Vec<&str> {
    apps.iter().map(|app| app.name()).collect()
}

async fn open(rows: impl IntoIterator<Item = Row>) -> (Fixture, Client) {
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    (fixture, client)
}

#[tokio::test]
async fn pages_reach_every_app_once_and_total_counts_the_whole_list() {
    let (_fixture, client) = open(Catalog::of(2_490).with_chains().rows()).await;
    let discovery = client.discovery();
    let selections = [
        Selection::first(1_000),
        Selection::first(7).in_categories(["games"]),
        Selection::first(64).in_categories(["games", "music"]),
        Selection::first(300).on_networks(["base"]),
        Selection::first(100).in_categories(["games"]).on_networks(["base"]).collapsed(),
        Selection::first(999).collapsed(),
    ];
    for selection in selections {
        let total =
            discovery.get_trending_mini_apps(Timeframe::Hours24, selection.clone()).await.expect("a page").total();
        let (mut trending, mut newest) = (Vec::new(), Vec::new());
        while trending.len() < total {
            let page = selection.clone().offset(trending.len() as u64);
            let apps = discovery.get_trending_mini_apps(Timeframe::Hours24, page.clone()).await.expect("a page");
            assert_eq!(apps.total(), total);
            assert!(!apps.is_empty(), "{selection:?} ends at {} of {total}", trending.len());
            trending.extend(ids(&apps).into_iter().map(str::to_owned));
            let apps = discovery.get_new_mini_apps(page).await.expect("a page");
            assert_eq!(apps.total(), total);
            newest.extend(ids(&apps).into_iter().map(str::to_owned));
        }
        assert_eq!((trending.len(), trending.iter().collect::<HashSet<_>>().len()), (total, total), "{selection:?}");
        assert_eq!(newest, trending, "apps of one fetch are in trending order");
        for beyond in [total as u64, u64::MAX] {
            let page = discovery.get_trending_mini_apps(Timeframe::Hours24, selection.clone().offset(beyond)).await;
            let page = page.expect("an empty page");
            assert_eq!((page.len(), page.total()), (0, total));
        }
    }
}

#[tokio::test]
async fn pages_of_a_search_are_parts_of_one_order() {
    let (_fixture, client) = open(Catalog::of(1_500).rows()).await;
    for query in [FREQUENT_WORD, "p", &FREQUENT_WORD[..3], &format!("{FREQUENT_WORD} quest"), "pliix"] {
        let search = |selection: Selection| client.discovery().search_mini_apps(query, selection);
        let all = search(Selection::first(1_000)).await.expect("a list");
        let mut paged = Vec::new();
        while paged.len() < all.len() {
            let page = search(Selection::first(33).offset(paged.len() as u64)).await.expect("a page");
            assert_eq!(page.total(), all.total(), "{query}");
            assert!(!page.is_empty(), "{query}");
            paged.extend(ids(&page).into_iter().map(str::to_owned));
        }
        paged.truncate(all.len());
        assert_eq!(paged, ids(&all), "{query}");
        assert!(all.total() >= all.len());
    }
}

#[tokio::test]
async fn an_unknown_category_or_network_lists_the_known_ones() {
    let own = app("A", "https://a.example", 1, |manifest| manifest["primary_category"] = "gardening".into());
    let (_fixture, client) = open([own]).await;
    let unknown = client.discovery().get_mini_apps_by_category(["gmaes"], 5).await;
    let message = assert_kind(ErrorKind::InvalidInput, unknown).to_string();
    assert!(message.contains("games, social") && message.contains("gardening"), "{message}");
    let unknown = client.discovery().search_mini_apps("a", Selection::first(5).on_networks(["bsae"])).await;
    let message = assert_kind(ErrorKind::InvalidInput, unknown).to_string();
    assert!(message.contains("ethereum, base"), "{message}");
}

#[tokio::test]
async fn an_app_is_found_by_id_address_and_domain() {
    let (_fixture, client) = open([
        plain("First", "https://town.example/first"),
        plain("Second", "https://town.example/Second?a=1"),
        plain("Web", "https://www.web.example"),
        plain("Other", "https://town.example.org"),
    ])
    .await;
    for (text, name) in [
        ("town.example/first", Some("First")),
        ("HTTPS://Town.Example:443/first/#top", Some("First")),
        ("http://town.example/first", Some("First")),
        (" town.example/Second?a=1 ", Some("Second")),
        ("https://town.example/second?a=1", None),
        ("town.example", Some("First")),
        ("TOWN.EXAMPLE", Some("First")),
        ("https://town.example/", Some("First")),
        ("town.example/third", None),
        ("web.example", Some("Web")),
        ("https://www.web.example/", Some("Web")),
        ("example", None),
        ("", None),
        ("ftp://town.example", None),
        ("\u{0}", None),
    ] {
        let found = client.discovery().get_mini_app(text).await.expect("an answer");
        assert_eq!(found.as_ref().map(|app| app.name()), name, "{text:?}");
    }
}

#[tokio::test]
async fn facets_count_the_apps_of_their_lists_crosswise() {
    let (_fixture, client) = open(Catalog::of(600).with_chains().rows()).await;
    let discovery = client.discovery();
    for selection in [Selection::default(), Selection::default().on_networks(["base"])] {
        let facets = discovery.categories(selection.clone()).await.expect("facets");
        assert!(facets.is_sorted_by_key(|facet| std::cmp::Reverse(facet.count)) && facets.len() > 5, "{facets:?}");
        for Facet { name, count, .. } in facets {
            let list = discovery.get_mini_apps_by_category([name.as_str()], selection.clone()).await.expect("a list");
            assert_eq!(list.total(), count, "{name}");
        }
    }
    for selection in [Selection::default(), Selection::default().in_categories(["games"])] {
        let facets = discovery.networks(selection.clone()).await.expect("facets");
        assert!(facets.iter().any(|facet| facet.name == "base"), "{facets:?}");
        for Facet { name, count, .. } in facets {
            let list = selection.clone().on_networks([name.as_str()]);
            let list = discovery.get_trending_mini_apps(Timeframe::Hours24, list).await.expect("a list");
            assert_eq!(list.total(), count, "{name}");
        }
    }
}

#[tokio::test]
async fn similar_apps_share_words_author_or_category_and_are_never_the_app() {
    let category = |name: &'static str| move |manifest: &mut Value| manifest["primary_category"] = name.into();
    let (_fixture, client) = open([
        app("Harbour Chess", "https://chess.example", 1, category("games")),
        app("Weather", "https://weather.example", 2, category("utility")),
        app("Chess Club", "https://club.example", 3, category("games")),
        app("Harbour Chess", "https://copy.example", 1, category("games")),
        app("Pinball", "https://pinball.example", 4, category("games")),
        app("Bridge", "https://bridge.example", 1, category("social")),
    ])
    .await;
    let discovery = client.discovery();
    let similar = discovery.get_similar_mini_apps("chess.example", 10).await.expect("a list");
    assert_eq!(names(&similar)[0], "Chess Club");
    assert!(names(&similar).contains(&"Bridge") && names(&similar).contains(&"Pinball"), "{similar:?}");
    assert!(!names(&similar).contains(&"Harbour Chess") && !names(&similar).contains(&"Weather"), "{similar:?}");
    let one = discovery.get_similar_mini_apps("https://chess.example", 1).await.expect("a list");
    assert_eq!((one.len(), one.total()), (1, similar.total()));
    assert_kind(ErrorKind::NotFound, discovery.get_similar_mini_apps("unknown.example", 10).await);
    assert_kind(ErrorKind::InvalidInput, discovery.get_similar_mini_apps("chess.example", 0).await);
}

#[tokio::test]
async fn suggestions_mark_what_was_typed() {
    let (_fixture, client) = open([
        plain("Chess Harbour", "https://a.example"),
        plain("Harbour Chess", "https://b.example"),
        plain("HARBOUR CHESS", "https://copy.example"),
        plain("Tidepool", "https://c.example"),
    ])
    .await;
    let suggest = async |text: &'static str| {
        let suggestions = client.discovery().suggest_mini_apps(text, 8).await.expect("suggestions");
        let shown = |one: townsquare::discovery::Suggestion| {
            assert_eq!(one.text, one.app.name());
            (one.text, one.matches)
        };
        suggestions.into_iter().map(shown).collect::<Vec<_>>()
    };
    let of = |text: &str, matches: &[(usize, usize)]| (text.to_owned(), matches.to_vec());
    assert_eq!(suggest("har").await, [of("Harbour Chess", &[(0, 3)]), of("Chess Harbour", &[(6, 9)])]);
    assert_eq!(suggest("harbour ch").await[0], of("Harbour Chess", &[(0, 10)]));
    assert_eq!(suggest("tidepol").await, [of("Tidepool", &[(0, 8)])]);
    assert_eq!(suggest(" ").await, []);
    assert_kind(ErrorKind::InvalidInput, client.discovery().suggest_mini_apps("h", 0).await);
}

#[tokio::test]
async fn highlights_mark_the_matched_words_of_each_field() {
    let chess = app("Café Chess", "https://chess.example", 1, |manifest| {
        manifest["description"] = "Play chess. Chessboards included.".into();
        manifest["tags"] = json!(["board", "chess"]);
    });
    let (_fixture, client) = open([chess]).await;
    let found = client.discovery().search_mini_apps("chess", 5).await.expect("a list");
    let highlights = found[0].highlights("chess");
    let shown: Vec<_> = highlights.iter().map(|one| (one.field, one.text.as_str(), one.matches.as_slice())).collect();
    assert_eq!(
        shown,
        [
            ("name", "Café Chess", [(5, 10)].as_slice()),
            ("description", "Play chess. Chessboards included.", &[(5, 10), (12, 23)]),
            ("domain", "chess.example", &[(0, 5)]),
            ("tags", "chess", &[(0, 5)]),
        ]
    );
    assert_eq!(found[0].highlights("cafe")[0].matches, [(0, 4)]);
    assert_eq!(found[0].highlights("ches")[0].matches, [(5, 10)]);
    assert_eq!(found[0].highlights("zebra"), []);
    assert_eq!(found[0].highlights(""), []);
}

#[tokio::test]
async fn near_copies_are_shown_once_when_asked_and_all_have_an_id() {
    let (_fixture, client) = open([
        app("Remix", "https://remix.example", 1, |_| {}),
        app("remix", "https://play.remix.example", 1, |_| {}),
        app("Remix", "https://other.example", 2, |_| {}),
        app("Remix", "https://preview-remix.example", 1, |_| {}),
    ])
    .await;
    let discovery = client.discovery();
    let distinct = ["remix.example", "other.example"];
    let collapsed = || Selection::first(10).collapsed();
    let lists = [
        discovery.get_trending_mini_apps(Timeframe::Hours24, collapsed()).await,
        discovery.get_new_mini_apps(collapsed()).await,
        discovery.search_mini_apps("remix", collapsed()).await,
    ];
    for list in lists {
        let list = list.expect("a list");
        assert_eq!((ids(&list), list.total()), (distinct.to_vec(), 2));
    }
    let all = discovery.search_mini_apps("remix", 10).await.expect("a list");
    assert_eq!(all.total(), 4);
    for id in ["play.remix.example", "preview-remix.example"] {
        assert!(discovery.get_mini_app(id).await.expect("an answer").is_some(), "{id}");
    }
    let second = discovery.search_mini_apps("remix", Selection::first(1).offset(1).collapsed()).await.expect("a page");
    assert_eq!(ids(&second), ["other.example"]);
}

/// The ids of the newest apps, and the seconds after the start of the clock at which they were first seen.
fn newest(client: &blocking::Client) -> Vec<(String, i64)> {
    let apps = client.discovery().get_new_mini_apps(10).expect("a list");
    let since = |seen: Timestamp| seen.as_second() - start_time().as_second();
    apps.iter().map(|app| (app.name().to_owned(), since(app.first_seen()))).collect()
}

on_both_engines! {
    fn first_seen_survives_refreshes_restarts_and_processes(db: &TestDatabase) {
        let row = |name: &str| plain(name, &format!("https://{name}.example"));
        let fixture = Fixture::of([row("a"), row("b")]);
        let open = || {
            blocking::Client::open(db.config().catalog_url(fixture.upstream.url()).catalog_api_key(KEY)).expect("opens")
        };
        let of = |list: &[(&str, i64)]| -> Vec<(String, i64)> {
            list.iter().map(|(name, seen)| ((*name).to_owned(), *seen)).collect()
        };
        let client = open();
        assert_eq!(newest(&client), of(&[("a", 0), ("b", 0)]));
        db.elapse(Duration::from_secs(60));
        fixture.upstream.serve([row("b"), row("c"), row("a")]);
        client.discovery().refresh().expect("fetched");
        assert_eq!(newest(&client), of(&[("c", 60), ("b", 0), ("a", 0)]));
        // Another process fetches for itself: it learns the times from the database.
        let other = open();
        db.elapse(Duration::from_secs(60));
        fixture.upstream.serve([row("c"), row("b"), row("d")]);
        other.discovery().refresh().expect("fetched");
        assert_eq!(newest(&other), of(&[("d", 120), ("c", 60), ("b", 0)]));
        client.close();
        other.close();
        // After a restart, with a stale stored catalog: `a` left and comes back.
        db.elapse(FIFTEEN_MINUTES * 2);
        fixture.upstream.serve([row("e"), row("a"), row("d")]);
        let later = open();
        assert_eq!(newest(&later), of(&[("e", 1_920), ("d", 120), ("a", 0)]));
        later.close();
    }
}

#[tokio::test]
async fn a_change_of_the_catalog_is_told_after_the_refresh_and_no_change_is_not() {
    let (fixture, client) = open([plain("A", "https://a.example")]).await;
    let (sender, changes) = mpsc::channel::<DiscoveryStats>();
    let reader = client.clone();
    let subscription = client.discovery().on_catalog_change(move |stats| {
        // The callback may call the library and sees the new catalog.
        assert_eq!(reader.discovery().stats().expect("open").total, stats.total);
        sender.send(stats).expect("the test receives");
    });
    client.discovery().refresh().await.expect("fetched");
    assert_eq!(changes.recv_timeout(DEADLINE).expect("the first catalog").total, 1);
    client.discovery().refresh().await.expect("fetched");
    fixture.upstream.serve([plain("A", "https://a.example"), plain("B", "https://b.example")]);
    client.discovery().refresh().await.expect("fetched");
    // The refresh without a change told nothing: the next event has both apps.
    assert_eq!(changes.recv_timeout(DEADLINE).expect("a change").total, 2);
    fixture.upstream.serve([plain("B", "https://b.example"), plain("A", "https://a.example")]);
    client.discovery().refresh().await.expect("fetched");
    assert!(!changes.recv_timeout(DEADLINE).expect("a change of the order").is_refreshing);
    subscription.unsubscribe();
    fixture.upstream.serve([plain("B", "https://b.example")]);
    client.discovery().refresh().await.expect("fetched");
    assert!(changes.recv().is_err(), "the callback was dropped");
}

#[tokio::test]
async fn a_closed_handle_gets_no_changes_and_close_drops_the_callbacks() {
    let (fixture, client) = open([plain("A", "https://a.example")]).await;
    let handle = client.as_service();
    let (sender, changes) = mpsc::channel::<usize>();
    let (kept, dropped) = mpsc::channel::<()>();
    drop(handle.discovery().on_catalog_change(move |stats| sender.send(stats.total).expect("the test receives")));
    drop(client.discovery().on_catalog_change(move |_| drop(kept.clone())));
    handle.close().await;
    client.discovery().refresh().await.expect("fetched");
    assert!(changes.recv().is_err(), "the closed handle's callback was dropped without a call");
    client.close().await;
    until("the callback to be dropped", || matches!(dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected))).await;
    drop(fixture);
}

//! Malformed rows (UPSTREAM 1): a missing or mistyped field costs that field, at most its row, never the page.

use serde_json::{Value, json};
use townsquare::{
    Client,
    discovery::{CatalogSource, MiniApp, Timeframe},
};
use townsquare_tests::{
    catalog::{Row, full_frame, malformed_rows},
    fixture::Fixture,
};

async fn all(client: &Client) -> Vec<MiniApp> {
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").to_vec()
}

#[tokio::test]
async fn a_missing_or_mistyped_field_costs_only_that_field() {
    let odd: Vec<_> = malformed_rows().into_iter().filter(|odd| odd.is_text).collect();
    let first = Row::from(full_frame("first.example"));
    let last = Row::from(full_frame("last.example"));
    let rows = [first].into_iter().chain(odd.iter().map(|odd| odd.row.clone())).chain([last]);
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    let apps = all(&client).await;
    let mut apps = apps.iter();
    assert_eq!(apps.next().expect("the first row").domain(), "first.example");
    for odd in &odd {
        let what = format!("{} {}", odd.part, odd.change);
        if odd.part.ends_with("noindex") && odd.change == "true" {
            continue;
        }
        let app = apps.next().unwrap_or_else(|| panic!("no app where {what}"));
        let host = app.domain().strip_prefix("odd-").map(|_| app.domain()).unwrap_or_else(|| panic!("{what} is lost"));
        assert!(odd.row.body.contains(host), "{what} is lost: {host}");
        let has_manifest = !matches!(odd.part.as_str(), "/manifest" | "/manifest/miniapp");
        let expected = match (odd.part.ends_with("/name"), odd.change, has_manifest) {
            (true, "a string", _) => "text",
            (false, _, true) => "Full House",
            // An object is a manifest without valid fields.
            _ => "Button",
        };
        assert_eq!(app.name(), expected, "{what}");
        if !odd.part.starts_with("/author") {
            assert_eq!(app.author().map(|author| author.fid), Some(42), "{what}");
        }
        if odd.part == "/author" {
            assert!(app.author().is_none(), "{what}");
        }
        let keeps_description = has_manifest && !odd.part.ends_with("/description");
        assert!(!keeps_description || app.description() == Some("The description"), "{what}");
    }
    assert_eq!(apps.next().map(|app| app.domain()), Some("last.example"));
    let stats = client.discovery().stats().expect("open");
    assert_eq!((stats.received, stats.skipped, stats.duplicates), (odd.len() + 2, 1, 0));
    assert_eq!((stats.total, stats.last_error), (odd.len() + 1, None));
}

#[tokio::test]
async fn an_invalid_escape_costs_at_most_its_row() {
    let odd: Vec<_> = malformed_rows().into_iter().filter(|odd| !odd.is_text).collect();
    let good = |index: usize| Row::from(full_frame(&format!("good-{index}.example")));
    let rows = odd.iter().enumerate().flat_map(|(index, odd)| [good(index), odd.row.clone()]);
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    let apps = all(&client).await;
    let survivors = apps.iter().filter(|app| app.domain().starts_with("good-")).count();
    assert_eq!(survivors, odd.len());
    let stats = client.discovery().stats().expect("open");
    assert_eq!(
        (stats.received, stats.total + stats.skipped),
        (2 * odd.len(), 2 * odd.len()),
        "each is kept or counted"
    );
}

#[tokio::test]
async fn rows_that_are_no_objects_are_excluded_and_counted() {
    let nonsense = [
        "null",
        "7",
        "true",
        "\"text\"",
        "[]",
        "[{}]",
        "{}",
        "{\"frames_url\":5}",
        "{\"frames_url\":null,\"title\":\"x\"}",
    ];
    let mut rows: Vec<_> = nonsense.iter().map(|text| Row::raw(*text)).collect();
    rows.insert(4, full_frame("good.example").into());
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    assert_eq!(all(&client).await.len(), 1);
    let stats = client.discovery().stats().expect("open");
    assert_eq!((stats.received, stats.skipped, stats.total), (10, 9, 1));
    assert_eq!((stats.source, stats.is_stale, stats.last_error), (CatalogSource::Upstream, false, None));
}

#[tokio::test]
async fn deep_nesting_and_long_texts_cost_at_most_their_row() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let rows = [
        Row::from(full_frame("first.example")),
        Row::raw(format!(r#"{{"frames_url":"https://deep.example","metadata":{deep}}}"#)),
        Row::raw(format!(r#"{{"frames_url":"https://long.example","title":"{}"}}"#, "x".repeat(3_000_000))),
        Row::from(full_frame("last.example")),
    ];
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    // A body that is nested too deeply may fail, but must not crash the process.
    match client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50).await {
        Ok(apps) => assert!(apps.iter().any(|app| app.domain() == "last.example")),
        Err(error) => assert_eq!(error.kind(), townsquare::ErrorKind::Unavailable, "{error}"),
    }
}

#[tokio::test]
async fn a_missing_or_invalid_next_cursor_ends_the_list() {
    let row = full_frame("only.example").to_string();
    for next in [
        "",
        r#","next":null"#,
        r#","next":{}"#,
        r#","next":{"cursor":7}"#,
        r#","next":[]"#,
        r#","next":{"cursor":""}"#,
        r#","more":1"#,
    ] {
        let fixture = Fixture::of([]);
        let body = format!(r#"{{"frames":[{row}]{next}}}"#);
        fixture.upstream.reply_with(move |_| townsquare_tests::upstream::Reply::body(body.clone()));
        let client = fixture.open().await;
        assert_eq!(all(&client).await.len(), 1, "{next}");
        assert_eq!(fixture.upstream.request_count(), 1, "{next}");
    }
}

#[tokio::test]
async fn mistyped_numbers_of_an_author_are_dropped() {
    let cases = [
        ("follower_count", json!(-5), 0),
        ("follower_count", json!("many"), 0),
        ("follower_count", json!(1e300), 0),
        ("follower_count", json!(2.5), 0),
        ("follower_count", json!(7), 7),
    ];
    for (part, value, expected) in cases {
        let mut frame: Value = full_frame("a.example");
        frame["author"][part] = value.clone();
        let fixture = Fixture::of([frame.into()]);
        let apps = all(&fixture.open().await).await;
        let author = apps[0].author().expect("an author");
        assert_eq!(author.follower_count, expected, "{value}");
    }
    for score in [json!(-0.1), json!(1.5), json!("1"), json!(null)] {
        let mut frame = full_frame("a.example");
        frame["author"]["score"] = score.clone();
        let fixture = Fixture::of([frame.into()]);
        let apps = all(&fixture.open().await).await;
        assert_eq!(apps[0].author().expect("an author").score, None, "{score}");
    }
}

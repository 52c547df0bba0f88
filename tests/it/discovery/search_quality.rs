//! Search quality (DESIGN 6): how often a query for one app finds it, by real and by invented names.

use std::{collections::HashSet, path::Path};

use serde_json::Value;
use townsquare::{Client, Config, discovery::Timeframe};
use townsquare_tests::{Rng, catalog::Catalog, paths::shared_data, temp_dir};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// A way to query a name, the lowest accepted rank, and the required success rate.
struct Question {
    what: &'static str,
    within: usize,
    percent: f64,
    ask: fn(&str, &mut Rng) -> Option<String>,
}

const QUESTIONS: [Question; 4] = [
    Question { what: "full name as typed, first", within: 1, percent: 99.0, ask: |name, _| Some(name.to_owned()) },
    Question { what: "one letter wrong, first three", within: 3, percent: 95.0, ask: misspelt },
    Question { what: "reversed, upper case, no accents, first three", within: 3, percent: 97.0, ask: reversed },
    Question { what: "first five letters, first ten", within: 10, percent: 85.0, ask: first_letters },
];

/// Drops, doubles, swaps or replaces a letter of a name of 5 letters or more.
fn misspelt(name: &str, random: &mut Rng) -> Option<String> {
    let mut letters: Vec<char> = name.chars().collect();
    let places: Vec<_> = (0..letters.len()).filter(|place| letters[*place].is_alphabetic()).collect();
    if places.len() < 5 {
        return None;
    }
    let place = *random.choice(&places).expect("five or more");
    match random.usize(..4) {
        0 => drop(letters.remove(place)),
        1 => letters.insert(place, letters[place]),
        2 => {
            let swaps = |place: &usize| {
                letters.get(place + 1).is_some_and(|next| next.is_alphabetic() && *next != letters[*place])
            };
            let swappable: Vec<_> = places.iter().copied().filter(swaps).collect();
            let place = *random.choice(&swappable)?;
            letters.swap(place, place + 1);
        }
        _ => {
            let other = random.char('a'..='z');
            letters[place] = if other.eq_ignore_ascii_case(&letters[place]) { 'q' } else { other };
        }
    }
    Some(letters.into_iter().collect())
}

fn reversed(name: &str, _: &mut Rng) -> Option<String> {
    let words: Vec<_> = name.split_whitespace().rev().collect();
    let unaccented: String = words.join(" ").nfd().filter(|letter| !is_combining_mark(*letter)).collect();
    Some(unaccented.to_uppercase())
}

fn first_letters(name: &str, _: &mut Rng) -> Option<String> {
    Some(name.chars().take(5).collect())
}

async fn measure(what: &str, file: &Path) {
    let folder = temp_dir();
    let url = format!("file://{}", file.display());
    let client = Client::open(Config::new().data_dir(folder.path()).catalog_url(url)).await.expect("opens");
    let names = names_of(file);
    client.discovery().get_trending_mini_apps(Timeframe::Hours24, 1).await.expect("a list");
    assert_eq!(client.discovery().stats().expect("open").total, names.len());
    let mut failures = Vec::new();
    for question in &QUESTIONS {
        let mut random = Rng::with_seed(42);
        let (mut asked, mut found) = (0, 0);
        for name in &names {
            let Some(query) = (question.ask)(name, &mut random) else { continue };
            let answer = client.discovery().search_mini_apps(&query, question.within as u32).await.expect("a list");
            asked += 1;
            // An app of the same name counts as found.
            found += usize::from(answer.iter().any(|app| app.name() == &**name));
        }
        let percent = 100.0 * f64::from(found as u32) / f64::from(asked.max(1) as u32);
        let line =
            format!("{what}: {}: {found} of {asked}, {percent:.2} % (at least {} %)", question.what, question.percent);
        show(&line);
        if percent < question.percent {
            failures.push(line);
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Returns the names of a catalog file's apps, without duplicates.
fn names_of(file: &Path) -> Vec<String> {
    let body: Value = serde_json::from_slice(&std::fs::read(file).expect("a file")).expect("JSON");
    let mut seen = HashSet::new();
    let frames = body["frames"].as_array().expect("frames").iter();
    let manifests = frames.map(|frame| &frame["manifest"]["frame"]).filter(|manifest| {
        let home = manifest["home_url"].as_str().expect("a home").trim().trim_end_matches('/');
        let (scheme, rest) = home.split_once("://").expect("a URL");
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        seen.insert(format!("{scheme}://{}{path}", host.to_lowercase()))
    });
    manifests.map(|manifest| manifest["name"].as_str().expect("a name").trim().to_owned()).collect()
}

#[allow(clippy::print_stderr, reason = "the figures are what this test is for")]
fn show(line: &str) {
    eprintln!("{line}");
}

#[tokio::test]
async fn real_names_are_found_at_the_required_rates() {
    match shared_data("catalog-2835.json") {
        Some(file) => measure("real", &file).await,
        // Optional: the invented names below are measured too.
        None => show("real: not measured, there is no ../shared/data/catalog-2835.json"),
    }
}

#[tokio::test]
async fn invented_names_are_found_at_the_required_rates() {
    let folder = temp_dir();
    let file = folder.path().join("catalog.json");
    Catalog::of(2_490).write(&file).expect("a file");
    measure("invented", &file).await;
}

#[test]
fn a_misspelling_is_one_letter_away() {
    let mut random = Rng::with_seed(1);
    assert_eq!(misspelt("abcd", &mut random), None);
    for _ in 0..200 {
        let query = misspelt("Lantern Quest", &mut random).expect("long enough");
        assert_ne!(query, "Lantern Quest");
        assert!((12..=14).contains(&query.chars().count()), "{query}");
    }
    assert_eq!(reversed("Café au  Lait", &mut random).as_deref(), Some("LAIT AU CAFE"));
}

//! Search quality (DESIGN 6): how often a query for one app finds it, by real and by invented names.

use std::{collections::HashSet, path::Path};

use serde_json::Value;
use townsquare::{
    Client, Config,
    discovery::{MiniApp, MiniApps, Selection, Timeframe},
};
use townsquare_tests::{
    Rng, TempDir,
    catalog::Catalog,
    paths::{shared_data, workspace},
    temp_dir,
};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// A way to query a name, the lowest accepted rank, and the required success rate.
struct Question {
    what: &'static str,
    within: usize,
    percent: f64,
    ask: fn(&str, &mut Rng) -> Option<String>,
}

const QUESTIONS: [Question; 6] = [
    Question { what: "full name as typed, first", within: 1, percent: 99.0, ask: |name, _| Some(name.to_owned()) },
    Question { what: "one letter wrong, first three", within: 3, percent: 95.0, ask: misspelt },
    Question { what: "reversed, upper case, no accents, first three", within: 3, percent: 97.0, ask: reversed },
    Question { what: "first five letters, first ten", within: 10, percent: 85.0, ask: first_letters },
    Question { what: "first seven letters, one wrong, first ten", within: 10, percent: 90.0, ask: misspelt_prefix },
    Question { what: "words written as one, first three", within: 3, percent: 95.0, ask: joined },
];

/// Queries as people type them, with the app that they mean: among the first five.
const QUERIES: [(&str, &str); 45] = [
    ("rodeo", "Rodeo"),
    ("promo league", "PromoLeague"),
    ("promoleage", "PromoLeague"),
    ("framedl pro", "Framedl PRO"),
    ("miniword", "MiniWord"),
    ("mini word", "MiniWord"),
    ("monad factry", "Monad Factory"),
    ("mint clubs", "Mint Club"),
    ("empire bilder", "Empire Builder"),
    ("freind finder", "Friend Finder"),
    ("leaderboard", "The Leaderboard"),
    ("degen counter", "Degen Counter"),
    ("farcaster gm", "GM Farcaster"),
    ("betswirl.com", "BetSwirl"),
    ("https://www.betswirl.com", "BetSwirl"),
    ("bet swirl", "BetSwirl"),
    ("onchain radio show", "Acid Test"),
    ("hamster racing", "Henlo Kart"),
    ("hamsters", "Henlo Kart"),
    ("youtube", "Embedr"),
    ("recipes", "Recipe Half-Life"),
    ("mine sweeper", "Minesweeper"),
    ("minesweper", "Minesweeper"),
    ("bitcoin pong", "Bitcoin Crazy Pong"),
    ("meal planer", "Smart Meal Planner"),
    ("debt tracker", "Simple Debt Tracker"),
    ("caffein", "Caffeine Cutoff Timer"),
    ("toll costs", "Toll Tally"),
    ("poolsuite", "Poolsuite ☼"),
    ("friends of friends", "Friends of Friends"),
    ("flapy base", "Flappy Base"),
    ("world mobil", "World Mobile"),
    ("solana bag", "Solana Bag Check"),
    ("bank celo", "Bank of Celo"),
    ("vc prediction", "Supervalo VC Prediction Game"),
    ("arbitrum grant winners", "ArbiGrants Archive"),
    ("orthopedic", "OrthoIQ - AI Orthopedic Expert"),
    ("mood chords", "Hummingbird Mood Chord"),
    ("menstrual cycles", "Cycle Tracker Lite"),
    ("astrolgy", "Astrology"),
    ("draw cast", "Drawcast"),
    ("paragraf", "Paragraph"),
    ("micropayment", "noice"),
    ("testnet faucets", "Farfaucet"),
    ("matcha jmp", "Matcha Jump"),
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

fn misspelt_prefix(name: &str, random: &mut Rng) -> Option<String> {
    misspelt(&name.chars().take(7).collect::<String>(), random)
}

fn joined(name: &str, _: &mut Rng) -> Option<String> {
    (name.split_whitespace().count() == 2).then(|| name.split_whitespace().collect())
}

async fn open(file: &Path) -> (TempDir, Client) {
    let folder = temp_dir();
    let url = format!("file://{}", file.display());
    let client = Client::open(Config::new().data_dir(folder.path()).catalog_url(url)).await.expect("opens");
    (folder, client)
}

async fn measure(what: &str, file: &Path) {
    let (_folder, client) = open(file).await;
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

/// Opens a client on the real catalog, where it is present.
async fn real() -> Option<(TempDir, Client)> {
    match shared_data("catalog-2835.json") {
        Some(file) => Some(open(&file).await),
        None => {
            show("real: not measured, there is no ../shared/data/catalog-2835.json");
            None
        }
    }
}

async fn search(client: &Client, query: &str, selection: impl Into<Selection>) -> MiniApps {
    client.discovery().search_mini_apps(query, selection).await.expect("a list")
}

/// Every app, page by page.
async fn all_apps(client: &Client) -> Vec<MiniApp> {
    let mut apps: Vec<MiniApp> = Vec::new();
    loop {
        let page = Selection::first(1_000).offset(apps.len() as u64);
        let page = client.discovery().get_trending_mini_apps(Timeframe::Hours24, page).await.expect("a page");
        if page.is_empty() {
            assert_eq!(apps.len(), page.total());
            return apps;
        }
        apps.extend(page.iter().cloned());
    }
}

#[tokio::test]
async fn queries_as_people_type_them_find_the_app_they_mean() {
    let Some((_folder, client)) = real().await else { return };
    let mut missed = Vec::new();
    for (query, name) in QUERIES {
        let found = search(&client, query, 5).await;
        if !found.iter().any(|app| app.name() == name) {
            missed.push((query, name, found.iter().map(|app| app.name().to_owned()).collect::<Vec<_>>()));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[tokio::test]
async fn function_words_do_not_outrank_the_words_that_people_mean() {
    let Some((_folder, client)) = real().await else { return };
    for (query, meant) in [
        ("where is my wallet", &["wallet"][..]),
        ("to do list", &["list", "todo"]),
        ("what is a quiz", &["quiz"]),
        ("where can i see a quiz", &["quiz"]),
        ("a game of snake", &["snake"]),
    ] {
        let found = search(&client, query, 3).await;
        let names: Vec<_> = found.iter().map(|app| app.name().to_lowercase()).collect();
        let is_meant = |name: &String| meant.iter().any(|word| name.contains(word));
        assert!(!names.is_empty() && names.iter().all(is_meant), "{query}: {names:?}");
    }
}

#[tokio::test]
async fn plurals_and_singulars_of_the_real_catalog_find_the_same_names() {
    let Some((_folder, client)) = real().await else { return };
    let names: Vec<String> = all_apps(&client).await.iter().map(|app| app.name().to_lowercase()).collect();
    let words: HashSet<&str> = names.iter().flat_map(|name| name.split(|c: char| !c.is_alphanumeric())).collect();
    let plurals = words.iter().filter(|word| word.len() > 4 && word.is_ascii()).filter_map(|singular| {
        let plural = format!("{singular}s");
        words.contains(plural.as_str()).then_some((*singular, plural))
    });
    let pairs: Vec<(&str, String)> = plurals.collect();
    assert!(pairs.len() >= 40, "{pairs:?}");
    for (singular, plural) in pairs {
        let found = |apps: MiniApps| -> HashSet<String> { apps.iter().map(|app| app.id().to_owned()).collect() };
        let by_plural = found(search(&client, &plural, 1_000).await);
        let by_singular = search(&client, singular, 1_000).await;
        for app in &by_singular {
            let has_word = app.name().to_lowercase().split(|c: char| !c.is_alphanumeric()).any(|word| word == singular);
            assert!(!has_word || by_plural.contains(app.id()), "{plural} does not find {}", app.name());
        }
    }
    for (plural, singular) in [("wallets", "wallet"), ("quizzes", "quiz"), ("snakes", "snake")] {
        let (many, one) = (search(&client, plural, 1).await.total(), search(&client, singular, 1).await.total());
        assert!(many * 3 >= one * 2, "{plural}: {many}, {singular}: {one}");
    }
}

#[tokio::test]
async fn every_real_app_is_found_by_its_address_and_id() {
    let Some((_folder, client)) = real().await else { return };
    let apps = all_apps(&client).await;
    assert_eq!(apps.len(), 2_490);
    for app in &apps {
        let found = search(&client, app.home_url(), 3).await;
        assert_eq!(found[0].id(), app.id(), "{}", app.home_url());
        let host = app.domain().trim_start_matches("www.");
        let of_host = apps.iter().filter(|other| other.domain().trim_start_matches("www.") == host).count();
        assert!(found.total() <= of_host + 4, "{}: {}", app.home_url(), found.total());
        for text in [app.id(), app.home_url()] {
            let found = client.discovery().get_mini_app(text).await.expect("an answer").expect("an app");
            assert_eq!(found.id(), app.id(), "{text}");
        }
    }
    let collapsed =
        client.discovery().get_trending_mini_apps(Timeframe::Hours24, Selection::first(1).collapsed()).await;
    assert_eq!(collapsed.expect("a list").total(), 2_490 - 178);
}

/// The sample of the repository, which is always present.
#[tokio::test]
async fn the_sample_catalog_answers_typos_plurals_joined_words_and_addresses() {
    let (_folder, client) = open(&workspace().join("core/samples/catalog.json")).await;
    let apps = all_apps(&client).await;
    for app in &apps {
        let mut random = Rng::with_seed(3);
        let queries = [
            Some(app.name().to_owned()),
            misspelt(app.name(), &mut random),
            joined(app.name(), &mut random),
            Some(app.home_url().to_owned()),
            Some(app.domain().to_owned()),
        ];
        for query in queries.into_iter().flatten() {
            let found = search(&client, &query, 3).await;
            assert!(found.iter().any(|found| found.name() == app.name()), "{query:?} for {:?}", app.name());
        }
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

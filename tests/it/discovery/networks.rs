//! The network filter (SPEC 1.1, UPSTREAM 1 and "How we read them"): from the records where some row names its
//! chains, by asking upstream where none does.

use serde_json::json;
use townsquare::{ErrorKind, Selection, Timeframe};
use townsquare_tests::{
    catalog::{App, CHAINS, Catalog, Row, full_frame},
    town::{Town, ids, refused},
    upstream::NETWORKS,
};

fn on(networks: &[&str]) -> Selection {
    Selection::first(1000).on_networks(networks.iter().copied())
}

fn runs_on(app: &App, networks: &[&str]) -> bool {
    app.networks.is_empty() || app.networks.iter().any(|name| networks.contains(name))
}

#[tokio::test]
async fn rows_with_chains_answer_the_filter_themselves() {
    let catalog = Catalog::of(300).saying_chains();
    let town = Town::of(catalog.rows());
    let client = town.open().await;
    for network in NETWORKS {
        let listed =
            client.discovery().get_trending_mini_apps(Timeframe::Hours24, on(&[network])).await.expect("a list");
        let expected: Vec<_> = catalog.apps().filter(|app| runs_on(app, &[network])).map(|app| app.id).collect();
        assert_eq!(ids(&listed), expected, "{network}");
    }
    assert_eq!(town.upstream.lists(), 1, "upstream is not asked for what the records say");
    assert!(town.upstream.requests().iter().all(|request| request.networks().is_empty()));
}

#[tokio::test]
async fn rows_without_chains_have_upstream_answer_the_filter() {
    let catalog = Catalog::of(300);
    let town = Town::of(catalog.rows());
    let client = town.open().await;
    let discovery = client.discovery();
    for networks in [&["base"][..], &["celo", "zora"], &["solana"]] {
        let expected: Vec<_> = catalog.apps().filter(|app| runs_on(app, networks)).map(|app| app.id).collect();
        let listed = discovery.get_trending_mini_apps(Timeframe::Hours24, on(networks)).await.expect("a list");
        assert_eq!(ids(&listed), expected, "{networks:?}");
        assert!(expected.len() < 300);
    }
    let asked = town.upstream.requests();
    assert!(asked.iter().any(|request| request.networks() == ["base"]), "the filter is upstream's to answer");
    let before = town.upstream.count();
    discovery.get_trending_mini_apps(Timeframe::Hours24, on(&["base"])).await.expect("a list");
    discovery.search_mini_apps("puzzle", on(&["base"])).await.expect("a list");
    assert_eq!(town.upstream.count(), before, "a network's membership is kept as fresh as the rest");
}

#[tokio::test]
async fn a_failing_network_question_is_an_error_and_costs_no_catalog() {
    let town = Town::of(Catalog::of(60).rows());
    let client = town.open_with(town.impatient()).await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 5).await.expect("a list");
    town.upstream.behave(|request| match request.networks().is_empty() {
        true => townsquare_tests::upstream::Reply::Honest,
        false => townsquare_tests::upstream::Reply::status(500),
    });
    refused(ErrorKind::Unavailable, discovery.get_trending_mini_apps(Timeframe::Hours24, on(&["base"])).await);
    assert_eq!(discovery.get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), 60);
}

#[tokio::test]
async fn an_unknown_network_is_refused_without_a_question() {
    let town = Town::of(Catalog::of(60).rows());
    let client = town.open().await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 5).await.expect("a list");
    let before = town.upstream.count();
    for unknown in ["bitcoin", "base,celo", "eip155:5"] {
        let error = refused(
            ErrorKind::InvalidInput,
            discovery.get_trending_mini_apps(Timeframe::Hours24, on(&[unknown])).await,
        );
        assert!(error.message().contains(unknown), "{error}");
        refused(ErrorKind::InvalidInput, discovery.get_mini_apps_by_category(["games"], on(&["base", unknown])).await);
        refused(ErrorKind::InvalidInput, discovery.search_mini_apps("x", on(&[unknown])).await);
    }
    assert_eq!(town.upstream.count(), before);
}

#[tokio::test]
async fn hyperevm_is_known_here_only() {
    let town = Town::of(Catalog::of(60).rows());
    let client = town.open().await;
    // Whatever the answer: it is no complaint about the name, and upstream, which would refuse it, is not asked.
    if let Err(error) = client.discovery().get_trending_mini_apps(Timeframe::Hours24, on(&["hyperevm"])).await {
        assert_ne!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(town.upstream.requests().iter().all(|request| !request.networks().contains(&"hyperevm")));
}

#[tokio::test]
async fn every_chain_id_has_its_name_and_an_unknown_one_stays() {
    let ids_and_names = CHAINS.iter().copied().chain([("eip155:5", "eip155:5"), ("cosmos:hub-4", "cosmos:hub-4")]);
    let rows: Vec<(Row, &str)> = ids_and_names
        .enumerate()
        .map(|(index, (chain, name))| {
            let mut frame = full_frame(&format!("c{index}.example"));
            frame["manifest"]["miniapp"]["required_chains"] = json!([chain]);
            (frame.into(), name)
        })
        .collect();
    let town = Town::of(rows.iter().map(|(row, _)| row.clone()));
    let client = town.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50).await.expect("a list");
    for (app, (_, name)) in listed.iter().zip(&rows) {
        assert_eq!(app.networks().collect::<Vec<_>>(), [*name]);
        let of_it = client.discovery().get_trending_mini_apps(Timeframe::Hours24, on(&[name])).await.expect("a list");
        assert_eq!(ids(&of_it), [app.id()], "{name}");
    }
    assert_eq!(listed.len(), rows.len());
}

#[tokio::test]
async fn rows_of_many_made_up_chains_hide_no_real_network() {
    let with_chains = |host: &str, chains: Vec<String>| -> Row {
        let mut frame = full_frame(host);
        frame["manifest"]["miniapp"]["required_chains"] = chains.into();
        frame.into()
    };
    let made_up =
        |row: usize| with_chains(&format!("junk{row}.example"), (0..50).map(|id| format!("made:{row}-{id}")).collect());
    let rows = (0..3).map(made_up).chain([with_chains("real.example", vec!["eip155:8453".into()])]);
    let town = Town::of(rows);
    let client = town.open().await;
    for network in ["base", "made:0-7", "made:2-49"] {
        let found = client.discovery().get_trending_mini_apps(Timeframe::Hours24, on(&[network])).await;
        assert_eq!(found.unwrap_or_else(|error| panic!("{network}: {error}")).len(), 1, "{network}");
    }
}

//! The network filter (SPEC 1.1, UPSTREAM 1): it uses the chains of the rows, or the upstream's filter when no row has
//! any.

use serde_json::json;
use townsquare::{
    ErrorKind,
    discovery::{Selection, Timeframe},
};
use townsquare_tests::{
    catalog::{App, CHAINS, Catalog, Row, full_frame},
    fixture::{Fixture, assert_kind, ids},
    upstream::NETWORKS,
};

fn on_networks(networks: &[&str]) -> Selection {
    Selection::first(1000).on_networks(networks.iter().copied())
}

fn runs_on(app: &App, networks: &[&str]) -> bool {
    app.networks.is_empty() || app.networks.iter().any(|name| networks.contains(name))
}

#[tokio::test]
async fn the_network_filter_uses_the_chains_of_the_rows() {
    let catalog = Catalog::of(300).with_chains();
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    for network in NETWORKS {
        let listed = client
            .discovery()
            .get_trending_mini_apps(Timeframe::Hours24, on_networks(&[network]))
            .await
            .expect("a list");
        let expected: Vec<_> = catalog.apps().filter(|app| runs_on(app, &[network])).map(|app| app.id).collect();
        assert_eq!(ids(&listed), expected, "{network}");
    }
    assert_eq!(fixture.upstream.list_count(), 1, "upstream is not asked for what the records say");
    assert!(fixture.upstream.requests().iter().all(|request| request.networks().is_empty()));
}

#[tokio::test]
async fn without_chains_the_upstream_filters_by_network() {
    let catalog = Catalog::of(300);
    let fixture = Fixture::of(catalog.rows());
    let client = fixture.open().await;
    let discovery = client.discovery();
    for networks in [&["base"][..], &["celo", "zora"], &["solana"]] {
        let expected: Vec<_> = catalog.apps().filter(|app| runs_on(app, networks)).map(|app| app.id).collect();
        let listed = discovery.get_trending_mini_apps(Timeframe::Hours24, on_networks(networks)).await.expect("a list");
        assert_eq!(ids(&listed), expected, "{networks:?}");
        assert!(expected.len() < 300);
    }
    let asked = fixture.upstream.requests();
    assert!(asked.iter().any(|request| request.networks() == ["base"]), "the filter is upstream's to answer");
    let before = fixture.upstream.request_count();
    discovery.get_trending_mini_apps(Timeframe::Hours24, on_networks(&["base"])).await.expect("a list");
    discovery.search_mini_apps("puzzle", on_networks(&["base"])).await.expect("a list");
    assert_eq!(fixture.upstream.request_count(), before, "a network's membership is kept as fresh as the rest");
}

#[tokio::test]
async fn a_failing_network_list_is_an_error_and_keeps_the_catalog() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open_with(fixture.one_try()).await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 5).await.expect("a list");
    fixture.upstream.reply_with(|request| match request.networks().is_empty() {
        true => townsquare_tests::upstream::Reply::Page,
        false => townsquare_tests::upstream::Reply::status(500),
    });
    assert_kind(
        ErrorKind::Unavailable,
        discovery.get_trending_mini_apps(Timeframe::Hours24, on_networks(&["base"])).await,
    );
    assert_eq!(discovery.get_trending_mini_apps(Timeframe::Hours24, 1000).await.expect("a list").len(), 60);
}

#[tokio::test]
async fn an_unknown_network_is_refused_without_a_request() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    let discovery = client.discovery();
    discovery.get_trending_mini_apps(Timeframe::Hours24, 5).await.expect("a list");
    let before = fixture.upstream.request_count();
    for unknown in ["bitcoin", "base,celo", "eip155:5"] {
        let error = assert_kind(
            ErrorKind::InvalidInput,
            discovery.get_trending_mini_apps(Timeframe::Hours24, on_networks(&[unknown])).await,
        );
        assert!(error.message().contains(unknown), "{error}");
        assert_kind(
            ErrorKind::InvalidInput,
            discovery.get_mini_apps_by_category(["games"], on_networks(&["base", unknown])).await,
        );
        assert_kind(ErrorKind::InvalidInput, discovery.search_mini_apps("x", on_networks(&[unknown])).await);
    }
    assert_eq!(fixture.upstream.request_count(), before);
}

#[tokio::test]
async fn hyperevm_is_filtered_without_the_upstream() {
    let fixture = Fixture::of(Catalog::of(60).rows());
    let client = fixture.open().await;
    // The name is accepted, and the upstream, which would refuse it, gets no request.
    if let Err(error) = client.discovery().get_trending_mini_apps(Timeframe::Hours24, on_networks(&["hyperevm"])).await
    {
        assert_ne!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(fixture.upstream.requests().iter().all(|request| !request.networks().contains(&"hyperevm")));
}

#[tokio::test]
async fn every_chain_id_has_a_name_and_an_unknown_one_is_kept() {
    let ids_and_names = CHAINS.iter().copied().chain([("eip155:5", "eip155:5"), ("cosmos:hub-4", "cosmos:hub-4")]);
    let rows: Vec<(Row, &str)> = ids_and_names
        .enumerate()
        .map(|(index, (chain, name))| {
            let mut frame = full_frame(&format!("c{index}.example"));
            frame["manifest"]["miniapp"]["required_chains"] = json!([chain]);
            (frame.into(), name)
        })
        .collect();
    let fixture = Fixture::of(rows.iter().map(|(row, _)| row.clone()));
    let client = fixture.open().await;
    let listed = client.discovery().get_trending_mini_apps(Timeframe::Hours24, 50).await.expect("a list");
    for (app, (_, name)) in listed.iter().zip(&rows) {
        assert_eq!(app.networks().collect::<Vec<_>>(), [*name]);
        let of_it =
            client.discovery().get_trending_mini_apps(Timeframe::Hours24, on_networks(&[name])).await.expect("a list");
        assert_eq!(ids(&of_it), [app.id()], "{name}");
    }
    assert_eq!(listed.len(), rows.len());
}

#[tokio::test]
async fn unknown_chains_do_not_displace_known_networks() {
    let with_chains = |host: &str, chains: Vec<String>| -> Row {
        let mut frame = full_frame(host);
        frame["manifest"]["miniapp"]["required_chains"] = chains.into();
        frame.into()
    };
    let made_up =
        |row: usize| with_chains(&format!("junk{row}.example"), (0..50).map(|id| format!("made:{row}-{id}")).collect());
    let rows = (0..3).map(made_up).chain([with_chains("real.example", vec!["eip155:8453".into()])]);
    let fixture = Fixture::of(rows);
    let client = fixture.open().await;
    for network in ["base", "made:0-7", "made:2-49"] {
        let found = client.discovery().get_trending_mini_apps(Timeframe::Hours24, on_networks(&[network])).await;
        assert_eq!(found.unwrap_or_else(|error| panic!("{network}: {error}")).len(), 1, "{network}");
    }
}

//! The comparison of `benches/search.rs` with tantivy: one process, the same records and queries.

#![forbid(unsafe_code)]

mod tantivy_engine;

use townsquare_benches::{
    catalog,
    comparison::{self, Effort},
    fts5::Fts5,
    fixture::Fixture,
};
use townsquare_tests::paths::shared_data;

use crate::tantivy_engine::Tantivy;

fn main() {
    let size = std::env::args().nth(1).map_or(100_000, |size| size.parse().expect("a number of apps"));
    match shared_data("catalog-2835.json") {
        Some(file) => run("real", Fixture::on(&file)),
        None => run("invented, for the real one is not here", Fixture::of(2_490)),
    }
    run("invented", Fixture::of(size));
}

fn run(title: &str, mut fixture: Fixture) {
    let apps = catalog::read(&fixture.file).expect("the catalog reads back");
    assert_eq!(apps.len(), fixture.app_count(), "all engines index the same apps");
    let mut fts5 = Fts5::build(&apps).expect("FTS5 takes the catalog");
    let mut tantivy = Tantivy::build(&apps).expect("tantivy takes the catalog");
    let effort = Effort { queries: 500, rounds: 5 };
    comparison::run(title, &apps, effort, &mut [&mut fixture, &mut fts5, &mut tantivy]);
    fixture.client.close();
}

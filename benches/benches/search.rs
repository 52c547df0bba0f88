//! Cost of a search, compared with FTS5 on the same records and queries.
//!
//! Prints a table instead of using criterion: it measures percentiles over many different queries. `benches/peers` adds
//! tantivy to the comparison.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use townsquare_benches::{
    catalog,
    comparison::{self, Effort},
    fixture::Fixture,
    fts5::Fts5,
    sized,
};
use townsquare_tests::paths::shared_data;

fn main() {
    let effort = sized(Effort { queries: 500, rounds: 5 }, Effort { queries: 10, rounds: 1 });
    match shared_data("catalog-2835.json") {
        Some(file) => run("real", Fixture::on(&file), effort),
        None => {
            println!("search: the real catalog is not here; 2,490 invented apps stand in for it");
            run("invented", Fixture::of(2_490), effort);
        }
    }
    // The most apps that a catalog of the default options has, and ten times as many.
    run("invented", Fixture::of(sized(10_000, 500)), effort);
    run("invented", Fixture::of(sized(100_000, 500)), effort);
}

fn run(title: &str, mut fixture: Fixture, effort: Effort) {
    let apps = catalog::read(&fixture.file).expect("the catalog reads back");
    assert_eq!(apps.len(), fixture.app_count(), "both engines index the same apps");
    let mut peer = Fts5::build(&apps).expect("FTS5 takes the catalog");
    comparison::run(title, &apps, effort, &mut [&mut fixture, &mut peer]);
    fixture.client.close();
}

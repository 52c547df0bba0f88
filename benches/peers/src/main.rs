//! The contest of `benches/search.rs` with tantivy in it: one process, one run, the same records and queries.

#![forbid(unsafe_code)]

mod tantivy_engine;

use townsquare_benches::{
    catalog,
    contest::{self, Effort},
    fts5::Fts5,
    town::Town,
};

use crate::tantivy_engine::Tantivy;

fn main() {
    let size = std::env::args().nth(1).map_or(100_000, |size| size.parse().expect("a number of apps"));
    match catalog::real() {
        Some(file) => run("real", Town::on(&file)),
        None => run("invented, for the real one is not here", Town::of(2_490)),
    }
    run("invented", Town::of(size));
}

fn run(title: &str, mut town: Town) {
    let apps = catalog::read(&town.file).expect("the catalog reads back");
    assert_eq!(apps.len(), town.len(), "all engines index the same apps");
    let mut fts5 = Fts5::build(&apps).expect("FTS5 takes the catalog");
    let mut tantivy = Tantivy::build(&apps).expect("tantivy takes the catalog");
    let effort = Effort { queries: 500, rounds: 5 };
    contest::hold(title, &apps, effort, &mut [&mut town, &mut fts5, &mut tantivy]);
    town.client.close();
}

//! What does a search cost, next to FTS5 on the same records and queries?
//!
//! A table and no criterion: the question is a median over many different queries, each timed alone. The same contest
//! with tantivy in it is `benches/peers`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a bench reports on the terminal")]

use townsquare_benches::{
    catalog,
    contest::{self, Effort},
    fts5::Fts5,
    sized,
    town::Town,
};

fn main() {
    let effort = sized(Effort { queries: 500, rounds: 5 }, Effort { queries: 10, rounds: 1 });
    match catalog::real() {
        Some(file) => run("real", Town::on(&file), effort),
        None => {
            println!("search: the real catalog is not here; 2,490 invented apps stand in for it");
            run("invented", Town::of(2_490), effort);
        }
    }
    run("invented", Town::of(sized(100_000, 500)), effort);
}

fn run(title: &str, mut town: Town, effort: Effort) {
    let apps = catalog::read(&town.file).expect("the catalog reads back");
    assert_eq!(apps.len(), town.len(), "both engines index the same apps");
    let mut peer = Fts5::build(&apps).expect("FTS5 takes the catalog");
    contest::hold(title, &apps, effort, &mut [&mut town, &mut peer]);
    town.client.close();
}

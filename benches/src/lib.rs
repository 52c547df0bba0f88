//! What the benches share: catalogs and tables of any size, a client on them, the peers that need no lock file of their own.
//!
//! Invariant: a catalog follows from its size alone, so every run and every machine is asked the same; and a peer is
//! given the same records, the same fields and the same queries as the library, and never less time.

#![forbid(unsafe_code)]
#![allow(missing_debug_implementations, reason = "fixtures are no public API")]

pub mod catalog;
pub mod contest;
pub mod fts5;
pub mod postgres;
pub mod queries;
pub mod random;
pub mod raw;
pub mod resident;
pub mod spaces;
pub mod town;
pub mod townsfolk;
pub mod upstream;
pub mod words;

/// Whether this is a smoke run (`cargo bench -- --test`, or without `--bench` as under `cargo test`): everything runs
/// once, at sizes that take no time, and no figure means anything.
pub fn is_smoke() -> bool {
    let mut arguments = std::env::args().skip(1);
    let is_bench = std::env::args().skip(1).any(|argument| argument == "--bench");
    !is_bench || arguments.any(|argument| argument == "--test")
}

/// `full`, or `smoke` in a smoke run.
pub fn sized<T>(full: T, smoke: T) -> T {
    if is_smoke() { smoke } else { full }
}

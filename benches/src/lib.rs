//! Shared code of the benches: catalogs and databases of any size, clients on them, and the search engines that
//! townsquare is compared with.
//!
//! Invariant: a catalog's content depends only on its size, so every run on every machine measures the same. A compared
//! engine gets the same records, fields and queries as the library.

#![forbid(unsafe_code)]
#![allow(missing_debug_implementations, reason = "fixtures are no public API")]

pub mod catalog;
pub mod comparison;
pub mod fixture;
pub mod fts5;
pub mod process_memory;
pub mod queries;
pub mod raw;
pub mod raw_files;
pub mod spaces;

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Whether this is a smoke run (`cargo bench -- --test`, or without `--bench` as under `cargo test`): each bench runs
/// once at a small size, and its figures mean nothing.
pub fn is_smoke() -> bool {
    let mut arguments = std::env::args().skip(1);
    let is_bench = std::env::args().skip(1).any(|argument| argument == "--bench");
    !is_bench || arguments.any(|argument| argument == "--test")
}

/// Returns `full`, or `smoke` in a smoke run.
pub fn sized<T>(full: T, smoke: T) -> T {
    if is_smoke() { smoke } else { full }
}

/// Polls a future that is ready at its first poll.
///
/// # Panics
/// If it is not.
pub fn once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a read from memory is ready at its first poll"),
    }
}

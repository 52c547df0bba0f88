//! The fuzz targets: each takes bytes, gives them to the library through its public API, and checks what the library promises.
//!
//! The binaries in `bin` run a target under libFuzzer. `tests/it/fuzz.rs` includes this file and replays the corpus.
//!
//! Invariant: a target keeps one client with its data in memory, and leaves it after each input as it was before. So the outcome of an
//! input does not depend on the inputs before it.

#![forbid(unsafe_code)]

pub mod catalog_page;
pub mod claim;
pub mod config_url;
pub mod cursor;
mod edits;
pub mod filter;
mod filter_model;
mod fixture;
pub mod http;
pub mod search;
pub mod signed_json;
pub mod signed_url;
pub mod storage_path;
pub mod tables;
mod tables_model;

/// A part of the library that takes input from outside.
pub trait Target {
    /// The name: of the binary, and of the folder of the corpus.
    const NAME: &'static str;

    /// Opens the clients and writes the rows and files that inputs refer to.
    fn new() -> Self;

    /// Checks one input.
    ///
    /// # Panics
    /// If the library breaks a promise.
    fn check(&mut self, data: &[u8]);
}

//! Fixtures of the integration tests and the benches: databases of both engines, an upstream on the loopback, invented
//! catalogs.
//!
//! Invariant: everything is deterministic except ports and temporary folders; what a fixture starts ends when the
//! fixture is dropped.

#![forbid(unsafe_code)]
#![allow(missing_debug_implementations, reason = "fixtures are no public API")]

pub mod axe;
pub mod browser;
pub mod cargo;
pub mod catalog;
pub mod fixture;
pub mod http_client;
pub mod http_server;
pub mod paths;
pub mod pgbouncer;
pub mod ports;
pub mod postgres;
pub mod proxy;
pub mod raw_sql;
pub mod replica;
pub mod s3_proxy;
pub mod s3_server;
pub mod setting;
pub mod skip;
pub mod subprocess;
pub mod supabase;
pub mod test_database;
pub mod threads;
pub mod upstream;
pub mod wait;

pub use fastrand::Rng;
pub use tempfile::TempDir;

/// Creates a temporary folder that is removed on drop.
///
/// # Panics
/// When the system's temporary folder is not writable.
pub fn temp_dir() -> TempDir {
    temp_dir_in(&std::env::temp_dir())
}

/// Creates a temporary folder in a folder. It is removed on drop.
///
/// # Panics
/// When the folder is not writable.
pub fn temp_dir_in(folder: &std::path::Path) -> TempDir {
    tempfile::Builder::new().prefix("townsquare-").tempdir_in(folder).expect("the temporary folder is writable")
}

//! The integration tests: a module for each part of the service, and the repository's own rules.
//!
//! Tests are sentences and cite the section they hold the library to. What needs a process of its own takes one
//! ([`townsquare_tests::alone`]); time is a clock that the test moves.

mod auth;
mod c;
mod client;
mod discovery;
mod model;
mod python;
mod tables;
mod tidy;

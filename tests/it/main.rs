//! The integration tests: a module for each area of the library, the reference model, and the repository's rules.
//!
//! Tests that change process-wide state run in a subprocess ([`townsquare_tests::subprocess`]). Time is a manual clock.

mod auth;
mod book;
mod c;
mod check;
mod client;
mod discovery;
mod examples;
mod features;
mod fuzz;
mod http;
mod log;
mod model;
mod python;
mod realtime;
mod storage;
mod tables;
mod tidy;

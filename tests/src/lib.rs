//! Fixtures of the integration tests: an upstream that misbehaves on command, catalogs of any size, and small aids.
//!
//! Invariant: everything here is deterministic but for ports and temporary folders; what a fixture starts ends when
//! it is dropped, and nothing sleeps except to poll until a deadline.

#![forbid(unsafe_code)]
#![allow(missing_debug_implementations, reason = "fixtures are no public API")]

pub mod alone;
pub mod asker;
pub mod catalog;
pub mod outside;
pub mod paths;
pub mod postgres;
pub mod random;
pub mod setting;
pub mod skip;
pub mod store;
pub mod temp;
pub mod threads;
pub mod town;
pub mod upstream;
pub mod wait;

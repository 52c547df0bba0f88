//! townsquare for C and C++: the functions behind `include/townsquare.h`.
//!
//! Invariant: this crate is a skin. It turns C values into the core's, calls [`townsquare::blocking`] once and turns
//! the answer back; it decides nothing, knows no database and holds no second copy of a body. It is also the only
//! crate with `unsafe`, and every such block says what the caller promised; the promises themselves are the manual at
//! the head of the header (`header.md`), once for all functions.
//!
//! Types and functions carry their C names, so that this code, the header and a debugger say the same words. The
//! documentation of every function here is its entry in the header.

#![allow(non_camel_case_types, reason = "the types carry their C names")]
#![allow(clippy::missing_safety_doc, reason = "one contract for all functions: header.md, the manual of the header")]

// How values cross, and the guard around every body.
mod boundary;
mod handle;

// One C noun a file. The header lists the functions in this order.
mod version;

mod status;

mod text;

mod error;

mod config;

mod client;

mod selection;

mod discovery;

mod mini_apps;

mod mini_app;

mod author;

mod discovery_stats;

mod http_response;

pub use author::*;
pub use client::*;
pub use config::*;
pub use discovery::*;
pub use discovery_stats::*;
pub use error::*;
pub use http_response::*;
pub use mini_app::*;
pub use mini_apps::*;
pub use selection::*;
pub use status::*;
pub use text::*;
pub use version::*;

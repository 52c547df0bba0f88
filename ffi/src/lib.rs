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
#![allow(missing_debug_implementations, reason = "Rust code never formats the opaque types of the C API")]
#![allow(clippy::missing_safety_doc, reason = "one contract for all functions: header.md, the manual of the header")]

// How values cross, and the guard around every body.
mod boundary;
mod callback;
mod handle;
mod id;
mod json_text;
mod structs;

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

mod auth;

mod user_patch;

mod user;

mod session;

mod auth_event;

mod subscription;

mod identity_claim;

mod change;

mod new_space;

mod spaces;

mod space_list;

mod space;

mod owner;

mod new_fidget;

mod fidgets;

mod fidget_list;

mod fidget;

mod community_patch;

mod communities;

mod community_config;

mod community_domain;

mod space_registration;

pub use auth::*;
pub use auth_event::*;
pub use author::*;
pub use callback::*;
pub use change::*;
pub use client::*;
pub use communities::*;
pub use community_config::*;
pub use community_domain::*;
pub use community_patch::*;
pub use config::*;
pub use discovery::*;
pub use discovery_stats::*;
pub use error::*;
pub use fidget::*;
pub use fidget_list::*;
pub use fidgets::*;
pub use http_response::*;
pub use identity_claim::*;
pub use mini_app::*;
pub use mini_apps::*;
pub use new_fidget::*;
pub use new_space::*;
pub use owner::*;
pub use selection::*;
pub use session::*;
pub use space::*;
pub use space_list::*;
pub use space_registration::*;
pub use spaces::*;
pub use status::*;
pub use subscription::*;
pub use text::*;
pub use user::*;
pub use user_patch::*;
pub use version::*;

//! townsquare for C and C++: the functions behind `include/townsquare.h`.
//!
//! Invariant: this crate converts arguments, calls the core once, and converts the result. It contains no logic of the
//! services and no SQL. It is the only crate with `unsafe`; each unsafe block states what the C caller promised. The
//! manual at the head of the header (`header.md`) lists these promises once for all functions.
//!
//! Types and functions carry their C names. The documentation of each function here is its entry in the header.

#![allow(non_camel_case_types, reason = "the types carry their C names")]
#![allow(missing_debug_implementations, reason = "Rust code never formats the opaque types of the C API")]
#![allow(clippy::too_many_arguments, reason = "a function of the C API takes all that it needs")]
#![allow(clippy::missing_safety_doc, reason = "one contract for all functions: header.md, the manual of the header")]

// A module imports only modules above it. cbindgen writes functions and constants into the header in this order.

mod boundary;

mod log;

mod config;

mod host_loop;

mod finding;
mod migration_plan;
mod move_report;
mod move_target;

mod client;

mod moves;
mod table_rows;

mod subscription;

mod discovery;

mod auth;

mod tables;

mod storage;

mod realtime;

pub use auth::auth_event::*;
pub use auth::identities::*;
pub use auth::identity_claim::*;
pub use auth::import_report::*;
pub use auth::new_credential::*;
pub use auth::session::*;
pub use auth::session_info::*;
pub use auth::sign_out_scope::*;
pub use auth::user::*;
pub use auth::user_patch::*;
pub use auth::*;
pub use boundary::buffer::*;
pub use boundary::callback::*;
pub use boundary::change::*;
pub use boundary::error::*;
pub use boundary::progress::*;
pub use boundary::status::*;
pub use boundary::string::*;
pub use boundary::text::*;
pub use boundary::version::*;
pub use client::*;
pub use config::*;
pub use discovery::author::*;
pub use discovery::discovery_stats::*;
pub use discovery::facet::*;
pub use discovery::highlight::*;
pub use discovery::http_response::*;
pub use discovery::mini_app::*;
pub use discovery::mini_apps::*;
pub use discovery::selection::*;
pub use discovery::suggestion::*;
pub use discovery::*;
pub use finding::*;
pub use log::*;
pub use migration_plan::*;
pub use move_report::*;
pub use move_target::*;
pub use moves::*;
pub use realtime::change_request::*;
pub use realtime::change_stream::*;
pub use realtime::live_query::*;
pub use realtime::realtime_stats::*;
pub use realtime::row_change::*;
pub use realtime::*;
pub use storage::file_info::*;
pub use storage::file_reader::*;
pub use storage::file_response::*;
pub use storage::file_writer::*;
pub use storage::overwrite::*;
pub use storage::repair_report::*;
pub use storage::signed_file::*;
pub use storage::storage_path::*;
pub use storage::transfer::*;
pub use storage::upload_options::*;
pub use storage::url_method::*;
pub use storage::*;
pub use subscription::*;
pub use table_rows::*;
pub use tables::communities::*;
pub use tables::community_config::*;
pub use tables::community_domain::*;
pub use tables::community_patch::*;
pub use tables::fidget::*;
pub use tables::fidgets::*;
pub use tables::new_fidget::*;
pub use tables::owner::*;
pub use tables::space::*;
pub use tables::space_registration::*;
pub use tables::spaces::*;

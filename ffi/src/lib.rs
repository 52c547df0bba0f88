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

pub use auth::{
    auth_event::*, identities::*, identity_claim::*, import_report::*, new_credential::*, session::*, session_info::*,
    sign_out_scope::*, user::*, user_patch::*, *,
};
pub use boundary::{
    buffer::*, callback::*, change::*, error::*, progress::*, status::*, string::*, text::*, version::*,
};
pub use client::*;
pub use config::*;
pub use discovery::{
    author::*, discovery_stats::*, facet::*, highlight::*, http_response::*, mini_app::*, mini_apps::*, selection::*,
    suggestion::*, *,
};
pub use finding::*;
pub use log::*;
pub use migration_plan::*;
pub use move_report::*;
pub use move_target::*;
pub use moves::*;
pub use realtime::{change_request::*, change_stream::*, live_query::*, realtime_stats::*, row_change::*, *};
pub use storage::{
    file_info::*, file_reader::*, file_response::*, file_writer::*, overwrite::*, repair_report::*, signed_file::*,
    storage_path::*, transfer::*, upload_options::*, url_method::*, *,
};
pub use subscription::*;
pub use table_rows::*;
pub use tables::{
    communities::*, community_config::*, community_domain::*, community_patch::*, fidget::*, fidgets::*, new_fidget::*,
    owner::*, space::*, space_registration::*, spaces::*,
};

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

// Conversions and guards, lowest first: a module imports only modules above it.
// cbindgen writes functions and constants into the header in the order of the modules.
mod text;

mod version;

mod failure;

mod forks;

mod handle;

mod status;

mod guard;

mod string;

mod buffer;

mod error;

mod call;

mod argument;

mod change;

mod record;

mod callback;

mod progress;

// One C noun a file.
mod log;

mod config;

mod client;

mod selection;

mod author;

mod facet;

mod highlight;

mod mini_app;

mod mini_apps;

mod suggestion;

mod discovery_stats;

mod http_response;

mod subscription;

mod discovery;

mod user;

mod user_patch;

mod session;

mod auth_event;

mod identity_claim;

mod identities;

mod new_credential;

mod import_report;

mod sign_out_scope;

mod auth;

mod fidget;

mod owner;

mod space;

mod new_space;

mod spaces;

mod new_fidget;

mod fidgets;

mod community_config;

mod community_domain;

mod space_registration;

mod community_patch;

mod communities;

mod file_info;

mod upload_options;

mod overwrite;

mod url_method;
mod url_options;

mod file_writer;

mod file_reader;

mod repair_report;

mod storage;

mod transfer;

mod file_response;

mod storage_path;

mod signed_file;

mod row_change;

mod change_request;

mod change_stream;

mod live_query;

mod realtime_stats;

mod realtime;

pub use auth::*;
pub use auth_event::*;
pub use author::*;
pub use buffer::*;
pub use callback::*;
pub use change::*;
pub use change_request::*;
pub use change_stream::*;
pub use client::*;
pub use communities::*;
pub use community_config::*;
pub use community_domain::*;
pub use community_patch::*;
pub use config::*;
pub use discovery::*;
pub use discovery_stats::*;
pub use error::*;
pub use facet::*;
pub use fidget::*;
pub use fidgets::*;
pub use file_info::*;
pub use file_reader::*;
pub use file_response::*;
pub use file_writer::*;
pub use highlight::*;
pub use http_response::*;
pub use identities::*;
pub use identity_claim::*;
pub use import_report::*;
pub use live_query::*;
pub use log::*;
pub use mini_app::*;
pub use mini_apps::*;
pub use new_credential::*;
pub use new_fidget::*;
pub use new_space::*;
pub use overwrite::*;
pub use owner::*;
pub use progress::*;
pub use realtime::*;
pub use realtime_stats::*;
pub use repair_report::*;
pub use row_change::*;
pub use selection::*;
pub use session::*;
pub use sign_out_scope::*;
pub use signed_file::*;
pub use space::*;
pub use space_registration::*;
pub use spaces::*;
pub use status::*;
pub use storage::*;
pub use storage_path::*;
pub use string::*;
pub use subscription::*;
pub use suggestion::*;
pub use text::*;
pub use transfer::*;
pub use upload_options::*;
pub use url_method::*;
pub use user::*;
pub use user_patch::*;
pub use version::*;

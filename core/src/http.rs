//! The HTTP endpoints: discovery, the directory page, files and server-sent events, for any server; with the feature `http` as axum routers,
//! and with an extractor for the routes of the host.
//!
//! [`Client::handle_request`](crate::Client::handle_request) takes a request for any of them and returns the response. Every endpoint
//! has a method of its own, too: [`Discovery::handle`](crate::discovery::Discovery::handle),
//! [`Storage::handle_file`](crate::storage::Storage::handle_file) and
//! [`Realtime::handle_events`](crate::realtime::Realtime::handle_events). They have the parts below in common.
//!
//! Invariant: every request gets a response. It acts for the bearer of its `Authorization` header or for the signer of its URL,
//! and for nobody else. No response contains a path of the host.

mod bearer;
#[cfg(feature = "http")]
mod caller;
mod conditions;
mod discovery;
mod endpoints;
mod events;
mod files;
mod headers;
mod health;
mod page;
mod range;
mod refusal;
mod request;
mod response;
#[cfg(feature = "http")]
mod router;
mod target;

#[cfg(test)]
pub(crate) use self::files::requested_file;
#[cfg(feature = "http")]
pub use self::{
    caller::{Caller, POSITION_HEADER, RequestClient},
    router::{directory_router, discovery_router, endpoint_router, events_router, files_router, router},
};
pub use self::{
    endpoints::{EVENTS_PATH, FILES_PATH, HEALTH_PATH},
    page::DIRECTORY_PATH,
};
pub use crate::http_message::{BodyCloser, HttpResponse, RequestBody, ResponseBody};

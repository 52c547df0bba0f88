//! The pure half of serving files over HTTP: request targets, conditions, ranges, response headers, and the tokens of
//! signed URLs (RFC 9110).
//!
//! Invariant: nothing here reads a file or asks who the caller is. A header that the RFC allows a server to ignore is
//! ignored if it is malformed; one that protects a write is refused.

mod conditions;
mod content_type;
mod headers;
mod range;
mod target;
mod url_token;

pub(crate) use self::{
    conditions::{Conditions, Outcome, Stored},
    content_type::guess_content_type,
    headers::{Access, etag_header, file_headers, header},
    range::{Selected, select_range},
    target::RequestTarget,
    url_token::{MAX_LIFE, MIN_KEY, PutLimits, Signer, UrlKey, UrlToken},
};

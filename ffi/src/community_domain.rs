//! One domain of a community: its row (SPEC 2.3).
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing.

use serde::Serialize;
use townsquare::CommunityDomain;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    handle::{self, Handle},
    id::Id,
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// A domain of a community. Owned, ended with `tsq_community_domain_free`; all that is read from it lives as long as it.
/// It never changes and outlives its client.
pub struct tsq_community_domain {
    _opaque: [u8; 0],
}

impl Handle for tsq_community_domain {
    type Value = DomainRecord;
}

/// The value behind a [`tsq_community_domain`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct DomainRecord {
    domain: CommunityDomain,
    #[serde(skip)]
    id: Id,
}

impl From<CommunityDomain> for DomainRecord {
    fn from(domain: CommunityDomain) -> DomainRecord {
        DomainRecord { id: domain.id.into(), domain }
    }
}

/// The row's id: a UUID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_id(domain: *const tsq_community_domain) -> tsq_str {
    // SAFETY: `domain` is NULL or live, by the manual.
    unsafe { read(domain, |record| record.id.view()) }
}

/// The community it leads to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_community_id(domain: *const tsq_community_domain) -> tsq_str {
    // SAFETY: `domain` is NULL or live, by the manual.
    unsafe { read(domain, |record| text::view(&record.domain.community_id)) }
}

/// The domain, normalised.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_domain(domain: *const tsq_community_domain) -> tsq_str {
    // SAFETY: `domain` is NULL or live, by the manual.
    unsafe { read(domain, |record| text::view(&record.domain.domain)) }
}

/// `blank_subdomain` or `custom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_domain_type(domain: *const tsq_community_domain) -> tsq_str {
    // SAFETY: `domain` is NULL or live, by the manual.
    unsafe { read(domain, |record| text::view(record.domain.domain_type.as_str())) }
}

/// When it was made: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_created_at(domain: *const tsq_community_domain) -> i64 {
    // SAFETY: `domain` is NULL or live, by the manual.
    unsafe { read(domain, |record| record.domain.created_at.as_microsecond()) }
}

/// When it last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_updated_at(domain: *const tsq_community_domain) -> i64 {
    // SAFETY: `domain` is NULL or live, by the manual.
    unsafe { read(domain, |record| record.domain.updated_at.as_microsecond()) }
}

/// The domain as a JSON object: its columns by their names.
///
/// Borrows `domain`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_json(
    domain: *const tsq_community_domain,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(domain, "domain")?)) }
}

/// Ends a domain. Takes `domain`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_free(domain: *mut tsq_community_domain) {
    // SAFETY: `domain` is NULL or owned by the caller, by the manual.
    unsafe { free(domain) }
}

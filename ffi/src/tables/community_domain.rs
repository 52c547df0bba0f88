//! The domain of a community: the struct of its row (SPEC 2.3).

use townsquare::communities::CommunityDomain;

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// A domain of a community. A record (manual, RECORDS); freed with `tsq_community_domain_free`.
#[repr(C)]
pub struct tsq_community_domain {
    /// Primary key: a UUID.
    pub id: tsq_str,
    /// The community's id.
    pub community_id: tsq_str,
    /// The domain, normalised.
    pub domain: tsq_str,
    /// `blank_subdomain` or `custom`; `other` for another word, which an adopted database may hold.
    pub domain_type: tsq_str,
    /// Creation time, in microseconds.
    pub created_at: i64,
    /// Time of the last change, in microseconds; never goes back.
    pub updated_at: i64,
}

impl Record for tsq_community_domain {
    type Source = CommunityDomain;

    fn new(domain: &CommunityDomain, memory: &mut Memory) -> tsq_community_domain {
        tsq_community_domain {
            id: memory.id(domain.id),
            community_id: text::view(&domain.community_id),
            domain: text::view(&domain.domain),
            domain_type: text::view(domain.domain_type.as_str()),
            created_at: domain.created_at.as_microsecond(),
            updated_at: domain.updated_at.as_microsecond(),
        }
    }
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
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(domain, "domain")?)) }
}

/// Frees a domain. Takes `domain`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_free(domain: *mut tsq_community_domain) {
    // SAFETY: `domain` is NULL or owned by the caller, by the manual.
    unsafe { free(domain) }
}

/// A list of domains. Freed with `tsq_community_domain_list_free`.
pub struct tsq_community_domain_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_community_domain_list {
    type Value = RecordList<tsq_community_domain>;
}

/// The number of domains; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_list_len(list: *const tsq_community_domain_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The domain at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_list_at(
    list: *const tsq_community_domain_list,
    index: usize,
) -> *const tsq_community_domain {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_community_domain_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_list_json(
    list: *const tsq_community_domain_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its domains. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_community_domain_list_free(list: *mut tsq_community_domain_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

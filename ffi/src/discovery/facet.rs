//! Facets: categories or networks with their numbers of apps.

use townsquare::discovery::Facet;

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// A category or a network with its number of apps. A record (manual, RECORDS).
#[repr(C)]
pub struct tsq_facet {
    /// The name, as a selection takes it.
    pub name: tsq_str,
    /// Number of apps.
    pub count: usize,
}

impl Record for tsq_facet {
    type Source = Facet;

    fn new(facet: &Facet, _: &mut Memory) -> tsq_facet {
        tsq_facet { name: text::view(&facet.name), count: facet.count }
    }
}

/// A list of facets, most apps first. Owned, freed with `tsq_facets_free`.
pub struct tsq_facets {
    _opaque: [u8; 0],
}

impl Handle for tsq_facets {
    type Value = RecordList<tsq_facet>;
}

/// The number of facets, most apps first; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_facets_len(list: *const tsq_facets) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_facets_at(list: *const tsq_facets, index: usize) -> *const tsq_facet {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of objects: `name` and `count`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_facets_json(
    list: *const tsq_facets,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its items. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_facets_free(list: *mut tsq_facets) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

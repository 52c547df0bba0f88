//! Lists of spaces: one handle, spaces as views into it.
//!
//! Invariant: looking through a list allocates nothing, and the list does not need its client.

use std::ptr;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    handle::{self, Handle},
    space::{SpaceRecord, tsq_space},
    status::tsq_status,
    text::{self, tsq_string},
};

/// A list of spaces, in the order of the call that returned them. Owned, ended with `tsq_space_list_free`; it never
/// changes and outlives its client.
pub struct tsq_space_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_space_list {
    type Value = Vec<SpaceRecord>;
}

/// How many spaces the list has; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_len(list: *const tsq_space_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, Vec::len) }
}

/// The space at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_at(list: *const tsq_space_list, index: usize) -> *const tsq_space {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |spaces| spaces.get(index).map_or(ptr::null(), handle::view)) }
}

/// The list as a JSON array of `tsq_space_json`'s objects.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_json(
    list: *const tsq_space_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(list, "list")?)) }
}

/// Ends a list that a call returned, and with it all views of its spaces. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_space_list_free(list: *mut tsq_space_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

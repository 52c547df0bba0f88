//! Lists of fidgets: one handle, fidgets as views into it.
//!
//! Invariant: looking through a list allocates nothing, and the list does not need its client.

use std::ptr;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    fidget::{FidgetRecord, tsq_fidget},
    handle::{self, Handle},
    status::tsq_status,
    text::{self, tsq_string},
};

/// A list of fidgets, oldest first unless the call says otherwise. Owned where a call returns it, and then ended with
/// `tsq_fidget_list_free`; a view where a space has it. It never changes and outlives its client.
pub struct tsq_fidget_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_fidget_list {
    type Value = Vec<FidgetRecord>;
}

/// How many fidgets the list has; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_len(list: *const tsq_fidget_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, Vec::len) }
}

/// The fidget at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_at(list: *const tsq_fidget_list, index: usize) -> *const tsq_fidget {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |fidgets| fidgets.get(index).map_or(ptr::null(), handle::view)) }
}

/// The list as a JSON array of `tsq_fidget_json`'s objects.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_json(
    list: *const tsq_fidget_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(list, "list")?)) }
}

/// Ends a list that a call returned, and with it all views of its fidgets. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_fidget_list_free(list: *mut tsq_fidget_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

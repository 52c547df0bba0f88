//! Selections: how many mini apps a call lists, and which.
//!
//! Invariant: whatever stands in it is handed to the core as it is; the core judges limits, categories and networks.

use std::ptr;

use townsquare::Selection;

use crate::{
    error::Failure,
    text::{self, tsq_str},
};

/// How many mini apps a call lists, and which. Start from `tsq_selection_first`; NULL in place of one lists the first 50.
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_selection {
    /// The most to list, 1 to 1,000; else the call fails with `TSQ_INVALID_INPUT`.
    pub limit: u32,
    /// Only apps of one of these categories (`games`, `social`, …); none given: of any.
    pub categories: *const tsq_str,
    /// How many categories.
    pub categories_len: usize,
    /// Only apps that run on one of these networks (`base`, `optimism`, …); none given: on any.
    pub networks: *const tsq_str,
    /// How many networks.
    pub networks_len: usize,
}

/// The selection of the first `limit` apps, without filters.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_selection_first(limit: u32) -> tsq_selection {
    tsq_selection { limit, categories: ptr::null(), categories_len: 0, networks: ptr::null(), networks_len: 0 }
}

/// The core's selection; its default for NULL.
///
/// # Safety
/// `selection` is NULL or readable with all that it points at.
pub(crate) unsafe fn read(selection: *const tsq_selection) -> Result<Selection, Failure> {
    // SAFETY: the caller's promise.
    let Some(selection) = (unsafe { selection.as_ref() }) else {
        return Ok(Selection::default());
    };
    // SAFETY: the caller's promise, passed on.
    let (categories, networks) = unsafe {
        (
            text::list(selection.categories, selection.categories_len, "selection.categories")?,
            text::list(selection.networks, selection.networks_len, "selection.networks")?,
        )
    };
    Ok(Selection::first(selection.limit).in_categories(categories).on_networks(networks))
}

//! Selections: the page and the filters of a discovery call. The core checks them.

use std::ptr;

use townsquare::discovery::Selection;

use crate::boundary::{Failure, argument, tsq_str};

/// The page and the filters of a discovery call. Start from `tsq_selection_first`; NULL means the first 50.
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_selection {
    /// Maximum number of apps, 1 to 1,000; else the call fails with `TSQ_INVALID_INPUT`.
    pub limit: u32,
    /// Only apps of one of these categories (`games`, `social`, …); empty: of any.
    pub categories: *const tsq_str,
    /// Number of categories.
    pub categories_len: usize,
    /// Only apps that run on one of these networks (`base`, `optimism`, …); empty: on any.
    pub networks: *const tsq_str,
    /// Number of networks.
    pub networks_len: usize,
    /// Number of apps to leave out at the start of the list.
    pub offset: u64,
    /// Whether near-copies (apps with the same name and author) are returned once.
    pub is_collapsed: bool,
}

/// The selection of the first `limit` apps, without filters.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_selection_first(limit: u32) -> tsq_selection {
    tsq_selection {
        limit,
        categories: ptr::null(),
        categories_len: 0,
        networks: ptr::null(),
        networks_len: 0,
        offset: 0,
        is_collapsed: false,
    }
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
            argument::texts(selection.categories, selection.categories_len, "selection.categories")?,
            argument::texts(selection.networks, selection.networks_len, "selection.networks")?,
        )
    };
    let page = Selection::first(selection.limit).offset(selection.offset);
    let page = if selection.is_collapsed { page.collapsed() } else { page };
    Ok(page.in_categories(categories).on_networks(networks))
}

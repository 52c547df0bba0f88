//! Selections: the page and the filters of a discovery call. The core checks them.

use std::mem::MaybeUninit;

use townsquare::discovery::Selection;

use crate::boundary::{Failure, argument, change, input, inputs, tsq_str};

/// The page and the filters of a discovery call. Start from `TSQ_SELECTION(20)`, the first 20 apps; NULL means the first 50.
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_selection {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Maximum number of apps, 1 to 1,000; else the call fails with `TSQ_INVALID_INPUT`.
    pub limit: u32,
    /// Whether near-copies (apps with the same name and author) are returned once; any non-zero byte is true.
    pub is_collapsed: MaybeUninit<bool>,
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
}

inputs!(tsq_selection: offset);

/// The core's selection; its default for NULL.
///
/// # Safety
/// `selection` is NULL or an input as for [`input::input`] with all that it points at.
pub(crate) unsafe fn read(selection: *const tsq_selection) -> Result<Selection, Failure> {
    // SAFETY: the caller's promise, passed on.
    let read = unsafe { input::optional_input(selection, "selection", |selection| selection.read()) };
    Ok(read?.unwrap_or_default())
}

impl tsq_selection {
    /// # Safety
    /// As for [`read`].
    unsafe fn read(&self) -> Result<Selection, Failure> {
        // SAFETY: the caller's promise, passed on.
        let (categories, networks, is_collapsed) = unsafe {
            (
                argument::texts(self.categories, self.categories_len, "categories")?,
                argument::texts(self.networks, self.networks_len, "networks")?,
                change::boolean(self.is_collapsed),
            )
        };
        let page = Selection::first(self.limit).offset(self.offset);
        let page = if is_collapsed { page.collapsed() } else { page };
        Ok(page.in_categories(categories).on_networks(networks))
    }
}

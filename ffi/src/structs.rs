//! Plain structs of C's: one behind a pointer, or an array of them.
//!
//! Invariant: a member is read by code that knows its name alone; here the failure learns whose member it was.

use crate::{error::Failure, text};

/// The struct of an argument, read; NULL is an error that names the argument.
///
/// # Safety
/// `item` is NULL or readable.
pub(crate) unsafe fn required<T, R>(
    item: *const T,
    argument: &str,
    read: impl FnOnce(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    // SAFETY: the caller's promise, passed on.
    let item = unsafe { text::span(item, 1, argument) }?.first();
    read(item.ok_or_else(|| Failure::null(argument))?).map_err(|failure| failure.inside(argument))
}

/// The structs of an array argument, read in their order.
///
/// # Safety
/// `items` is NULL or points at `count` structs, readable.
pub(crate) unsafe fn each<T, R>(
    items: *const T,
    count: usize,
    argument: &str,
    mut read: impl FnMut(&T) -> Result<R, Failure>,
) -> Result<Vec<R>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let items = unsafe { text::span(items, count, argument) }?.iter().enumerate();
    let read = |(at, item)| read(item).map_err(|failure| failure.inside(&format!("{argument}[{at}]")));
    items.map(read).collect()
}

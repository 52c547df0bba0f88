//! Guards for functions that cannot fail: no panic unwinds into C, and a NULL receiver has a defined answer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use crate::boundary::{
    handle::{self, Handle},
    text::{tsq_bytes, tsq_str},
};

/// A type with an answer for a NULL receiver, an index beyond the end, and a panic.
pub(crate) trait Safe {
    /// Zero, false, NULL or the absent text.
    const SAFE: Self;
}

macro_rules! safe {
    ($($type:ty => $value:expr),* $(,)?) => { $(impl Safe for $type { const SAFE: Self = $value; })* };
}

safe! {
    () => (), bool => false, Option<townsquare::ErrorKind> => None, u16 => 0, u64 => 0, i64 => 0, usize => 0,
    tsq_str => tsq_str::ABSENT, tsq_bytes => tsq_bytes::EMPTY,
}

impl<T> Safe for *const T {
    const SAFE: Self = ptr::null();
}

impl<T> Safe for *mut T {
    const SAFE: Self = ptr::null_mut();
}

/// Runs `body`; a panic answers [`Safe::SAFE`].
pub(crate) fn answer<R: Safe>(body: impl FnOnce() -> R) -> R {
    // Unwind safe: the core's locks are parking_lot's, which do not poison, and no guarded value is left half-written.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(R::SAFE)
}

/// Runs `body` on the receiver's value; a NULL receiver or a panic answers [`Safe::SAFE`].
///
/// # Safety
/// `receiver` is NULL or live.
pub(crate) unsafe fn read<H: Handle, R: Safe>(receiver: *const H, body: impl FnOnce(&H::Value) -> R) -> R {
    // SAFETY: the caller's promise, passed on.
    match unsafe { handle::borrow(receiver) } {
        Some(value) => answer(|| body(value)),
        None => R::SAFE,
    }
}

/// Reads an optional number: returns true and writes it to `out`, or returns false and writes zero.
///
/// # Safety
/// `receiver` is NULL or live; `out` is NULL or writable.
pub(crate) unsafe fn read_optional<H: Handle, R: Default>(
    receiver: *const H,
    out: *mut R,
    body: impl FnOnce(&H::Value) -> Option<R>,
) -> bool {
    let mut found = None;
    // SAFETY: the caller's promise, passed on.
    unsafe { read(receiver, |value| found = body(value)) };
    let is_some = found.is_some();
    if !out.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { out.write(found.unwrap_or_default()) };
    }
    is_some
}

/// Frees a handle; NULL is allowed. A panic of the destructor stops here.
///
/// # Safety
/// `owned` is NULL, or came from the library as owned and was not freed.
pub(crate) unsafe fn free<H: Handle>(owned: *mut H) {
    // SAFETY: the caller's promise, passed on.
    answer(|| unsafe { handle::release(owned) });
}

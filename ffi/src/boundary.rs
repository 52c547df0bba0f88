//! The guard around the body of every extern function: nothing unwinds into C, and no NULL is followed.
//!
//! Invariant: a function that returns a status leaves its outputs defined whatever happened: `*out` is a live handle
//! after `TSQ_OK` (or NULL, where there may be nothing to return) and NULL after anything else, `*err` the other way
//! round. A function that returns a value answers
//! its type's [`Safe`] value where it has nothing to say. The guard wraps bodies and not signatures, so that cbindgen
//! and a reader see plain C functions.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use townsquare::Operation;

use crate::{
    error::{Failure, tsq_error},
    handle::{self, Handle},
    status::tsq_status,
    text::{tsq_bytes, tsq_str},
};

/// What a function answers for a NULL receiver, beyond the end of a list, or after a panic.
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

/// Runs a body that answers a value and cannot fail.
pub(crate) fn answer<R: Safe>(body: impl FnOnce() -> R) -> R {
    // Unwind safe: the core's values are whole or unreachable after a panic; it locks with parking_lot, which does
    // not poison, and never leaves a guard's data half-written.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(R::SAFE)
}

/// Runs a body that reads one receiver; a NULL receiver answers the safe value.
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

/// Runs a body that reads a number which may be absent: true and written to `out`, or false and `out` zero.
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
    let known = found.is_some();
    if !out.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { out.write(found.unwrap_or_default()) };
    }
    known
}

/// Runs a body that may fail and has no output. A failure that names no operation happened in `operation`.
///
/// # Safety
/// `err` is NULL or writable.
pub(crate) unsafe fn act(
    operation: Option<Operation>,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<(), Failure>,
) -> tsq_status {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(panicked(payload.as_ref())));
    let (status, error) = match outcome {
        Ok(()) => (tsq_status::TSQ_OK, ptr::null_mut()),
        Err(failure) if err.is_null() => (failure.status(), ptr::null_mut()),
        Err(failure) => (failure.status(), handle::give(failure.report(operation))),
    };
    if !err.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { err.write(error) };
    }
    status
}

/// Runs a body that may fail and makes one value, which C then owns. A NULL `out` fails before the body runs.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn produce<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<H::Value, Failure>,
) -> tsq_status {
    let body = || if out.is_null() { Err(Failure::null("out")) } else { body() };
    // SAFETY: the caller's promise, passed on.
    unsafe { produce_if_wanted(operation, out, err, body) }
}

/// Like [`produce`], for a value the caller may have no use for: a NULL `out` drops it.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn produce_if_wanted<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<H::Value, Failure>,
) -> tsq_status {
    // SAFETY: the caller's promise, passed on.
    unsafe { deliver(operation, out, err, || body().map(Some)) }
}

/// Like [`produce`], for a value that need not exist: without one, success leaves `out` NULL.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn produce_if_any<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<Option<H::Value>, Failure>,
) -> tsq_status {
    let body = || if out.is_null() { Err(Failure::null("out")) } else { body() };
    // SAFETY: the caller's promise, passed on.
    unsafe { deliver(operation, out, err, body) }
}

/// # Safety
/// `out` and `err` are NULL or writable.
unsafe fn deliver<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<Option<H::Value>, Failure>,
) -> tsq_status {
    let mut made = ptr::null_mut();
    let body = || {
        let value = body()?;
        if !out.is_null() {
            made = value.map_or(ptr::null_mut(), handle::give);
        }
        Ok(())
    };
    // SAFETY: the caller's promise, passed on.
    let status = unsafe { act(operation, err, body) };
    if !out.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { out.write(made) };
    }
    status
}

/// Frees a handle; NULL is nothing to free. A destructor that panics is stopped here like any body.
///
/// # Safety
/// `owned` is NULL, or came from the library as owned and was not freed.
pub(crate) unsafe fn free<H: Handle>(owned: *mut H) {
    // SAFETY: the caller's promise, passed on.
    answer(|| unsafe { handle::release(owned) });
}

fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Failure::internal(format!("The library panicked, please report it: {}", text.unwrap_or("no message")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tsq_string;

    #[test]
    fn a_panic_becomes_an_internal_error_and_leaves_no_output() {
        let mut out = ptr::dangling_mut::<tsq_string>();
        let mut err = ptr::null_mut();
        // SAFETY: both outputs are locals.
        let status = unsafe { produce(None, &raw mut out, &raw mut err, || panic!("on purpose")) };
        assert_eq!(status, tsq_status::TSQ_INTERNAL);
        assert!(out.is_null());
        // SAFETY: the error was made by the call above and is freed once.
        unsafe {
            assert!(handle::borrow(err).is_some_and(|report| report.text().contains("on purpose")));
            free(err);
        }
        assert_eq!(answer::<usize>(|| panic!("on purpose")), 0);
    }
}

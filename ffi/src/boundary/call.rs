//! Guards for functions that can fail: they return a status and set `*out` and `*err` in every case.
//!
//! Invariant: after `TSQ_OK`, `*out` is a live handle (or NULL where the function allows no result) and `*err` is NULL.
//! After any other status, `*out` is NULL and `*err` is a live error. The guard wraps bodies, not signatures, so that
//! cbindgen and the reader see plain C functions.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
};

use townsquare::Operation;

use crate::boundary::{
    error::{ErrorReport, tsq_error},
    failure::Failure,
    handle::{self, Handle},
    status::tsq_status,
};

/// Runs a body without an output, sets `*err` and returns the status. `operation` names the operation of a failure that
/// does not name one itself.
///
/// # Safety
/// `err` is NULL or writable.
pub(crate) unsafe fn call_unit(
    operation: Option<Operation>,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<(), Failure>,
) -> tsq_status {
    townsquare::threads::log_panics();
    let report = |failure: Failure| {
        let status = failure.kind().into();
        (status, if err.is_null() { ptr::null_mut() } else { handle::give(ErrorReport::new(failure, operation)) })
    };
    let run = || body().map_or_else(report, |()| (tsq_status::TSQ_OK, ptr::null_mut()));
    // Unwind safe: the core's locks are parking_lot's, which do not poison, and no guarded value is left half-written.
    let outcome = catch_unwind(AssertUnwindSafe(run));
    let (status, error) = outcome.unwrap_or_else(|payload| report(panicked(payload.as_ref())));
    if !err.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { err.write(error) };
    }
    status
}

/// Runs a body that returns one value and writes it to `*out`; C then owns it. A NULL `out` is an error, and the body
/// does not run.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn call_handle<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<H::Value, Failure>,
) -> tsq_status {
    // SAFETY: the caller's promise, passed on.
    unsafe { call_optional_handle(operation, out, err, || body().map(Some)) }
}

/// Like [`call_handle`], for a value that the caller may not need. If `out` is NULL, the body runs and its value is
/// dropped.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn call_wanted_handle<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<H::Value, Failure>,
) -> tsq_status {
    // SAFETY: the caller's promise, passed on.
    unsafe { write_handle(operation, out, err, || body().map(Some)) }
}

/// Like [`call_handle`], for a value that may not exist. If the body returns `None`, `*out` is NULL after `TSQ_OK`.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn call_optional_handle<H: Handle>(
    operation: Option<Operation>,
    out: *mut *mut H,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<Option<H::Value>, Failure>,
) -> tsq_status {
    let body = || if out.is_null() { Err(Failure::null("out")) } else { body() };
    // SAFETY: the caller's promise, passed on.
    unsafe { write_handle(operation, out, err, body) }
}

/// Runs a body that returns a number, a bool or an enum and writes it to `*out`, or the type's default after a failure.
/// A NULL `out` is an error, and the body does not run.
///
/// # Safety
/// `out` and `err` are NULL or writable.
pub(crate) unsafe fn call_count<N: Default>(
    operation: Option<Operation>,
    out: *mut N,
    err: *mut *mut tsq_error,
    body: impl FnOnce() -> Result<N, Failure>,
) -> tsq_status {
    let mut counted = N::default();
    let body = || {
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        counted = body()?;
        Ok(())
    };
    // SAFETY: the caller's promise, passed on.
    let status = unsafe { call_unit(operation, err, body) };
    if !out.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { out.write(counted) };
    }
    status
}

/// Runs a body that may return a value. Writes the value, or NULL, to `*out` unless `out` is NULL.
///
/// # Safety
/// `out` and `err` are NULL or writable.
unsafe fn write_handle<H: Handle>(
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
    let status = unsafe { call_unit(operation, err, body) };
    if !out.is_null() {
        // SAFETY: not NULL, so writable by the caller's promise.
        unsafe { out.write(made) };
    }
    status
}

/// Panics on purpose, for a test. It is no part of the API and of no release build.
/// cbindgen:ignore
///
/// # Safety
/// `err` is NULL or writable.
#[cfg(debug_assertions)]
#[unsafe(no_mangle)]
unsafe extern "C" fn townsquare_test_panic(err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the caller's promise, passed on.
    unsafe { call_unit(None, err, || panic!("on purpose")) }
}

fn panicked(payload: &(dyn Any + Send)) -> Failure {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    Failure::internal(format!("The library panicked, please report it: {}", text.unwrap_or("no message")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::{
        guard::{answer, free},
        string::tsq_string,
    };

    #[test]
    fn a_panic_becomes_an_internal_error_and_leaves_no_output() {
        let mut out = ptr::dangling_mut::<tsq_string>();
        let mut err = ptr::null_mut();
        // SAFETY: both outputs are locals.
        let status = unsafe { call_handle(None, &raw mut out, &raw mut err, || panic!("on purpose")) };
        assert_eq!(status, tsq_status::TSQ_INTERNAL);
        assert!(out.is_null());
        // SAFETY: the call above made the error; it is freed once.
        unsafe {
            assert!(handle::borrow(err).is_some_and(|report| report.text().contains("on purpose")));
            free(err);
        }
        assert_eq!(answer::<usize>(|| panic!("on purpose")), 0);
    }
}

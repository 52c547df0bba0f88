//! Handles: the Rust value behind a C pointer, and the four ways a pointer crosses the boundary.
//!
//! Invariant: a `*mut H` that C owns comes from [`give`] and is one `Box<H::Value>`. A `*const H` that C borrows comes
//! from [`give`] or [`view`]. C never reads an opaque type; of a record it reads the struct at the start of the value
//! (`record.rs`).

use std::ptr;

use crate::boundary::failure::Failure;

/// A C type whose pointers point at `Value`.
pub(crate) trait Handle {
    /// The Rust value behind the pointer.
    type Value;
}

/// "Returns owned": hands a value to C until [`release`].
pub(crate) fn give<H: Handle>(value: H::Value) -> *mut H {
    Box::into_raw(Box::new(value)).cast()
}

/// "Returns a view": a pointer that is valid as long as `value`.
pub(crate) fn view<H: Handle>(value: &H::Value) -> *const H {
    ptr::from_ref(value).cast()
}

/// "Borrows": the value behind a pointer; `None` for NULL.
///
/// # Safety
/// `pointer` is NULL, or comes from [`give`] or [`view`] and its value lives for `'a`.
pub(crate) unsafe fn borrow<'a, H: Handle>(pointer: *const H) -> Option<&'a H::Value> {
    // SAFETY: by the caller's promise it is NULL or points at a live `Value`; C has shared access only.
    unsafe { pointer.cast::<H::Value>().as_ref() }
}

/// "Borrows" a required argument: NULL is an error that names the argument.
///
/// # Safety
/// As for [`borrow`].
pub(crate) unsafe fn required<'a, H: Handle>(pointer: *const H, argument: &str) -> Result<&'a H::Value, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { borrow(pointer) }.ok_or_else(|| Failure::null(argument))
}

/// "Takes": frees a value that [`give`] handed out; NULL is allowed.
///
/// # Safety
/// `pointer` is NULL, or comes from [`give`] and was not released before.
pub(crate) unsafe fn release<H: Handle>(pointer: *mut H) {
    if !pointer.is_null() {
        // SAFETY: `give` made it with `Box::into_raw` for this `Value`, and it is released once.
        drop(unsafe { Box::from_raw(pointer.cast::<H::Value>()) });
    }
}

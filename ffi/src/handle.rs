//! Opaque handles: which Rust value stands behind a C pointer, and the four ways it crosses.
//!
//! Invariant: a `*mut H` that C owns was made by [`give`] and is one `Box`; a `*const H` that C looks through was made
//! by [`view`] and points into a value that somebody else owns. The C type itself is never built nor read: it exists
//! so that the compiler tells a client from a list.

use std::ptr;

use crate::error::Failure;

/// A C type whose pointers point at `Value`.
pub(crate) trait Handle {
    /// The Rust value behind the pointer.
    type Value;
}

/// "Returns owned": gives a value to C, until [`release`].
pub(crate) fn give<H: Handle>(value: H::Value) -> *mut H {
    Box::into_raw(Box::new(value)).cast()
}

/// "Returns a view": a pointer that lives as long as `value` does.
pub(crate) fn view<H: Handle>(value: &H::Value) -> *const H {
    ptr::from_ref(value).cast()
}

/// "Borrows": looks through a pointer of C's; `None` for NULL.
///
/// # Safety
/// `pointer` is NULL, or came from [`give`] or [`view`] and its value lives for `'a`.
pub(crate) unsafe fn borrow<'a, H: Handle>(pointer: *const H) -> Option<&'a H::Value> {
    // SAFETY: by the caller's promise it is NULL or points at a live `Value`; handles are only ever shared.
    unsafe { pointer.cast::<H::Value>().as_ref() }
}

/// "Borrows", where the function cannot do without: NULL is an error that names the argument.
///
/// # Safety
/// As for [`borrow`].
pub(crate) unsafe fn required<'a, H: Handle>(pointer: *const H, argument: &str) -> Result<&'a H::Value, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { borrow(pointer) }.ok_or_else(|| Failure::null(argument))
}

/// "Takes": ends what [`give`] began; NULL is nothing to end.
///
/// # Safety
/// `pointer` is NULL, or came from [`give`] and was not released before.
pub(crate) unsafe fn release<H: Handle>(pointer: *mut H) {
    if !pointer.is_null() {
        // SAFETY: made by `Box::into_raw` in `give`, for this `Value`, and released once.
        drop(unsafe { Box::from_raw(pointer.cast::<H::Value>()) });
    }
}

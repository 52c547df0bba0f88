//! Text and bytes as C passes them: a pointer and a length.
//!
//! Invariant: a [`tsq_str`] that the library returns points into a value that lives at least as long as the function's
//! documentation says.

use std::{
    ffi::{CStr, c_char},
    ptr,
};

/// UTF-8 text: a pointer and a length in bytes. Not NUL-terminated unless a function says so. This struct does not grow.
///
/// `{NULL, 0}` is the absent text. As an argument it means "not given"; where a text is required, it reads as the empty
/// text. As a result it means NULL.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_str {
    /// First byte; NULL for the absent text.
    pub ptr: *const c_char,
    /// Length in bytes.
    pub len: usize,
}

/// Bytes: a pointer and a length. `{NULL, 0}` is empty. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_bytes {
    /// First byte.
    pub ptr: *const u8,
    /// Length in bytes.
    pub len: usize,
}

impl tsq_str {
    pub(crate) const ABSENT: tsq_str = tsq_str { ptr: ptr::null(), len: 0 };
}

impl tsq_bytes {
    pub(crate) const EMPTY: tsq_bytes = tsq_bytes { ptr: ptr::null(), len: 0 };
}

/// A view of `text`.
pub(crate) fn view(text: &str) -> tsq_str {
    tsq_str { ptr: text.as_ptr().cast(), len: text.len() }
}

/// A view of an optional text.
pub(crate) fn optional_view(text: Option<&str>) -> tsq_str {
    text.map_or(tsq_str::ABSENT, view)
}

/// A view of `bytes`.
pub(crate) fn bytes_view(bytes: &[u8]) -> tsq_bytes {
    tsq_bytes { ptr: bytes.as_ptr(), len: bytes.len() }
}

/// Text with a terminating NUL that its length does not include, so that C code may also use it as a C string.
#[derive(Clone)]
pub(crate) struct Terminated(String);

impl Terminated {
    pub(crate) fn new(mut text: String) -> Terminated {
        text.push('\0');
        Terminated(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        self.0.strip_suffix('\0').unwrap_or(&self.0)
    }
}

/// The text of a C string up to its NUL; absent for NULL. For literals use `TSQ_STR("…")`.
///
/// Borrows `text`; returns a view that lives as long as `text`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_str_from(text: *const c_char) -> tsq_str {
    if text.is_null() {
        return tsq_str::ABSENT;
    }
    // SAFETY: not NULL, so a NUL-terminated string by the manual.
    tsq_str { ptr: text, len: unsafe { CStr::from_ptr(text) }.count_bytes() }
}

//! Text and bytes in and out: pointer and length, never a search for a NUL.
//!
//! Invariant: text from C is checked to be UTF-8 before the core sees it, and a failure names the argument; text to C
//! is a view into a value that the caller can name the owner of, or an owned [`tsq_string`].

use std::{
    ffi::{CStr, c_char},
    ptr, slice,
};

use crate::{
    boundary::{answer, free, read},
    error::Failure,
    handle::Handle,
};

/// UTF-8 text by pointer and length; not NUL-terminated unless a function says so.
///
/// As an argument it is borrowed for the call. `{NULL, 0}` is the absent text: as an argument "not given", which is
/// the empty text where a text is needed; as a result "has none".
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_str {
    /// First byte; NULL for the absent text.
    pub ptr: *const c_char,
    /// Length in bytes.
    pub len: usize,
}

/// Bytes by pointer and length. `{NULL, 0}` is empty.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_bytes {
    /// First byte.
    pub ptr: *const u8,
    /// Length in bytes.
    pub len: usize,
}

/// Text that the caller owns: read it with `tsq_string_view`, end it with `tsq_string_free`.
pub struct tsq_string {
    _opaque: [u8; 0],
}

impl Handle for tsq_string {
    type Value = Terminated;
}

/// Text with a NUL behind it that does not count: for those who pass it on to `printf` and the like.
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

impl tsq_str {
    pub(crate) const ABSENT: tsq_str = tsq_str { ptr: ptr::null(), len: 0 };
}

impl tsq_bytes {
    pub(crate) const EMPTY: tsq_bytes = tsq_bytes { ptr: ptr::null(), len: 0 };
}

/// A view of a text that lives on at its owner.
pub(crate) fn view(text: &str) -> tsq_str {
    tsq_str { ptr: text.as_ptr().cast(), len: text.len() }
}

/// A view of a text that may be absent.
pub(crate) fn optional_view(text: Option<&str>) -> tsq_str {
    text.map_or(tsq_str::ABSENT, view)
}

/// A view of bytes that live on at their owner.
pub(crate) fn bytes_view(bytes: &[u8]) -> tsq_bytes {
    tsq_bytes { ptr: bytes.as_ptr(), len: bytes.len() }
}

/// A record as JSON text.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<Terminated, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::internal(format!("JSON: {error}")))?;
    Ok(Terminated::new(text))
}

/// The text of an argument; the absent text reads as empty.
///
/// # Safety
/// `text` spans readable bytes that nobody changes while `'a` lasts.
pub(crate) unsafe fn required<'a>(text: tsq_str, argument: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { optional(text, argument) }.map(Option::unwrap_or_default)
}

/// The text of an argument that may be left out.
///
/// # Safety
/// As for [`required`].
pub(crate) unsafe fn optional<'a>(text: tsq_str, argument: &str) -> Result<Option<&'a str>, Failure> {
    if text.ptr.is_null() && text.len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise, passed on.
    let bytes = unsafe { span(text.ptr.cast::<u8>(), text.len, argument) }?;
    std::str::from_utf8(bytes).map(Some).map_err(|error| {
        Failure::invalid_input(format!("Argument {argument} is not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// The bytes of an argument.
///
/// # Safety
/// As for [`required`].
pub(crate) unsafe fn bytes<'a>(bytes: tsq_bytes, argument: &str) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { span(bytes.ptr, bytes.len, argument) }
}

/// The texts of an array argument.
///
/// # Safety
/// `items` points at `count` texts, each as for [`required`].
pub(crate) unsafe fn list<'a>(items: *const tsq_str, count: usize, argument: &str) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let items = unsafe { span(items, count, argument) }?;
    let mut texts = Vec::with_capacity(items.len());
    for (place, item) in items.iter().enumerate() {
        // SAFETY: the caller's promise, passed on.
        let text = unsafe { required(*item, argument) };
        texts.push(text.map_err(|failure| failure.at(argument, place))?);
    }
    Ok(texts)
}

/// A slice of C's memory, or the error that says why it cannot be one.
///
/// # Safety
/// `first` is NULL or points at `count` readable values that nobody changes while `'a` lasts.
pub(crate) unsafe fn span<'a, T>(first: *const T, count: usize, argument: &str) -> Result<&'a [T], Failure> {
    if first.is_null() {
        return if count == 0 { Ok(&[]) } else { Err(Failure::null(argument)) };
    }
    // A length no object can have is a mistake (-1, an uninitialised variable), and undefined behaviour in a slice.
    if count > isize::MAX as usize / size_of::<T>().max(1) || !first.is_aligned() {
        return Err(Failure::invalid_input(format!("Argument {argument} has an impossible length or address")));
    }
    // SAFETY: not NULL, aligned, of possible length; readable by the caller's promise.
    Ok(unsafe { slice::from_raw_parts(first, count) })
}

/// The text up to the NUL of a C string; absent for NULL. For literals, `TSQ_STR("…")` needs no call.
///
/// Borrows `text`; returns a view that lives as long as it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_str_from(text: *const c_char) -> tsq_str {
    if text.is_null() {
        return tsq_str::ABSENT;
    }
    // SAFETY: not NULL, so a NUL-terminated string by the manual.
    answer(|| tsq_str { ptr: text, len: unsafe { CStr::from_ptr(text) }.count_bytes() })
}

/// The text itself. A NUL that does not count stands behind its last byte.
///
/// Borrows `string`; returns a view that lives as long as it. Absent for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_string_view(string: *const tsq_string) -> tsq_str {
    // SAFETY: `string` is NULL or live, by the manual.
    unsafe { read(string, |text| view(text.as_str())) }
}

/// Ends an owned text. Takes `string`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_string_free(string: *mut tsq_string) {
    // SAFETY: `string` is NULL or owned by the caller, by the manual.
    unsafe { free(string) }
}

//! Arguments: text, bytes, ids, JSON, arrays and structs that C passes in.
//!
//! Invariant: text is checked to be UTF-8 before the core sees it, and each failure names the argument. Whether a value
//! is allowed is the core's decision.

use std::{mem::MaybeUninit, ptr, slice, str};

use townsquare::{Json, Uuid, spaces::parse_json};

use crate::boundary::{
    failure::Failure,
    text::{tsq_bytes, tsq_str},
};

/// A required text; the absent text reads as empty.
///
/// # Safety
/// `text` spans readable bytes that do not change during `'a`.
pub(crate) unsafe fn text<'a>(text: tsq_str, argument: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { optional_text(text, argument) }.map(Option::unwrap_or_default)
}

/// An optional text.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_text<'a>(text: tsq_str, argument: &str) -> Result<Option<&'a str>, Failure> {
    if text.ptr.is_null() && text.len == 0 {
        return Ok(None);
    }
    // SAFETY: the caller's promise, passed on.
    let bytes = unsafe { array(text.ptr.cast::<u8>(), text.len, argument) }?;
    str::from_utf8(bytes).map(Some).map_err(|error| {
        Failure::invalid_input(format!("Argument {argument} is not UTF-8 at byte {}", error.valid_up_to()))
    })
}

/// An optional text, copied.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_string(text: tsq_str, argument: &str) -> Result<Option<String>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { optional_text(text, argument) }?.map(str::to_owned))
}

/// Bytes.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn bytes<'a>(bytes: tsq_bytes, argument: &str) -> Result<&'a [u8], Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { array(bytes.ptr, bytes.len, argument) }
}

/// An array of texts.
///
/// # Safety
/// `items` points at `len` texts, each as for [`text`].
pub(crate) unsafe fn texts<'a>(items: *const tsq_str, len: usize, argument: &str) -> Result<Vec<&'a str>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let items = unsafe { array(items, len, argument) }?;
    let read = |(index, item): (usize, &tsq_str)| {
        // SAFETY: the caller's promise, passed on.
        unsafe { text(*item, argument) }.map_err(|failure| failure.at(argument, index))
    };
    items.iter().enumerate().map(read).collect()
}

/// A required id: a UUID as text.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn id(id: tsq_str, argument: &str) -> Result<Uuid, Failure> {
    // SAFETY: the caller's promise, passed on.
    parse_id(unsafe { text(id, argument) }?, argument)
}

/// An optional id.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_id(id: tsq_str, argument: &str) -> Result<Option<Uuid>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { optional_text(id, argument) }?.map(|id| parse_id(id, argument)).transpose()
}

fn parse_id(id: &str, argument: &str) -> Result<Uuid, Failure> {
    id.parse().map_err(|_| Failure::invalid_input(format!("Argument {argument} is not a UUID")))
}

/// An optional JSON value as text; the text `null` is a value. A number that would not come back equal is refused.
///
/// # Safety
/// As for [`text`].
pub(crate) unsafe fn optional_json(json: tsq_str, argument: &str) -> Result<Option<Json>, Failure> {
    let parse = |text| {
        parse_json(argument, text).map_err(|error| Failure::invalid_input(format!("Argument {}", error.message())))
    };
    // SAFETY: the caller's promise, passed on.
    unsafe { optional_text(json, argument) }?.map(parse).transpose()
}

/// An array of structs that do not grow, converted in order.
///
/// # Safety
/// `items` is NULL or points at `len` readable structs.
pub(crate) unsafe fn structures<T, R>(
    items: *const T,
    len: usize,
    argument: &str,
    mut read: impl FnMut(&T) -> Result<R, Failure>,
) -> Result<Vec<R>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let items = unsafe { array(items, len, argument) }?.iter().enumerate();
    let inside = |index, failure: Failure| failure.inside(&format!("{argument}[{index}]")).at_row(index);
    items.map(|(index, item)| read(item).map_err(|failure| inside(index, failure))).collect()
}

/// Memory of C that receives bytes. It may be uninitialised.
pub(crate) struct Destination {
    first: *mut u8,
    len: usize,
}

impl Destination {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Copies the first bytes of `source` that fit, and returns their number.
    pub(crate) fn fill(&self, source: &[u8]) -> usize {
        let fits = source.len().min(self.len);
        // SAFETY: `first` is writable for `len` bytes by the promise of `destination`; nothing in Rust refers to them.
        unsafe { self.first.copy_from_nonoverlapping(source.as_ptr(), fits) };
        fits
    }
}

/// Memory that receives bytes.
///
/// # Safety
/// `first` is NULL or writable for `len` bytes as long as the result is used.
pub(crate) unsafe fn destination(first: *mut u8, len: usize, argument: &str) -> Result<Destination, Failure> {
    // SAFETY: the caller's promise; only the address and the length are checked, as those of readable memory.
    unsafe { array(first.cast_const().cast::<MaybeUninit<u8>>(), len, argument) }?;
    Ok(Destination { first: if len == 0 { ptr::dangling_mut() } else { first }, len })
}

/// A slice of C's memory.
///
/// # Safety
/// `first` is NULL or points at `len` readable values that do not change during `'a`.
unsafe fn array<'a, T>(first: *const T, len: usize, argument: &str) -> Result<&'a [T], Failure> {
    if first.is_null() {
        return if len == 0 { Ok(&[]) } else { Err(Failure::null(argument)) };
    }
    // No object is this long: the length comes from -1 or an uninitialised variable. A slice of this length would be
    // undefined behaviour.
    if len > isize::MAX as usize / size_of::<T>().max(1) || !first.is_aligned() {
        return Err(Failure::invalid_input(format!("Argument {argument} has an impossible length or address")));
    }
    // SAFETY: not NULL, aligned, of possible length; readable by the caller's promise.
    Ok(unsafe { slice::from_raw_parts(first, len) })
}

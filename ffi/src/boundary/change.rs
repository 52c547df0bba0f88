//! Changes: what a partial update does to one column.
//!
//! Invariant: all zeros keep the column, so a zeroed patch changes nothing. C may store any bytes in a [`tsq_change`]
//! or a `bool`; both are read as numbers, because an invalid Rust enum or `bool` is undefined behaviour.

use std::mem::MaybeUninit;

use townsquare::{Json, spaces::Change};

use crate::boundary::{argument, failure::Failure, text::tsq_str};

/// What a partial update does to one column.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_change {
    /// The column stays as it is.
    TSQ_KEEP = 0,
    /// The column becomes NULL.
    TSQ_CLEAR = 1,
    /// The column becomes the value beside this.
    TSQ_SET = 2,
}

/// A change of a text or of JSON (as text). This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_str_change {
    /// Keep, clear or set.
    pub change: MaybeUninit<tsq_change>,
    /// The new value, read for `TSQ_SET` only; the absent text clears the column.
    pub value: tsq_str,
}

/// A change of a bool. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_bool_change {
    /// Keep, clear or set.
    pub change: MaybeUninit<tsq_change>,
    /// The new value, read for `TSQ_SET` only; any non-zero byte is true.
    pub value: MaybeUninit<bool>,
}

/// A change of a list of texts. This struct does not grow.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_strs_change {
    /// Keep, clear or set.
    pub change: MaybeUninit<tsq_change>,
    /// The new texts, read for `TSQ_SET` only.
    pub items: *const tsq_str,
    /// Number of texts.
    pub items_len: usize,
}

/// A `bool` of C: any non-zero byte is true.
///
/// # Safety
/// `value` is initialised.
pub(crate) unsafe fn boolean(value: MaybeUninit<bool>) -> bool {
    // SAFETY: initialised by the caller's promise, and of one byte.
    unsafe { value.as_ptr().cast::<u8>().read() != 0 }
}

/// The core's change. `value` reads the value of `TSQ_SET`; an absent value clears.
///
/// # Safety
/// `change` is initialised.
unsafe fn read<T>(
    change: MaybeUninit<tsq_change>,
    argument: &str,
    value: impl FnOnce() -> Result<Option<T>, Failure>,
) -> Result<Change<T>, Failure> {
    // SAFETY: initialised by the caller's promise; a C enum has the size of this number, which may be any.
    match unsafe { change.as_ptr().cast::<i32>().read() } {
        known if known == tsq_change::TSQ_KEEP as i32 => Ok(Change::Keep),
        known if known == tsq_change::TSQ_CLEAR as i32 => Ok(Change::Clear),
        known if known == tsq_change::TSQ_SET as i32 => Ok(value()?.into()),
        unknown => Err(Failure::invalid_input(format!("Argument {argument} has an unknown change {unknown}"))),
    }
}

/// A change of a text.
///
/// # Safety
/// `change` is initialised, and its value as for [`argument::text`].
pub(crate) unsafe fn of_text(change: tsq_str_change, argument: &str) -> Result<Change<String>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, || argument::optional_string(change.value, argument)) }
}

/// A change of JSON.
///
/// # Safety
/// As for [`of_text`].
pub(crate) unsafe fn of_json(change: tsq_str_change, argument: &str) -> Result<Change<Json>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, || argument::optional_json(change.value, argument)) }
}

/// A change of a bool.
///
/// # Safety
/// `change` and its value are initialised.
pub(crate) unsafe fn of_bool(change: tsq_bool_change, argument: &str) -> Result<Change<bool>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, || Ok(Some(boolean(change.value)))) }
}

/// A change of a list of texts.
///
/// # Safety
/// `change` is initialised, and its items as for [`argument::texts`].
pub(crate) unsafe fn of_texts(change: tsq_strs_change, argument: &str) -> Result<Change<Vec<String>>, Failure> {
    let value = || {
        // SAFETY: the caller's promise, passed on.
        let items = unsafe { argument::texts(change.items, change.items_len, argument) }?;
        Ok(Some(items.into_iter().map(str::to_owned).collect()))
    };
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, value) }
}

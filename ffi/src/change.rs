//! Changes: what a partial update does to one column.
//!
//! Invariant: all zeros keep the column, so a zeroed patch changes nothing. C may put any number into a [`tsq_change`],
//! so it is read as a number, never as the enum.

use std::mem::MaybeUninit;

use townsquare::{Change, Json};

use crate::{
    error::Failure,
    json_text,
    text::{self, tsq_str},
};

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

/// A change of a text or of JSON (as text).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_str_change {
    /// What to do.
    pub change: MaybeUninit<tsq_change>,
    /// The new value, looked at for `TSQ_SET` alone; the absent text there clears.
    pub value: tsq_str,
}

/// A change of a truth value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_bool_change {
    /// What to do.
    pub change: MaybeUninit<tsq_change>,
    /// The new value, looked at for `TSQ_SET` alone.
    pub value: bool,
}

/// A change of a list of texts.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_strs_change {
    /// What to do.
    pub change: MaybeUninit<tsq_change>,
    /// The new texts, looked at for `TSQ_SET` alone.
    pub items: *const tsq_str,
    /// How many texts.
    pub items_len: usize,
}

/// The core's change; `value` is asked for what to set, and a value that is absent clears.
///
/// # Safety
/// `change` is initialised.
unsafe fn read<T>(
    change: MaybeUninit<tsq_change>,
    argument: &str,
    value: impl FnOnce() -> Result<Option<T>, Failure>,
) -> Result<Change<T>, Failure> {
    // SAFETY: initialised by the caller's promise; an enum of C is as large as this number, which may be any.
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
/// `change` is initialised, and its value as for [`text::required`].
pub(crate) unsafe fn of_text(change: tsq_str_change, argument: &str) -> Result<Change<String>, Failure> {
    let value = || {
        // SAFETY: the caller's promise, passed on.
        Ok(unsafe { text::optional(change.value, argument) }?.map(str::to_owned))
    };
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, value) }
}

/// A change of JSON.
///
/// # Safety
/// As for [`of_text`].
pub(crate) unsafe fn of_json(change: tsq_str_change, argument: &str) -> Result<Change<Json>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, || json_text::optional(change.value, argument)) }
}

/// A change of a truth value.
///
/// # Safety
/// `change` is initialised.
pub(crate) unsafe fn of_truth(change: tsq_bool_change, argument: &str) -> Result<Change<bool>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, || Ok(Some(change.value))) }
}

/// A change of a list of texts.
///
/// # Safety
/// `change` is initialised, and its items as for [`text::list`].
pub(crate) unsafe fn of_texts(change: tsq_strs_change, argument: &str) -> Result<Change<Vec<String>>, Failure> {
    let value = || {
        // SAFETY: the caller's promise, passed on.
        let items = unsafe { text::list(change.items, change.items_len, argument) }?;
        Ok(Some(items.into_iter().map(str::to_owned).collect()))
    };
    // SAFETY: the caller's promise, passed on.
    unsafe { read(change.change, argument, value) }
}

//! Whether a copy or a move replaces a file at its target.
//!
//! Invariant: C may pass any number; it is read as a number, because an invalid Rust enum is undefined behaviour.

use std::mem::MaybeUninit;

use townsquare::storage::Overwrite;

use crate::boundary::Failure;

/// Whether a copy or a move replaces a file at its target.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_overwrite {
    /// A file at the target fails the call with `TSQ_ALREADY_EXISTS`.
    TSQ_OVERWRITE_REFUSE = 0,
    /// A file at the target is replaced.
    TSQ_OVERWRITE_REPLACE = 1,
}

/// The core's value.
///
/// # Safety
/// `overwrite` is initialised.
pub(crate) unsafe fn read(overwrite: MaybeUninit<tsq_overwrite>) -> Result<Overwrite, Failure> {
    // SAFETY: initialised by the caller's promise; a C enum has the size of this number, which may be any.
    match unsafe { overwrite.as_ptr().cast::<i32>().read() } {
        known if known == tsq_overwrite::TSQ_OVERWRITE_REFUSE as i32 => Ok(Overwrite::Refuse),
        known if known == tsq_overwrite::TSQ_OVERWRITE_REPLACE as i32 => Ok(Overwrite::Replace),
        number => Err(Failure::invalid_input(format!("Argument overwrite has an unknown value {number}"))),
    }
}

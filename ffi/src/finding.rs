//! Findings: what a check of a client says is wrong.
//!
//! Invariant: C may pass any number as a depth; it is read as a number, because an invalid Rust enum is undefined behaviour.

use std::mem::MaybeUninit;

use townsquare::check::{CheckDepth, Finding};

use crate::boundary::{
    Failure, Handle, Memory, Record, RecordList, call_handle, free, handle, json, read as read_list, text, tsq_error,
    tsq_status, tsq_str, tsq_string,
};

/// How much `tsq_client_check` reads.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_check_depth {
    /// Every row of the files, and the names and sizes of their objects, but not the bytes.
    TSQ_CHECK_QUICK = 0,
    /// Every byte of the database and of the files.
    TSQ_CHECK_FULL = 1,
}

/// The core's value.
///
/// # Safety
/// `depth` is initialised.
pub(crate) unsafe fn read(depth: MaybeUninit<tsq_check_depth>) -> Result<CheckDepth, Failure> {
    // SAFETY: initialised by the caller's promise; a C enum has the size of this number, which may be any.
    match unsafe { depth.as_ptr().cast::<i32>().read() } {
        known if known == tsq_check_depth::TSQ_CHECK_QUICK as i32 => Ok(CheckDepth::Quick),
        known if known == tsq_check_depth::TSQ_CHECK_FULL as i32 => Ok(CheckDepth::Full),
        number => Err(Failure::invalid_input(format!("Argument depth has an unknown value {number}"))),
    }
}

/// Something that is wrong, or will be. A record (manual, RECORDS).
#[repr(C)]
pub struct tsq_finding {
    /// The kind of fault, such as `file_missing`: stable, for programs. `advice` says what to do about it.
    pub code: tsq_str,
    /// How bad it is: `error`, `warning` or `note`.
    pub severity: tsq_str,
    /// A sentence that names the file, the table or the part. It has no secret, no e-mail address and no token.
    pub message: tsq_str,
    /// What to do about it.
    pub advice: tsq_str,
}

impl Record for tsq_finding {
    type Source = Finding;

    fn new(finding: &Finding, _: &mut Memory) -> tsq_finding {
        tsq_finding {
            code: text::view(finding.code.as_str()),
            severity: text::view(finding.severity().as_str()),
            message: text::view(&finding.message),
            advice: text::view(finding.advice()),
        }
    }
}

/// A list of findings, the worst first. Owned, freed with `tsq_findings_free`.
pub struct tsq_findings {
    _opaque: [u8; 0],
}

impl Handle for tsq_findings {
    type Value = RecordList<tsq_finding>;
}

/// The number of findings; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_findings_len(list: *const tsq_findings) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read_list(list, RecordList::len) }
}

/// The item at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_findings_at(list: *const tsq_findings, index: usize) -> *const tsq_finding {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read_list(list, |list| list.at(index)) }
}

/// The list as a JSON array of objects: `code`, `severity`, `message` and `advice`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_findings_json(
    list: *const tsq_findings,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its items. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_findings_free(list: *mut tsq_findings) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

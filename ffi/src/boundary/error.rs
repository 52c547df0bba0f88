//! Errors as C sees them: an object with the sentence, the operation and the codes of a failure.
//!
//! Invariant: an error object never changes after it was handed out, so its views live as long as it. Failures of this
//! crate (NULL, text that is not UTF-8) read like the core's errors: same kinds, same sentence with the operation's
//! prefix.

use std::time::Duration;

use townsquare::{Error, Operation};

use crate::boundary::{
    failure::Failure,
    guard::{free, read, read_optional},
    handle::{self, Handle},
    status::tsq_status,
    text::{self, Terminated, tsq_str},
};

/// Why a call failed. Owned by the caller, who frees it with `tsq_error_free`.
pub struct tsq_error {
    _opaque: [u8; 0],
}

impl Handle for tsq_error {
    type Value = ErrorReport;
}

/// The value behind a [`tsq_error`].
#[derive(Clone)]
pub(crate) struct ErrorReport {
    error: Error,
    text: Terminated,
    /// Byte offset of the message in the text, behind the prefix.
    message_at: usize,
}

impl ErrorReport {
    /// The report of a failure. `operation` is used for a failure that does not name its operation.
    pub(crate) fn new(failure: Failure, operation: Option<Operation>) -> ErrorReport {
        let error = match failure {
            Failure::Core(error) => error,
            Failure::Boundary { kind, message, row } => Error::of_binding(kind, message, row),
        };
        let error = match operation {
            Some(operation) => error.with_operation(operation),
            None => error,
        };
        let text = error.to_string();
        ErrorReport { message_at: text.len().saturating_sub(error.message().len()), text: Terminated::new(text), error }
    }

    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }
}

/// The kind of the failure: the status that the call returned. `TSQ_OK` for NULL.
///
/// Borrows `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_kind(error: *const tsq_error) -> tsq_status {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| Some(report.error.kind())) }.map_or(tsq_status::TSQ_OK, Into::into)
}

/// The whole sentence, the operation's prefix included:
/// `Search mini apps failed: Argument query is not UTF-8 at byte 3`. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as `error`. Absent for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_text(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::view(report.text())) }
}

/// The sentence without the prefix. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as `error`. Absent for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_message(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::view(&report.text()[report.message_at..])) }
}

/// The name of the failed operation (`search_mini_apps`); absent for a failure outside an operation.
///
/// Borrows `error`; returns a view that lives for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_operation(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::optional_view(report.error.operation().map(Operation::name))) }
}

/// The SQLSTATE of a failure of the database (`23505`, `42P01`, …); absent for other failures.
///
/// Borrows `error`; returns a view that lives as long as `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_code(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::optional_view(report.error.code())) }
}

/// The HTTP status for the error: 404 for a missing row or file, 413, 503, … Every error has one. 0 for NULL.
///
/// Borrows `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_status(error: *const tsq_error) -> u16 {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| report.error.status()) }
}

/// What to do about the error, in one sentence for the developer of the program
/// (`Correct the argument as the message says.`).
///
/// Borrows `error`; returns a view that lives for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_explanation(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::view(report.error.explanation())) }
}

/// The part of `tsq_error_text` behind the fixed sentence, if there is one: `segment 2 of the path is empty`, `spaces.name`,
/// `cannot connect to localhost:5432: Connection refused`. It is for the developer of the program: a server that shows errors
/// to strangers leaves it out.
///
/// Borrows `error`; returns a view that lives as long as `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_reason(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::optional_view(report.error.reason())) }
}

/// How long to wait before another try, in milliseconds. Returns true and writes it to `out`, or returns false and
/// writes 0 when the wait is unknown.
///
/// Borrows `error`; `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_retry_after_ms(error: *const tsq_error, out: *mut u64) -> bool {
    let millis = |wait: Duration| {
        // Rounded up: a retry that comes a fraction early is refused again.
        let rounded = wait.as_nanos().div_ceil(1_000_000);
        u64::try_from(rounded).unwrap_or(u64::MAX)
    };
    // SAFETY: `error` is NULL or live, `out` NULL or writable, by the manual.
    unsafe { read_optional(error, out, |report| report.error.retry_after().map(millis)) }
}

/// The index of the item that failed, for calls that create several rows. Returns true and writes it to `out`, or returns
/// false and writes 0.
///
/// Borrows `error`; `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_row(error: *const tsq_error, out: *mut usize) -> bool {
    // SAFETY: `error` is NULL or live, `out` NULL or writable, by the manual.
    unsafe { read_optional(error, out, |report| report.error.row()) }
}

/// The column that has no value (`TSQ_FIELD_MISSING`), or that cannot be read (code `XX001`); absent for other failures.
///
/// Borrows `error`; returns a view that lives as long as `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_column(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::optional_view(report.error.column())) }
}

/// Whether the same call with the same arguments may succeed later. False for NULL.
///
/// Borrows `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_is_retryable(error: *const tsq_error) -> bool {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| report.error.is_retryable()) }
}

/// Copies an error: the copy may be used after the callback that got the error. NULL for NULL.
///
/// Borrows `error`; returns owned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_clone(error: *const tsq_error) -> *mut tsq_error {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| handle::give(report.clone())) }
}

/// Frees an error. Takes `error`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_free(error: *mut tsq_error) {
    // SAFETY: `error` is NULL or owned by the caller, by the manual.
    unsafe { free(error) }
}

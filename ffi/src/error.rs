//! Errors as C sees them: a status for branching, and on request an object with the whole story.
//!
//! Invariant: an error object is complete when it is handed out and never changes, so its views live as long as it;
//! and it costs nothing where `err` is NULL. What fails at the boundary itself (a NULL, text that is not UTF-8) reads
//! like the core's own errors: same kinds, same sentence with the operation in front.

use std::time::Duration;

use townsquare::{Error, ErrorKind, Operation};

use crate::{
    boundary::{free, read, read_optional},
    handle::Handle,
    status::tsq_status,
    text::{self, Terminated, tsq_str},
};

/// Why a call failed. Owned by the caller, who ends it with `tsq_error_free`.
pub struct tsq_error {
    _opaque: [u8; 0],
}

impl Handle for tsq_error {
    type Value = Report;
}

/// What a body fails with: an error of the core, or of the boundary.
pub(crate) enum Failure {
    Core(Error),
    Boundary { kind: ErrorKind, message: String },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Core(error)
    }
}

impl Failure {
    pub(crate) fn invalid_input(message: impl Into<String>) -> Failure {
        Failure::Boundary { kind: ErrorKind::InvalidInput, message: message.into() }
    }

    pub(crate) fn internal(message: impl Into<String>) -> Failure {
        Failure::Boundary { kind: ErrorKind::Internal, message: message.into() }
    }

    pub(crate) fn null(argument: &str) -> Failure {
        Failure::invalid_input(format!("Argument {argument} is NULL"))
    }

    /// Says which item of a list argument it was.
    pub(crate) fn at(self, argument: &str, place: usize) -> Failure {
        match self {
            Failure::Boundary { kind, message } => {
                Failure::Boundary { kind, message: message.replacen(argument, &format!("{argument}[{place}]"), 1) }
            }
            core => core,
        }
    }

    /// Says which struct argument the member belongs to that the failure names.
    pub(crate) fn inside(self, owner: &str) -> Failure {
        match self {
            Failure::Boundary { kind, message } => {
                Failure::Boundary { kind, message: message.replacen("Argument ", &format!("Argument {owner}."), 1) }
            }
            core => core,
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Failure::Core(error) => error.kind(),
            Failure::Boundary { kind, .. } => *kind,
        }
    }

    pub(crate) fn status(&self) -> tsq_status {
        self.kind().into()
    }

    /// The object for C. `operation` is where the call was, for a failure that does not say so itself.
    pub(crate) fn report(self, operation: Option<Operation>) -> Report {
        let kind = self.kind();
        let (core, message) = match self {
            Failure::Core(error) => {
                let message = error.message().to_owned();
                (Some(error), message)
            }
            Failure::Boundary { message, .. } => (None, message),
        };
        let operation = core.as_ref().and_then(Error::operation).or(operation);
        let prefix = operation.map_or("", Operation::prefix);
        Report {
            kind,
            operation,
            message_at: prefix.len(),
            text: Terminated::new(format!("{prefix}{message}")),
            code: core.as_ref().and_then(Error::code).map(Into::into),
            status: core.as_ref().and_then(Error::status),
            retry_after: core.as_ref().and_then(Error::retry_after),
            is_retryable: core.is_some_and(|error| error.is_retryable()),
        }
    }
}

/// The value behind a [`tsq_error`].
pub(crate) struct Report {
    kind: ErrorKind,
    operation: Option<Operation>,
    text: Terminated,
    /// Where the message starts in the text.
    message_at: usize,
    code: Option<Box<str>>,
    status: Option<u16>,
    retry_after: Option<Duration>,
    is_retryable: bool,
}

impl Report {
    pub(crate) fn text(&self) -> &str {
        self.text.as_str()
    }
}

/// The kind of the failure: the status that the call returned. `TSQ_OK` for NULL: no error, no failure.
///
/// Borrows `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_kind(error: *const tsq_error) -> tsq_status {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| Some(report.kind)) }.map_or(tsq_status::TSQ_OK, Into::into)
}

/// The whole sentence that a user may be shown, the operation's prefix included:
/// `Search mini apps failed: Argument query is not UTF-8 at byte 3`. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as it. Absent for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_text(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::view(report.text())) }
}

/// The sentence without the prefix. NUL-terminated.
///
/// Borrows `error`; returns a view that lives as long as it. Absent for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_message(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::view(&report.text()[report.message_at..])) }
}

/// The operation that failed, by its name without `tsq_` and noun (`search_mini_apps`); absent when none was under way.
///
/// Borrows `error`; returns a view that lives for ever.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_operation(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::optional_view(report.operation.map(Operation::name))) }
}

/// The SQLSTATE of a database's failure (`23505`, `42P01`, …); absent when it has none.
///
/// Borrows `error`; returns a view that lives as long as it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_code(error: *const tsq_error) -> tsq_str {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| text::optional_view(report.code.as_deref())) }
}

/// The file store's status (404, 413, …): true and written to `out`, or false and `out` 0 for a failure without one.
///
/// Borrows `error`; `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_status(error: *const tsq_error, out: *mut u16) -> bool {
    // SAFETY: `error` is NULL or live, `out` NULL or writable, by the manual.
    unsafe { read_optional(error, out, |report| report.status) }
}

/// How long to wait before another try, in milliseconds: true and written to `out`, or false and `out` 0 where that
/// is not known.
///
/// Borrows `error`; `out` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_retry_after_ms(error: *const tsq_error, out: *mut u64) -> bool {
    let millis = |wait: Duration| {
        // Rounded up: who comes back a fraction early is turned away again.
        let rounded = wait.as_nanos().div_ceil(1_000_000);
        u64::try_from(rounded).unwrap_or(u64::MAX)
    };
    // SAFETY: `error` is NULL or live, `out` NULL or writable, by the manual.
    unsafe { read_optional(error, out, |report| report.retry_after.map(millis)) }
}

/// Whether the same call may succeed later without a change of its arguments. False for NULL.
///
/// Borrows `error`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_is_retryable(error: *const tsq_error) -> bool {
    // SAFETY: `error` is NULL or live, by the manual.
    unsafe { read(error, |report| report.is_retryable) }
}

/// Ends an error. Takes `error`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_error_free(error: *mut tsq_error) {
    // SAFETY: `error` is NULL or owned by the caller, by the manual.
    unsafe { free(error) }
}

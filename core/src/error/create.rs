//! Making errors: the constructors, and the methods that add the operation, the row or the cause.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use super::{
    DATABASE_ERRORS, Error, ErrorInner, ErrorKind, FILE_ERRORS, OUTCOME_UNKNOWN, Operation, REASON_SEPARATOR,
    UNAUTHORIZED_UPLOAD, UNKNOWN_DATABASE_ERROR,
};

/// SQLSTATE `insufficient_privilege`.
pub(super) const PERMISSION_DENIED: &str = "42501";

/// SQLSTATE `invalid_catalog_name`: there is no database, or one without the tables of this library.
pub(super) const NO_DATABASE: &str = "3D000";

/// The reason of [`Error::no_database`].
const LEFT_UNMADE: &str = "option migrate is false, so none is made";

/// SQLSTATE `object_not_in_prerequisite_state`: the database is of an older version, and may not be changed.
pub(super) const NOT_MIGRATED: &str = "55000";

/// SQLSTATE `data_corrupted`.
pub(super) const DATA_CORRUPTED: &str = "XX001";

/// The message of [`Error::handle_closed`].
const HANDLE_CLOSED: &str = "The handle is closed";

/// The bytes of the longest message. Some messages quote text of a caller, which may be long.
const MAX_MESSAGE: usize = 16 << 10;

fn bounded(message: Cow<'static, str>) -> Cow<'static, str> {
    if message.len() <= MAX_MESSAGE {
        return message;
    }
    let end = message.floor_char_boundary(MAX_MESSAGE);
    format!("{}…", &message[..end]).into()
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Arc::new(ErrorInner {
            kind,
            operation: None,
            message: bounded(message.into()),
            reason_at: None,
            code: None,
            status: None,
            retry_after: None,
            row: None,
            column: None,
            is_idempotent: false,
            has_moved: false,
            source: None,
        }))
    }

    /// The error for a call that a binding refuses, such as an argument that no type of the core holds. `row` is the index of
    /// the item in a list of rows.
    #[doc(hidden)]
    pub fn of_binding(kind: ErrorKind, message: impl Into<Cow<'static, str>>, row: Option<usize>) -> Error {
        Error::new(kind, message).with(|inner| inner.row = row)
    }

    /// The error for an argument of an operation on files that a binding refuses.
    #[doc(hidden)]
    pub fn of_file_binding(reason: impl Into<Cow<'static, str>>) -> Error {
        Error::file(400, reason)
    }

    pub(crate) fn invalid_input(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::InvalidInput, message)
    }

    pub(crate) fn config(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Config, message)
    }

    /// The error of an `open` with `migrate=false` that finds no database, or one without the tables of this library.
    pub(crate) fn no_database(message: impl Into<Cow<'static, str>>) -> Error {
        Error::config(message).with_code(NO_DATABASE).with_reason(LEFT_UNMADE)
    }

    /// Whether it is [`Error::no_database`]: an `open` with `migrate=true` would make the database or its tables. A server that has
    /// no database of that name answers with the same code.
    pub(super) fn is_left_unmade(&self) -> bool {
        self.reason() == Some(LEFT_UNMADE)
    }

    /// The error of an `open` with `migrate=false` for a database that is not as this library makes it.
    pub(crate) fn not_migrated(message: impl Into<Cow<'static, str>>) -> Error {
        Error::config(message).with_code(NOT_MIGRATED).with_reason("option migrate is false, so it is left as it is")
    }

    /// The error for a file that cannot be used because its bytes are damaged.
    #[cfg(feature = "sqlite")]
    pub(crate) fn damaged_file(message: impl Into<Cow<'static, str>>) -> Error {
        Error::config(message).with_code(DATA_CORRUPTED)
    }

    pub(crate) fn unavailable(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Unavailable, message)
    }

    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Closed, "The client is closed")
    }

    /// The error for a handle that was closed, of a client that is open.
    pub(crate) fn handle_closed() -> Error {
        Error::new(ErrorKind::Closed, HANDLE_CLOSED)
    }

    /// Whether it is [`Error::handle_closed`].
    pub(super) fn is_handle_closed(&self) -> bool {
        self.message() == HANDLE_CLOSED
    }

    /// The error for a cursor after which the change feed no longer has every change.
    pub(crate) fn cursor_expired(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::CursorExpired, message)
    }

    /// The error for a client that a forked child inherited: it has none of the client's threads.
    pub(crate) fn inherited() -> Error {
        Error::new(
            ErrorKind::Closed,
            "The client was opened before a fork and belongs to the parent process: start workers before opening, or spawn them",
        )
    }

    /// The error for a missing row and for a hidden row. The message is the same, so that it reveals no hidden row.
    pub(crate) fn not_found() -> Error {
        Error::new(ErrorKind::NotFound, "Record not found")
    }

    /// The error for an insert that the policy of `table` forbids. The message is PostgreSQL's.
    pub(crate) fn new_row_violates(table: &str) -> Error {
        let message = format!("new row violates row-level security policy for table \"{table}\"");
        Error::database(Some(PERMISSION_DENIED), ErrorKind::Forbidden, message).with_permission_advice()
    }

    /// The error for an operation on `table` that the caller has no permission for. The message is PostgreSQL's.
    pub(crate) fn permission_denied(table: &str, is_anonymous: bool) -> Error {
        Error::refused(table, is_anonymous).with_permission_advice()
    }

    fn refused(table: &str, is_anonymous: bool) -> Error {
        let kind = if is_anonymous { ErrorKind::Unauthorized } else { ErrorKind::Forbidden };
        Error::database(Some(PERMISSION_DENIED), kind, format!("permission denied for table {table}"))
    }

    /// Says what the caller of a refused call can do.
    pub(crate) fn with_permission_advice(self) -> Error {
        self.with_reason("sign in as a user who may do this, or use as_service()")
    }

    /// The error for a caller of an operation that is for the service alone. `table` is what it reads or changes.
    pub(crate) fn service_required(table: &str, is_anonymous: bool) -> Error {
        Error::refused(table, is_anonymous).with_reason("use as_service(): this is for the service alone")
    }

    /// The error for a column without a value that the library itself requires. For the bindings as well.
    #[doc(hidden)]
    pub fn field_missing(column: impl Into<Cow<'static, str>>) -> Error {
        let column = column.into();
        Error::database(Some("23502"), ErrorKind::FieldMissing, "").with_reason(column.clone()).in_column(column)
    }

    /// The error for a value of `column`, such as `users.email`, that another row has.
    pub(crate) fn already_exists(what: impl Into<Cow<'static, str>>) -> Error {
        Error::database(Some("23505"), ErrorKind::AlreadyExists, "").with_reason(what)
    }

    /// The error for a value of `column` that is none of `words`.
    pub(crate) fn check_violation(table: &str, column: &str, words: &[&str]) -> Error {
        let message = format!("{column} of {table} is one of {}", words.join(", "));
        Error::database(Some("23514"), ErrorKind::InvalidInput, message)
    }

    /// The error of a write that lost its connection before the server answered: it may be committed or not.
    pub(crate) fn outcome_unknown() -> Error {
        let message =
            "outcome unknown: the connection was lost before the server answered, so the write may have happened";
        Error::database(Some(OUTCOME_UNKNOWN), ErrorKind::Unavailable, message)
    }

    /// The error of a write that failed with this one and that another client may finish.
    pub(crate) fn in_doubt(self) -> Error {
        if self.kind() == ErrorKind::Closed { self } else { Error::outcome_unknown().caused_by(self) }
    }

    /// Whether it is [`Error::outcome_unknown`].
    pub(crate) fn is_outcome_unknown(&self) -> bool {
        self.code() == Some(OUTCOME_UNKNOWN)
    }

    /// States that the database has moved to another place, so that a repeated write fails, too.
    pub(crate) fn of_moved_database(self) -> Error {
        self.with(|inner| inner.has_moved = true)
    }

    /// Whether it is a write to a database that has moved to another place.
    pub(super) fn has_moved(&self) -> bool {
        self.0.has_moved
    }

    /// States that repeating the failed call has the effect of one call, so that it may be repeated even if its outcome is
    /// unknown.
    pub(crate) fn of_idempotent_call(self) -> Error {
        self.with(|inner| inner.is_idempotent = true)
    }

    /// A failure of the database, with the message of SPEC 7. A code in [`DATABASE_ERRORS`] decides kind and message;
    /// for every other code, `kind` and `message` do.
    pub(crate) fn database(
        code: Option<impl Into<Cow<'static, str>>>,
        kind: ErrorKind,
        message: impl fmt::Display,
    ) -> Error {
        let Some(code) = code.map(Into::into) else {
            return Error::new(kind, UNKNOWN_DATABASE_ERROR);
        };
        let known = DATABASE_ERRORS.iter().find(|row| row.0 == code);
        let error = match known {
            Some(&(_, kind, message)) => Error::new(kind, message),
            None => Error::new(kind, format!("Database error: {message}")),
        };
        error.with(|inner| inner.code = Some(code))
    }

    /// A failure of the file store, with the message of SPEC 7. A status in [`FILE_ERRORS`] decides kind and message,
    /// and `reason` follows the message. Every other status has the message `Storage error: <reason>`.
    pub(crate) fn file(status: impl Into<Option<u16>>, reason: impl Into<Cow<'static, str>>) -> Error {
        let Some(status) = status.into() else {
            return Error::new(ErrorKind::Internal, "Unknown storage error").with_reason(reason);
        };
        let known = FILE_ERRORS.iter().find(|row| row.0 == status);
        let error = match known {
            Some(&(_, kind, message)) => Error::new(kind, message).with_reason(reason),
            None => Error::new(kind_of_status(status), format!("Storage error: {}", reason.into())),
        };
        error.with(|inner| inner.status = Some(status))
    }

    /// A callback cancelled the call.
    pub(crate) fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "A callback cancelled the call")
    }

    /// The error of `secure_upload` for a user other than the caller. Its message stands without prefix (SPEC 5.5).
    pub(crate) fn unauthorized_upload(is_anonymous: bool) -> Error {
        let (kind, status) = if is_anonymous { (ErrorKind::Unauthorized, 401) } else { (ErrorKind::Forbidden, 403) };
        Error::new(kind, UNAUTHORIZED_UPLOAD).with(|inner| inner.status = Some(status))
    }

    /// The error for an owner who would have `count` of `unit`, which the option `name` limits to `limit`. `status` is the HTTP
    /// status.
    pub(crate) fn quota_exceeded(status: u16, count: u64, unit: &str, name: &str, limit: u64) -> Error {
        Error::over_quota(status, format!("the owner would have {count} {unit}; the limit, option {name}, is {limit}"))
    }

    /// The error for a write beyond a quota. `status` is the HTTP status.
    pub(crate) fn over_quota(status: u16, reason: impl fmt::Display) -> Error {
        let message = format!("Quota exceeded: {reason}");
        Error::new(ErrorKind::QuotaExceeded, message).with(|inner| inner.status = Some(status))
    }

    /// Sets the operation, unless it is already set. For the bindings as well.
    #[doc(hidden)]
    pub fn with_operation(self, operation: Operation) -> Error {
        if self.0.operation.is_some() {
            return self;
        }
        let error = if operation.is_of_files() { self.of_file_store() } else { self };
        error.with(|inner| inner.operation = Some(operation))
    }

    /// Appends the reason to the message. An empty reason adds nothing. The error has no reason yet.
    pub(crate) fn with_reason(self, reason: impl Into<Cow<'static, str>>) -> Error {
        let reason = reason.into();
        if reason.is_empty() {
            return self;
        }
        self.with(|inner| {
            let reason_at = inner.message.len() + REASON_SEPARATOR.len();
            inner.message = format!("{}{REASON_SEPARATOR}{}", inner.message, bounded(reason)).into();
            inner.reason_at = Some(reason_at);
        })
    }

    pub(crate) fn retry_in(self, wait: Duration) -> Error {
        self.with(|inner| inner.retry_after = Some(wait))
    }

    /// Sets the index of the row that a call with many rows failed for. For the bindings as well.
    #[doc(hidden)]
    pub fn at_row(self, row: usize) -> Error {
        self.with(|inner| inner.row = Some(row))
    }

    /// Sets the column that the error is about.
    pub(crate) fn in_column(self, column: impl Into<Cow<'static, str>>) -> Error {
        self.with(|inner| inner.column = Some(column.into()))
    }

    /// Turns the member that the error is about into a part of `item`: `name …` becomes `rows[1].name …` with `rows[1]`. A sentence of
    /// SPEC 7 stays whole: `Required field is missing: name` becomes `Required field is missing: rows[1].name`, and a sentence without
    /// a reason gets the item and the column as its reason.
    pub(crate) fn inside(self, item: &str) -> Error {
        match (self.0.reason_at, self.code()) {
            (None, Some(_)) => {
                let place = self.column().map_or_else(|| item.to_owned(), |column| format!("{item}.{column}"));
                self.with_reason(place)
            }
            (member_at, _) => self.with(|inner| {
                let (sentence, member) = inner.message.split_at(member_at.unwrap_or_default());
                inner.message = format!("{sentence}{item}.{member}").into();
            }),
        }
    }

    /// Names the table of a statement that failed: before the reason, or as the reason.
    pub(crate) fn of_table(self, table: &str) -> Error {
        match self.0.reason_at {
            None => self.with_reason(format!("table {table}")),
            Some(at) => self.with(|inner| {
                let (sentence, reason) = inner.message.split_at(at);
                inner.message = format!("{sentence}table {table}: {reason}").into();
            }),
        }
    }

    /// Sets the SQLSTATE.
    pub(super) fn with_code(self, code: &'static str) -> Error {
        self.with(|inner| inner.code = Some(code.into()))
    }

    /// Sets the source to an [`Error`] and copies its SQLSTATE.
    pub(crate) fn because_of(self, source: Error) -> Error {
        let code = source.0.code.clone();
        self.caused_by(source).with(|inner| inner.code = code)
    }

    /// Sets the source.
    pub(crate) fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.with(|inner| inner.source = Some(Arc::new(source)))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut ErrorInner)) -> Error {
        change(Arc::make_mut(&mut self.0));
        self
    }
}

/// The kind of a file store error with a status that is not in [`FILE_ERRORS`].
fn kind_of_status(status: u16) -> ErrorKind {
    match status {
        409 => ErrorKind::AlreadyExists,
        412 => ErrorKind::Conflict,
        416 => ErrorKind::InvalidInput,
        429 => ErrorKind::RateLimited,
        408 | 502..=504 | 507 => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    }
}

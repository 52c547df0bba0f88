//! Translates sqlx's errors, and decides what an error means for its connection.
//!
//! Invariant: an error does not carry the server's DETAIL: it quotes values of the refused row, such as hashes.

use std::{
    error::Error as _,
    fmt,
    io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionReset, HostUnreachable, InvalidData, InvalidInput, NetworkUnreachable,
        PermissionDenied, TimedOut, UnexpectedEof,
    },
};

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use crate::{
    database::{
        change_log::{other_history, pruned},
        principal::session_ended,
        transfer::HAS_MOVED,
    },
    error::{Error, ErrorKind},
};

/// The SQLSTATE that the function `townsquare.admitted` raises for a session that has ended.
const SESSION_ENDED: &str = "TQ401";

/// The SQLSTATE that the functions of the change log raise for a position after which entries are missing.
const PRUNED: &str = "TQ410";

/// The SQLSTATE that the functions of the change log raise for a position of another history.
const OTHER_HISTORY: &str = "TQ411";

/// The SQLSTATE of a server process that ends because another one crashed. It ends at once, perhaps after its commit and
/// before the answer to it, so this error does not say whether a write happened.
const CRASH_SHUTDOWN: &str = "57P02";

/// The SQLSTATE of all errors of pgbouncer itself.
const POOLER_ERROR: &str = "08P01";

/// The advice with the error of a connection whose server process has changed.
const SHARES_PROCESSES: &str = "a pooler seems to give server processes to other clients after each transaction; set the option \
    database_pooler to transaction";

/// True for an error of a pooler that only another URL or another set-up of the pooler ends.
fn is_refused_by_pooler(message: &str) -> bool {
    ["unsupported startup parameter", "statement pooling mode"].iter().any(|words| message.contains(words))
}

pub(super) fn translate(error: sqlx::Error) -> Error {
    let sqlx::Error::Database(failure) = &error else {
        let kind = match &error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::WorkerCrashed => ErrorKind::Unavailable,
            _ => ErrorKind::Internal,
        };
        let failed = Error::database(None::<String>, kind, "");
        let failed = match &error {
            // Not the others: a fault of a value may quote the value.
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => {
                failed.with_reason(error.to_string())
            }
            _ => failed,
        };
        return failed.caused_by(error);
    };
    match failure.code().as_deref() {
        Some(SESSION_ENDED) => return session_ended(),
        Some(PRUNED) => return pruned(),
        Some(OTHER_HISTORY) => return other_history(),
        _ => {}
    }
    let code = failure.code().map(std::borrow::Cow::into_owned);
    let kind = match code.as_deref() {
        Some(POOLER_ERROR) if is_refused_by_pooler(failure.message()) => ErrorKind::Config,
        // The database accepts no connections for now (ALTER DATABASE … ALLOW_CONNECTIONS false).
        Some("55000") if is_fatal(&**failure) => ErrorKind::Unavailable,
        code => code.map_or(ErrorKind::Internal, kind),
    };
    let column = match failure.kind() {
        sqlx::error::ErrorKind::NotNullViolation => {
            failure.try_downcast_ref::<PgDatabaseError>().and_then(PgDatabaseError::column)
        }
        sqlx::error::ErrorKind::ForeignKeyViolation => referring_column(failure.table(), failure.constraint()),
        _ => None,
    };
    let column = column.map(str::to_owned);
    let reason = reason(&**failure, column.as_deref());
    let error = Error::database(code, kind, failure.message()).caused_by(ServerError::from(&**failure));
    let error = if failure.message() == HAS_MOVED { error.of_moved_database() } else { error };
    let error = match reason {
        Some(reason) => error.with_reason(reason),
        None if failure.message().starts_with("new row violates") => error.with_permission_advice(),
        None => error,
    };
    match column {
        Some(column) => error.in_column(column),
        None => error,
    }
}

/// Whether the failure ended the connection.
fn is_fatal(failure: &dyn sqlx::error::DatabaseError) -> bool {
    let failure = failure.try_downcast_ref::<PgDatabaseError>();
    failure.is_some_and(|failure| matches!(failure.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}

/// What the sentence of SPEC 7 does not say: the table and its column, or the missing table. It names no value.
fn reason(failure: &dyn sqlx::error::DatabaseError, column: Option<&str>) -> Option<String> {
    use sqlx::error::ErrorKind as Violation;
    let table = failure.table();
    match failure.kind() {
        Violation::UniqueViolation => {
            table.map(|table| unique_columns(table, failure.constraint().unwrap_or_default()))
        }
        Violation::NotNullViolation | Violation::ForeignKeyViolation => Some(format!("{}.{}", table?, column?)),
        // A statement that the connection has prepared is not there, or one that it has not prepared is.
        _ if matches!(failure.code().as_deref(), Some("26000" | "42P05")) => Some(SHARES_PROCESSES.to_owned()),
        _ if failure.code().as_deref() == Some("42P01") => {
            let name = failure.message().split('"').nth(1)?;
            Some(name.strip_prefix("public.").unwrap_or(name).to_owned())
        }
        _ => None,
    }
}

/// The columns of a unique constraint, as SQLite writes them: `users.email`. PostgreSQL names a constraint after its columns:
/// `users_email_key`. For any other name, the table and the name.
fn unique_columns(table: &str, constraint: &str) -> String {
    let own_part = constraint.strip_prefix(table).and_then(|rest| rest.strip_prefix('_'));
    match own_part {
        Some("pkey") if table == "spaceRegistrations" => format!("{table}.spaceId"),
        Some("pkey") => format!("{table}.id"),
        Some("community_id_domain_type_key") => format!("{table}.community_id, {table}.domain_type"),
        Some(rest) if rest.ends_with("_key") => format!("{table}.{}", rest.trim_end_matches("_key")),
        _ => format!("{table} (constraint {constraint})"),
    }
}

/// The column of a foreign key, from the name that PostgreSQL gives the constraint: `spaces_owner_id_fkey`.
fn referring_column<'a>(table: Option<&str>, constraint: Option<&'a str>) -> Option<&'a str> {
    constraint?.strip_prefix(table?)?.strip_prefix('_')?.strip_suffix("_fkey")
}

/// A fault of a value or a row that the driver reports outside of a query.
pub(super) fn internal(error: impl fmt::Display) -> Error {
    Error::database(Some("XX000"), ErrorKind::Internal, error)
}

/// The error of `open` if no connection can be made: `Config`, unless the server may accept one later.
pub(super) fn cannot_connect(error: Error) -> Error {
    if is_temporary(&error) {
        return error;
    }
    let mut why = error.source().map_or_else(|| error.message().to_owned(), ToString::to_string);
    if why.contains("CaUsedAsEndEntity") {
        why.push_str(
            ": the server's certificate is the certificate of an authority (CA:TRUE), which TLS does not accept of a server; \
             make one with basicConstraints=CA:FALSE",
        );
    }
    Error::config(format!("Option database_url: cannot connect: {why}")).because_of(error)
}

/// Adds the server to an error without a code: `localhost:5432: Connection refused`.
pub(super) fn at_server(error: sqlx::Error, host: &str, port: u16) -> Error {
    let reason = match &error {
        sqlx::Error::Io(io) => Some(format!("cannot connect to {host}:{port}: {io}")),
        sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => Some(format!("cannot connect to {host}:{port}: {error}")),
        _ => None,
    };
    match reason {
        Some(reason) => {
            Error::database(None::<String>, ErrorKind::Unavailable, "").with_reason(reason).caused_by(error)
        }
        None => translate(error),
    }
}

/// True if the server is down, starting or full: the URL need not change.
fn is_temporary(error: &Error) -> bool {
    if error.code().is_some() {
        return error.kind() == ErrorKind::Unavailable;
    }
    io_kind(error).is_some_and(|kind| !matches!(kind, InvalidData | InvalidInput | PermissionDenied))
}

/// The error of `open` if the server refuses a migration or a policy. The server's message names the missing grant or
/// the object.
pub(super) fn cannot_set_up(error: sqlx::Error) -> Error {
    match error.as_database_error().map(|failure| failure.message().to_owned()) {
        // The caller waits for the lock, or tells that the server is read-only.
        Some(_) if is_unavailable(&error) => translate(error),
        Some(message) => Error::config(format!("Option database_url: the database cannot be set up: {message}"))
            .because_of(translate(error)),
        None => translate(error),
    }
}

fn is_unavailable(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| kind(&code) == ErrorKind::Unavailable)
}

/// True if the connection was lost, whether or not the server said so.
pub(super) fn is_lost(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable
        && error.code().is_none_or(|code| code.starts_with("57P") || code.starts_with("08"))
}

/// True if the server gave the transaction up because of another one, so that it may run again.
pub(super) fn is_conflict(error: &Error) -> bool {
    matches!(error.code(), Some("40001" | "40P01"))
}

/// True if the server refuses writes for now.
pub(super) fn is_read_only(error: &Error) -> bool {
    error.code() == Some("25006")
}

/// The error of an operation that got no connection: 08001, unable to establish a connection.
pub(super) fn no_server_answered(limit: std::time::Duration) -> Error {
    let message = format!("the server did not accept a connection within {limit:?}");
    Error::database(Some("08001"), ErrorKind::Unavailable, message)
}

/// The error of an attempt whose server has fallen silent: 08006, connection failure.
pub(super) fn fell_silent(limit: std::time::Duration) -> Error {
    let message = format!("the server accepts no connection within {limit:?}, and another server may have replaced it");
    Error::database(Some("08006"), ErrorKind::Unavailable, message)
}

/// The error of an operation past its deadline.
pub(super) fn past_deadline(limit: std::time::Duration) -> Error {
    let message = format!("the operation did not finish within {limit:?}");
    Error::database(Some("57014"), ErrorKind::Unavailable, message)
}

/// True if the server closed the connection and did not run the statement, or rolled it back: SQLSTATE 57P01 to 57P05
/// (shutdown, idle time-out) without [`CRASH_SHUTDOWN`], or a broken pipe.
pub(super) fn was_disconnected(error: &Error) -> bool {
    error.code().is_some_and(|code| code.starts_with("57P") && code != CRASH_SHUTDOWN) || is_broken_pipe(error)
}

/// True if the server ended a connection that it had accepted, with or without an error message.
pub(super) fn was_cut_off(error: &Error) -> bool {
    let cut = [BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof];
    matches!(error.code(), Some("57P01" | CRASH_SHUTDOWN)) || io_kind(error).is_some_and(|kind| cut.contains(&kind))
}

/// True if no packet reached the server, or none came back.
pub(super) fn is_unreachable(error: &Error) -> bool {
    matches!(io_kind(error), Some(HostUnreachable | NetworkUnreachable | TimedOut))
}

fn is_broken_pipe(error: &Error) -> bool {
    io_kind(error) == Some(BrokenPipe)
}

fn io_kind(error: &Error) -> Option<std::io::ErrorKind> {
    match error.source().and_then(|source| source.downcast_ref::<sqlx::Error>())? {
        sqlx::Error::Io(io) => Some(io.kind()),
        _ => None,
    }
}

/// True if the connection may be used after this error: the server answered and did not close the connection.
pub(super) fn leaves_connection_usable(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Unauthorized | ErrorKind::CursorExpired)
        || error.code().is_some_and(|code| !code.starts_with("57P") && !code.starts_with("08"))
}

/// The error of a write that was sent and failed with `error`. It is [`Error::outcome_unknown`] if the connection was lost
/// before the server answered.
///
/// An answer says that the write failed: a server that ends the connection by an error (57P01) has rolled it back. Two
/// answers do not: [`CRASH_SHUTDOWN`], and class 08, which is what a proxy answers that lost its server. A broken pipe means
/// that the statement did not leave this process whole.
pub(super) fn of_write(error: Error) -> Error {
    let is_answered = error.code().is_some_and(|code| !code.starts_with("08") && code != CRASH_SHUTDOWN);
    if error.kind() != ErrorKind::Unavailable || is_answered || is_broken_pipe(&error) {
        return error;
    }
    Error::outcome_unknown().caused_by(error)
}

/// The server's error without values of rows.
#[derive(Debug)]
#[allow(dead_code, reason = "Debug prints the fields")]
struct ServerError {
    message: String,
    code: Option<String>,
    table: Option<String>,
    constraint: Option<String>,
}

impl From<&dyn sqlx::error::DatabaseError> for ServerError {
    fn from(failure: &dyn sqlx::error::DatabaseError) -> ServerError {
        ServerError {
            message: failure.message().to_owned(),
            code: failure.code().map(std::borrow::Cow::into_owned),
            table: failure.table().map(str::to_owned),
            constraint: failure.constraint().map(str::to_owned),
        }
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServerError {}

/// The kind of a SQLSTATE that SPEC 7's table does not name, by code or by class.
fn kind(code: &str) -> ErrorKind {
    match code {
        "42501" => ErrorKind::Forbidden,
        // 25006: the server or the database is read-only for now, as a standby is.
        "25006" | "40001" | "40P01" | "55P03" => ErrorKind::Unavailable,
        _ => match code.get(..2) {
            // Connection exception, insufficient resources, operator intervention, system error.
            Some("08" | "53" | "57" | "58") => ErrorKind::Unavailable,
            // Data exception, constraint violation, program limit exceeded.
            Some("22" | "23" | "54") => ErrorKind::InvalidInput,
            _ => ErrorKind::Internal,
        },
    }
}

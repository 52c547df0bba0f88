//! Translates SQLite's errors: each result code gets the SQLSTATE that PostgreSQL uses for the same fault (DESIGN 9).

use std::{fs::File, io};

use rusqlite::{Error as SqliteError, ffi};

use crate::{
    database::transfer::{HAS_MOVED, MOVE_RUNS},
    error::{Error, ErrorKind, is_out_of_descriptors},
};

/// SQLite's extended or primary result code, the SQLSTATE of the same meaning, and the error kind.
const CODES: [(i32, &str, ErrorKind); 23] = [
    (ffi::SQLITE_CONSTRAINT_UNIQUE, "23505", ErrorKind::AlreadyExists),
    (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, "23505", ErrorKind::AlreadyExists),
    (ffi::SQLITE_CONSTRAINT_ROWID, "23505", ErrorKind::AlreadyExists),
    (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, "23503", ErrorKind::ReferenceMissing),
    (ffi::SQLITE_CONSTRAINT_NOTNULL, "23502", ErrorKind::FieldMissing),
    (ffi::SQLITE_CONSTRAINT_CHECK, "23514", ErrorKind::InvalidInput),
    // A trigger called RAISE(ABORT, …).
    (ffi::SQLITE_CONSTRAINT_TRIGGER, "P0001", ErrorKind::Internal),
    (ffi::SQLITE_BUSY, "55P03", ErrorKind::Unavailable),
    (ffi::SQLITE_LOCKED, "55P03", ErrorKind::Unavailable),
    (ffi::SQLITE_FULL, "53100", ErrorKind::Unavailable),
    // The file of shared memory of the WAL has no room.
    (ffi::SQLITE_IOERR_SHMSIZE, "53100", ErrorKind::Unavailable),
    (ffi::SQLITE_NOMEM, OUT_OF_MEMORY, ErrorKind::Unavailable),
    (ffi::SQLITE_IOERR_NOMEM, OUT_OF_MEMORY, ErrorKind::Unavailable),
    // The shared memory of the WAL could not be mapped.
    (ffi::SQLITE_IOERR_SHMMAP, OUT_OF_MEMORY, ErrorKind::Unavailable),
    (ffi::SQLITE_IOERR, "58030", ErrorKind::Unavailable),
    (ffi::SQLITE_CANTOPEN, "58030", ErrorKind::Unavailable),
    (ffi::SQLITE_READONLY, "25006", ErrorKind::Unavailable),
    (ffi::SQLITE_PERM, "42501", ErrorKind::Internal),
    (ffi::SQLITE_AUTH, "42501", ErrorKind::Internal),
    (ffi::SQLITE_TOOBIG, "54000", ErrorKind::InvalidInput),
    (ffi::SQLITE_CORRUPT, "XX001", ErrorKind::Internal),
    (ffi::SQLITE_NOTADB, "XX001", ErrorKind::Internal),
    (ffi::SQLITE_INTERRUPT, "57014", ErrorKind::Unavailable),
];

const OUT_OF_MEMORY: &str = "53200";

/// True if the process has too little memory.
pub(super) fn is_out_of_memory(error: &Error) -> bool {
    error.code() == Some(OUT_OF_MEMORY)
}

/// True if another connection held the lock for too long.
pub(super) fn is_busy(error: &Error) -> bool {
    error.code() == Some("55P03")
}

/// The host's error if no file at all can be opened, because the process or the system has no file descriptor left. SQLite does not
/// tell why it cannot open a file.
fn lack_of_descriptors() -> Option<io::Error> {
    // Not a file that may be of a database: closing it would drop the locks of this process.
    let device = if cfg!(unix) { "/dev/null" } else { "NUL" };
    File::open(device).err().filter(is_out_of_descriptors)
}

pub(super) fn translate(error: SqliteError) -> Error {
    let (code, message) = match &error {
        SqliteError::SqliteFailure(failure, message) => (failure.extended_code, message.as_deref()),
        SqliteError::SqlInputError { error, msg, .. } => (error.extended_code, Some(msg.as_str())),
        _ => return Error::database(Some("XX000"), ErrorKind::Internal, &error).caused_by(error),
    };
    let message = message.unwrap_or_else(|| ffi::code_to_str(code)).to_owned();
    if message.starts_with("no such table") {
        let table = message.strip_prefix("no such table: ").unwrap_or_default();
        let table = table.strip_prefix("main.").unwrap_or(table).to_owned();
        return Error::database(Some("42P01"), ErrorKind::TableMissing, message).with_reason(table).caused_by(error);
    }
    if [MOVE_RUNS, HAS_MOVED].contains(&message.as_str()) {
        let has_moved = message == HAS_MOVED;
        let refused = Error::database(Some("25006"), ErrorKind::Unavailable, message).caused_by(error);
        return if has_moved { refused.of_moved_database() } else { refused };
    }
    if code & 0xff == ffi::SQLITE_CANTOPEN
        && let Some(lack) = lack_of_descriptors()
    {
        return Error::database(Some("58030"), ErrorKind::Unavailable, format!("{message}: {lack}")).caused_by(lack);
    }
    // The low byte of an extended code is its primary code.
    let row = [code, code & 0xff].into_iter().find_map(|code| CODES.iter().find(|row| row.0 == code));
    let (code, kind) = row.map_or(("XX000", ErrorKind::Internal), |&(_, code, kind)| (code, kind));
    let error = Error::database(Some(code), kind, &message).caused_by(error);
    if let Some(columns) = message.strip_prefix("UNIQUE constraint failed: ") {
        return error.with_reason(columns.to_owned());
    }
    // The column of "NOT NULL constraint failed: spaces.name".
    let Some(name) = message.strip_prefix("NOT NULL constraint failed: ") else { return error };
    let error = error.with_reason(name.to_owned());
    match name.split_once('.') {
        Some((_, column)) => error.in_column(column.to_owned()),
        None => error,
    }
}

//! The driver's errors in SPEC 7's words.
//!
//! Invariant: what the server says of the row that it refused (its DETAIL) goes no further: there may be a hash in it.

use std::fmt;

use crate::{
    database::session_ended,
    error::{Error, ErrorKind},
};

/// What the function `townsquare.admitted` raises for a session that is over.
const SESSION_ENDED: &str = "TQ401";

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
        return Error::database(None::<String>, kind, "").caused_by(error);
    };
    if failure.code().as_deref() == Some(SESSION_ENDED) {
        return session_ended();
    }
    let code = failure.code().map(std::borrow::Cow::into_owned);
    let kind = code.as_deref().map_or(ErrorKind::Internal, kind);
    Error::database(code, kind, failure.message()).caused_by(Refusal::of(&**failure))
}

/// What the server said, but for the values of rows.
struct Refusal {
    message: String,
    code: Option<String>,
    table: Option<String>,
    constraint: Option<String>,
}

impl Refusal {
    fn of(failure: &dyn sqlx::error::DatabaseError) -> Refusal {
        Refusal {
            message: failure.message().to_owned(),
            code: failure.code().map(std::borrow::Cow::into_owned),
            table: failure.table().map(str::to_owned),
            constraint: failure.constraint().map(str::to_owned),
        }
    }
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Refusal");
        out.field("message", &self.message).field("code", &self.code);
        out.field("table", &self.table).field("constraint", &self.constraint).finish()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The kind of a SQLSTATE outside SPEC 7's table, by code or by class.
fn kind(code: &str) -> ErrorKind {
    match code {
        "42501" => ErrorKind::Forbidden,
        "40001" | "40P01" | "55P03" => ErrorKind::Unavailable,
        _ => match code.get(..2) {
            // Connection lost, out of resources, operator's intervention, system error.
            Some("08" | "53" | "57" | "58") => ErrorKind::Unavailable,
            // Data that does not fit, checks that fail, limits exceeded.
            Some("22" | "23" | "54") => ErrorKind::InvalidInput,
            _ => ErrorKind::Internal,
        },
    }
}

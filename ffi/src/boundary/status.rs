//! Statuses: what a function that can fail returns.
//!
//! Invariant: 0 is success. The number of a failure is the index of its kind in [`ErrorKind::ALL`] plus 1. Numbers are
//! never reused or moved; new kinds are added at the end.

use townsquare::ErrorKind;

use crate::boundary::text::{self, tsq_str};

/// The result of a call. `TSQ_OK` is 0; every other value is the kind of a failure.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_status {
    /// Success.
    TSQ_OK = 0,
    /// A unique value is already in use.
    TSQ_ALREADY_EXISTS = 1,
    /// A referenced row does not exist.
    TSQ_REFERENCE_MISSING = 2,
    /// A required field has no value.
    TSQ_FIELD_MISSING = 3,
    /// A table of the database does not exist.
    TSQ_TABLE_MISSING = 4,
    /// The row or file does not exist, or a policy hides it from the caller.
    TSQ_NOT_FOUND = 5,
    /// An argument is NULL, not UTF-8, malformed or out of range; the message names it.
    TSQ_INVALID_INPUT = 6,
    /// The call needs a user and the caller is anonymous, or the credentials or session are not valid.
    TSQ_UNAUTHORIZED = 7,
    /// The caller is known and a policy denies the call.
    TSQ_FORBIDDEN = 8,
    /// Too many attempts; `tsq_error_retry_after_ms` says how long to wait.
    TSQ_RATE_LIMITED = 9,
    /// A text, a JSON value, a list of rows, a file or a body is over its size limit.
    TSQ_TOO_LARGE = 10,
    /// The database, the upstream or the disk does not answer, or there is no catalog yet. A later try may succeed.
    TSQ_UNAVAILABLE = 11,
    /// The client was closed.
    TSQ_CLOSED = 12,
    /// The configuration is wrong; the message names the option.
    TSQ_CONFIG = 13,
    /// A fault of the library or of the database.
    TSQ_INTERNAL = 14,
    /// The file has another version than `if_match` names: somebody else has written it since.
    TSQ_CONFLICT = 15,
    /// The change feed no longer keeps the changes after the cursor, or the cursor is of another incarnation or history of the database.
    TSQ_CURSOR_EXPIRED = 16,
    /// A callback of the host cancelled the call.
    TSQ_CANCELLED = 17,
    /// The caller would have more than the option `max_owner_bytes`, `max_owner_files`, `max_owner_spaces` or `max_space_fidgets` allows, or more than 100 identity keys.
    TSQ_QUOTA_EXCEEDED = 18,
}

use tsq_status::{
    TSQ_ALREADY_EXISTS, TSQ_CANCELLED, TSQ_CLOSED, TSQ_CONFIG, TSQ_CONFLICT, TSQ_CURSOR_EXPIRED, TSQ_FIELD_MISSING,
    TSQ_FORBIDDEN, TSQ_INTERNAL, TSQ_INVALID_INPUT, TSQ_NOT_FOUND, TSQ_OK, TSQ_QUOTA_EXCEEDED, TSQ_RATE_LIMITED,
    TSQ_REFERENCE_MISSING, TSQ_TABLE_MISSING, TSQ_TOO_LARGE, TSQ_UNAUTHORIZED, TSQ_UNAVAILABLE,
};

/// The failures in the order of [`ErrorKind::ALL`]. A new kind in `ALL` does not compile until it is added here.
const FAILURES: [tsq_status; ErrorKind::ALL.len()] = [
    TSQ_ALREADY_EXISTS,
    TSQ_REFERENCE_MISSING,
    TSQ_FIELD_MISSING,
    TSQ_TABLE_MISSING,
    TSQ_NOT_FOUND,
    TSQ_INVALID_INPUT,
    TSQ_UNAUTHORIZED,
    TSQ_FORBIDDEN,
    TSQ_RATE_LIMITED,
    TSQ_TOO_LARGE,
    TSQ_UNAVAILABLE,
    TSQ_CLOSED,
    TSQ_CONFIG,
    TSQ_INTERNAL,
    TSQ_CONFLICT,
    TSQ_CURSOR_EXPIRED,
    TSQ_CANCELLED,
    TSQ_QUOTA_EXCEEDED,
];

impl From<ErrorKind> for tsq_status {
    fn from(kind: ErrorKind) -> tsq_status {
        let place = ErrorKind::ALL.iter().position(|known| *known == kind);
        place.map_or(TSQ_INTERNAL, |place| FAILURES[place])
    }
}

/// The name of a status: `ok`, `already_exists`, `invalid_input`, …; absent for an unknown number.
///
/// Returns a view that lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tsq_status_name(status: i32) -> tsq_str {
    if status == TSQ_OK as i32 {
        return text::view("ok");
    }
    let kind = ErrorKind::ALL.iter().find(|kind| tsq_status::from(**kind) as i32 == status);
    text::optional_view(kind.map(|kind| kind.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_the_kinds() {
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            let status = tsq_status::from(kind);
            assert_eq!(status as usize, place + 1);
            assert_eq!(format!("{status:?}"), format!("TSQ_{}", kind.as_str().to_uppercase()));
        }
    }
}

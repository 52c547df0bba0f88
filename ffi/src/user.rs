//! One user: somebody with an account (SPEC 2.5).
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing.

use serde::Serialize;
use townsquare::User;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    handle::{self, Handle},
    id::Id,
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// One user. Owned where a call returns it by itself, and then ended with `tsq_user_free`; else a view into its session.
/// All that is read from it lives as long as the user or the session. It never changes and outlives its client.
pub struct tsq_user {
    _opaque: [u8; 0],
}

impl Handle for tsq_user {
    type Value = UserRecord;
}

/// The value behind a [`tsq_user`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct UserRecord {
    user: User,
    #[serde(skip)]
    id: Id,
}

impl From<User> for UserRecord {
    fn from(user: User) -> UserRecord {
        UserRecord { id: user.id.into(), user }
    }
}

/// The user's id: a UUID.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_id(user: *const tsq_user) -> tsq_str {
    // SAFETY: `user` is NULL or live, by the manual.
    unsafe { read(user, |record| record.id.view()) }
}

/// The e-mail address, trimmed and in lower case.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_email(user: *const tsq_user) -> tsq_str {
    // SAFETY: `user` is NULL or live, by the manual.
    unsafe { read(user, |record| text::view(&record.user.email)) }
}

/// When the user signed up: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_created_at(user: *const tsq_user) -> i64 {
    // SAFETY: `user` is NULL or live, by the manual.
    unsafe { read(user, |record| record.user.created_at.as_microsecond()) }
}

/// When the user last changed, never going back: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_updated_at(user: *const tsq_user) -> i64 {
    // SAFETY: `user` is NULL or live, by the manual.
    unsafe { read(user, |record| record.user.updated_at.as_microsecond()) }
}

/// The user as a JSON object: the columns by their names.
///
/// Borrows `user`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_json(
    user: *const tsq_user,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(user, "user")?)) }
}

/// Ends a user that a call returned by itself. Takes `user`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_free(user: *mut tsq_user) {
    // SAFETY: `user` is NULL or owned by the caller, by the manual.
    unsafe { free(user) }
}

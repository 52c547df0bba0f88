//! One session: what proves that somebody is signed in (SPEC 5.3).
//!
//! Invariant: a record is complete when it is made: reading it is a view and allocates nothing. Its tokens leave it by
//! the two functions of their names and by the JSON that is asked for, no other way.

use std::ptr;

use serde::Serialize;
use townsquare::Session;

use crate::{
    boundary::{free, produce, read},
    error::tsq_error,
    handle::{self, Handle},
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
    user::{UserRecord, tsq_user},
};

/// One session, with the two tokens that stand for it: who has them is the user. Owned where a call returns it, and then
/// ended with `tsq_session_free`; else a view that a callback is given. All that is read from it lives as long. It never
/// changes, also when its client's session does, and outlives its client.
pub struct tsq_session {
    _opaque: [u8; 0],
}

impl Handle for tsq_session {
    type Value = SessionRecord;
}

/// The value behind a [`tsq_session`]; as JSON, the core's record.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct SessionRecord {
    session: Session,
    #[serde(skip)]
    user: UserRecord,
}

impl From<Session> for SessionRecord {
    fn from(session: Session) -> SessionRecord {
        SessionRecord { user: session.user.clone().into(), session }
    }
}

/// Shows who is calling (`tsq_client_as_user`), for an hour. A secret.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_access_token(session: *const tsq_session) -> tsq_str {
    // SAFETY: `session` is NULL or live, by the manual.
    unsafe { read(session, |record| text::view(&record.session.access_token)) }
}

/// Gets the next pair of tokens, once, within 30 days. A secret; empty where only the access token is known, on a handle
/// of `tsq_client_as_user`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_refresh_token(session: *const tsq_session) -> tsq_str {
    // SAFETY: `session` is NULL or live, by the manual.
    unsafe { read(session, |record| text::view(&record.session.refresh_token)) }
}

/// When the access token ends: microseconds since 1970-01-01T00:00:00Z.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_expires_at(session: *const tsq_session) -> i64 {
    // SAFETY: `session` is NULL or live, by the manual.
    unsafe { read(session, |record| record.session.expires_at.as_microsecond()) }
}

/// Whose session it is; NULL for NULL.
///
/// Returns a view: it is not to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_user(session: *const tsq_session) -> *const tsq_user {
    // SAFETY: `session` is NULL or live, by the manual.
    unsafe { read(session, |record| handle::view(&record.user)) }
}

/// The session as a JSON object: `access_token`, `refresh_token`, `expires_at` and `user`. It holds both tokens: keep it
/// out of logs.
///
/// Borrows `session`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_json(
    session: *const tsq_session,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { produce(None, out, err, || text::json(handle::required(session, "session")?)) }
}

/// Ends a session object that a call returned; the session itself goes on. Takes `session`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_free(session: *mut tsq_session) {
    // SAFETY: `session` is NULL or owned by the caller, by the manual.
    unsafe { free(session) }
}

/// What a callback is shown of a session: a view, NULL for none.
pub(crate) fn optional_view(session: Option<&SessionRecord>) -> *const tsq_session {
    session.map_or(ptr::null(), handle::view)
}

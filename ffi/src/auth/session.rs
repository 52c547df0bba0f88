//! Sessions: the struct of a session with its tokens and its user (SPEC 5.3).
//!
//! Invariant: the tokens leave the library in the members of the struct and in the JSON that a call asks for, and in no
//! error and no log.

use std::ptr;

use serde::Serialize;
use townsquare::auth::Session;

use crate::{
    auth::user::tsq_user,
    boundary::{
        Memory, Nested, OwnedRecord, Record, call_handle, free, handle, json, record, text, tsq_error, tsq_status,
        tsq_str, tsq_string,
    },
};

/// A session with its two tokens; both are secrets. A record (manual, RECORDS); freed with `tsq_session_free` where a
/// call returns it owned. It does not change when the client's session does.
#[repr(C)]
pub struct tsq_session {
    /// Proves the user to `tsq_client_as_user`; valid for an hour.
    pub access_token: tsq_str,
    /// Exchanged once, within 30 days, for the next pair of tokens. Empty on a handle of `tsq_client_as_user`, which
    /// knows only the access token.
    pub refresh_token: tsq_str,
    /// End of the access token, in microseconds.
    pub expires_at: i64,
    /// The signed-in user; never NULL.
    pub user: *const tsq_user,
}

/// The core's session; as JSON, the session.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct SessionRow {
    session: Session,
    #[serde(skip)]
    user: Nested<OwnedRecord<tsq_user>>,
}

impl From<Session> for SessionRow {
    fn from(session: Session) -> SessionRow {
        SessionRow { user: record(session.user.clone()).into(), session }
    }
}

impl Record for tsq_session {
    type Source = SessionRow;

    fn new(row: &SessionRow, _: &mut Memory) -> tsq_session {
        tsq_session {
            access_token: text::view(&row.session.access_token),
            refresh_token: text::view(&row.session.refresh_token),
            expires_at: row.session.expires_at.as_microsecond(),
            user: row.user.view(),
        }
    }
}

/// A view of an optional session, for a callback.
pub(crate) fn optional_view(session: Option<&OwnedRecord<tsq_session>>) -> *const tsq_session {
    session.map_or(ptr::null(), handle::view)
}

/// The session as a JSON object: `access_token`, `refresh_token`, `expires_at` and `user`. It contains both tokens: do
/// not log it.
///
/// Borrows `session`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_json(
    session: *const tsq_session,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(session, "session")?)) }
}

/// Frees a session object that a call returned owned; the session itself stays valid. Takes `session`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_free(session: *mut tsq_session) {
    // SAFETY: `session` is NULL or owned by the caller, by the manual.
    unsafe { free(session) }
}

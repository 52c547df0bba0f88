//! The sessions of any user, for the service: listing them without tokens, and ending them.

use townsquare::{Operation, auth::SessionInfo};

use crate::{
    boundary::{
        Handle, Memory, Record, RecordList, argument, call_count, call_handle, call_unit, free, handle, json, list,
        read, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    client::{self, tsq_client},
};

/// A session of a user, without tokens. A record (manual, RECORDS).
#[repr(C)]
pub struct tsq_session_info {
    /// The id of the session, a UUID. A refresh replaces the tokens and keeps the id.
    pub id: tsq_str,
    /// Time of the sign-in, in microseconds.
    pub created_at: i64,
    /// Time at which the session got its present tokens, in microseconds: at sign-in, or at the last refresh.
    pub refreshed_at: i64,
    /// Time at which the session ends unless it is refreshed before, in microseconds.
    pub expires_at: i64,
}

impl Record for tsq_session_info {
    type Source = SessionInfo;

    fn new(session: &SessionInfo, memory: &mut Memory) -> tsq_session_info {
        tsq_session_info {
            id: memory.id(session.id),
            created_at: session.created_at.as_microsecond(),
            refreshed_at: session.refreshed_at.as_microsecond(),
            expires_at: session.expires_at.as_microsecond(),
        }
    }
}

/// A list of sessions. Owned, freed with `tsq_session_infos_free`.
pub struct tsq_session_infos {
    _opaque: [u8; 0],
}

impl Handle for tsq_session_infos {
    type Value = RecordList<tsq_session_info>;
}

/// The number of sessions; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_infos_len(list: *const tsq_session_infos) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The session at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_infos_at(list: *const tsq_session_infos, index: usize) -> *const tsq_session_info {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of objects: `id`, `created_at`, `refreshed_at` and `expires_at`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_infos_json(
    list: *const tsq_session_infos,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its items; the sessions themselves go on. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_session_infos_free(list: *mut tsq_session_infos) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

/// Lists the sessions of a user that have not ended, the latest first; none for a user that does not exist. The service only.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sessions_of(
    client: *const tsq_client,
    user_id: tsq_str,
    out: *mut *mut tsq_session_infos,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::SessionsOf), out, err, || {
            let auth = client::usable(client)?.auth();
            Ok(list(auth.sessions_of(argument::id(user_id, "user_id")?)?))
        })
    }
}

/// Ends a session of a user, by its id in `tsq_auth_sessions_of`. Its tokens are refused from then on, and its streams
/// end. An upload of a large file completes once its bytes are staged; others store nothing. The service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` if the user has no such session, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers
/// other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_end_session(
    client: *const tsq_client,
    user_id: tsq_str,
    session_id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::EndSession), err, || {
            let (auth, user_id) = (client::usable(client)?.auth(), argument::id(user_id, "user_id")?);
            Ok(auth.end_session(user_id, argument::id(session_id, "session_id")?)?)
        })
    }
}

/// Ends every session of a user, and the user's signed URLs. `*out` is the number of sessions. The service only.
///
/// Borrows all. Sets `*out` to 0 after a failure. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other than the
/// service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_end_sessions(
    client: *const tsq_client,
    user_id: tsq_str,
    out: *mut u64,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_count(Some(Operation::EndSessions), out, err, || {
            let auth = client::usable(client)?.auth();
            Ok(auth.end_sessions(argument::id(user_id, "user_id")?)?)
        })
    }
}

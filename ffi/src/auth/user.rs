//! Users: the struct of a row (SPEC 2.5).

use townsquare::{Timestamp, auth::User};

use crate::boundary::{
    Handle, Memory, Record, RecordList, call_handle, free, handle, json, read, text, tsq_error, tsq_status, tsq_str,
    tsq_string,
};

/// A user. A record (manual, RECORDS); freed with `tsq_user_free` where a call returns it owned.
#[repr(C)]
pub struct tsq_user {
    /// Primary key: a UUID.
    pub id: tsq_str,
    /// The e-mail address, trimmed and in lower case.
    pub email: tsq_str,
    /// Time of the sign-up, in microseconds.
    pub created_at: i64,
    /// Time of the last change, in microseconds; never goes back.
    pub updated_at: i64,
    /// Whether `email_verified_at` has a value.
    pub has_email_verified_at: bool,
    /// Time at which the user proved to receive mail at the address, in microseconds; 0 without one.
    pub email_verified_at: i64,
}

impl Record for tsq_user {
    type Source = User;

    fn new(user: &User, memory: &mut Memory) -> tsq_user {
        tsq_user {
            id: memory.id(user.id),
            email: text::view(&user.email),
            created_at: user.created_at.as_microsecond(),
            updated_at: user.updated_at.as_microsecond(),
            has_email_verified_at: user.email_verified_at.is_some(),
            email_verified_at: user.email_verified_at.map_or(0, Timestamp::as_microsecond),
        }
    }
}

/// The user as a JSON object: its columns by their names.
///
/// Borrows `user`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_json(
    user: *const tsq_user,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(user, "user")?)) }
}

/// Frees a user that a call returned owned. Takes `user`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_free(user: *mut tsq_user) {
    // SAFETY: `user` is NULL or owned by the caller, by the manual.
    unsafe { free(user) }
}

/// A list of users. Freed with `tsq_user_list_free`.
pub struct tsq_user_list {
    _opaque: [u8; 0],
}

impl Handle for tsq_user_list {
    type Value = RecordList<tsq_user>;
}

/// The number of users; 0 for NULL.
///
/// Borrows `list`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_list_len(list: *const tsq_user_list) -> usize {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, RecordList::len) }
}

/// The user at `index`, counted from 0; NULL beyond the end.
///
/// Borrows `list`; returns a view that lives as long as the list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_list_at(list: *const tsq_user_list, index: usize) -> *const tsq_user {
    // SAFETY: `list` is NULL or live, by the manual.
    unsafe { read(list, |list| list.at(index)) }
}

/// The list as a JSON array of the objects of `tsq_user_json`.
///
/// Borrows `list`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_list_json(
    list: *const tsq_user_list,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(list, "list")?)) }
}

/// Frees a list with its users. Takes `list`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_user_list_free(list: *mut tsq_user_list) {
    // SAFETY: `list` is NULL or owned by the caller, by the manual.
    unsafe { free(list) }
}

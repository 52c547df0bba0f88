//! Operations on accounts and sessions (SPEC 5.3).
//!
//! Invariant: each function is the core's method of the same name, after it converted the arguments.
//! Passwords and tokens are borrowed for the call and appear in no message.

pub(crate) mod user;

pub(crate) mod user_patch;

pub(crate) mod session;

pub(crate) mod session_info;

pub(crate) mod auth_event;

pub(crate) mod identity_claim;

pub(crate) mod identities;

pub(crate) mod new_credential;

pub(crate) mod import_report;

pub(crate) mod sign_out_scope;

use std::mem::MaybeUninit;

use townsquare::{Json, Operation, blocking};

use crate::{
    auth::{
        identities::tsq_identities,
        import_report::tsq_import_report,
        new_credential::tsq_new_credential,
        session::tsq_session,
        sign_out_scope::tsq_sign_out_scope,
        user::{tsq_user, tsq_user_list},
        user_patch::tsq_user_patch,
    },
    boundary::{
        Failure, Terminated, argument, call_handle, call_optional_handle, call_unit, call_wanted_handle,
        input::{input, input_array},
        list, record, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    client::{self, tsq_client},
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn auth<'a>(client: *const tsq_client) -> Result<blocking::Auth<'a>, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { client::usable(client) }?.auth())
}

/// Creates an account without signing in. The address is stored trimmed and in lower case. A password has 8 to 1,024
/// bytes.
///
/// Borrows all; returns the user owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for an address with
/// an account, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_up(
    client: *const tsq_client,
    email: tsq_str,
    password: tsq_str,
    out: *mut *mut tsq_user,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SignUp), out, err, || {
            let auth = auth(client)?;
            let (email, password) = (argument::text(email, "email")?, argument::text(password, "password")?);
            Ok(record(auth.sign_up(email, password)?))
        })
    }
}

/// Signs in: the handle acts as this user from now on. A handle of `tsq_client_as_user` or `tsq_client_as_service`
/// keeps its caller; there the call only creates a session, and a server hands out its tokens.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for an unknown
/// address and for a wrong password alike, `TSQ_RATE_LIMITED` after too many failures of the address
/// (`tsq_error_retry_after_ms`), `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_in(
    client: *const tsq_client,
    email: tsq_str,
    password: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SignIn), out, err, || {
            let auth = auth(client)?;
            let (email, password) = (argument::text(email, "email")?, argument::text(password, "password")?);
            Ok(record(auth.sign_in(email, password)?))
        })
    }
}

/// Creates a session for the user of a request; a server hands out its tokens. The handle's caller does not change. On a
/// handle of `tsq_client_with_client_key` each client has its own limit of guesses, before the limit of all clients.
///
/// Borrows all; returns the session owned in `out`. Fails as `tsq_auth_sign_in`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_create_session(
    client: *const tsq_client,
    email: tsq_str,
    password: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::SignIn), out, err, || {
            let auth = auth(client)?;
            let (email, password) = (argument::text(email, "email")?, argument::text(password, "password")?);
            Ok(record(auth.create_session(email, password)?))
        })
    }
}

/// Ends the session in every handle and process that uses it. Succeeds without a session, too.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`, and when the database fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_out(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_unit(Some(Operation::SignOut), err, || Ok(auth(client)?.sign_out()?)) }
}

/// Ends the sessions of `scope`: the handle's own, the user's other sessions, or all of them. Does nothing without a
/// session.
///
/// Borrows `client`. Fails with `TSQ_UNAUTHORIZED` for the scopes other than `TSQ_SIGN_OUT_LOCAL` when the session has
/// ended, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_out_scope(
    client: *const tsq_client,
    scope: MaybeUninit<tsq_sign_out_scope>,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::SignOut), err, || Ok(auth(client)?.sign_out_scope(sign_out_scope::read(scope)?)?))
    }
}

/// Reads the current session. An expired access token is refreshed first. After NULL an opened client is anonymous, also if its
/// session has ended elsewhere: its calls no longer fail with `TSQ_UNAUTHORIZED`. Those of a handle of `tsq_client_as_user` go on failing.
///
/// Borrows `client`; returns owned in `out`: NULL without a session. Fails with `TSQ_CLOSED`, and when the database
/// fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_get_session(
    client: *const tsq_client,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::GetSession), out, err, || Ok(auth(client)?.get_session()?.map(record)))
    }
}

/// Replaces both tokens of the session. The library does this by itself before the access token expires.
///
/// Borrows `client`; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` without a
/// session or when it has ended, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_refresh_session(
    client: *const tsq_client,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::RefreshSession), out, err, || Ok(record(auth(client)?.refresh_session()?)))
    }
}

/// Replaces both tokens of the session with this refresh token, for servers. The handle changes only when the session
/// is its own.
///
/// Borrows all; returns the session owned in `out`. Fails with `TSQ_UNAUTHORIZED` for a token that is unknown or
/// expired, or that was used before, which also ends its session; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`. After a lost
/// reply the call may be repeated: for 10 s the same refresh token gives the same new tokens, unless these were used in turn.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_refresh_session_of(
    client: *const tsq_client,
    refresh_token: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::RefreshSession), out, err, || {
            Ok(record(auth(client)?.refresh_session_of(argument::text(refresh_token, "refresh_token")?)?))
        })
    }
}

/// Resumes a session from a stored refresh token: the handle acts as its user from now on, with new tokens.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails like `tsq_auth_refresh_session_of`, and
/// with `TSQ_INVALID_INPUT` on a handle of `tsq_client_as_user` or `tsq_client_as_service`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_set_session(
    client: *const tsq_client,
    refresh_token: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::SetSession), out, err, || {
            Ok(record(auth(client)?.set_session(argument::text(refresh_token, "refresh_token")?)?))
        })
    }
}

/// Changes the signed-in user's address or password and ends the user's other sessions. A zeroed patch only checks the
/// password. A new password also replaces both tokens of this session: `tsq_auth_get_session` returns the new ones.
///
/// Borrows all; returns the changed user owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` without a
/// session or for a wrong password, `TSQ_RATE_LIMITED`, `TSQ_ALREADY_EXISTS` for an address with an account,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_update_user(
    client: *const tsq_client,
    current_password: tsq_str,
    patch: *const tsq_user_patch,
    out: *mut *mut tsq_user,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::UpdateUser), out, err, || {
            let (auth, password) = (auth(client)?, argument::text(current_password, "current_password")?);
            let patch = input(patch, "patch", |patch: &tsq_user_patch| patch.read())?;
            Ok(record(auth.update_user(password, patch)?))
        })
    }
}

/// Deletes the signed-in user as tsq_auth_delete_user does.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` without a session or for a wrong password, `TSQ_RATE_LIMITED`,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_delete_own_user(
    client: *const tsq_client,
    current_password: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::DeleteUser), err, || {
            Ok(auth(client)?.delete_own_user(argument::text(current_password, "current_password")?)?)
        })
    }
}

/// Deletes a user with their spaces, fidgets, private files and sessions. The service only. If the user has more than 100
/// spaces, 32 fidgets or 100 files, most of them are deleted in steps before; a call that fails may have deleted some of
/// them, and can be repeated.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other
/// than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_delete_user(
    client: *const tsq_client,
    user_id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::DeleteUser), err, || {
            let auth = auth(client)?;
            Ok(auth.delete_user(argument::id(user_id, "user_id")?)?)
        })
    }
}

/// Links an identity key to the signed-in user, by a claim of `tsq_identity_claim`. Linking a key again does nothing. A
/// user with a linked key may set the navigation of communities that list the key in `admin_identity_public_keys`.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` without a session, and for a claim with a wrong signature, of another
/// user or for another audience, older than five minutes or more than a minute in the future; `TSQ_ALREADY_EXISTS` for a key that another user has linked;
/// `TSQ_QUOTA_EXCEEDED` for a user who has linked 100 other keys; `TSQ_INVALID_INPUT` for text that is not a claim; `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_link_identity(
    client: *const tsq_client,
    claim: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::LinkIdentity), err, || {
            let (auth, claim) = (auth(client)?, argument::optional_json(claim, "claim")?);
            Ok(auth.link_identity(&claim.unwrap_or(Json::Null))?)
        })
    }
}

/// Removes an identity key, in 64 hex digits, from the signed-in user. Its rights end at once.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` without a session, `TSQ_NOT_FOUND` for a key that the user has not linked,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_unlink_identity(
    client: *const tsq_client,
    public_key: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::UnlinkIdentity), err, || {
            Ok(auth(client)?.unlink_identity(argument::text(public_key, "public_key")?)?)
        })
    }
}

/// Lists the identity keys of the signed-in user, in the order in which they were linked.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` without a session, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_identities(
    client: *const tsq_client,
    out: *mut *mut tsq_identities,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(Some(Operation::Identities), out, err, || Ok(record(auth(client)?.identities()?))) }
}

/// Lists the identity keys of a user, in the order in which they were linked; none for a user that does not exist. The service
/// only.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other callers,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_identities_of(
    client: *const tsq_client,
    user_id: tsq_str,
    out: *mut *mut tsq_identities,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::Identities), out, err, || {
            Ok(record(auth(client)?.identities_of(argument::id(user_id, "user_id")?)?))
        })
    }
}

/// Reads the audience that identity claims must be for: the option `identity_audience`, by default the incarnation id of
/// the database.
///
/// Borrows `client`; returns owned in `out`. Fails with `TSQ_CLOSED`, and when the database fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_identity_audience(
    client: *const tsq_client,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::IdentityAudience), out, err, || {
            Ok(Terminated::new(auth(client)?.identity_audience()?))
        })
    }
}

/// Makes a token with which the user with this address can recover the account; the program mails it to the stored address
/// (`tsq_auth_find_user`), never to the address that was asked for, and gives the same answer for a known and for an
/// unknown address. The service only. The token works once, within an hour, while
/// the user has this address and password.
///
/// Borrows all; returns owned in `out`: NULL for an unknown address. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for
/// callers other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_create_recovery_token(
    client: *const tsq_client,
    email: tsq_str,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::CreateRecoveryToken), out, err, || {
            let auth = auth(client)?;
            let token = auth.create_recovery_token(argument::text(email, "email")?)?;
            Ok(token.map(Terminated::new))
        })
    }
}

/// Uses a recovery token: sets the password, ends every session of the user, and signs in like `tsq_auth_sign_in`.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for a token that is
/// unknown, used, expired or void, `TSQ_INVALID_INPUT` for a password that is not 8 to 1,024 bytes long,
/// `TSQ_RATE_LIMITED`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_recover(
    client: *const tsq_client,
    recovery_token: tsq_str,
    new_password: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::Recover), out, err, || {
            let (auth, token) = (auth(client)?, argument::text(recovery_token, "recovery_token")?);
            Ok(record(auth.recover(token, argument::text(new_password, "new_password")?)?))
        })
    }
}

/// Makes a token with which a user proves that they receive mail at the present address; the program mails it. The service only.
/// The token works once, within a day, while the user has this address.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_create_verification_token(
    client: *const tsq_client,
    user_id: tsq_str,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::CreateVerificationToken), out, err, || {
            let auth = auth(client)?;
            let token = auth.create_verification_token(argument::id(user_id, "user_id")?)?;
            Ok(Terminated::new(token))
        })
    }
}

/// Uses a verification token: sets the user's `email_verified_at`. Every caller may do this; it signs nobody in.
///
/// Borrows all; returns the user owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for a token that is
/// unknown, used, expired or void, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_verify_email(
    client: *const tsq_client,
    verification_token: tsq_str,
    out: *mut *mut tsq_user,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::VerifyEmail), out, err, || {
            Ok(record(auth(client)?.verify_email(argument::text(verification_token, "verification_token")?)?))
        })
    }
}

/// Lists the `limit` users that follow `after`, by id; the first ones when `after` is absent. For the service. A page has
/// fewer rows when they take more than 64 MiB of memory: only an empty page is the last one.
///
/// Borrows all (`after` is the id of the last user of the page before); returns owned in `out`. Fails with `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for other
/// callers, `TSQ_INVALID_INPUT` for a limit outside 1 to 1,000, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_list_users(
    client: *const tsq_client,
    limit: u32,
    after: tsq_str,
    out: *mut *mut tsq_user_list,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ListUsers), out, err, || {
            Ok(list(auth(client)?.list_users(limit, argument::optional_id(after, "after")?)?))
        })
    }
}

/// Finds the user with an address, in any case. The service only.
///
/// Borrows all; returns owned in `out`: NULL when no user has the address. Fails with `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_find_user(
    client: *const tsq_client,
    email: tsq_str,
    out: *mut *mut tsq_user,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::FindUser), out, err, || {
            Ok(auth(client)?.find_user(argument::text(email, "email")?)?.map(record))
        })
    }
}

/// Sets a user's password and ends every session of the user. The service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other
/// than the service, `TSQ_RATE_LIMITED`, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_set_password(
    client: *const tsq_client,
    user_id: tsq_str,
    password: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_unit(Some(Operation::SetPassword), err, || {
            let (auth, user_id) = (auth(client)?, argument::id(user_id, "user_id")?);
            Ok(auth.set_password(user_id, argument::text(password, "password")?)?)
        })
    }
}

/// Gives existing users the passwords that another system hashed, all or none. A user who has a password keeps it. The
/// service only. The first sign-in replaces a bcrypt hash by Argon2id; the lengths of new passwords do not bind imported
/// ones. Hashes are bcrypt (`$2a$`, `$2b$`, `$2y$`, costs 4 to 14) or Argon2 in PHC format (up to 256 MiB, and 1 GiB over
/// all passes).
///
/// Borrows all (`rows` is an array of `rows_len`, `item_size` is `sizeof(tsq_new_credential)`); returns owned in `out`,
/// which may be NULL. Fails with `TSQ_INVALID_INPUT` for a hash that cannot be used, for a row without a user and for two rows of one user,
/// `TSQ_REFERENCE_MISSING` for an unknown user (`tsq_error_row` is the index), `TSQ_TOO_LARGE`, `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service, `TSQ_CLOSED`. No message shows a hash.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_import_credentials(
    client: *const tsq_client,
    rows: *const tsq_new_credential,
    rows_len: usize,
    item_size: usize,
    out: *mut *mut tsq_import_report,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::ImportCredentials), out, err, || {
            let auth = auth(client)?;
            let rows = input_array(rows, rows_len, item_size, "rows", |row: &tsq_new_credential| row.read())?;
            Ok(record(auth.import_credentials(rows)?))
        })
    }
}

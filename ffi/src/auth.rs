//! Sign-in: accounts, sessions, and who a client acts for (SPEC 5.3).
//!
//! Invariant: each function is the core's method of the same name, with nothing before it but reading the arguments.
//! Passwords and tokens are borrowed for the call, and no message repeats them.

use std::ffi::c_void;

use townsquare::{Auth, Json, Operation, blocking::wait};

use crate::{
    auth_event::tsq_auth_callback,
    boundary::{act, produce, produce_if_any, produce_if_wanted},
    callback::{Callback, tsq_destroy},
    client::tsq_client,
    error::{Failure, tsq_error},
    handle, id, json_text,
    session::{self, SessionRecord, tsq_session},
    status::tsq_status,
    structs,
    subscription::tsq_subscription,
    text::{self, tsq_str},
    user::tsq_user,
    user_patch::tsq_user_patch,
};

/// # Safety
/// `client` is NULL or lives for `'a`.
unsafe fn auth<'a>(client: *const tsq_client) -> Result<&'a Auth, Failure> {
    // SAFETY: the caller's promise, passed on.
    Ok(unsafe { handle::required(client, "client") }?.inner().auth())
}

/// Makes an account; signs nobody in. The address is kept trimmed and in lower case; a password has 8 to 1,024 bytes.
///
/// Borrows all; returns the user owned in `out`, which may be NULL. Fails with `TSQ_ALREADY_EXISTS` for an address that has
/// an account, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_up(
    client: *const tsq_client,
    email: tsq_str,
    password: tsq_str,
    out: *mut *mut tsq_user,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::SignUp), out, err, || {
            let auth = auth(client)?;
            let (email, password) = (text::required(email, "email")?, text::required(password, "password")?);
            Ok(wait(auth.sign_up(email, password))?.into())
        })
    }
}

/// Signs in: the client acts as this user from here on. A handle of `tsq_client_as_user` or `tsq_client_as_service` keeps
/// its caller and only makes a session, to be handed out.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` for an unknown address
/// and for a wrong password alike, `TSQ_RATE_LIMITED` for an address with too many failures (`tsq_error_retry_after_ms`),
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_in(
    client: *const tsq_client,
    email: tsq_str,
    password: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::SignIn), out, err, || {
            let auth = auth(client)?;
            let (email, password) = (text::required(email, "email")?, text::required(password, "password")?);
            Ok(wait(auth.sign_in(email, password))?.into())
        })
    }
}

/// Ends the session, for every handle and process that uses it. Works when nobody is signed in, too.
///
/// Borrows `client`. Fails with `TSQ_CLOSED`, and as the database does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_sign_out(client: *const tsq_client, err: *mut *mut tsq_error) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe { act(Some(Operation::SignOut), err, || Ok(wait(auth(client)?.sign_out())?)) }
}

/// The session, if there is one and it has not ended; an access token that is too old is refreshed first.
///
/// Borrows `client`; returns owned in `out`: NULL when nobody is signed in. Fails with `TSQ_CLOSED`, and as the database
/// does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_get_session(
    client: *const tsq_client,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_any(Some(Operation::GetSession), out, err, || {
            Ok(wait(auth(client)?.get_session())?.map(SessionRecord::from))
        })
    }
}

/// New tokens for the client's session; both old ones die. It happens by itself before the access token ends.
///
/// Borrows `client`; returns the session owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` when nobody is
/// signed in or the session has ended, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_refresh_session(
    client: *const tsq_client,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::RefreshSession), out, err, || {
            Ok(wait(auth(client)?.refresh_session())?.into())
        })
    }
}

/// New tokens for the session of this refresh token, for servers: no handle changes, unless the session is its own.
///
/// Borrows all; returns the session owned in `out`. Fails with `TSQ_UNAUTHORIZED` for a token that is none, has expired or
/// was used before, which also ends its session; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_refresh_session_of(
    client: *const tsq_client,
    refresh_token: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(Some(Operation::RefreshSession), out, err, || {
            let auth = auth(client)?;
            Ok(wait(auth.refresh_session_of(text::required(refresh_token, "refresh_token")?))?.into())
        })
    }
}

/// Takes up a session that was kept elsewhere: the client acts as its user from here on, with new tokens.
///
/// Borrows all; returns the session owned in `out`, which may be NULL. Fails as `tsq_auth_refresh_session_of` does, and with
/// `TSQ_INVALID_INPUT` on a handle of `tsq_client_as_user` or `tsq_client_as_service`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_set_session(
    client: *const tsq_client,
    refresh_token: tsq_str,
    out: *mut *mut tsq_session,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::SetSession), out, err, || {
            let auth = auth(client)?;
            Ok(wait(auth.set_session(text::required(refresh_token, "refresh_token")?))?.into())
        })
    }
}

/// Changes the signed-in user's address or password, and ends all the user's other sessions. A patch of nothing only
/// checks the password.
///
/// Borrows all; returns the user as it is now owned in `out`, which may be NULL. Fails with `TSQ_UNAUTHORIZED` when nobody
/// is signed in or the password is wrong, `TSQ_RATE_LIMITED`, `TSQ_ALREADY_EXISTS` for an address that has an account,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_update_user(
    client: *const tsq_client,
    current_password: tsq_str,
    patch: *const tsq_user_patch,
    out: *mut *mut tsq_user,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce_if_wanted(Some(Operation::UpdateUser), out, err, || {
            let (auth, password) = (auth(client)?, text::required(current_password, "current_password")?);
            let patch = structs::required(patch, "patch", |patch: &tsq_user_patch| patch.read())?;
            Ok(wait(auth.update_user(password, patch))?.into())
        })
    }
}

/// Deletes one's own account with everything that belongs to it: spaces, fidgets, sessions.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` when nobody is signed in or the password is wrong, `TSQ_RATE_LIMITED`,
/// `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_delete_own_user(
    client: *const tsq_client,
    current_password: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::DeleteUser), err, || {
            let auth = auth(client)?;
            Ok(wait(auth.delete_own_user(text::required(current_password, "current_password")?))?)
        })
    }
}

/// Deletes a user with everything that belongs to it; the service only.
///
/// Borrows all. Fails with `TSQ_NOT_FOUND` for an unknown user, `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for anybody but the
/// service, `TSQ_INVALID_INPUT`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_delete_user(
    client: *const tsq_client,
    user_id: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::DeleteUser), err, || {
            let auth = auth(client)?;
            Ok(wait(auth.delete_user(id::required(user_id, "user_id")?))?)
        })
    }
}

/// Links an identity key to the signed-in user, by a claim of `tsq_identity_claim`. Again does nothing. Who has linked one
/// of a community's `admin_identity_public_keys` may set its navigation.
///
/// Borrows all. Fails with `TSQ_UNAUTHORIZED` when nobody is signed in, and for a claim that is wrong, another user's, older
/// than five minutes or from the future; `TSQ_ALREADY_EXISTS` for a key that another user has linked; `TSQ_INVALID_INPUT`
/// for what is no claim; `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_link_identity(
    client: *const tsq_client,
    claim: tsq_str,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        act(Some(Operation::LinkIdentity), err, || {
            let (auth, claim) = (auth(client)?, json_text::optional(claim, "claim")?);
            Ok(wait(auth.link_identity(&claim.unwrap_or(Json::Null)))?)
        })
    }
}

/// Has `callback` called with `TSQ_INITIAL_SESSION` and the session there is, then with every event of this handle's
/// session, in order. See CALLBACKS in the manual.
///
/// Borrows `client`; takes `user_data`: `destroy` (which may be NULL) ends it, also when this call fails. Returns the
/// subscription owned in `out`, which may be NULL: it then lasts as long as the handle. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_auth_on_auth_state_change(
    client: *const tsq_client,
    callback: tsq_auth_callback,
    user_data: *mut c_void,
    destroy: tsq_destroy,
    out: *mut *mut tsq_subscription,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        let callback = Callback::take(callback, user_data, destroy);
        produce_if_wanted(None, out, err, move || {
            let (callback, auth) = (callback?, auth(client)?);
            Ok(auth.on_auth_state_change(move |event, session| {
                let session = session.map(SessionRecord::from);
                let (function, user_data) = callback.parts();
                function(event.into(), session::optional_view(session.as_ref()), user_data);
            }))
        })
    }
}

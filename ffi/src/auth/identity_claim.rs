//! Identity claims: signed statements that a user holds an identity key.

use townsquare::{Timestamp, auth::identity_claim};

use crate::boundary::{Failure, argument, call_handle, json, tsq_error, tsq_status, tsq_str, tsq_string};

/// Signs a claim for `tsq_auth_link_identity` that the user holds this Ed25519 key. The claim is a JSON object:
/// `{"audience", "publicKey", "signature", "timestamp", "userId"}`. `private_key` is the seed of the key in 64 hex
/// digits; `audience` comes from `tsq_auth_identity_audience`. The claim is valid from one minute before `timestamp`
/// (microseconds) until five minutes after it. Needs no client, so it can run where the key is stored.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_identity_claim(
    user_id: tsq_str,
    private_key: tsq_str,
    audience: tsq_str,
    timestamp: i64,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(None, out, err, || {
            let user_id = argument::id(user_id, "user_id")?;
            let private_key = argument::text(private_key, "private_key")?;
            let audience = argument::text(audience, "audience")?;
            let timestamp = Timestamp::from_microsecond(timestamp)
                .map_err(|_| Failure::invalid_input("Argument timestamp is out of range"))?;
            json(&identity_claim(user_id, private_key, audience, timestamp)?)
        })
    }
}

//! Identity claims: what shows that a user holds an identity key.
//!
//! Invariant: the claim is the core's, as text; the key is borrowed and kept nowhere.

use townsquare::Timestamp;

use crate::{
    boundary::produce,
    error::{Failure, tsq_error},
    id,
    status::tsq_status,
    text::{self, tsq_str, tsq_string},
};

/// A claim for `tsq_auth_link_identity` that the user holds this Ed25519 key, as JSON:
/// `{"publicKey", "signature", "timestamp", "userId"}`. `private_key` is the key's seed in 64 hex digits; the claim counts
/// for five minutes from `timestamp`, microseconds since 1970-01-01T00:00:00Z. Needs no client: it is made where the key is.
///
/// Borrows all; returns owned in `out`. Fails with `TSQ_INVALID_INPUT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_identity_claim(
    user_id: tsq_str,
    private_key: tsq_str,
    timestamp: i64,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual asks.
    unsafe {
        produce(None, out, err, || {
            let user_id = id::required(user_id, "user_id")?;
            let private_key = text::required(private_key, "private_key")?;
            let timestamp = Timestamp::from_microsecond(timestamp)
                .map_err(|_| Failure::invalid_input("Argument timestamp is out of range"))?;
            text::json(&townsquare::identity_claim(user_id, private_key, timestamp)?)
        })
    }
}

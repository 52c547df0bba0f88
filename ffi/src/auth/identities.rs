//! The identity keys of a user.

use crate::boundary::{
    Memory, Record, call_handle, free, handle, json, text, tsq_error, tsq_status, tsq_str, tsq_string,
};

/// The identity keys of a user, in the order in which they were linked. A record (manual, RECORDS); freed with
/// `tsq_identities_free`.
#[repr(C)]
pub struct tsq_identities {
    /// Public keys in 64 hex digits.
    pub public_keys: *const tsq_str,
    /// Number of public keys.
    pub public_keys_len: usize,
}

impl Record for tsq_identities {
    type Source = Vec<String>;

    fn new(keys: &Vec<String>, memory: &mut Memory) -> tsq_identities {
        let keys: Vec<_> = keys.iter().map(|key| text::view(key)).collect();
        tsq_identities { public_keys_len: keys.len(), public_keys: memory.array(keys) }
    }
}

/// The keys as a JSON array of texts.
///
/// Borrows `identities`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_identities_json(
    identities: *const tsq_identities,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(identities, "identities")?)) }
}

/// Frees identity keys that a call returned owned; the keys stay linked. Takes `identities`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_identities_free(identities: *mut tsq_identities) {
    // SAFETY: `identities` is NULL or owned by the caller, by the manual.
    unsafe { free(identities) }
}

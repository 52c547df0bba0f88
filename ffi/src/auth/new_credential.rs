//! A password hash to import.
//!
//! Invariant: a zeroed struct sets nothing. The core reports what is missing. No failure shows the hash.

use townsquare::auth::NewCredential;

use crate::boundary::{Failure, argument, inputs, tsq_str};

/// The password hash of an existing user. Zero it, then fill it in: `tsq_new_credential credential = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(missing_debug_implementations, reason = "the hash is a secret")]
pub struct tsq_new_credential {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// The user (a UUID); absent: `email` names the user.
    pub user_id: tsq_str,
    /// The user's address, in any spelling; absent: `user_id` names the user.
    pub email: tsq_str,
    /// A bcrypt hash (`$2a$`, `$2b$` or `$2y$`) or an Argon2 hash in PHC format; required. A secret.
    pub password_hash: tsq_str,
}

inputs!(tsq_new_credential: password_hash);

impl tsq_new_credential {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`argument::text`].
    pub(crate) unsafe fn read(&self) -> Result<NewCredential, Failure> {
        let mut credential = NewCredential::default();
        // SAFETY: the caller's promise, passed on.
        unsafe {
            credential.user_id = argument::optional_id(self.user_id, "user_id")?;
            credential.email = argument::optional_string(self.email, "email")?;
            credential.password_hash =
                argument::optional_string(self.password_hash, "password_hash")?.unwrap_or_default();
        }
        Ok(credential)
    }
}

//! The input that changes the signed-in user.
//!
//! Invariant: a zeroed struct changes nothing. The columns cannot be NULL, so the absent text keeps a column.

use townsquare::auth::UserPatch;

use crate::boundary::{Failure, argument, inputs, tsq_str};

/// Changes of the signed-in user. Zeroed, it changes nothing: `tsq_user_patch patch = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_user_patch {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// New e-mail address; absent: no change.
    pub email: tsq_str,
    /// New password, 8 to 1,024 bytes; absent: no change.
    pub password: tsq_str,
}

inputs!(tsq_user_patch: password);

impl tsq_user_patch {
    /// The core's value. Failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`argument::text`].
    pub(crate) unsafe fn read(&self) -> Result<UserPatch, Failure> {
        // SAFETY: the caller's promise, passed on.
        let (email, password) = unsafe {
            (argument::optional_text(self.email, "email")?, argument::optional_text(self.password, "password")?)
        };
        let mut patch = UserPatch::new();
        if let Some(email) = email {
            patch = patch.email(email);
        }
        if let Some(password) = password {
            patch = patch.password(password);
        }
        Ok(patch)
    }
}

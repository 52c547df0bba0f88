//! What is given to change one's own account.
//!
//! Invariant: a zeroed struct changes nothing. Nothing here can be cleared, so the absent text keeps.

use townsquare::UserPatch;

use crate::{
    error::Failure,
    text::{self, tsq_str},
};

/// What changes of one's own account. Zeroed, it changes nothing: `tsq_user_patch patch = {0};`
///
/// A plain struct of the caller's, borrowed for the call with all that it points at.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_user_patch {
    /// Another e-mail address; absent: it stays.
    pub email: tsq_str,
    /// Another password, 8 to 1,024 bytes; absent: it stays.
    pub password: tsq_str,
}

impl tsq_user_patch {
    /// The core's value; failures name the member alone.
    ///
    /// # Safety
    /// All texts are as for [`text::required`].
    pub(crate) unsafe fn read(&self) -> Result<UserPatch, Failure> {
        // SAFETY: the caller's promise, passed on.
        let (email, password) =
            unsafe { (text::optional(self.email, "email")?, text::optional(self.password, "password")?) };
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

//! The sessions that a sign-out ends.
//!
//! Invariant: the number of a scope is its index in [`SignOutScope::ALL`]. C may pass any number; it is read as a number,
//! because an invalid Rust enum is undefined behaviour.

use std::mem::MaybeUninit;

use townsquare::auth::SignOutScope;

use crate::boundary::Failure;

/// The sessions that `tsq_auth_sign_out_scope` ends.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_sign_out_scope {
    /// The session of the handle.
    TSQ_SIGN_OUT_LOCAL = 0,
    /// Every other session of the user.
    TSQ_SIGN_OUT_OTHERS = 1,
    /// Every session of the user.
    TSQ_SIGN_OUT_GLOBAL = 2,
}

/// The core's scope.
///
/// # Safety
/// `scope` is initialised.
pub(crate) unsafe fn read(scope: MaybeUninit<tsq_sign_out_scope>) -> Result<SignOutScope, Failure> {
    // SAFETY: initialised by the caller's promise; a C enum has the size of this number, which may be any.
    let number = unsafe { scope.as_ptr().cast::<i32>().read() };
    let known = usize::try_from(number).ok().and_then(|place| SignOutScope::ALL.get(place).copied());
    known.ok_or_else(|| Failure::invalid_input(format!("Argument scope has an unknown value {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_the_scopes() {
        use tsq_sign_out_scope::{TSQ_SIGN_OUT_GLOBAL, TSQ_SIGN_OUT_LOCAL, TSQ_SIGN_OUT_OTHERS};
        let scopes = [TSQ_SIGN_OUT_LOCAL, TSQ_SIGN_OUT_OTHERS, TSQ_SIGN_OUT_GLOBAL];
        for (number, scope) in scopes.into_iter().zip(SignOutScope::ALL) {
            // SAFETY: initialised.
            assert_eq!(unsafe { read(MaybeUninit::new(number)) }.ok(), Some(scope));
            assert_eq!(format!("{number:?}"), format!("TSQ_SIGN_OUT_{}", scope.as_str().to_uppercase()));
        }
    }
}

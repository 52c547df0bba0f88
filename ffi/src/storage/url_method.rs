//! The method that a signed URL permits.
//!
//! Invariant: the number of a method is its index in [`UrlMethod::ALL`]. C may pass any number; it is read as a number,
//! because an invalid Rust enum is undefined behaviour.

use std::mem::MaybeUninit;

use townsquare::storage::UrlMethod;

use crate::boundary::Failure;

/// The method that a signed URL permits.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum tsq_url_method {
    /// Reading the file: GET and HEAD.
    TSQ_URL_GET = 0,
    /// Writing the file: PUT.
    TSQ_URL_PUT = 1,
}

/// The core's method.
///
/// # Safety
/// `method` is initialised.
pub(crate) unsafe fn read(method: MaybeUninit<tsq_url_method>) -> Result<UrlMethod, Failure> {
    // SAFETY: initialised by the caller's promise; a C enum has the size of this number, which may be any.
    let number = unsafe { method.as_ptr().cast::<i32>().read() };
    let known = usize::try_from(number).ok().and_then(|place| UrlMethod::ALL.get(place).copied());
    known.ok_or_else(|| Failure::invalid_input(format!("Argument method has an unknown value {number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_the_methods() {
        for (number, method) in
            [tsq_url_method::TSQ_URL_GET, tsq_url_method::TSQ_URL_PUT].into_iter().zip(UrlMethod::ALL)
        {
            // SAFETY: initialised.
            assert_eq!(unsafe { read(MaybeUninit::new(number)) }.ok(), Some(method));
            assert_eq!(format!("{number:?}"), format!("TSQ_URL_{}", method.as_str()));
        }
    }
}

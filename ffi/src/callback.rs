//! Callbacks: a function of C's, the data it wants to be given, and how that data ends.
//!
//! Invariant: `destroy` is called once, whatever happened to the call that brought it, and never while the function runs:
//! it runs when this value is dropped, and whoever calls the function holds the value.

use std::ffi::c_void;

use crate::error::Failure;

/// Ends a callback's `user_data`: called exactly once, on any thread, when the callback is not running and never will
/// again; also when the call that takes the callback fails. May be NULL.
pub type tsq_destroy = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// A function and its data.
pub(crate) struct Callback<F> {
    function: F,
    data: UserData,
}

struct UserData {
    pointer: *mut c_void,
    destroy: tsq_destroy,
}

// SAFETY: by the manual, C expects its callbacks, with their data, on threads of the library's, one at a time.
unsafe impl Send for UserData {}

impl<F: Copy> Callback<F> {
    /// Takes the data, and ends it at once where there is no function.
    ///
    /// # Safety
    /// `user_data` may be used on other threads, and `destroy` called with it.
    pub(crate) unsafe fn take(
        function: Option<F>,
        user_data: *mut c_void,
        destroy: tsq_destroy,
    ) -> Result<Callback<F>, Failure> {
        let data = UserData { pointer: user_data, destroy };
        let function = function.ok_or_else(|| Failure::null("callback"))?;
        Ok(Callback { function, data })
    }

    /// The function and what to give it, for a call that returns before this value is dropped.
    pub(crate) fn parts(&self) -> (F, *mut c_void) {
        (self.function, self.data.pointer)
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the promise of `Callback::take`; once, for a value is dropped once.
            unsafe { destroy(self.pointer) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        ptr,
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::*;

    unsafe extern "C" fn count(user_data: *mut c_void) {
        // SAFETY: the tests give it a counter that outlives the callback.
        unsafe { user_data.cast::<AtomicU32>().as_ref() }.expect("a counter").fetch_add(1, Ordering::Relaxed);
    }

    fn ended_by(function: Option<fn()>, use_it: impl FnOnce(Result<Callback<fn()>, Failure>)) -> u32 {
        let counter = AtomicU32::new(0);
        // SAFETY: the counter lives on until the callback is gone.
        use_it(unsafe { Callback::take(function, ptr::from_ref(&counter).cast_mut().cast(), Some(count)) });
        counter.load(Ordering::Relaxed)
    }

    #[test]
    fn data_is_ended_once_after_its_use_and_without_a_function_at_once() {
        let kept = |callback: Result<Callback<fn()>, Failure>| {
            let callback = callback.ok().expect("there is a function");
            let counter = callback.parts().1.cast::<AtomicU32>();
            // SAFETY: the counter of `ended_by`.
            assert_eq!(unsafe { counter.as_ref() }.expect("a counter").load(Ordering::Relaxed), 0);
        };
        assert_eq!(ended_by(Some(|| ()), kept), 1);
        assert_eq!(ended_by(None, |callback| assert!(callback.is_err())), 1);
    }

    #[test]
    fn data_without_a_destroy_is_left_alone() {
        // SAFETY: nothing looks at the data.
        let callback = unsafe { Callback::take(Some(|| ()), ptr::null_mut(), None) };
        assert!(callback.is_ok());
    }
}

//! Callbacks: a function of C, its `user_data`, and the function that destroys the data.
//!
//! Invariant: `destroy` runs exactly once, also when the C function that received it fails, and never while the
//! callback runs. It runs when the [`Callback`] is dropped; code that calls `function` keeps the [`Callback`] alive.
//! While C code of a callback runs, [`is_inside`] is true on its thread.

use std::{
    ffi::c_void,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use townsquare::Subscription;

use crate::boundary::failure::Failure;

/// Destroys the `user_data` of a callback. It is called exactly once, on any thread, when the callback is not running
/// and never runs again; also when the call that takes the callback fails. May be NULL.
pub type tsq_destroy = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// Whether the calling thread runs a callback or a `destroy`.
pub(crate) fn is_inside() -> bool {
    Subscription::is_inside_callback()
}

/// Held by a subscribing call until `*out` is set. The first call of its callback waits for that.
#[derive(Clone, Default)]
pub(crate) struct Subscribing(Arc<Mutex<()>>);

impl Subscribing {
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait(&self) {
        drop(self.hold());
    }
}

/// A function and its data.
pub(crate) struct Callback<F> {
    function: F,
    data: UserData,
}

struct UserData {
    pointer: *mut c_void,
    destroy: tsq_destroy,
}

// SAFETY: by the manual, callbacks and their data may be used on any thread. `Sync` is used for the log callback only,
// which the manual requires to be callable from several threads at once.
unsafe impl Send for UserData {}
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl<F: Copy> Callback<F> {
    /// Takes the data; destroys it at once when there is no function.
    ///
    /// # Safety
    /// `user_data` may be used on other threads, and `destroy` may be called with it.
    pub(crate) unsafe fn take(
        function: Option<F>,
        user_data: *mut c_void,
        destroy: tsq_destroy,
    ) -> Result<Callback<F>, Failure> {
        let data = UserData { pointer: user_data, destroy };
        let function = function.ok_or_else(|| Failure::null("callback"))?;
        Ok(Callback { function, data })
    }

    /// Calls `call` with the function and its data.
    pub(crate) fn call<R>(&self, call: impl FnOnce(F, *mut c_void) -> R) -> R {
        Subscription::run_callback(|| call(self.function, self.data.pointer))
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: the promise of `Callback::take`; a value is dropped once.
            Subscription::run_callback(|| unsafe { destroy(self.pointer) });
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
        assert!(is_inside());
        // SAFETY: the tests pass a counter that outlives the callback.
        unsafe { user_data.cast::<AtomicU32>().as_ref() }.expect("a counter").fetch_add(1, Ordering::Relaxed);
    }

    fn destroyed_by(function: Option<fn()>, use_it: impl FnOnce(Result<Callback<fn()>, Failure>)) -> u32 {
        let counter = AtomicU32::new(0);
        // SAFETY: the counter outlives the callback.
        use_it(unsafe { Callback::take(function, ptr::from_ref(&counter).cast_mut().cast(), Some(count)) });
        counter.load(Ordering::Relaxed)
    }

    #[test]
    fn data_is_destroyed_once_after_use_and_at_once_without_a_function() {
        let use_it = |callback: Result<Callback<fn()>, Failure>| {
            callback.ok().expect("there is a function").call(|_, data| {
                assert!(is_inside());
                // SAFETY: the counter of `destroyed_by`.
                let counter = unsafe { data.cast::<AtomicU32>().as_ref() }.expect("a counter");
                assert_eq!(counter.load(Ordering::Relaxed), 0);
            });
            assert!(!is_inside());
        };
        assert_eq!(destroyed_by(Some(|| ()), use_it), 1);
        assert_eq!(destroyed_by(None, |callback| assert!(callback.is_err())), 1);
        assert!(!is_inside());
    }

    #[test]
    fn data_without_a_destroy_is_left_alone() {
        // SAFETY: nothing reads the data.
        let callback = unsafe { Callback::take(Some(|| ()), ptr::null_mut(), None) };
        assert!(callback.is_ok());
    }
}

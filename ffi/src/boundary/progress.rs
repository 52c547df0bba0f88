//! Callbacks of a transfer: they run during one call, so they have no `destroy`.
//!
//! Invariant: no callback runs after the call that received it has returned. A callback that returns another number than
//! 0 cancels the call.

use std::{ffi::c_void, ops::ControlFlow};

use crate::boundary::{callback::Callback, failure::Failure};

/// Tells how far a transfer is: `done` of `total`, in bytes or files. Returns 0 to continue; any other number cancels the
/// call, which then fails with `TSQ_CANCELLED`. Runs during the call. See CALLBACKS in the manual.
pub type tsq_progress_callback = Option<unsafe extern "C" fn(done: u64, total: u64, user_data: *mut c_void) -> i32>;

/// Gives the next bytes: writes up to `len` of them to `buffer` and their number to `read`; 0 bytes are the end. Returns 0
/// to continue; any other number cancels the call, which then fails with `TSQ_CANCELLED`. Runs during the call. See
/// CALLBACKS in the manual.
pub type tsq_read_callback =
    Option<unsafe extern "C" fn(buffer: *mut u8, len: usize, read: *mut usize, user_data: *mut c_void) -> i32>;

/// Receives the next bytes, which live until it returns. Returns 0 to continue; any other number cancels the call, which then
/// fails with `TSQ_CANCELLED`. Runs during the call. See CALLBACKS in the manual.
pub type tsq_write_callback = Option<unsafe extern "C" fn(data: *const u8, len: usize, user_data: *mut c_void) -> i32>;

/// A progress function for the core. Without a callback it lets the transfer continue.
///
/// # Safety
/// `callback` may be called with `user_data`, on any thread, as long as the result is used.
pub(crate) unsafe fn progress(
    callback: tsq_progress_callback,
    user_data: *mut c_void,
) -> impl FnMut(u64, u64) -> ControlFlow<()> + Send {
    // SAFETY: the caller's promise, passed on.
    let callback = callback.and_then(|function| unsafe { Callback::take(Some(function), user_data, None) }.ok());
    move |done, total| {
        let answer = callback.as_ref().map_or(0, |callback| {
            // SAFETY: the caller's promise.
            callback.call(|function, user_data| unsafe { function(done, total, user_data) })
        });
        if answer == 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

type ReadFn = unsafe extern "C" fn(*mut u8, usize, *mut usize, *mut c_void) -> i32;
type WriteFn = unsafe extern "C" fn(*const u8, usize, *mut c_void) -> i32;

/// A source of bytes.
pub(crate) struct ReadCallback(Callback<ReadFn>);

impl ReadCallback {
    /// # Safety
    /// `callback` may be called with `user_data`, on any thread, as long as the result is used.
    pub(crate) unsafe fn new(callback: tsq_read_callback, user_data: *mut c_void) -> Result<ReadCallback, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe { Callback::take(callback, user_data, None) }.map(ReadCallback).map_err(|_| Failure::null("source"))
    }

    /// Reads into `buffer` and returns the number of bytes; 0 is the end.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let mut read = 0;
        let call = |function: ReadFn, user_data| {
            // SAFETY: the promise of `new`; `buffer` and `read` live on.
            unsafe { function(buffer.as_mut_ptr(), buffer.len(), &raw mut read, user_data) }
        };
        match self.0.call(call) {
            0 if read > buffer.len() => Err(Failure::invalid_input("The callback read more bytes than fit")),
            0 => Ok(read),
            _ => Err(Failure::cancelled()),
        }
    }
}

/// A receiver of bytes.
pub(crate) struct WriteCallback(Callback<WriteFn>);

impl WriteCallback {
    /// # Safety
    /// As for [`ReadCallback::new`].
    pub(crate) unsafe fn new(callback: tsq_write_callback, user_data: *mut c_void) -> Result<WriteCallback, Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe { Callback::take(callback, user_data, None) }.map(WriteCallback).map_err(|_| Failure::null("target"))
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        // SAFETY: the promise of `new`; `bytes` live on.
        match self.0.call(|function, user_data| unsafe { function(bytes.as_ptr(), bytes.len(), user_data) }) {
            0 => Ok(()),
            _ => Err(Failure::cancelled()),
        }
    }
}

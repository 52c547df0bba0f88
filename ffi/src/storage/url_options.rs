//! What a PUT by a signed URL may store.
//!
//! Invariant: a zeroed struct binds nothing. The core checks the values.

use std::{mem::MaybeUninit, time::Duration};

use townsquare::storage::UrlOptions;

use crate::boundary::{Failure, argument, change, input, inputs, tsq_str};

/// What a PUT by a signed URL may store. Zeroed, and for NULL, it may store what an upload of the caller may:
/// `tsq_url_options options = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_url_options {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Media type of the file: a request with another `Content-Type` is refused. Absent: any.
    pub content_type: tsq_str,
    /// Whether `max_size` is given; any non-zero byte is true.
    pub has_max_size: MaybeUninit<bool>,
    /// Largest size of the file in bytes. Not given: the option `max_file_size` is the limit.
    pub max_size: u64,
}

inputs!(tsq_url_options: max_size);

/// The core's options for a URL that is valid for `expires_in_ms`; binds nothing for NULL.
///
/// # Safety
/// `options` is NULL or an input as for [`input::input`] with all that it points at.
pub(crate) unsafe fn read(options: *const tsq_url_options, expires_in_ms: u64) -> Result<UrlOptions, Failure> {
    let unbound = UrlOptions::new(Duration::from_millis(expires_in_ms));
    // SAFETY: the caller's promise, passed on.
    let read = unsafe { input::optional_input(options, "options", |options| options.read(unbound.clone())) };
    Ok(read?.unwrap_or(unbound))
}

impl tsq_url_options {
    /// # Safety
    /// As for [`read`].
    unsafe fn read(&self, mut options: UrlOptions) -> Result<UrlOptions, Failure> {
        // SAFETY: the caller's promise, passed on.
        let (has_max_size, content_type) = unsafe {
            (change::boolean(self.has_max_size), argument::optional_string(self.content_type, "content_type")?)
        };
        if has_max_size {
            options = options.max_size(self.max_size);
        }
        Ok(match content_type {
            Some(content_type) => options.content_type(content_type),
            None => options,
        })
    }
}

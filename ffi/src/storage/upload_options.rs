//! The options of an upload.
//!
//! Invariant: a zeroed struct has the defaults of SPEC 4.4. The core checks the values.

use std::mem::MaybeUninit;

use townsquare::storage::UploadOptions;

use crate::{
    boundary::{Failure, argument, change, input, inputs, tsq_str},
    storage::file_info::tsq_file_metadata,
};

/// The options of an upload. Zeroed, and for NULL, they are the defaults: `tsq_upload_options options = {0};`
///
/// An input (manual, INPUTS).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct tsq_upload_options {
    /// `sizeof` of the struct; 0: the members of version 0.1.
    pub size: usize,
    /// Media type; absent: guessed from the name and the content.
    pub content_type: tsq_str,
    /// The etag that the file must have now, or the empty text (`TSQ_STR("")`) if there must be no file; otherwise the call
    /// fails with `TSQ_CONFLICT`. Absent: not checked.
    pub if_match: tsq_str,
    /// Names and values to store with the file: an array of at most 64. Of equal names the last one counts.
    pub metadata: *const tsq_file_metadata,
    /// Number of names.
    pub metadata_len: usize,
    /// Whether `cache_control` is given; any non-zero byte is true.
    pub has_cache_control: MaybeUninit<bool>,
    /// Whether an existing file fails the call with `TSQ_ALREADY_EXISTS` instead of being replaced.
    pub insert_only: MaybeUninit<bool>,
    /// Whether the content must be a signed file with a valid signature; otherwise the call fails with
    /// `TSQ_INVALID_INPUT`.
    pub verify: MaybeUninit<bool>,
    /// How long a cache may keep the file, in seconds: 0 to 31,536,000. Not given: 3,600.
    pub cache_control: u32,
}

inputs!(tsq_upload_options: cache_control);

/// The core's options; the defaults for NULL.
///
/// # Safety
/// `options` is NULL or an input as for [`input::input`] with all that it points at.
pub(crate) unsafe fn read(options: *const tsq_upload_options) -> Result<UploadOptions, Failure> {
    // SAFETY: the caller's promise, passed on.
    let read = unsafe { input::optional_input(options, "options", |options| options.read()) };
    Ok(read?.unwrap_or_default())
}

impl tsq_upload_options {
    /// # Safety
    /// As for [`read`].
    unsafe fn read(&self) -> Result<UploadOptions, Failure> {
        // SAFETY: the caller's promise, passed on.
        let (has_cache_control, insert_only, verify) = unsafe {
            (change::boolean(self.has_cache_control), change::boolean(self.insert_only), change::boolean(self.verify))
        };
        let mut options = UploadOptions::new().upsert(!insert_only).verify(verify);
        if has_cache_control {
            options = options.cache_control(self.cache_control);
        }
        // SAFETY: the caller's promise, passed on.
        let (content_type, if_match, metadata) = unsafe {
            (
                argument::optional_string(self.content_type, "content_type")?,
                argument::optional_string(self.if_match, "if_match")?,
                argument::structures(self.metadata, self.metadata_len, "metadata", |pair| pair.read())?,
            )
        };
        if let Some(content_type) = content_type {
            options = options.content_type(content_type);
        }
        if let Some(etag) = if_match {
            options = options.if_match(etag);
        }
        Ok(metadata.into_iter().fold(options, |options, (name, value)| options.metadata(name, value)))
    }
}

impl tsq_file_metadata {
    /// # Safety
    /// Both texts are as for [`argument::text`].
    unsafe fn read(&self) -> Result<(String, String), Failure> {
        // SAFETY: the caller's promise, passed on.
        unsafe { Ok((argument::text(self.name, "name")?.into(), argument::text(self.value, "value")?.into())) }
    }
}

//! Owned bytes: the content of a file, and other bytes that a call returns.

use bytes::Bytes;

use crate::boundary::{
    guard::{free, read},
    handle::Handle,
    text::{self, tsq_bytes},
};

/// Bytes that the caller owns: read them with `tsq_buffer_view`, free them with `tsq_buffer_free`.
pub struct tsq_buffer {
    _opaque: [u8; 0],
}

impl Handle for tsq_buffer {
    type Value = Bytes;
}

/// The bytes.
///
/// Borrows `buffer`; returns a view that lives as long as `buffer`. Empty for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_buffer_view(buffer: *const tsq_buffer) -> tsq_bytes {
    // SAFETY: `buffer` is NULL or live, by the manual.
    unsafe { read(buffer, |bytes| text::bytes_view(bytes)) }
}

/// Frees bytes. Takes `buffer`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_buffer_free(buffer: *mut tsq_buffer) {
    // SAFETY: `buffer` is NULL or owned by the caller, by the manual.
    unsafe { free(buffer) }
}

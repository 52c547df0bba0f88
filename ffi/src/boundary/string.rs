//! Owned text: JSON and other results that the library renders for one call.

use serde::Serialize;

use crate::boundary::{
    failure::Failure,
    guard::{free, read},
    handle::Handle,
    text::{self, Terminated, tsq_str},
};

/// Text that the caller owns: read it with `tsq_string_view`, free it with `tsq_string_free`.
pub struct tsq_string {
    _opaque: [u8; 0],
}

impl Handle for tsq_string {
    type Value = Terminated;
}

/// A value as JSON text.
pub(crate) fn json(value: &impl Serialize) -> Result<Terminated, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::internal(format!("JSON: {error}")))?;
    Ok(Terminated::new(text))
}

/// The text. NUL-terminated; `len` does not include the NUL.
///
/// Borrows `string`; returns a view that lives as long as `string`. Absent for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_string_view(string: *const tsq_string) -> tsq_str {
    // SAFETY: `string` is NULL or live, by the manual.
    unsafe { read(string, |text| text::view(text.as_str())) }
}

/// Frees a text. Takes `string`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_string_free(string: *mut tsq_string) {
    // SAFETY: `string` is NULL or owned by the caller, by the manual.
    unsafe { free(string) }
}

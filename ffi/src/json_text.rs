//! JSON values: UTF-8 text in C, in and out.
//!
//! Invariant: JSON of a record is written once, when the record is made, so that reading it is a view. What a value
//! may be is the core's to judge; here it has only to be JSON.

use townsquare::Json;

use crate::{
    error::Failure,
    text::{self, tsq_str},
};

/// The JSON value of an argument that may be left out; the text `null` is a value.
///
/// # Safety
/// As for [`text::required`].
pub(crate) unsafe fn optional(json: tsq_str, argument: &str) -> Result<Option<Json>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let text = unsafe { text::optional(json, argument) }?;
    let parse = |text| {
        serde_json::from_str(text)
            .map_err(|error| Failure::invalid_input(format!("Argument {argument} is not JSON: {error}")))
    };
    text.map(parse).transpose()
}

/// A value as text.
pub(crate) fn written(value: &Json) -> Box<str> {
    value.to_string().into()
}

//! Ids: UUIDs, which are text in C.
//!
//! Invariant: an id of a record is written once, when the record is made, so that reading it is a view.

use townsquare::Uuid;

use crate::{
    error::Failure,
    text::{self, tsq_str},
};

/// Length of a hyphenated UUID.
const LENGTH: usize = 36;

/// The text of an id: hyphenated, in lower case.
pub(crate) struct Id([u8; LENGTH]);

impl From<Uuid> for Id {
    fn from(id: Uuid) -> Id {
        let mut text = [0; LENGTH];
        id.hyphenated().encode_lower(&mut text);
        Id(text)
    }
}

impl Id {
    pub(crate) fn view(&self) -> tsq_str {
        tsq_str { ptr: self.0.as_ptr().cast(), len: LENGTH }
    }
}

/// A view of an id that may be absent.
pub(crate) fn optional_view(id: Option<&Id>) -> tsq_str {
    id.map_or(tsq_str::ABSENT, Id::view)
}

/// The id of an argument.
///
/// # Safety
/// As for [`text::required`].
pub(crate) unsafe fn required(id: tsq_str, argument: &str) -> Result<Uuid, Failure> {
    // SAFETY: the caller's promise, passed on.
    parse(unsafe { text::required(id, argument) }?, argument)
}

/// The id of an argument that may be left out.
///
/// # Safety
/// As for [`text::required`].
pub(crate) unsafe fn optional(id: tsq_str, argument: &str) -> Result<Option<Uuid>, Failure> {
    // SAFETY: the caller's promise, passed on.
    unsafe { text::optional(id, argument) }?.map(|id| parse(id, argument)).transpose()
}

fn parse(id: &str, argument: &str) -> Result<Uuid, Failure> {
    id.parse().map_err(|_| Failure::invalid_input(format!("Argument {argument} is not a UUID")))
}

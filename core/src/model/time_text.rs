//! The times of rows and sessions as text in JSON: RFC 3339 in UTC with six decimal places, as the database and the changes of rows have them. So the order of
//! the texts is the order of the times, and one time has one text.

use jiff::Timestamp;
use serde::{Serialize as _, Serializer};

/// The text of a time.
pub(crate) fn text_of(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Serializes a time.
pub(super) fn time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.6}"))
}

/// Serializes a time that may be missing.
pub(super) fn optional<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(text_of).serialize(serializer)
}

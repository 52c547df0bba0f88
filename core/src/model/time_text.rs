//! The times of rows and sessions as text in JSON: RFC 3339 in UTC with six decimal places, the same form as in the database and in
//! changes of rows. A time has one text, and sorting the texts sorts the times.

use jiff::Timestamp;
use serde::{Serialize as _, Serializer};

/// The text of a time.
pub(crate) fn timestamp_text(time: Timestamp) -> String {
    format!("{time:.6}")
}

/// Serializes a time.
pub(super) fn time<S: Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.6}"))
}

/// Serializes a time that may be missing.
pub(super) fn optional<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(timestamp_text).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_text_has_six_decimal_places_and_parses_back() {
        let time = Timestamp::from_microsecond(1_700_000_000_000_000).expect("in range");
        let text = timestamp_text(time);
        assert_eq!(text, "2023-11-14T22:13:20.000000Z");
        assert_eq!(text.parse::<Timestamp>().ok(), Some(time));
    }
}

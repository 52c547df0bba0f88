//! What a statement's `$n` can be bound to.

use std::borrow::Cow;

use jiff::Timestamp;

/// A value on its way into the database.
pub(crate) enum Value<'a> {
    Integer(i64),
    Text(Cow<'a, str>),
    /// Stored to the microsecond.
    Timestamp(Timestamp),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Value::Text(Cow::Owned(text))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Integer(number)
    }
}

impl From<Timestamp> for Value<'_> {
    fn from(time: Timestamp) -> Self {
        Value::Timestamp(time)
    }
}

//! The values that are bound to a statement's `$n`.
//!
//! Each variant holds an `Option`, because PostgreSQL needs the type of a NULL.

use std::borrow::Cow;

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::model::{DomainType, SpaceType};

/// A value to bind.
#[derive(Debug, Clone)]
pub(crate) enum Value<'a> {
    Boolean(Option<bool>),
    Integer(Option<i64>),
    Text(Option<Cow<'a, str>>),
    Uuid(Option<Uuid>),
    /// Stored to the microsecond.
    Timestamp(Option<Timestamp>),
    Json(Option<Cow<'a, Json>>),
    /// A list of texts.
    Texts(Option<Cow<'a, [String]>>),
    Bytes(Option<Bytes>),
}

/// Implements `From` for a type and for its `Option`.
macro_rules! from {
    ($($type:ty, $variant:ident, $value:ident => $into:expr;)*) => {$(
        impl<'a> From<$type> for Value<'a> {
            fn from($value: $type) -> Value<'a> {
                Value::$variant(Some($into))
            }
        }
        impl<'a> From<Option<$type>> for Value<'a> {
            fn from(value: Option<$type>) -> Value<'a> {
                Value::$variant(value.map(|$value| $into))
            }
        }
    )*};
}

from! {
    bool, Boolean, value => value;
    i32, Integer, value => i64::from(value);
    i64, Integer, value => value;
    &'a str, Text, value => Cow::Borrowed(value);
    String, Text, value => Cow::Owned(value);
    Uuid, Uuid, value => value;
    Timestamp, Timestamp, value => value;
    &'a Json, Json, value => Cow::Borrowed(value);
    Json, Json, value => Cow::Owned(value);
    Vec<String>, Texts, value => Cow::Owned(value);
    &'a [String], Texts, value => Cow::Borrowed(value);
    Bytes, Bytes, value => value;
    SpaceType, Text, value => Cow::Borrowed(value.as_str());
    DomainType, Text, value => Cow::Borrowed(value.as_str());
}

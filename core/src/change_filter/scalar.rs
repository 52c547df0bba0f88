//! A value of a filter, typed by its column.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::model::ColumnType;

/// A value that a column is compared with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scalar {
    /// Text, and a uuid in the form of the row images: lower case with hyphens.
    Text(String),
    Boolean(bool),
    Integer(i64),
    Timestamp(Timestamp),
}

impl Scalar {
    /// Reads a value; `None` if the text is not one of the column's type.
    pub(super) fn parse(column_type: ColumnType, text: &str) -> Option<Scalar> {
        match column_type {
            ColumnType::Uuid => Uuid::try_parse(text).ok().map(|id| Scalar::Text(id.to_string())),
            ColumnType::Text => Some(Scalar::Text(text.to_owned())),
            ColumnType::Boolean => match text {
                "true" => Some(Scalar::Boolean(true)),
                "false" => Some(Scalar::Boolean(false)),
                _ => None,
            },
            ColumnType::Integer => text.parse().ok().map(Scalar::Integer),
            ColumnType::Timestamp => text.parse().ok().map(Scalar::Timestamp),
            ColumnType::Json | ColumnType::Texts => None,
        }
    }

    /// The value as a row image has it: a text as itself, anything else as JSON. `None` for a time, which a row image may write
    /// in another way.
    pub(super) fn image_text(&self) -> Option<String> {
        match self {
            Scalar::Text(text) => Some(text.clone()),
            Scalar::Boolean(boolean) => Some(boolean.to_string()),
            Scalar::Integer(integer) => Some(integer.to_string()),
            Scalar::Timestamp(_) => None,
        }
    }

    /// How a column's value compares with this one; `None` for NULL and for a value of another type. Text compares by code
    /// point, which is the order of its UTF-8 bytes. `false` is less than `true`.
    pub(super) fn compare(&self, value: &Json) -> Option<Ordering> {
        match self {
            Scalar::Text(text) => value.as_str().map(|value| value.cmp(text)),
            Scalar::Boolean(boolean) => value.as_bool().map(|value| value.cmp(boolean)),
            Scalar::Integer(integer) => value.as_i64().map(|value| value.cmp(integer)),
            Scalar::Timestamp(time) => value.as_str()?.parse::<Timestamp>().ok().map(|value| value.cmp(time)),
        }
    }
}

/// What a value of the type is, in messages.
pub(super) const fn type_name(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Uuid => "a uuid",
        ColumnType::Text => "text",
        ColumnType::Boolean => "true or false",
        ColumnType::Integer => "an integer",
        ColumnType::Timestamp => "a time of RFC 3339 with an offset",
        ColumnType::Json => "JSON",
        ColumnType::Texts => "a list of texts",
    }
}

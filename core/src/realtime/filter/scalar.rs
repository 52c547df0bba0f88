//! A value of a column: of a filter, or of a row image.
//!
//! Invariant: this module alone says which value of a row image equals a value of a filter. So the filter itself, the index
//! of subscriptions and the rows that a live query reads agree.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use crate::model::ColumnType;

/// A value that is not NULL. Values of one column compare by the order of their type: text by code point, which is the order
/// of its UTF-8 bytes, and `false` before `true`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::realtime) enum Scalar<'a> {
    /// Text, and a uuid in the form of the row images: lower case with hyphens.
    Text(Cow<'a, str>),
    Boolean(bool),
    Integer(i64),
    Timestamp(Timestamp),
}

impl<'a> Scalar<'a> {
    /// Reads the value of a filter; `None` if the text is not one of the column's type.
    pub(super) fn parse(column_type: ColumnType, text: &str) -> Option<Scalar<'static>> {
        match column_type {
            ColumnType::Uuid => Uuid::try_parse(text).ok().map(|id| Scalar::Text(id.to_string().into())),
            ColumnType::Text => Some(Scalar::Text(text.to_owned().into())),
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

    /// Reads the value of a column in a row image; `None` for NULL and for a value of another type.
    pub(in crate::realtime) fn of_image(column_type: ColumnType, value: &'a Json) -> Option<Scalar<'a>> {
        match column_type {
            ColumnType::Uuid | ColumnType::Text => value.as_str().map(|text| Scalar::Text(text.into())),
            ColumnType::Boolean => value.as_bool().map(Scalar::Boolean),
            ColumnType::Integer => value.as_i64().map(Scalar::Integer),
            ColumnType::Timestamp => value.as_str()?.parse().ok().map(Scalar::Timestamp),
            ColumnType::Json | ColumnType::Texts => None,
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

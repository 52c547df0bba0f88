//! The types of the tables' columns.

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use super::community::{DomainType, SpaceType};

/// What the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Uuid,
    Text,
    Integer,
    Boolean,
    Timestamp,
    Json,
    /// A list of texts.
    Texts,
}

/// A type of a record's field, whose column has this type.
pub(crate) trait TypedColumn {
    const COLUMN_TYPE: ColumnType;
}

macro_rules! typed_columns {
    ($($type:ty => $column_type:ident;)*) => {$(
        impl TypedColumn for $type {
            const COLUMN_TYPE: ColumnType = ColumnType::$column_type;
        }
    )*};
}

typed_columns! {
    Uuid => Uuid;
    String => Text;
    DomainType => Text;
    SpaceType => Text;
    i32 => Integer;
    i64 => Integer;
    bool => Boolean;
    Timestamp => Timestamp;
    Json => Json;
    Vec<String> => Texts;
}

impl<T: TypedColumn> TypedColumn for Option<T> {
    const COLUMN_TYPE: ColumnType = T::COLUMN_TYPE;
}

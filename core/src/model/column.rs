//! The columns of the tables: names, types, and what `record!` declares of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

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

/// A column of a record, as `record!` declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "postgres"), allow(dead_code, reason = "PostgreSQL alone has tables to adopt"))]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) column_type: ColumnType,
    /// Whether the column allows no NULL.
    pub(crate) is_required: bool,
    /// Whether the `new` struct has it.
    pub(crate) is_new: bool,
    /// Whether the `patch` struct has it.
    pub(crate) is_patch: bool,
    pub(crate) readers: Readers,
    /// Whether the column is part of the primary key.
    pub(crate) is_key: bool,
    /// Whether the policy of the change feed reads the column.
    pub(crate) is_judged: bool,
    /// Whether the change log leaves out large values that an update does not change.
    pub(crate) is_large: bool,
    /// The most characters of a text.
    pub(crate) max_chars: Option<u32>,
    /// Whether a statement computes the column. The table does not have it.
    pub(crate) is_joined: bool,
    /// The migration that added the column, if it is a later one than the migration of the table.
    pub(crate) since: Option<&'static str>,
}

/// Who may read a column of the rows that a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Everyone,
    /// The user that a row of `users` is about. The feed shows the row to nobody else but the service.
    Oneself,
    Service,
}

impl Column {
    pub(crate) const fn new(name: &'static str, column_type: ColumnType, is_required: bool) -> Column {
        Column {
            name,
            column_type,
            is_required,
            is_new: false,
            is_patch: false,
            readers: Readers::Everyone,
            is_key: false,
            is_judged: false,
            is_large: false,
            max_chars: None,
            is_joined: false,
            since: None,
        }
    }
}

/// A type of a record's field, for a column of this type.
pub(crate) trait TypedColumn {
    const COLUMN_TYPE: ColumnType;
    /// Whether NULL can be read as a value of the type.
    const READS_NULL: bool = false;
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
    i32 => Integer;
    i64 => Integer;
    u32 => Integer;
    u64 => Integer;
    bool => Boolean;
    Timestamp => Timestamp;
    Json => Json;
    BTreeMap<String, String> => Json;
    Vec<String> => Texts;
}

impl<T: TypedColumn> TypedColumn for Option<T> {
    const COLUMN_TYPE: ColumnType = T::COLUMN_TYPE;
    const READS_NULL: bool = true;
}

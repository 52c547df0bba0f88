//! The columns of the tables with policies: their names, types and keys.

use super::Table;
use crate::model::{ColumnType, CommunityConfig, CommunityDomain, Fidget, RecordColumns, Space, SpaceRegistration};

/// A column of a table as the change feed delivers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) column_type: ColumnType,
}

const fn column(name: &'static str, column_type: ColumnType) -> Column {
    Column { name, column_type }
}

/// The columns of a record.
const fn of_record<const COUNT: usize>(record: &RecordColumns) -> [Column; COUNT] {
    let mut columns = [column("", ColumnType::Text); COUNT];
    let mut index = 0;
    while index < COUNT {
        columns[index] = column(record.all[index].name, record.all[index].column_type);
        index += 1;
    }
    columns
}

macro_rules! columns_of {
    ($record:ident) => {{
        const COLUMNS: [Column; $record::COLUMNS.all.len()] = of_record(&$record::COLUMNS);
        &COLUMNS
    }};
}

const USERS: &[Column] = &[
    column("id", ColumnType::Uuid),
    column("email", ColumnType::Text),
    column("created_at", ColumnType::Timestamp),
    column("updated_at", ColumnType::Timestamp),
];

/// The fields of `FileInfo`.
const FILES: &[Column] = &[
    column("bucket", ColumnType::Text),
    column("path", ColumnType::Text),
    column("size", ColumnType::Integer),
    column("content_type", ColumnType::Text),
    column("cache_control", ColumnType::Integer),
    column("etag", ColumnType::Text),
    column("metadata", ColumnType::Json),
    column("owner_id", ColumnType::Uuid),
    column("updated_at", ColumnType::Timestamp),
];

impl Table {
    /// Every column that the change feed delivers, in the table's order. For files these are the fields of `FileInfo`.
    pub(crate) const fn columns(self) -> &'static [Column] {
        match self {
            Table::CommunityConfigs => columns_of!(CommunityConfig),
            Table::CommunityDomains => columns_of!(CommunityDomain),
            Table::SpaceRegistrations => columns_of!(SpaceRegistration),
            Table::Spaces => columns_of!(Space),
            Table::Fidgets => columns_of!(Fidget),
            Table::Users => USERS,
            Table::Files => FILES,
        }
    }

    /// The names of the columns of the primary key.
    pub(crate) const fn key(self) -> &'static [&'static str] {
        match self {
            Table::SpaceRegistrations => &["spaceId"],
            Table::Files => &["bucket", "path"],
            _ => &["id"],
        }
    }

    /// The column with this name.
    pub(crate) fn column(self, name: &str) -> Option<Column> {
        self.columns().iter().copied().find(|column| column.name == name)
    }
}

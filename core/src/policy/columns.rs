//! The columns of the tables with policies: their names, types, keys and readers.

use super::{Caller, RowImage, Table};
use crate::model::{ColumnType, CommunityConfig, CommunityDomain, Fidget, RecordColumns, Space, SpaceRegistration};

/// A column of a table as the change feed delivers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) column_type: ColumnType,
}

/// The values of a row's primary key, in the order of [`Table::key`].
pub(crate) type RowKey = Vec<String>;

/// Who may read a column of the rows that a caller may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    Everyone,
    /// The user that a row of `users` is about. The feed shows the row to nobody else but the service.
    Oneself,
    Service,
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

    /// Who may read a column. Payloads of the feed, rows of live queries, filters, the results of operations, and grants on
    /// PostgreSQL follow from it.
    pub(crate) fn readers(self, column: &str) -> Readers {
        match (self, column) {
            (Table::CommunityConfigs, "admin_identity_public_keys" | "custom_domain_authorized" | "admin_email") => {
                Readers::Service
            }
            (Table::Users, "created_at" | "updated_at") => Readers::Oneself,
            _ => Readers::Everyone,
        }
    }

    /// Whether `caller` reads the column of rows that the feed shows to it.
    pub(crate) fn may_read(self, caller: Caller, column: &str) -> bool {
        caller == Caller::Service || self.readers(column) != Readers::Service
    }

    /// Whether `caller` reads every column.
    pub(crate) fn may_read_all(self, caller: Caller) -> bool {
        self.columns().iter().all(|column| self.may_read(caller, column.name))
    }

    /// Removes what `caller` may not read from a row.
    pub(crate) fn hide_columns(self, caller: Caller, row: &mut RowImage) {
        row.retain(|name, _| self.may_read(caller, name));
    }

    /// The columns of the primary key, and those that the feed's policy reads.
    pub(crate) const fn outline(self) -> &'static [&'static str] {
        match self {
            Table::Spaces => &["id", "owner_id", "is_public"],
            Table::Fidgets => &["id", "space_id"],
            Table::CommunityConfigs => &["id", "is_published"],
            _ => self.key(),
        }
    }

    /// The values of the primary key in a row.
    pub(crate) fn key_of(self, row: &RowImage) -> Option<RowKey> {
        self.key().iter().map(|name| row.get(*name)?.as_str().map(str::to_owned)).collect()
    }

    /// The column with this name.
    pub(crate) fn column(self, name: &str) -> Option<Column> {
        self.columns().iter().copied().find(|column| column.name == name)
    }
}

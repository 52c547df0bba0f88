//! The columns of the tables with policies: keys and readers, from the records of the tables.

use std::sync::LazyLock;

use super::{Caller, RowImage, Table};
use crate::model::{
    ActiveCommunityConfig, Column, CommunityConfig, CommunityDomain, Fidget, FileInfo, Readers, RecordColumns, Space,
    SpaceRegistration, User,
};

/// The values of a row's primary key, in the order of [`Table::key`].
pub(crate) type RowKey = Vec<String>;

/// The columns of a table with values that only one row may have, besides the key. No two users have one address in two spellings.
pub(crate) const UNIQUES: [(Table, &[&str]); 4] = [
    (Table::CommunityConfigs, &["community_id"]),
    (Table::CommunityDomains, &["domain"]),
    (Table::CommunityDomains, &["community_id", "domain_type"]),
    (Table::Users, &[EMAIL]),
];

/// The unique column whose values are compared without case.
pub(crate) const EMAIL: &str = "email";

/// The references between the tables: table, column, referenced table, referenced column.
pub(crate) const REFERENCES: [(Table, &str, Table, &str); 3] = [
    (Table::CommunityDomains, "community_id", Table::CommunityConfigs, "community_id"),
    (Table::Spaces, "owner_id", Table::Users, "id"),
    (Table::Fidgets, "space_id", Table::Spaces, "id"),
];

/// The columns of the record that the template of a statement names.
pub(crate) fn columns_of_record(name: &str) -> Option<&'static [Column]> {
    let records = Table::ALL.map(Table::record).into_iter().chain([ActiveCommunityConfig::COLUMNS]);
    records.into_iter().find(|record| record.record == name).map(|record| record.all)
}

/// The names of the columns of each table's primary key, and of its outline, in the order of [`Table::ALL`].
static NAMES: LazyLock<[[Vec<&'static str>; 2]; Table::ALL.len()]> = LazyLock::new(|| {
    let names = |table: Table, is_named: fn(&&Column) -> bool| {
        table.columns().iter().filter(is_named).map(|column| column.name).collect()
    };
    Table::ALL
        .map(|table| [names(table, |column| column.is_key), names(table, |column| column.is_key || column.is_judged)])
});

impl Table {
    /// The record that declares the columns. For files these are the fields of `FileInfo`.
    const fn record(self) -> RecordColumns {
        match self {
            Table::CommunityConfigs => CommunityConfig::COLUMNS,
            Table::CommunityDomains => CommunityDomain::COLUMNS,
            Table::SpaceRegistrations => SpaceRegistration::COLUMNS,
            Table::Users => User::COLUMNS,
            Table::Spaces => Space::COLUMNS,
            Table::Fidgets => Fidget::COLUMNS,
            Table::Files => FileInfo::COLUMNS,
        }
    }

    /// Every column that the change feed delivers, in the table's order.
    pub(crate) const fn columns(self) -> &'static [Column] {
        self.record().in_table()
    }

    /// The names of the columns of the primary key.
    pub(crate) fn key(self) -> &'static [&'static str] {
        &NAMES[self as usize][0]
    }

    /// The names of the columns of the primary key and of the columns that the feed's policy reads.
    pub(crate) fn outline(self) -> &'static [&'static str] {
        &NAMES[self as usize][1]
    }

    /// Who may read a column. Payloads of the feed, rows of live queries, filters, the results of operations, and grants on
    /// PostgreSQL follow from it.
    fn readers(self, column: &str) -> Readers {
        self.column(column).map_or(Readers::Everyone, |column| column.readers)
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

    /// The values of the primary key in a row.
    pub(crate) fn key_of(self, row: &RowImage) -> Option<RowKey> {
        self.key().iter().map(|name| row.get(*name)?.as_str().map(str::to_owned)).collect()
    }

    /// The column with this name.
    pub(crate) fn column(self, name: &str) -> Option<Column> {
        self.columns().iter().copied().find(|column| column.name == name)
    }
}

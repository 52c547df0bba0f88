//! Rows as data: what an export returns, what an import takes, and what it did.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::column::ColumnType;

/// A row of an export.
///
/// It serialises to an object with the keys `table` and `row`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TableRow {
    /// The table, as [`RowTable::name`] has it.
    pub table: &'static str,
    /// The values by column: ids and times as text (times in RFC 3339), booleans and numbers as such, JSON columns as the JSON
    /// that they hold. NULL is `null`. A JSON column that is NULL is left out, because `null` in it is the JSON value.
    #[serde(rename = "row")]
    pub values: Map<String, Value>,
}

/// A table with rows that can be exported and imported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowTable {
    /// The name in the database.
    pub name: &'static str,
    /// The columns, in the order of the table.
    pub columns: Vec<RowColumn>,
    /// The places of the columns of each unique value: the key first.
    #[serde(skip)]
    pub unique: Vec<Vec<usize>>,
}

/// A column of a [`RowTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowColumn {
    /// The name in the database.
    pub name: &'static str,
    /// What the values are.
    pub kind: ValueKind,
    /// Whether the column allows NULL.
    pub is_nullable: bool,
}

/// What the values of a column are, as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// A UUID, as text.
    Uuid,
    /// A text.
    Text,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// A time in RFC 3339, as text.
    Time,
    /// Any JSON value.
    Json,
    /// A list of texts.
    Texts,
}

impl ValueKind {
    /// The name: `uuid`, `text`, `integer`, `boolean`, `time`, `json`, `texts`.
    ///
    /// ```
    /// assert_eq!(townsquare::rows::ValueKind::Time.as_str(), "time");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            ValueKind::Uuid => "uuid",
            ValueKind::Text => "text",
            ValueKind::Integer => "integer",
            ValueKind::Boolean => "boolean",
            ValueKind::Time => "time",
            ValueKind::Json => "json",
            ValueKind::Texts => "texts",
        }
    }
}

impl Serialize for ValueKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl From<ColumnType> for ValueKind {
    fn from(column_type: ColumnType) -> ValueKind {
        match column_type {
            ColumnType::Uuid => ValueKind::Uuid,
            ColumnType::Text => ValueKind::Text,
            ColumnType::Integer => ValueKind::Integer,
            ColumnType::Boolean => ValueKind::Boolean,
            ColumnType::Timestamp => ValueKind::Time,
            ColumnType::Json => ValueKind::Json,
            ColumnType::Texts => ValueKind::Texts,
        }
    }
}

/// How [`Client::import_rows`](crate::Client::import_rows) works.
///
/// ```
/// use townsquare::rows::ImportOptions;
///
/// let options = ImportOptions::new().dry_run();
/// assert_ne!(options, ImportOptions::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ImportOptions {
    pub(crate) is_dry_run: bool,
}

impl ImportOptions {
    /// The rows are inserted.
    pub fn new() -> ImportOptions {
        ImportOptions::default()
    }

    /// Inserts nothing. The report says what would happen, with a problem for each row that conflicts with existing rows. A row that is
    /// not valid is an error of the call, as without this option: then there is no report.
    #[must_use]
    pub fn dry_run(mut self) -> ImportOptions {
        self.is_dry_run = true;
        self
    }
}

/// What an import of rows did; with [`ImportOptions::dry_run`], what it would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowImportReport {
    /// Rows that were inserted; in a dry run, that would be. If the answer of a first try is lost, the call is repeated, and the rows of
    /// the first try count as `unchanged`.
    pub inserted: u64,
    /// Existing rows with the same values, also the rows of a first try whose answer was lost.
    pub unchanged: u64,
    /// The rows that conflict with existing rows, in order: one problem for each. Empty unless it is a dry run: otherwise the first
    /// problem is the error of the call.
    pub problems: Vec<RowProblem>,
}

/// Why a row cannot be inserted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RowProblem {
    /// The index of the row in the call.
    pub row: usize,
    /// What is wrong.
    pub kind: RowProblemKind,
    /// The column: the first that differs, the one with the taken value, or the reference.
    pub column: &'static str,
    /// For [`RowProblemKind::ReferenceMissing`], the table of the missing row.
    pub table: Option<&'static str>,
    /// For [`RowProblemKind::ReferenceMissing`], the value that no row of `table` has.
    pub value: Option<String>,
}

/// The kinds of [`RowProblem`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowProblemKind {
    /// The existing row with this key has another value in the column.
    Differs,
    /// Another row has this value of the unique column.
    Taken,
    /// The referenced row does not exist.
    ReferenceMissing,
}

impl RowProblemKind {
    /// The name: `differs`, `taken`, `reference_missing`.
    ///
    /// ```
    /// assert_eq!(townsquare::rows::RowProblemKind::Taken.as_str(), "taken");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            RowProblemKind::Differs => "differs",
            RowProblemKind::Taken => "taken",
            RowProblemKind::ReferenceMissing => "reference_missing",
        }
    }
}

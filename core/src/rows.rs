//! Rows as data: the export of whole tables, and the import of rows with their ids and times.
//!
//! Invariant: columns and their types come from `model`. A row that is exported and imported elsewhere is equal to the original:
//! ids, times and JSON stay. An import refuses a row of another program if a create would refuse one of its values.
//!
//! The tables are those with public rows: community configurations, domains, registrations of spaces, users, spaces and fidgets.
//! [`tables`] lists them in an order in which a row comes after the rows that it references.
//!
//! A row of `users` is the public row alone: id, address and times. Passwords, sessions, identity keys and verified addresses go
//! with [`move_to`](crate::Client::move_to) and [`backup`](crate::Client::backup). An imported user has no password until
//! [`set_password`](crate::auth::Auth::set_password), [`import_credentials`](crate::auth::Auth::import_credentials) or a
//! [recovery](crate::auth::Auth::recover) gives the user one. Files are no rows:
//! [`export_files`](crate::storage::Storage::export_files) writes them to a folder.
//!
//! ```
//! # let folder = tempfile::tempdir().unwrap();
//! # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
//! # let other = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("copy")))?;
//! use townsquare::{rows::{ImportOptions, TableRow}, spaces::NewSpace};
//!
//! let space = client.as_service().spaces().create_space(NewSpace::named("Harbor"))?;
//! let rows = client.as_service().export_rows(&["spaces"])?.collect::<Result<Vec<TableRow>, _>>()?;
//! let rows = rows.into_iter().map(|row| row.values).collect();
//! let report = other.as_service().import_rows("spaces", rows, ImportOptions::new())?;
//! assert_eq!(report.inserted, 1);
//! assert_eq!(other.as_service().spaces().get_space(space.id)?, space);
//! # Ok::<(), townsquare::Error>(())
//! ```

mod export;
mod import;
mod json;

pub use self::export::RowExport;
pub(crate) use self::import::import;
pub use crate::model::{
    ImportOptions, RowColumn, RowImportReport, RowProblem, RowProblemKind, RowTable, TableRow, ValueKind,
};
use crate::{
    database::{RecordTable, record_tables},
    error::{Error, Result},
};

/// Returns the tables with rows that can be exported and imported. A row comes after the rows that it references if the tables are
/// read and written in this order.
///
/// ```
/// let spaces = townsquare::rows::tables().into_iter().find(|table| table.name == "spaces").unwrap();
/// assert_eq!(spaces.columns[0].name, "id");
/// ```
pub fn tables() -> Vec<RowTable> {
    let tables = record_tables().iter().map(|table| {
        let columns = table.columns.iter().map(|column| RowColumn {
            name: column.name,
            kind: column.column_type.into(),
            is_nullable: !column.is_required,
        });
        RowTable { name: table.name, columns: columns.collect(), unique: table.uniques() }
    });
    tables.collect()
}

/// The table with this name.
///
/// # Errors
/// `InvalidInput`.
fn table_of(name: &str) -> Result<&'static RecordTable> {
    record_tables().iter().find(|table| table.name == name).ok_or_else(|| {
        let shortened: String = name.chars().take(60).collect();
        let known: Vec<_> = record_tables().iter().map(|table| table.name).collect();
        Error::invalid_input(format!("table is one of {}, not {shortened:?}", known.join(", ")))
    })
}

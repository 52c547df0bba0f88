//! Rows of whole tables: an export that the host reads row by row, and what an import did.

use std::{
    mem::MaybeUninit,
    sync::{Mutex, PoisonError},
};

use serde_json::Map;
use townsquare::{
    Json, Operation,
    blocking::RowExport,
    rows::{ImportOptions, RowImportReport, TableRow},
};

use crate::{
    boundary::{
        Failure, Handle, Memory, ProcessOwned, Record, argument, call_handle, call_optional_handle, call_wanted_handle,
        change, free, handle, json, record, text, tsq_error, tsq_status, tsq_str, tsq_string,
    },
    client::{self, tsq_client},
};

/// A row of an export. A record (manual, RECORDS); freed with `tsq_exported_row_free`.
#[repr(C)]
pub struct tsq_exported_row {
    /// The name of the table.
    pub table: tsq_str,
    /// The values by column as a JSON object: ids and times as text (times in RFC 3339), JSON columns as the JSON that they hold.
    /// NULL is `null`. A JSON column that is NULL is left out, because `null` in it is the JSON value.
    pub values: tsq_str,
}

impl Record for tsq_exported_row {
    type Source = TableRow;

    fn new(row: &TableRow, memory: &mut Memory) -> tsq_exported_row {
        tsq_exported_row { table: text::view(row.table), values: memory.optional_row(Some(&row.values)) }
    }
}

/// The row as a JSON object: `table`, and `row` with the values by column.
///
/// Borrows `row`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_exported_row_json(
    row: *const tsq_exported_row,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(row, "row")?)) }
}

/// Frees a row that a call returned owned. Takes `row`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_exported_row_free(row: *mut tsq_exported_row) {
    // SAFETY: `row` is NULL or owned by the caller, by the manual.
    unsafe { free(row) }
}

/// The rows of tables as they were at one moment: the result of `tsq_client_export_rows`. Owned, freed with
/// `tsq_row_export_free`.
pub struct tsq_row_export {
    _opaque: [u8; 0],
}

impl Handle for tsq_row_export {
    type Value = ProcessOwned<Mutex<RowExport>>;
}

/// Reads the next row. `*out` is NULL after `TSQ_OK` at the end.
///
/// Borrows `rows`; returns owned in `out`. Fails with `TSQ_INTERNAL` for a row with a value that is not of its column's type, as
/// another program may have written it; `TSQ_INVALID_INPUT`, `TSQ_CLOSED`, and when the database fails. After a failure there are
/// no further rows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_row_export_next(
    rows: *mut tsq_row_export,
    out: *mut *mut tsq_exported_row,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_optional_handle(Some(Operation::ExportRows), out, err, || {
            let export = handle::required(rows.cast_const(), "rows")?;
            let next = export.get()?.lock().unwrap_or_else(PoisonError::into_inner).next();
            Ok(next.transpose()?.map(record))
        })
    }
}

/// Frees an export, which ends its read transaction. Takes `rows`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_row_export_free(rows: *mut tsq_row_export) {
    // SAFETY: `rows` is NULL or owned by the caller, by the manual.
    unsafe { free(rows) }
}

/// Reads the rows of an import: a JSON array of objects.
///
/// # Safety
/// As for [`argument::text`].
unsafe fn read(rows: tsq_str) -> Result<Vec<Map<String, Json>>, Failure> {
    // SAFETY: the caller's promise, passed on.
    let Some(Json::Array(rows)) = (unsafe { argument::optional_json(rows, "rows") })? else {
        return Err(Failure::invalid_input("Argument rows is not a JSON array of objects"));
    };
    let rows = rows.into_iter().enumerate().map(|(index, row)| match row {
        Json::Object(row) => Ok(row),
        _ => Err(Failure::invalid_input(format!("Argument rows[{index}] is not a JSON object")).at_row(index)),
    });
    rows.collect()
}

/// Why `tsq_client_import_rows` cannot import a row. This struct does not grow.
#[repr(C)]
pub struct tsq_row_problem {
    /// The index of the row in the call.
    pub row: usize,
    /// What is wrong. `differs`: there is a row with the key, and it has another value in the column. `taken`: another row has the
    /// value of the column, which is unique. `reference_missing`: the row that the column references is not there.
    pub kind: tsq_str,
    /// The column: the first that differs, the one with the taken value, or the reference.
    pub column: tsq_str,
    /// For `reference_missing`, the table of the missing row; else absent.
    pub table: tsq_str,
    /// For `reference_missing`, the value that no row of `table` has; else absent.
    pub value: tsq_str,
}

/// What `tsq_client_import_rows` did; in a dry run, what it would do. A record (manual, RECORDS); freed with
/// `tsq_row_import_report_free`.
#[repr(C)]
pub struct tsq_row_import_report {
    /// Rows that were inserted.
    pub inserted: u64,
    /// Existing rows with the same values.
    pub unchanged: u64,
    /// The rows that conflict with existing rows, in order: an array with one problem for each. Empty unless it is a dry run.
    pub problems: *const tsq_row_problem,
    /// Number of the problems.
    pub problems_len: usize,
}

impl Record for tsq_row_import_report {
    type Source = RowImportReport;

    fn new(report: &RowImportReport, memory: &mut Memory) -> tsq_row_import_report {
        let problems = report.problems.iter().map(|problem| tsq_row_problem {
            row: problem.row,
            kind: text::view(problem.kind.as_str()),
            column: text::view(problem.column),
            table: text::optional_view(problem.table),
            value: text::optional_view(problem.value.as_deref()),
        });
        let problems: Vec<_> = problems.collect();
        tsq_row_import_report {
            inserted: report.inserted,
            unchanged: report.unchanged,
            problems_len: problems.len(),
            problems: memory.array(problems),
        }
    }
}

/// The report as a JSON object: `inserted`, `unchanged` and `problems`, an array of the members of `tsq_row_problem`.
///
/// Borrows `report`; returns owned in `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_row_import_report_json(
    report: *const tsq_row_import_report,
    out: *mut *mut tsq_string,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe { call_handle(None, out, err, || json(handle::required(report, "report")?)) }
}

/// Frees a report. Takes `report`; NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_row_import_report_free(report: *mut tsq_row_import_report) {
    // SAFETY: `report` is NULL or owned by the caller, by the manual.
    unsafe { free(report) }
}

/// Begins to read every row of tables, as the database is at this moment; `tsq_row_export_next` returns the rows. Reads all tables
/// if none is named: `community_configs`, `community_domains`, `spaceRegistrations`, `users`, `spaces` and `fidgets`. A row comes
/// after the rows that it references. Others may write meanwhile. For the service.
///
/// A row has every column of its table. It has no password, token, session or identity key: `tsq_client_move_to` and
/// `tsq_client_backup` copy accounts. The export holds a read transaction of the database until its end: free it before the client
/// closes.
///
/// Borrows all (`tables` is an array of `tables_len`); returns owned in `out`. Fails with `TSQ_INVALID_INPUT` for an unknown table,
/// `TSQ_UNAUTHORIZED` or `TSQ_FORBIDDEN` for callers other than the service, `TSQ_UNAVAILABLE`, `TSQ_CLOSED`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_export_rows(
    client: *const tsq_client,
    tables: *const tsq_str,
    tables_len: usize,
    out: *mut *mut tsq_row_export,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_handle(Some(Operation::ExportRows), out, err, || {
            let (client, tables) = (client::usable(client)?, argument::texts(tables, tables_len, "tables")?);
            Ok(ProcessOwned::new(Mutex::new(client.export_rows(&tables)?)))
        })
    }
}

/// Inserts rows of a table with their ids and times, all or none, in one transaction. A row that is there with the same values
/// counts as unchanged, so a call may be repeated. An existing row is never changed. Values are checked as for a new row. No
/// quota applies. A user who is imported has no password. For the service.
///
/// `rows` is a JSON array of objects in the form of `tsq_exported_row.values`. With `dry_run` nothing is inserted: the report says
/// what would happen, with a problem for each row that conflicts with existing rows. A row that is not valid fails the call, as
/// without `dry_run`.
///
/// Borrows all; returns owned in `out`, which may be NULL. Fails with `TSQ_FIELD_MISSING` for a missing column, and for `null` where
/// the table requires a value; `TSQ_INVALID_INPUT` for an unknown table or column, a value of another type, a value that a create
/// refuses, and two rows with one id; `TSQ_TOO_LARGE`; `TSQ_ALREADY_EXISTS` for a row that is there and differs, and for a value of
/// a unique column that another row has; `TSQ_REFERENCE_MISSING` for a row that references none; `TSQ_UNAUTHORIZED` or
/// `TSQ_FORBIDDEN` for callers other than the service; `TSQ_CLOSED`. `tsq_error_row` is the index of the row and `tsq_error_column`
/// its column, if they are known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tsq_client_import_rows(
    client: *const tsq_client,
    table: tsq_str,
    rows: tsq_str,
    dry_run: MaybeUninit<bool>,
    out: *mut *mut tsq_row_import_report,
    err: *mut *mut tsq_error,
) -> tsq_status {
    // SAFETY: the arguments are as the manual requires.
    unsafe {
        call_wanted_handle(Some(Operation::ImportRows), out, err, || {
            let (client, table, rows) = (client::usable(client)?, argument::text(table, "table")?, read(rows)?);
            let options = ImportOptions::new();
            let options = if change::boolean(dry_run) { options.dry_run() } else { options };
            Ok(record(client.import_rows(table, rows, options)?))
        })
    }
}

//! The import: checks every row, then inserts all rows that are not there, or none.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value as Json};

use super::{ImportOptions, RowImportReport, RowProblem, RowProblemKind, json, table_of};
use crate::{
    database::{Problem, RecordRow, RecordTable, Scope},
    error::{Error, ErrorKind, Result},
    policy::Table,
    validate::Limits,
};

/// Imports rows of one table, for the service.
pub(crate) async fn import(
    scope: &Scope,
    limits: &Limits,
    table: &str,
    rows: Vec<Map<String, Json>>,
    options: ImportOptions,
) -> Result<RowImportReport> {
    scope.current_principal().require_service(Table::Users)?;
    let table = table_of(table)?;
    let rows = Arc::new(limits.each("rows", rows, |row| json::imported(table, row, limits))?);
    refuse_repeated(table, &rows)?;
    let import = scope.import_records(table, Arc::clone(&rows), options.is_dry_run).await?;
    if !options.is_dry_run
        && let Some((row, problem)) = import.problems.first_key_value()
    {
        return Err(error_of(table, &rows, *row, problem));
    }
    let problems = import.problems.into_iter().map(|(row, problem)| problem_of(row, problem)).collect();
    Ok(RowImportReport { inserted: import.inserted, unchanged: import.unchanged, problems })
}

/// Refuses two rows with one key, or with one value of unique columns.
fn refuse_repeated(table: &RecordTable, rows: &[RecordRow]) -> Result<()> {
    for places in table.uniques() {
        let mut seen = BTreeMap::new();
        let values = |row| places.iter().map(move |place| table.unique_text(row, *place));
        for (index, row) in rows.iter().enumerate() {
            // NULL equals nothing.
            let Some(value) = values(row).collect::<Option<Vec<_>>>() else { continue };
            if let Some(first) = seen.insert(value, index) {
                let names: Vec<_> = places.iter().map(|place| table.columns[*place].name).collect();
                let message = format!("rows[{first}] and rows[{index}] have the same {}", names.join(" and "));
                return Err(Error::invalid_input(message).at_row(index));
            }
        }
    }
    Ok(())
}

fn problem_of(row: usize, problem: Problem) -> RowProblem {
    match problem {
        Problem::Differs { column } => {
            RowProblem { row, kind: RowProblemKind::Differs, column, table: None, value: None }
        }
        Problem::Taken { column } => RowProblem { row, kind: RowProblemKind::Taken, column, table: None, value: None },
        Problem::Missing { column, table, value } => {
            let (table, value) = (Some(table), Some(value));
            RowProblem { row, kind: RowProblemKind::ReferenceMissing, column, table, value }
        }
    }
}

/// The error for a row with a problem.
fn error_of(table: &RecordTable, rows: &[RecordRow], row: usize, problem: &Problem) -> Error {
    let (error, column) = match problem {
        Problem::Differs { column } => {
            let key = rows.get(row).and_then(|row| row.text(table.key())).unwrap_or_default();
            let reason = format!("rows[{row}]: the row {key} of {} is there and differs in {column}", table.name);
            (Error::already_exists(reason), column)
        }
        Problem::Taken { column } => {
            let reason = format!("rows[{row}]: another row of {} has the same {column}", table.name);
            (Error::already_exists(reason), column)
        }
        Problem::Missing { column, table, value } => {
            let reason = format!("rows[{row}].{column}: there is no row of {table} with {value:?}");
            (Error::database(Some("23503"), ErrorKind::ReferenceMissing, "").with_reason(reason), column)
        }
    };
    error.at_row(row).in_column(*column)
}

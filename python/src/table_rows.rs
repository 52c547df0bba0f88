//! Rows of whole tables: the iterators of an export, and the records of an export and an import.

use std::vec;

use pyo3::prelude::*;
use townsquare::{Client, Operation, rows::RowExport};

use crate::{
    argument::TextListArg,
    errors::Failure,
    iteration::iteration,
    json::PyJsonObject,
    process,
    record::record,
    run::{MethodResult, Mode, Runner},
};

/// The rows of an export one by one.
pub(crate) struct ExportedRows {
    export: Export,
    page: vec::IntoIter<townsquare::rows::TableRow>,
}

enum Export {
    /// Not begun: the tables.
    Later(Client, Vec<String>),
    /// It holds a read transaction of the database.
    Begun(RowExport),
    /// After the last row and after an error.
    Ended,
}

impl ExportedRows {
    /// Whether the next row needs no read of the database.
    fn has_read_ahead(&self) -> bool {
        !self.page.as_slice().is_empty()
    }

    async fn next(&mut self) -> Option<townsquare::Result<townsquare::rows::TableRow>> {
        if self.page.as_slice().is_empty() {
            match self.read().await {
                Ok(page) => self.page = page.into_iter(),
                Err(error) => {
                    self.export = Export::Ended;
                    return Some(Err(error));
                }
            }
        }
        let row = self.page.next();
        if row.is_none() {
            self.export = Export::Ended;
        }
        row.map(Ok)
    }

    /// The next page; empty at the end.
    async fn read(&mut self) -> townsquare::Result<Vec<townsquare::rows::TableRow>> {
        self.begin().await?;
        match &mut self.export {
            Export::Begun(export) => export.next_page().await,
            Export::Later(..) | Export::Ended => Ok(Vec::new()),
        }
    }

    /// Begins the export unless it has begun.
    async fn begin(&mut self) -> townsquare::Result<()> {
        if let Export::Later(client, tables) = &self.export {
            let tables: Vec<_> = tables.iter().map(String::as_str).collect();
            self.export = Export::Begun(client.export_rows(&tables).await?);
        }
        Ok(())
    }
}

iteration!(NextRow: ExportedRows as townsquare::rows::TableRow, Operation::ExportRows, TableRow::from, RowIterator, AsyncRowIterator);

/// Begins an export, or returns an async iterator that begins it at its first row.
pub(crate) fn export_rows<'py>(py: Python<'py>, runner: &Runner, tables: TextListArg) -> MethodResult<'py> {
    let later = || Ok((runner.client().get()?.clone(), tables.value("tables")?));
    let (client, tables) =
        later().map_err(|failure: Failure| failure.into_exception(py, Some(Operation::ExportRows)))?;
    let mut rows = ExportedRows { export: Export::Later(client, tables), page: Vec::new().into_iter() };
    if let Mode::Sync = runner.mode() {
        let begun = process::block_on(py, async {
            rows.begin().await?;
            Ok(())
        })?;
        begun.map_err(|failure: Failure| failure.into_exception(py, Some(Operation::ExportRows)))?;
    }
    NextRow::iterator(py, rows, runner)
}

record! {
    #[doc = text_of!(TableRow)]
    TableRow(townsquare::rows::TableRow) [] as row, hash [table] => {
        /// The name of the table.
        table: "str" = row.table,
        /// The values by column.
        values: "dict[str, Any]" = PyJsonObject(&row.values),
    }
}

record! {
    #[doc = text_of!(RowImportReport)]
    RowImportReport(townsquare::rows::RowImportReport) [] as report, hash [inserted, unchanged] => {
        /// The rows that were inserted.
        inserted: "int" = report.inserted,
        /// The existing rows with the same values.
        unchanged: "int" = report.unchanged,
        /// The rows that conflict with existing rows, in order: one problem for each.
        problems: "list[RowProblem]" = report.problems.iter().cloned().map(RowProblem::from).collect::<Vec<_>>(),
    }
}

record! {
    #[doc = text_of!(RowProblem)]
    RowProblem(townsquare::rows::RowProblem) [] as problem, hash [row, kind, column] => {
        /// The index of the row in the call.
        row: "int" = problem.row,
        /// What is wrong.
        kind: "str" = problem.kind.as_str(),
        /// The column.
        column: "str" = problem.column,
        /// The table of the missing row, or None.
        table: "Optional[str]" = problem.table,
        /// The value that no row of `table` has, or None.
        value: "Optional[str]" = problem.value.as_deref(),
    }
}

//! The export and the import of rows without async.

use std::vec;

use serde_json::{Map, Value as Json};

use super::{Client, wait};
use crate::{
    error::Result,
    rows::{ImportOptions, RowImportReport, TableRow},
};

impl Client {
    #[doc = text_of!(Client.export_rows)]
    pub fn export_rows(&self, tables: &[&str]) -> Result<RowExport> {
        let export = wait(self.inner().export_rows(tables))?;
        Ok(RowExport { export: Some(export), page: Vec::new().into_iter() })
    }

    #[doc = text_of!(Client.import_rows)]
    pub fn import_rows(
        &self,
        table: &str,
        rows: Vec<Map<String, Json>>,
        options: ImportOptions,
    ) -> Result<RowImportReport> {
        wait(self.inner().import_rows(table, rows, options))
    }
}

/// The rows of tables one by one, as they were at one moment: the result of [`Client::export_rows`].
///
/// The iterator holds a read transaction of the database. The transaction ends when `next` returns `None` or an error, and when the
/// iterator is dropped.
#[derive(Debug)]
pub struct RowExport {
    /// `None` after the last row and after an error.
    export: Option<crate::rows::RowExport>,
    page: vec::IntoIter<TableRow>,
}

impl Iterator for RowExport {
    type Item = Result<TableRow>;

    fn next(&mut self) -> Option<Result<TableRow>> {
        if self.page.as_slice().is_empty() {
            match wait(self.export.as_mut()?.next_page()) {
                Ok(page) => self.page = page.into_iter(),
                Err(error) => {
                    self.export = None;
                    return Some(Err(error));
                }
            }
        }
        let row = self.page.next();
        if row.is_none() {
            self.export = None;
        }
        row.map(Ok)
    }
}

//! The export and the import of rows: their work is in `rows`.

use serde_json::{Map, Value as Json};

use super::Client;
use crate::{
    database::call,
    error::{Operation, Result},
    rows::{self, ImportOptions, RowExport, RowImportReport},
};

impl Client {
    /// Begins an export of the named tables, or of all [tables](crate::rows::tables) if `tables` is empty. The export has the rows of
    /// this moment, and others may write meanwhile. Only for the service.
    ///
    /// A row has every column of its table, also those that other callers do not read. It has no password, token, session or
    /// identity key: [`move_to`](Client::move_to) and [`backup`](Client::backup) copy accounts.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown table; `Unauthorized` for an anonymous caller, `Forbidden` for a user; `Unavailable` if the
    /// database does not answer.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
    /// for row in client.as_service().export_rows(&["users", "spaces"])? {
    ///     let row = row?;
    ///     println!("{}: {}", row.table, row.values["id"]);
    /// }
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn export_rows(&self, tables: &[&str]) -> Result<RowExport> {
        let scope = self.0.core.database.scope(self.0.auth.principal().clone());
        call(self.0.auth.principal(), Operation::ExportRows, RowExport::begin(&scope, tables)).await
    }

    /// Inserts rows of a table with their ids and times, all or none, in one transaction. Only for the service. If the table already has
    /// a row with the same id and values, the row counts as unchanged, so a call may be repeated. An import never changes an existing
    /// row.
    ///
    /// A row has the form of [`export_rows`](Client::export_rows): every column, `null` for NULL; a JSON column that is NULL is
    /// missing. Values are checked as for a new row, but an address keeps its case and a domain its form, and an address may be one that
    /// no new account may have. No quota applies. The change feed delivers an `INSERT` for each new row.
    ///
    /// A user who is imported has no password: see [`rows`](crate::rows).
    ///
    /// # Errors
    /// [`Error::row`](crate::Error::row) is the index of the row and [`Error::column`](crate::Error::column) its column, if they are
    /// known.
    /// - `FieldMissing` for a missing column, and for NULL where the table requires a value; `InvalidInput` for an unknown table or
    ///   column, a value of another type, a value that a create refuses, and two rows with one id; `TooLarge` for a value over its
    ///   limit and for more rows than `max_bulk_rows`.
    /// - `AlreadyExists` for a row that is there and differs, and for a value of a unique column that another row has;
    ///   `ReferenceMissing` for a row that references none. [`dry_run`](ImportOptions::dry_run) reports these two for all rows instead.
    /// - `Unauthorized` for an anonymous caller, `Forbidden` for a user.
    ///
    /// # Examples
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path().join("town")))?;
    /// use townsquare::{Json, rows::ImportOptions};
    ///
    /// let row = r#"{"id": "5f0d1c1e-0c7c-4a55-9d43-7f5a3c5a1b11", "name": "Harbor", "description": null, "owner_id": null,
    ///     "is_public": true, "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-02T03:04:05Z"}"#;
    /// let Ok(Json::Object(row)) = serde_json::from_str(row) else { unreachable!() };
    /// let report = client.as_service().import_rows("spaces", vec![row.clone()], ImportOptions::new())?;
    /// assert_eq!((report.inserted, report.unchanged), (1, 0));
    /// let report = client.as_service().import_rows("spaces", vec![row], ImportOptions::new())?;
    /// assert_eq!((report.inserted, report.unchanged), (0, 1));
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn import_rows(
        &self,
        table: &str,
        rows: Vec<Map<String, Json>>,
        options: ImportOptions,
    ) -> Result<RowImportReport> {
        let scope = self.0.core.database.scope(self.0.auth.principal().clone());
        let import = rows::import(&scope, &self.0.core.limits, table, rows, options);
        call(self.0.auth.principal(), Operation::ImportRows, import).await
    }
}

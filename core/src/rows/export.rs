//! The export: the rows of tables at one moment, in pages.

use std::{fmt, vec};

use super::{TableRow, json, table_of};
use crate::{
    database::{CurrentPrincipal, DatabaseMoment, RecordTable, Scope, Value, call, record_tables},
    error::{Operation, Result},
    policy::Table,
    threads::ProcessOwned,
};

/// The rows of tables as they were at one moment: the result of [`Client::export_rows`](crate::Client::export_rows).
///
/// While it exists it holds a read transaction of the database: writers go on, but SQLite's write-ahead log grows, PostgreSQL keeps
/// the rows that are deleted meanwhile, and a PostgreSQL server may end a transaction that is idle for long. Drop it before the
/// client closes: otherwise `close` waits for it for seconds.
pub struct RowExport {
    /// A forked child must not end the transaction of its parent.
    moment: ProcessOwned<DatabaseMoment>,
    principal: CurrentPrincipal,
    /// The table that is read, and the key of the last row that was.
    current: Option<(&'static RecordTable, Option<Value<'static>>)>,
    /// The tables after it.
    rest: vec::IntoIter<&'static RecordTable>,
}

impl RowExport {
    /// Begins an export of tables; of all tables if none is named.
    pub(crate) async fn begin(scope: &Scope, tables: &[&str]) -> Result<RowExport> {
        let principal = scope.current_principal().clone();
        principal.require_service(Table::Users)?;
        let named = tables.iter().map(|name| table_of(name)).collect::<Result<Vec<_>>>()?;
        let is_named = |table: &&RecordTable| named.is_empty() || named.iter().any(|named| named.name == table.name);
        // A table that is named twice is exported once.
        let tables: Vec<_> = record_tables().iter().filter(is_named).collect();
        let mut rest = tables.into_iter();
        let current = rest.next().map(|table| (table, None));
        Ok(RowExport { moment: ProcessOwned::new(scope.moment().await?), principal, current, rest })
    }

    /// Returns the next rows, at most 256 of one table; none at the end. Tables come in the order of [`tables`](super::tables), rows
    /// in the order of their keys. If the future is dropped, the next call returns the same rows.
    ///
    /// # Errors
    /// `Internal` (`XX001`), naming the table, for a row with a value that is not of its column's type, as another program may
    /// have written it; the errors of the database.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(client: &townsquare::Client) -> townsquare::Result<()> {
    /// let mut export = client.as_service().export_rows(&["spaces", "fidgets"]).await?;
    /// loop {
    ///     let page = export.next_page().await?;
    ///     if page.is_empty() {
    ///         break;
    ///     }
    ///     println!("{} rows of {}", page.len(), page[0].table);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next_page(&mut self) -> Result<Vec<TableRow>> {
        let RowExport { moment, principal, current, rest } = self;
        let read = async {
            while let Some((table, after)) = current.clone() {
                let rows = moment.get_mut()?.record_page(table, after).await?;
                match rows.last().and_then(|last| last.values().get(table.key()).cloned()) {
                    Some(key) => {
                        *current = Some((table, Some(key)));
                        return Ok(rows.into_iter().map(|row| json::exported(table, row)).collect());
                    }
                    None => *current = rest.next().map(|table| (table, None)),
                }
            }
            Ok(Vec::new())
        };
        call(principal, Operation::ExportRows, read).await
    }
}

impl fmt::Debug for RowExport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.current.as_ref().map(|(table, _)| table.name);
        f.debug_struct("RowExport").field("table", &table).finish_non_exhaustive()
    }
}

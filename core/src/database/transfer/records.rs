//! The rows of the tables with a record: pages of an export, and the import of rows that keep their ids and times.
//!
//! Invariant: an import writes all of its rows in one transaction, or none. A row that is there is never changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use super::{
    TransferRow, digest,
    tables::{BATCH, TransferTable, insert, parameters, tables},
};
use crate::{
    database::{DatabaseMoment, Scope, row::Row, statement::Statement, transaction::Transaction, value::Value},
    error::Result,
    model::Column,
    policy::{EMAIL, REFERENCES, Table, UNIQUES, quoted},
};

/// A table with a record in `model`.
pub(crate) struct RecordTable {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [Column],
    table: &'static TransferTable,
    /// Takes [`BATCH`] keys and returns their rows.
    some: Statement,
    insert_one: Statement,
    insert_batch: Statement,
    uniques: Vec<Unique>,
    references: Vec<Reference>,
}

/// Columns, besides the key, with a value that only one row may have.
struct Unique {
    columns: &'static [&'static str],
    places: Vec<usize>,
    /// Returns a row if the table has the values.
    holder: Statement,
}

/// A column with the key of a row of another table.
struct Reference {
    place: usize,
    table: &'static str,
    /// Takes [`BATCH`] values and returns the values that the other table has.
    found: Statement,
}

/// A row of a [`RecordTable`].
#[derive(Debug, Clone)]
pub(crate) struct RecordRow(Vec<Value<'static>>);

/// What an import has done, or what it would do. The indexes are those of the rows of the call.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordImport {
    pub(crate) inserted: u64,
    /// Rows that the table already has with the same values.
    pub(crate) unchanged: u64,
    /// The first problem of each row that has one.
    pub(crate) problems: BTreeMap<usize, Problem>,
}

/// Why a row cannot be inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// There is a row with the key, and it differs in this column.
    Differs { column: &'static str },
    /// Another row has the value of this column.
    Taken { column: &'static str },
    /// There is no row of `table` with the value of this column.
    Missing { column: &'static str, table: &'static str, value: String },
}

/// The tables in an order in which a row comes after the rows that it references.
pub(crate) fn record_tables() -> &'static [RecordTable] {
    static TABLES: LazyLock<Vec<RecordTable>> = LazyLock::new(|| {
        let tables = Table::public().zip(tables());
        tables.map(|(record, table)| RecordTable::new(table, record.columns())).collect()
    });
    &TABLES
}

/// A value of a key or of a unique column as text.
fn text_of(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Uuid(id) => id.map(|id| id.to_string()),
        Value::Text(text) => text.as_deref().map(str::to_owned),
        _ => None,
    }
}

impl RecordTable {
    fn new(table: &'static TransferTable, columns: &'static [Column]) -> RecordTable {
        let (name, index, in_template) = (table.name, table.index, &table.in_template);
        let names: Vec<String> = columns.iter().map(|column| quoted(column.name)).collect();
        let all = names.join(", ");
        let key = key_of(table);
        let key = quoted(columns[key].name);
        let insert = |rows| Statement::made(insert(in_template, &names, rows));
        let place = |name: &str| columns.iter().position(|column| column.name == name).unwrap_or_default();
        let holds = |(number, column): (usize, &&str)| match *column {
            EMAIL => format!("{{users.has_address ${number}}}"),
            column => format!("{column} = ${number}"),
        };
        let uniques = UNIQUES.iter().filter(|unique| unique.0.name() == name).map(|(_, of)| {
            let condition = (1..).zip(*of).map(holds).collect::<Vec<_>>().join(" AND ");
            Unique {
                columns: of,
                places: of.iter().map(|name| place(name)).collect(),
                holder: Statement::made(format!("SELECT 1 FROM {in_template} WHERE {condition} LIMIT 1")),
            }
        });
        let references = REFERENCES.iter().filter(|reference| reference.0.name() == name);
        let references = references.map(|(_, column, table, of)| Reference {
            place: place(column),
            table: table.name(),
            found: Statement::made(format!(
                "SELECT {of} FROM {} WHERE {of} IN ({})",
                quoted(table.name()),
                parameters(1, BATCH)
            )),
        });
        RecordTable {
            name,
            columns,
            table,
            some: Statement::made(format!(
                "SELECT {index}, {all} FROM {in_template} WHERE {key} IN ({})",
                parameters(1, BATCH)
            )),
            insert_one: insert(1),
            insert_batch: insert(BATCH),
            uniques: uniques.collect(),
            references: references.collect(),
        }
    }

    /// A row of this table with a value for each column.
    pub(crate) fn row(&self, values: Vec<Value<'static>>) -> RecordRow {
        RecordRow(values)
    }

    /// The place of the column that is the key.
    pub(crate) fn key(&self) -> usize {
        key_of(self.table)
    }

    /// The places of the columns that are unique: the key first.
    pub(crate) fn uniques(&self) -> Vec<Vec<usize>> {
        let others = self.uniques.iter().map(|unique| unique.places.clone());
        std::iter::once(vec![self.key()]).chain(others).collect()
    }

    /// The value of a unique column as text; `None` for NULL. Two spellings of an address are one value.
    pub(crate) fn unique_text(&self, row: &RecordRow, place: usize) -> Option<String> {
        let text = row.text(place)?;
        Some(if self.columns[place].name == EMAIL { text.to_lowercase() } else { text })
    }

    /// Finds the rows that are there, and the problems of the others. Returns the places of the rows to insert.
    async fn compare(
        &'static self,
        transaction: &mut Transaction<'_>,
        rows: &[RecordRow],
        import: &mut RecordImport,
    ) -> Result<Vec<usize>> {
        let mut new = Vec::new();
        for (number, batch) in rows.chunks(BATCH).enumerate() {
            // The stored rows of one batch are in memory at a time.
            let existing = self.existing(transaction, batch).await?;
            for (row, index) in batch.iter().zip(number * BATCH..) {
                match row.text(self.key()).and_then(|key| existing.get(&key)) {
                    None => new.push(index),
                    Some(found) => match self.difference(row, found) {
                        None => import.unchanged += 1,
                        Some(column) => drop(import.problems.insert(index, Problem::Differs { column })),
                    },
                }
            }
        }
        for unique in &self.uniques {
            for index in &new {
                let value = |place: &usize| self.unique_text(&rows[*index], *place).into();
                let values: Vec<Value<'_>> = unique.places.iter().map(value).collect();
                if transaction.fetch_optional(&unique.holder, &values, |_| Ok(())).await?.is_some() {
                    let column = unique.columns.last().copied().unwrap_or_default();
                    import.problems.entry(*index).or_insert(Problem::Taken { column });
                }
            }
        }
        for reference in &self.references {
            self.find_missing(transaction, reference, rows, &new, import).await?;
        }
        new.retain(|index| !import.problems.contains_key(index));
        Ok(new)
    }

    /// The rows that are there, by their keys. `batch` has at most [`BATCH`] rows.
    async fn existing(
        &'static self,
        transaction: &mut Transaction<'_>,
        batch: &[RecordRow],
    ) -> Result<BTreeMap<String, TransferRow>> {
        let keys = batch.iter().map(|row| row.0[self.key()].clone()).collect();
        let found = transaction.fetch(&self.some, &padded(keys), TransferRow::read).await?;
        Ok(found.into_iter().filter_map(|row| Some((text_of(&row.values[self.key()])?, row))).collect())
    }

    /// The first column in which two rows differ.
    fn difference(&self, row: &RecordRow, found: &TransferRow) -> Option<&'static str> {
        let values = row.0.iter().zip(&found.values).zip(self.columns);
        values.filter(|((one, other), _)| !digest::are_equal(one, other)).map(|(_, column)| column.name).next()
    }

    async fn find_missing(
        &'static self,
        transaction: &mut Transaction<'_>,
        reference: &'static Reference,
        rows: &[RecordRow],
        new: &[usize],
        import: &mut RecordImport,
    ) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for index in new {
            if let Some(text) = rows[*index].text(reference.place) {
                wanted.insert(text, rows[*index].0[reference.place].clone());
            }
        }
        let values: Vec<_> = wanted.values().cloned().collect();
        let read = match values.first() {
            Some(Value::Uuid(_)) => |row: &Row<'_>| row.get::<uuid::Uuid>(0).map(|id| id.to_string()),
            _ => |row: &Row<'_>| row.get::<String>(0),
        };
        let mut found = BTreeSet::new();
        for batch in values.chunks(BATCH) {
            found.extend(transaction.fetch(&reference.found, &padded(batch.to_vec()), read).await?);
        }
        for index in new {
            if let Some(value) = rows[*index].text(reference.place).filter(|text| !found.contains(text)) {
                let column = self.columns[reference.place].name;
                let missing = Problem::Missing { column, table: reference.table, value };
                import.problems.entry(*index).or_insert(missing);
            }
        }
        Ok(())
    }

    async fn insert(&'static self, transaction: &mut Transaction<'_>, rows: &[RecordRow], new: &[usize]) -> Result<()> {
        let (batches, rest) = new.as_chunks::<BATCH>();
        for batch in batches {
            let values: Vec<_> = batch.iter().flat_map(|index| rows[*index].0.iter().cloned()).collect();
            transaction.execute(&self.insert_batch, &values).await?;
        }
        for index in rest {
            let inserted = transaction.execute(&self.insert_one, &rows[*index].0).await;
            inserted.map_err(|error| error.at_row(*index))?;
        }
        Ok(())
    }
}

/// The place of the key of a table with a record, which is one column.
fn key_of(table: &TransferTable) -> usize {
    table.key.first().copied().unwrap_or_default()
}

/// Repeats the last of the values until there are [`BATCH`].
fn padded(mut values: Vec<Value<'static>>) -> Vec<Value<'static>> {
    if let Some(last) = values.last().cloned() {
        values.resize(BATCH, last);
    }
    values
}

impl RecordRow {
    /// The values in the order of the columns.
    pub(crate) fn values(&self) -> &[Value<'static>] {
        &self.0
    }

    /// The values in the order of the columns.
    pub(crate) fn into_values(self) -> Vec<Value<'static>> {
        self.0
    }

    /// The value of a key or a unique column as text; `None` for NULL.
    pub(crate) fn text(&self, place: usize) -> Option<String> {
        text_of(self.0.get(place)?)
    }
}

impl DatabaseMoment {
    /// The rows of a table that follow the key `after`, at this moment: at most 256, and fewer if they take more than 64 MiB of
    /// memory. None at the end.
    pub(crate) async fn record_page(
        &mut self,
        table: &'static RecordTable,
        after: Option<Value<'static>>,
    ) -> Result<Vec<RecordRow>> {
        let rows = self.transfer_page(table.table, after.map(|key| vec![key])).await?;
        Ok(rows.into_iter().map(|row| RecordRow(row.values)).collect())
    }
}

impl Scope {
    /// Inserts the rows that are not there, all or none: none if a row has a problem. `is_dry_run`: inserts nothing, and the result
    /// is what would happen.
    pub(crate) async fn import_records(
        &self,
        table: &'static RecordTable,
        rows: Arc<Vec<RecordRow>>,
        is_dry_run: bool,
    ) -> Result<RecordImport> {
        let import = self.write_idempotent(move |transaction| {
            Box::pin(async move {
                let mut import = RecordImport::default();
                let new = table.compare(transaction, &rows, &mut import).await?;
                import.inserted = new.len() as u64;
                if !is_dry_run && import.problems.is_empty() {
                    table.insert(transaction, &rows, &new).await?;
                }
                Ok(import)
            })
        });
        import.await
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::database::sqlite::new_schema;

    /// The rows of a query with texts in its columns.
    fn query(sql: &str, width: usize) -> BTreeSet<Vec<String>> {
        let database = new_schema();
        let mut statement = database.prepare(sql).expect("the catalog");
        let read = |row: &rusqlite::Row<'_>| (0..width).map(|column| row.get::<_, String>(column)).collect();
        let rows = statement.query_map([], read).expect("rows");
        rows.map(|row| row.expect("texts")).collect()
    }

    fn is_record(name: &str) -> bool {
        record_tables().iter().any(|table| table.name == name)
    }

    #[test]
    fn every_reference_between_the_tables_is_checked() {
        let declared = REFERENCES
            .iter()
            .map(|(table, column, other, of)| [table.name(), column, other.name(), of].map(str::to_owned).to_vec());
        let sql = "SELECT tables.name, keys.\"from\", keys.\"table\", keys.\"to\"
            FROM sqlite_schema AS tables, pragma_foreign_key_list(tables.name) AS keys";
        let found: BTreeSet<_> = query(sql, 4).into_iter().filter(|row| is_record(&row[0])).collect();
        assert_eq!(declared.collect::<BTreeSet<_>>(), found);
    }

    #[test]
    fn every_unique_value_is_checked() {
        let declared = UNIQUES.iter().map(|(table, columns)| vec![table.name().to_owned(), columns.join(" ")]);
        let sql =
            "SELECT tables.name, (SELECT group_concat(columns.name, ' ') FROM pragma_index_info(list.name) AS columns)
            FROM sqlite_schema AS tables, pragma_index_list(tables.name) AS list
            WHERE list.\"unique\" AND list.origin <> 'pk'";
        let found: BTreeSet<_> = query(sql, 2).into_iter().filter(|row| is_record(&row[0])).collect();
        assert_eq!(declared.collect::<BTreeSet<_>>(), found);
    }
}

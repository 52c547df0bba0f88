//! Rows on their way from one database to another one, whatever their engines are.
//!
//! Invariant: rows are read and written by the statements of [`tables`], the same for every table and engine. A page of rows and
//! the mark that says how far the move has come are written in one transaction. It fails if another call has taken the move
//! over. Meanwhile nobody else writes the target (`guard`).

mod digest;
mod guard;
mod pause;
mod records;
mod tables;

use std::{collections::HashMap, iter, sync::Arc};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value as Json, json};
use uuid::Uuid;

pub(in crate::database) use self::guard::HAS_MOVED;
#[cfg(feature = "sqlite")]
pub(in crate::database) use self::guard::MOVE_RUNS;
pub(crate) use self::{
    digest::TableDigest,
    records::{Problem, RecordRow, RecordTable, record_tables},
    tables::{FILES, TransferTable, in_order_of_removal, tables},
};
use self::{
    guard::{LET_IN, SHUT_OUT, Side},
    tables::{BATCH, Contents, LOOKUP, PAGE},
};
use super::{DELETE_CONTENT, DatabaseMoment, PUT_CONTENT, Row, Scope, Statement, Transaction, Value};
#[cfg(feature = "postgres")]
use crate::policy::quoted;
use crate::{
    error::{Error, ErrorKind, Result},
    model::ColumnType,
};

/// A row of a [`TransferTable`].
#[derive(Debug, Clone)]
pub(crate) struct TransferRow {
    table: usize,
    values: Vec<Value<'static>>,
    /// The bytes of a file that is inline.
    pub(crate) content: Option<Bytes>,
}

/// Rows of one table by their keys.
#[derive(Debug, Default)]
pub(crate) struct TransferRows(HashMap<[u8; 32], TransferRow>);

impl TransferRows {
    /// The row with the key of `row`.
    pub(crate) fn with_key_of(&self, row: &TransferRow) -> Option<&TransferRow> {
        self.0.get(&row.key_digest())
    }
}

/// What the row of a file says about its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePlace {
    pub(crate) bucket: String,
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) content_type: String,
    pub(crate) cache_control: i64,
    pub(crate) etag: String,
    pub(crate) metadata: Json,
    /// BLAKE3 of an object in hex; empty if it is unknown.
    pub(crate) digest: String,
    pub(crate) is_inline: bool,
}

/// How far a move has come: the pages before are in the target.
#[derive(Debug, Clone, Default)]
pub(crate) struct MoveProgress {
    /// The place in [`tables`] of the table that is copied.
    table: usize,
    /// The key of its last row that is copied.
    after: Option<Vec<Value<'static>>>,
}

/// The mark of an unfinished move in its target.
#[derive(Debug, Clone)]
pub(crate) struct MoveMark {
    /// The id of the call that writes.
    holder: String,
}

/// What [`Scope::begin_move`] found.
#[derive(Debug)]
pub(crate) struct BegunMove {
    pub(crate) mark: MoveMark,
    pub(crate) progress: MoveProgress,
    pub(crate) is_resumed: bool,
}

/// The beginning of the name of a source that is a Supabase project.
#[cfg(feature = "postgres")]
pub(crate) const SUPABASE: &str = "supabase:";

static INCARNATION: Statement = Statement::new("SELECT incarnation FROM townsquare.database");

static FIND_MOVE: Statement = Statement::new("SELECT source FROM townsquare.unfinished_move");

/// Begins a move or takes it over. No row if the target is that of another source.
static TAKE_MOVE: Statement = Statement::new(
    "INSERT INTO townsquare.unfinished_move AS mark (only_row, source, holder, started_at) VALUES (1, $1, $2, $3)
     ON CONFLICT (only_row) DO UPDATE SET holder = excluded.holder WHERE mark.source = excluded.source
     RETURNING progress",
);

static END_MOVE: Statement = Statement::new("DELETE FROM townsquare.unfinished_move WHERE holder = $1");

/// What `open` of a target reads before it changes anything: the tables with a row that a fresh database does not have.
pub(in crate::database) static USED_TABLES: std::sync::LazyLock<Statement> = std::sync::LazyLock::new(|| {
    let users = tables().iter().filter(|table| table.contents != Contents::Client);
    let of_users = users
        .map(|table| format!("SELECT '{}' AS name WHERE EXISTS (SELECT 1 FROM {} )", table.name, table.in_template));
    let of_feed = ["changes", "file_intents", "file_outbox"]
        .map(|name| format!("SELECT '{name}' AS name WHERE EXISTS (SELECT 1 FROM townsquare.{name} )"));
    let is_on =
        "SELECT 'feed' AS name WHERE EXISTS (SELECT 1 FROM townsquare.feed AS feed WHERE feed.is_on )".to_owned();
    Statement::made(of_users.chain(of_feed).chain([is_on]).collect::<Vec<_>>().join(" UNION ALL "))
});

impl TransferRow {
    /// A row of a table, with a value for each of its columns.
    #[cfg(feature = "postgres")]
    pub(crate) fn new(table: &TransferTable, values: Vec<Value<'static>>) -> TransferRow {
        TransferRow { table: table.index, values, content: None }
    }

    pub(in crate::database) fn read(row: &Row<'_>) -> Result<TransferRow> {
        let index: i64 = row.get(0)?;
        let table = usize::try_from(index).unwrap_or_default();
        let columns = tables().get(table).map(|table| table.columns.as_slice()).unwrap_or_default();
        let values = (1..).zip(columns).map(|(index, (_, column_type))| value_of(row, index, *column_type));
        let values = values.collect::<Result<Vec<_>>>()?;
        let content = match tables().get(table) {
            Some(files) if files.name == FILES => row.get_optional(columns.len() + 1)?,
            _ => None,
        };
        Ok(TransferRow { table, values, content })
    }

    /// The key, as [`Scope::transfer_page`] takes it.
    pub(crate) fn key(&self) -> Vec<Value<'static>> {
        let key = tables().get(self.table).map(|table| table.key.as_slice()).unwrap_or_default();
        key.iter().filter_map(|column| self.values.get(*column).cloned()).collect()
    }

    /// The text of a column of this table; `None` for NULL, and for a row of another table.
    #[cfg(feature = "postgres")]
    pub(crate) fn text_in(&self, table: &TransferTable, column: &str) -> Option<&str> {
        match self.values.get(table.position(column).filter(|_| self.table == table.index)?) {
            Some(Value::Text(Some(text))) => Some(text),
            _ => None,
        }
    }

    /// The size of a file; 0 for another row.
    pub(crate) fn file_size(&self) -> u64 {
        match self.of_file("size") {
            Some(Value::Integer(Some(size))) => size.unsigned_abs(),
            _ => 0,
        }
    }

    fn of_file(&self, column: &str) -> Option<&Value<'static>> {
        let table = tables().get(self.table).filter(|table| table.name == FILES)?;
        self.values.get(table.position(column)?)
    }

    /// What the row of a file says about its bytes; `None` for a row of another table.
    pub(crate) fn file(&self) -> Option<FilePlace> {
        let text = |column| match self.of_file(column) {
            Some(Value::Text(Some(text))) => text.clone().into_owned(),
            _ => String::new(),
        };
        let number = |column| match self.of_file(column) {
            Some(Value::Integer(Some(number))) => *number,
            _ => 0,
        };
        let metadata = match self.of_file("metadata")? {
            Value::Json(Some(metadata)) => metadata.clone().into_owned(),
            _ => Json::Null,
        };
        Some(FilePlace {
            bucket: text("bucket"),
            path: text("path"),
            size: self.file_size(),
            content_type: text("content_type"),
            cache_control: number("cache_control"),
            etag: text("etag"),
            metadata,
            digest: text("digest"),
            is_inline: matches!(self.of_file("is_inline"), Some(Value::Boolean(Some(true)))),
        })
    }

    /// Says where the target keeps the bytes of a file: in the database, or in an object with this digest.
    pub(crate) fn set_place(&mut self, content: Option<Bytes>, digest: Option<String>) {
        let Some(files) = tables().get(self.table).filter(|table| table.name == FILES) else { return };
        let is_inline = digest.is_none();
        for (column, value) in [("digest", Value::from(digest)), ("is_inline", Value::from(is_inline))] {
            if let Some(place) = files.position(column).and_then(|position| self.values.get_mut(position)) {
                *place = value;
            }
        }
        self.content = content;
    }
}

fn value_of(row: &Row<'_>, index: usize, column_type: ColumnType) -> Result<Value<'static>> {
    Ok(match column_type {
        ColumnType::Uuid => row.get_optional::<Uuid>(index)?.into(),
        ColumnType::Text => row.get_optional::<String>(index)?.into(),
        ColumnType::Integer => row.get_optional::<i64>(index)?.into(),
        ColumnType::Boolean => row.get_optional::<bool>(index)?.into(),
        ColumnType::Timestamp => row.get_optional::<Timestamp>(index)?.into(),
        ColumnType::Json => row.get_optional::<Json>(index)?.into(),
        ColumnType::Texts => row.get_optional::<Vec<String>>(index)?.into(),
    })
}

impl MoveProgress {
    /// Whether the point is after the last row of a table.
    pub(crate) fn is_behind(&self, table: &TransferTable) -> bool {
        table.index < self.table
    }

    /// The rows of a table after this point, or all rows of a later table.
    pub(crate) fn after(&self, table: &TransferTable) -> Option<Vec<Value<'static>>> {
        self.after.clone().filter(|_| self.table == table.index)
    }

    /// The point after a row.
    pub(crate) fn at(row: &TransferRow) -> MoveProgress {
        MoveProgress { table: row.table, after: Some(row.key()) }
    }

    /// The point before the first row of the table that follows `table`.
    pub(crate) fn behind(table: &TransferTable) -> MoveProgress {
        MoveProgress { table: table.index + 1, after: None }
    }

    fn text(&self) -> String {
        let Some(table) = tables().get(self.table) else { return json!({"table": null}).to_string() };
        let key = self.after.as_ref().map(|key| {
            let parts = key.iter().map(|value| match value {
                Value::Text(Some(text)) => json!(text),
                Value::Uuid(Some(id)) => json!(id),
                Value::Integer(Some(number)) => json!(number),
                _ => Json::Null,
            });
            parts.collect::<Vec<_>>()
        });
        json!({"table": table.name, "after": key}).to_string()
    }

    /// Reads what [`text`](MoveProgress::text) has written. Begins anew if it is not readable: rows that are copied twice are the
    /// same.
    fn parse(text: &str) -> MoveProgress {
        let Ok(progress) = serde_json::from_str::<Json>(text) else { return MoveProgress::default() };
        let Some(name) = progress["table"].as_str() else { return MoveProgress { table: tables().len(), after: None } };
        let Some(table) = tables().iter().find(|table| table.name == name) else { return MoveProgress::default() };
        let after = progress["after"].as_array().filter(|parts| parts.len() == table.key.len()).and_then(|parts| {
            let parts = parts.iter().zip(&table.key).map(|(part, column)| match table.columns[*column].1 {
                ColumnType::Uuid => Some(Value::from(Uuid::try_parse(part.as_str()?).ok()?)),
                ColumnType::Integer => Some(Value::from(part.as_i64()?)),
                _ => Some(Value::from(part.as_str()?.to_owned())),
            });
            parts.collect()
        });
        MoveProgress { table: table.index, after }
    }
}

impl Scope {
    /// The incarnation of the database.
    pub(crate) async fn incarnation(&self) -> Result<String> {
        self.fetch_one(&INCARNATION, &[], |row| row.get(0)).await
    }

    /// Begins to move a source into this database, which is empty, or continues. The writes of an earlier call fail from now on.
    ///
    /// # Errors
    /// `Config` if another source is being moved into the database, or if it has rows.
    pub(crate) async fn begin_move(&self, source: String, has_sessions: bool) -> Result<BegunMove> {
        let (holder, now) = (Uuid::new_v4().simple().to_string(), self.now().await?);
        let (taken, held) = ((source, holder.clone()), holder.clone());
        let begun = self.write(move |transaction| {
            Box::pin(async move {
                let found = transaction.fetch_optional(&FIND_MOVE, &[], |row| row.get::<String>(0)).await?;
                let values = [taken.0.clone().into(), taken.1.into(), now.into()];
                let progress = transaction.fetch_optional(&TAKE_MOVE, &values, |row| row.get::<String>(0)).await?;
                let progress = progress.ok_or_else(|| unfinished_move(found.as_deref().unwrap_or_default()))?;
                Side::Target.raise(transaction).await?;
                if found.is_none() {
                    // A client may have written since the target was checked.
                    let used = transaction.fetch(&USED_TABLES, &[], |row| row.get::<String>(0)).await?;
                    require_unused(&used)?;
                }
                transaction.execute(&LET_IN, &[held.clone().into()]).await?;
                for table in tables().iter().rev() {
                    let is_left = match table.contents {
                        Contents::Users => false,
                        Contents::Sessions => !has_sessions,
                        Contents::Client => found.is_none(),
                    };
                    if is_left {
                        transaction.execute(&table.delete_all, &[]).await?;
                    }
                }
                transaction.execute(&SHUT_OUT, &[held.into(), None::<String>.into()]).await?;
                Ok((progress, found.is_some()))
            })
        });
        let (progress, is_resumed) = begun.await?;
        Ok(BegunMove { mark: MoveMark { holder }, progress: MoveProgress::parse(&progress), is_resumed })
    }

    /// Ends a move: from now on the database opens, and those who have it open may write.
    pub(crate) async fn end_move(&self, mark: &MoveMark) -> Result<()> {
        let holder = mark.holder.clone();
        let end = self.write(move |transaction| {
            Box::pin(async move {
                let ended = transaction.execute(&END_MOVE, &[holder.into()]).await?;
                if ended == 1 { Ok(()) } else { Err(taken_over()) }
            })
        });
        end.await?;
        self.lower(Side::Target).await;
        Ok(())
    }

    /// The number of rows of a table.
    pub(crate) async fn transfer_count(&self, table: &'static TransferTable) -> Result<u64> {
        let count = self.scan(&table.count, Vec::new(), |row| row.get::<i64>(0)).await?;
        Ok(count.into_iter().next().unwrap_or_default().unsigned_abs())
    }

    /// The rows of a table that follow the key `after`: at most 256, and fewer if they take more than 64 MiB of memory. None at the
    /// end.
    pub(crate) async fn transfer_page(
        &self,
        table: &'static TransferTable,
        after: Option<Vec<Value<'static>>>,
    ) -> Result<Vec<TransferRow>> {
        let (statement, values) = table.page(after);
        self.scan(statement, values, TransferRow::read).await.map_err(|error| table.explain(error))
    }

    /// The row with the key of `row`, as it is now.
    pub(crate) async fn transfer_row(&self, row: &TransferRow) -> Result<Option<TransferRow>> {
        let Some(table) = tables().get(row.table) else { return Ok(None) };
        let found = self.scan(&table.one, row.key(), TransferRow::read).await.map_err(|error| table.explain(error))?;
        Ok(found.into_iter().next())
    }

    /// The rows of a table with the keys of `rows`, as they are now; fewer if they take more than 64 MiB of memory.
    pub(crate) async fn transfer_rows(
        &self,
        table: &'static TransferTable,
        rows: &[TransferRow],
    ) -> Result<TransferRows> {
        let mut found = TransferRows::default();
        for rows in rows.chunks(LOOKUP) {
            let Some(last) = rows.last() else { continue };
            // The statement has a fixed number of keys.
            let keys = rows.iter().chain(iter::repeat_n(last, LOOKUP - rows.len())).flat_map(TransferRow::key);
            let read = self.scan(&table.many, keys.collect(), TransferRow::read).await;
            for row in read.map_err(|error| table.explain(error))? {
                found.0.insert(row.key_digest(), row);
            }
        }
        Ok(found)
    }

    /// Writes rows of one table, and replaces those with their keys. `progress` is the point that the move then has reached.
    ///
    /// # Errors
    /// `Conflict` if another call has taken the move over.
    pub(crate) async fn receive_rows(
        &self,
        mark: &MoveMark,
        table: &'static TransferTable,
        rows: Vec<TransferRow>,
        progress: Option<&MoveProgress>,
    ) -> Result<()> {
        let (rows, holder) = (Arc::new(rows), mark.holder.clone());
        let progress = progress.map(MoveProgress::text);
        let written = self.write_idempotent(move |transaction| {
            Box::pin(async move {
                let_in(transaction, &holder).await?;
                table.put(transaction, &rows).await.map_err(|error| table.explain(error))?;
                transaction.execute(&SHUT_OUT, &[holder.into(), progress.into()]).await.map(drop)
            })
        });
        written.await
    }

    /// Deletes rows of one table, by their keys.
    ///
    /// # Errors
    /// `Conflict` if another call has taken the move over.
    pub(crate) async fn remove_rows(
        &self,
        mark: &MoveMark,
        table: &'static TransferTable,
        rows: Vec<TransferRow>,
    ) -> Result<()> {
        let (rows, holder) = (Arc::new(rows), mark.holder.clone());
        let removed = self.write_idempotent(move |transaction| {
            Box::pin(async move {
                let_in(transaction, &holder).await?;
                for row in &*rows {
                    transaction.execute(&table.delete, &row.key()).await.map_err(|error| table.explain(error))?;
                }
                transaction.execute(&SHUT_OUT, &[holder.into(), None::<String>.into()]).await.map(drop)
            })
        });
        removed.await
    }
}

impl DatabaseMoment {
    /// Does what [`Scope::transfer_page`] does, at this moment.
    pub(crate) async fn transfer_page(
        &mut self,
        table: &'static TransferTable,
        after: Option<Vec<Value<'static>>>,
    ) -> Result<Vec<TransferRow>> {
        let (statement, values) = table.page(after);
        self.scan(statement, values, TransferRow::read).await.map_err(|error| table.explain(error))
    }
}

impl TransferTable {
    fn page(&'static self, after: Option<Vec<Value<'static>>>) -> (&'static Statement, Vec<Value<'static>>) {
        let mut values = vec![Value::from(PAGE)];
        match after {
            None => (&self.first, values),
            Some(key) => {
                values.extend(key);
                (&self.after, values)
            }
        }
    }

    /// The query of all rows in the tables of SPEC 2 of another database, in the order of their keys.
    #[cfg(feature = "postgres")]
    pub(in crate::database) fn select_of_project(&self) -> String {
        let columns: Vec<_> = self.columns.iter().map(|(name, _)| quoted(name)).collect();
        let key: Vec<_> = self.key.iter().map(|column| columns[*column].as_str()).collect();
        let (columns, key) = (columns.join(", "), key.join(", "));
        format!("SELECT {}, {columns} FROM public.{} ORDER BY {key}", self.index, self.in_template)
    }

    /// The query of the number of rows in a table of SPEC 2 of another database.
    #[cfg(feature = "postgres")]
    pub(in crate::database) fn count_of_project(&self) -> String {
        format!("SELECT count(*) FROM public.{}", self.in_template)
    }

    /// The query of rows whose values `select` returns: the text of a SELECT after this word.
    #[cfg(feature = "postgres")]
    pub(in crate::database) fn select_values(&self, select: &str) -> String {
        format!("SELECT {}, {select}", self.index)
    }

    async fn put(&'static self, transaction: &mut Transaction<'_>, rows: &[TransferRow]) -> Result<()> {
        let (batches, rest) = rows.as_chunks::<BATCH>();
        for batch in batches {
            let values: Vec<Value<'_>> = batch.iter().flat_map(|row| row.values.iter().cloned()).collect();
            transaction.execute(&self.put_batch, &values).await?;
        }
        for row in rest {
            transaction.execute(&self.put_one, &row.values).await?;
        }
        if self.name == FILES {
            for (row, file) in rows.iter().filter_map(|row| Some((row, row.file()?))) {
                let place = [file.bucket.into(), file.path.into()];
                match &row.content {
                    Some(content) => {
                        let [bucket, path] = place;
                        transaction.execute(&PUT_CONTENT, &[bucket, path, content.clone().into()]).await?;
                    }
                    None => drop(transaction.execute(&DELETE_CONTENT, &place).await?),
                }
            }
        }
        Ok(())
    }

    /// Names the table in an error.
    fn explain(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::Closed { error } else { error.of_table(self.name) }
    }
}

/// Lets a transaction of the move write.
///
/// # Errors
/// `Conflict` if another call has taken the move over.
async fn let_in(transaction: &mut Transaction<'_>, holder: &str) -> Result<()> {
    match transaction.execute(&LET_IN, &[holder.to_owned().into()]).await? {
        1 => Ok(()),
        _ => Err(taken_over()),
    }
}

/// # Errors
/// `Config` if tables of the target have rows.
pub(crate) fn require_unused(used_tables: &[String]) -> Result<()> {
    if used_tables.is_empty() {
        return Ok(());
    }
    let names = used_tables.join(", ");
    Err(Error::config(format!("The target of a move is an empty database, and this one has rows in {names}")))
}

/// The error for a database with an unfinished move from another source, and for every client that is no move.
pub(crate) fn unfinished_move(source: &str) -> Error {
    #[cfg(feature = "postgres")]
    if source.starts_with(SUPABASE) {
        return Error::config(
            "The database has an unfinished move from a Supabase project: call move_from_supabase of that project again, or \
             begin with a new database and file store",
        );
    }
    Error::config(format!(
        "The database has an unfinished move from the database with the incarnation {source}: call move_to of that one again, or \
         begin with a new database and file store"
    ))
}

fn taken_over() -> Error {
    Error::new(ErrorKind::Conflict, "Another call of move_to continues the move")
}

//! The change log of a PostgreSQL database: the table `townsquare.changes`, which triggers write.
//!
//! Invariant: an entry is read only when every transaction that may write an entry before it has ended. The functions of
//! `policies/change_log.sql` decide that from the advisory locks of the transactions that write the log, so a transaction
//! that does not write it, also one in another database, holds up nobody. Each read proves that the server has the entry that
//! the reader stands on: the next statement may reach another server.

use std::{
    borrow::Cow,
    future::poll_fn,
    sync::{Arc, LazyLock},
};

use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Row as _, postgres::PgRow};
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Effect, PooledConnection, Postgres, commit_watch, connection::attempt::Retries, end, errors::translate,
    query::execute_batch,
};
use crate::{
    database::{
        change_log::{
            CAPTURE_STATE, CommitWatch, CurrentRow, CurrentRows, CursorKey, EntryKey, EntryProof, EntryTexts, Erasure,
            ErasureSql, LogEnd, LogPage, LogPoint, LogSize, LogStats, OnCommit, OutlinedRow, PageBuilder, Position,
            RetentionLimits, SessionEntries, Snapshot, TableSet, other_history, read_capture_state,
        },
        principal::Principal,
        row::{Read, Row},
        statement::Statement,
        value::Value,
    },
    error::{Error, Result},
    model::ColumnType,
    policy::{Column, RowImage, RowKey, Table, quoted},
};

/// The most entries that one call of `prune_changes` deletes.
const PRUNE_STEP: i64 = 2_000;

static HEAD: Statement = Statement::new("SELECT settled, proof, snapshot, last, seen FROM townsquare.feed_position()");
static LOG_END: Statement = Statement::new("SELECT settled, last FROM townsquare.feed_head()");
static CHECK_POINT: Statement = Statement::new("SELECT 1 FROM townsquare.check_point($1, $2)");
static SEEN_ENTRIES: Statement = Statement::new("SELECT townsquare.seen_entries($1, $2, $3)");
// `found` counts the entries up to the limit, also those beyond the bytes of the page.
static READ_PAGE: Statement = Statement::new(
    "SELECT id, transaction, table_name, kind, old_row, new_row, old_context, new_context, at, found
     FROM townsquare.changes_page($1, $2, $3, $4, $5)",
);
const _: () = assert!(LogPage::MAX_ENTRIES == 256, "the limit of townsquare.changes_page");
static SESSION_ENTRIES: Statement = Statement::new(
    "SELECT started.id, started.transaction::text, ended.id, ended.transaction::text,
        EXISTS (SELECT FROM townsquare.sessions WHERE sessions.id = $2)
     FROM (VALUES (1)) AS always
     LEFT JOIN townsquare.changes AS started ON started.id > $1 AND started.kind = 'session_started'
        AND started.new_row ->> 'session_id' = CAST($2 AS TEXT)
     LEFT JOIN townsquare.changes AS ended ON ended.id > $1 AND ended.kind = 'session_ended'
        AND ended.old_row ->> 'session_id' = CAST($2 AS TEXT)",
);
static PRUNE: Statement = Statement::new("SELECT townsquare.prune_changes($1, $2, $3, $4, $5)");
static SIZE: Statement = Statement::new(
    "SELECT feed.pruned_to, GREATEST(COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0) - feed.pruned_to, 0),
        feed.counted_bytes + uncounted.bytes, uncounted.count
     FROM townsquare.feed AS feed, LATERAL (
        SELECT COALESCE(sum(size), 0)::bigint AS bytes, count(*) AS count
        FROM (SELECT townsquare.entry_bytes(old_row, new_row, old_context, new_context) AS size FROM townsquare.changes
            WHERE id > GREATEST(feed.counted_to, feed.pruned_to) ORDER BY id LIMIT $1) AS entry
     ) AS uncounted",
);
// The entries above the settled one are committed, but a transaction that may write one before them runs.
static STATS: Statement = Statement::new(
    "SELECT (SELECT max(id) FROM townsquare.changes), first.id, first.at,
        (SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp() - waiting.at) * 1000000 AS BIGINT)
         FROM townsquare.changes AS waiting WHERE waiting.id > settled ORDER BY waiting.id LIMIT 1)
     FROM (SELECT townsquare.settled_id() AS settled) AS log,
        (SELECT id, at FROM townsquare.changes ORDER BY id LIMIT 1) AS first",
);

/// Erases users from the log. The contexts stay, so that the feed can deliver the `DELETE` of their rows.
pub(in crate::database) static ERASURE: LazyLock<Erasure> = LazyLock::new(|| {
    Erasure::new(&ErasureSql {
        head: "SELECT townsquare.settled_id()",
        old: "entry.old_row",
        new: "entry.new_row",
        // Most entries do not contain the id at all, and a search in their text costs less than to read the values.
        may_be_of_user: "strpos(concat(entry.old_row, entry.new_row, entry.old_context, entry.new_context), CAST($1 AS TEXT)) > 0",
        id: |text| format!("CAST({text} AS UUID)"),
        erased: |image| format!("townsquare.erased_image(entry.table_name, {image})"),
        is_listed: "entry.id = ANY (CAST($2 AS BIGINT[]))",
        recount: "UPDATE townsquare.feed SET counted_to = 0, counted_bytes = 0",
    })
});

/// Ends when another transaction writes to the captured tables for as long.
const START_CAPTURE: &str = "BEGIN ISOLATION LEVEL read committed; SET LOCAL lock_timeout = '300ms'; SELECT townsquare.set_capture(true); COMMIT";
const STOP_CAPTURE: &str =
    "BEGIN ISOLATION LEVEL read committed; SET LOCAL lock_timeout = '300ms'; SELECT townsquare.stop_capture(); COMMIT";

fn session_entries(row: &Row<'_>) -> Result<SessionEntries> {
    let key = |id: usize| -> Result<Option<EntryKey>> {
        let (id, transaction): (Option<i64>, Option<String>) = (row.get_optional(id)?, row.get_optional(id + 1)?);
        let Some((id, transaction)) = id.zip(transaction) else { return Ok(None) };
        Ok(Some(EntryKey { id, transaction: transaction_id(&transaction)? }))
    };
    Ok(SessionEntries { started: key(0)?, ended: key(2)?, exists: row.get(4)? })
}

/// Reads the text form of a transaction's id.
fn transaction_id(text: &str) -> Result<u64> {
    text.parse().map_err(|_| unreadable("transaction id"))
}

fn position(row: &Row<'_>) -> Result<Position> {
    let settled: i64 = row.get(0)?;
    let stands_on = proof(&row.get::<String>(1)?)?;
    let (snapshot, last): (String, i64) = (row.get(2)?, row.get(3)?);
    position_of(LogPoint { after: EntryKey::up_to(settled), stands_on }, &snapshot, last, &row.get::<String>(4)?)
}

fn stats(row: &Row<'_>) -> Result<LogStats> {
    let (last, first): (i64, i64) = (row.get(0)?, row.get(1)?);
    let lag: i64 = row.get_optional(3)?.unwrap_or(0);
    Ok(LogStats {
        retained: u64::try_from(last - first + 1).unwrap_or_default(),
        oldest: row.get_optional(2)?,
        lag: std::time::Duration::from_micros(u64::try_from(lag).unwrap_or_default()),
    })
}

/// Reads a proof: `id:transaction:mark`.
fn proof(text: &str) -> Result<EntryProof> {
    let mut fields = text.split(':');
    let mut read = || {
        Some(EntryProof {
            id: fields.next()?.parse().ok()?,
            transaction: fields.next()?.parse().ok()?,
            mark: fields.next()?.parse().ok()?,
        })
    };
    read().ok_or_else(|| unreadable("proof of an entry"))
}

/// The text of a proof, as `townsquare.proof_at` gives it.
fn proof_text(EntryProof { id, transaction, mark }: EntryProof) -> String {
    format!("{id}:{transaction}:{mark}")
}

/// The position of a snapshot; `settled` was read before it, `last` and `seen` after it.
fn position_of(settled: LogPoint, snapshot: &str, last: i64, seen: &str) -> Result<Position> {
    let snapshot = format!("{snapshot}@{last}@{}@{seen}", settled.after.id);
    let snapshot: Snapshot = snapshot.parse().map_err(|()| unreadable("snapshot"))?;
    let mut position = Position { seen: Some(Arc::new(snapshot)), ..settled.into() };
    position.advance_to(settled);
    Ok(position)
}

fn unreadable(what: &str) -> Error {
    super::errors::internal(format_args!("the server sent a {what} of another form"))
}

/// A row of [`READ_PAGE`].
struct PageRow {
    point: LogPoint,
    names: [String; 2],
    texts: EntryTexts<'static>,
    at: Timestamp,
    found: i64,
}

fn page_row(row: &Row<'_>) -> Result<PageRow> {
    let transaction: String = row.get(1)?;
    let key = EntryKey { id: row.get(0)?, transaction: transaction_id(&transaction)? };
    let at: Timestamp = row.get(8)?;
    let proof = EntryProof { id: key.id, transaction: key.transaction, mark: at.as_microsecond() };
    let mut texts = EntryTexts::default();
    for (text, column) in texts.iter_mut().zip(4..) {
        *text = row.get_optional::<String>(column)?.map(Cow::Owned);
    }
    let name = |column| Ok(row.get_optional::<String>(column)?.unwrap_or_default());
    Ok(PageRow {
        point: LogPoint { after: key, stands_on: proof },
        names: [name(2)?, name(3)?],
        texts,
        at,
        found: row.get(9)?,
    })
}

/// The page after `after` that was read from a server that proved `after`. The server ends a page with the entry that has more
/// bytes than a page; if it is not the only one, it is left to the next page.
fn page(read: Vec<PageRow>, after: LogPoint, tables: TableSet) -> LogPage {
    let found = read.first().map_or(0, |first| usize::try_from(first.found).unwrap_or(LogPage::MAX_ENTRIES));
    let mut builder = PageBuilder::new(after, tables);
    for PageRow { point, names: [table, kind], texts, at, .. } in read {
        if !builder.add(point, (&table, &kind), at, || texts) {
            break;
        }
    }
    let mut page = builder.page;
    page.is_last = page.count == found && found < LogPage::MAX_ENTRIES;
    page
}

impl Postgres {
    pub(in crate::database) async fn capture_state(&self) -> Result<(bool, CursorKey)> {
        self.one(&CAPTURE_STATE, &[], read_capture_state).await
    }

    pub(in crate::database) async fn switch_capture(&self, is_on: bool) -> Result<()> {
        let began = Instant::now();
        while self.capture_state().await?.0 != is_on {
            match self.in_runtime(self.try_switch_capture(if is_on { START_CAPTURE } else { STOP_CAPTURE })).await {
                // Others wait behind the lock, so it is waited for in short turns.
                Err(error)
                    if is_lock_timeout(&error) && began.elapsed() < self.pool.shared().options.operation_timeout => {}
                switched => switched?,
            }
        }
        Ok(())
    }

    async fn try_switch_capture(&self, script: &str) -> Result<()> {
        let mut connection = self.pool.acquire(&Principal::Service).await?;
        let result = execute_batch(&mut connection, script).await;
        if result.is_ok() || execute_batch(&mut connection, "ROLLBACK").await.is_ok() {
            connection.release();
        }
        result
    }

    pub(in crate::database) async fn head(&self) -> Result<Position> {
        self.one(&HEAD, &[], position).await
    }

    pub(in crate::database) async fn log_end(&self) -> Result<LogEnd> {
        let end = |row: &Row<'_>| Ok(LogEnd { settled: EntryKey::up_to(row.get(0)?), last_id: row.get(1)? });
        self.one(&LOG_END, &[], end).await
    }

    pub(in crate::database) async fn session_entries(
        &self,
        session_id: Uuid,
        after: EntryKey,
    ) -> Result<SessionEntries> {
        self.one(&SESSION_ENTRIES, &[after.id.into(), session_id.into()], session_entries).await
    }

    pub(in crate::database) async fn check_position(&self, position: &Position) -> Result<()> {
        let proof = proof_text(position.stands_on);
        self.one(&CHECK_POINT, &[position.after.id.into(), proof.into()], |_| Ok(())).await?;
        let Some(seen) = &position.seen else { return Ok(()) };
        let values = [seen.settled.into(), seen.last_id.into(), seen.transactions().into()];
        let entries: String = self.one(&SEEN_ENTRIES, &values, |row| row.get(0)).await?;
        if entries == seen.entries { Ok(()) } else { Err(other_history()) }
    }

    /// Reads the page after `after`, up to `end` or up to the settled entry. With an `end` it looks at no locks: no transaction that
    /// runs will write an entry before it.
    pub(in crate::database) async fn read_changes(
        &self,
        after: LogPoint,
        end: Option<EntryKey>,
        tables: TableSet,
    ) -> Result<LogPage> {
        let (proof, bytes) = (proof_text(after.stands_on), i64::try_from(LogPage::MAX_BYTES).unwrap_or(i64::MAX));
        let end = end.map(|end| end.id);
        let values = [after.after.id.into(), proof.into(), end.into(), bytes.into(), tables.names().into()];
        let read = self.read_log(&READ_PAGE, &values, page_row).await?;
        Ok(page(read, after, tables))
    }

    pub(in crate::database) async fn rows_and_position<Shows>(
        &self,
        table: Table,
        equality: Option<(Column, &str)>,
        rows: CurrentRows<Shows>,
    ) -> Result<(Vec<RowImage>, Position)>
    where
        Shows: Fn(&CurrentRow) -> Option<bool> + Send + 'static,
    {
        // Before the rows, so that they contain every entry up to it.
        let settled = self.one(&HEAD, &[], position).await?.point();
        let (rows, snapshot, last) = self.in_runtime(self.current_rows(table, equality, rows)).await?;
        let values = [settled.after.id.into(), last.into(), snapshot.as_str().into()];
        let seen: String = self.one(&SEEN_ENTRIES, &values, |row| row.get(0)).await?;
        Ok((rows, position_of(settled, &snapshot, last, &seen)?))
    }

    pub(in crate::database) async fn rows_with_keys(&self, table: Table, keys: &[RowKey]) -> Result<Vec<OutlinedRow>> {
        let columns = |index: usize| -> Vec<String> { keys.iter().filter_map(|key| key.get(index).cloned()).collect() };
        let condition = match table {
            Table::Files => {
                "(\"current\".bucket, \"current\".path) IN (SELECT * FROM unnest($1::text[], $2::text[]))".to_owned()
            }
            _ => format!("\"current\".{} = ANY ($1::text[]::uuid[])", quoted(table.key()[0])),
        };
        let outline = table.outline().iter().map(|name| format!("'{name}', \"current\".{}", quoted(name)));
        let sql = format!(
            "SELECT json_build_object({})::text, {} FROM {}.{} AS \"current\" WHERE {condition}",
            outline.collect::<Vec<_>>().join(", "),
            context(table),
            table.schema(),
            quoted(table.name()),
        );
        let values: Vec<Value<'_>> = (0..table.key().len()).map(|index| columns(index).into()).collect();
        let rows = self.in_runtime(self.read_as_service(sql, &values)).await?;
        let text = |row: &PgRow, column| row.try_get::<Option<String>, _>(column).map_err(translate);
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let (image, context) = (text(row, 0)?, text(row, 1)?);
            found.extend(image.and_then(|image| OutlinedRow::read(table, &image, context.as_deref())));
        }
        Ok(found)
    }

    /// Reads the rows of a table in one snapshot. Returns them with the snapshot and the last id of the log.
    async fn current_rows<Shows>(
        &self,
        table: Table,
        equality: Option<(Column, &str)>,
        mut rows: CurrentRows<Shows>,
    ) -> Result<(Vec<RowImage>, String, i64)>
    where
        Shows: Fn(&CurrentRow) -> Option<bool> + Send + 'static,
    {
        let equality = equality.and_then(|(column, text)| match column.column_type {
            ColumnType::Uuid => Some((column.name, Value::from(Uuid::try_parse(text).ok()?))),
            _ => Some((column.name, Value::from(text))),
        });
        let condition =
            equality.as_ref().map_or_else(String::new, |(name, _)| format!(" WHERE \"current\".{} = $1", quoted(name)));
        let sql = format!(
            "SELECT pg_current_snapshot()::text, COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0), image, context
             FROM (VALUES (1)) AS always LEFT JOIN (SELECT {} AS image, {} AS context FROM {}.{} AS \"current\"{condition}) AS rows ON true",
            image(table),
            context(table),
            table.schema(),
            quoted(table.name()),
        );
        let mut arguments = sqlx::postgres::PgArguments::default();
        if let Some((_, value)) = &equality {
            super::types::bind(&mut arguments, value)?;
        }
        let mut connection = self.begin_reading().await?;
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(false);
        let read = async {
            let mut found = query.fetch(&mut *connection);
            let text = |row: &PgRow, column| row.try_get::<Option<String>, _>(column).map_err(translate);
            let mut first = None;
            // One by one: the table may have many more rows than the caller sees.
            while let Some(row) = poll_fn(|context| found.as_mut().poll_next(context)).await {
                let row = row.map_err(translate)?;
                if first.is_none() {
                    let snapshot = text(&row, 0)?.ok_or_else(|| unreadable("snapshot"))?;
                    // Any row's value was read after the snapshot was taken.
                    first = Some((snapshot, row.try_get::<i64, _>(1).map_err(translate)?));
                }
                // Without a row of the table there is one row, whose image is NULL.
                if let Some(image) = text(&row, 2)? {
                    rows.add(Some(&image), text(&row, 3)?.as_deref())?;
                }
            }
            first.ok_or_else(|| unreadable("result"))
        };
        let read = read.await;
        let (snapshot, last) = end(connection, read, Effect::ReadsLog).await?;
        Ok((rows.into_rows(), snapshot, last))
    }

    /// Runs SQL that is no statement of its own. It has no text from outside.
    async fn read_as_service(&self, sql: String, values: &[Value<'_>]) -> Result<Vec<PgRow>> {
        let mut arguments = sqlx::postgres::PgArguments::default();
        for value in values {
            super::types::bind(&mut arguments, value)?;
        }
        let mut connection = self.begin_reading().await?;
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(false);
        let rows = query.fetch_all(&mut *connection).await.map_err(translate);
        end(connection, rows, Effect::ReadsLog).await
    }

    /// Begins a transaction, because a pooler may give a statement that is prepared outside of one to another server process,
    /// which would run what another client has prepared there.
    async fn begin_reading(&self) -> Result<PooledConnection> {
        self.begin(&Principal::Service, Effect::ReadsLog, &Retries::new()).await
    }

    pub(in crate::database) async fn watch_commits(&self, on_commit: OnCommit) -> Result<CommitWatch> {
        commit_watch::start(Arc::clone(self.pool.shared()), self.pool.lifetime, &self.pool.shared().runtime, on_commit)
            .await
    }

    pub(in crate::database) async fn prune_changes(
        &self,
        limits: RetentionLimits,
        keep_after: Option<EntryKey>,
    ) -> Result<bool> {
        // A quarter of the largest number, because the function multiplies by four.
        let rows = i64::try_from(limits.rows).unwrap_or(i64::MAX).min(i64::MAX / 8);
        // PostgreSQL's dates reach further than ten thousand years.
        let age = i64::try_from(limits.age.as_micros()).unwrap_or(i64::MAX).min(1_000 * 366 * 86_400 * 1_000_000);
        let bytes = i64::try_from(limits.bytes).unwrap_or(i64::MAX).min(i64::MAX / 8);
        let values = [rows.into(), bytes.into(), age.into(), keep_after.map(|key| key.id).into(), PRUNE_STEP.into()];
        let pruned =
            self.execute(&Principal::Service, &PRUNE, &values, |row| row.get::<bool>(0), Effect::Writes).await?;
        Ok(pruned == [true])
    }

    pub(in crate::database) async fn recount_changes(&self) -> Result<()> {
        self.execute(&Principal::Service, &ERASURE.recount, &[], |_| Ok(()), Effect::Writes).await.map(drop)
    }

    pub(in crate::database) async fn log_size(&self) -> Result<LogSize> {
        self.one(&SIZE, &[LogSize::UNCOUNTED.into()], LogSize::read).await
    }

    pub(in crate::database) async fn log_stats(&self) -> Result<LogStats> {
        Ok(self.read_log(&STATS, &[], stats).await?.pop().unwrap_or_default())
    }

    /// Runs a statement that returns one row, for the service.
    async fn one<T>(&self, statement: &'static Statement, values: &[Value<'_>], read: Read<T>) -> Result<T> {
        self.read_log(statement, values, read).await?.pop().ok_or_else(Error::not_found)
    }

    /// Runs a statement that reads the change log, for the service.
    ///
    /// # Errors
    /// `Unavailable` (25006) if the server is in recovery: a standby does not know the transactions that write the log.
    async fn read_log<T>(&self, statement: &'static Statement, values: &[Value<'_>], read: Read<T>) -> Result<Vec<T>> {
        self.execute(&Principal::Service, statement, values, read, Effect::ReadsLog).await
    }
}

/// Whether a lock was not free in time, or two transactions waited for each other.
fn is_lock_timeout(error: &Error) -> bool {
    matches!(error.code(), Some("55P03" | "40P01"))
}

/// The SQL of a current row's image, as the triggers write it.
const fn image(table: Table) -> &'static str {
    match table {
        Table::Files => "townsquare.file_image(\"current\")::text",
        _ => "row_to_json(\"current\")::text",
    }
}

/// The SQL of a current row's context, as the triggers write it.
const fn context(table: Table) -> &'static str {
    match table {
        Table::Fidgets => {
            "(SELECT townsquare.context_of(spaces.owner_id, spaces.is_public)::text
                 FROM public.spaces WHERE spaces.id = \"current\".space_id)"
        }
        Table::Files => "townsquare.file_context(\"current\")::text",
        _ => "NULL::text",
    }
}

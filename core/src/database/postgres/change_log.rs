//! The change log of a PostgreSQL database: the table `townsquare.changes`, which triggers write.
//!
//! Invariant: an entry is read only when every transaction that may write an entry before it has ended. The functions of the
//! migration `0006_realtime` decide that from the advisory locks of the transactions that write the log, so a transaction
//! that does not write it, also one in another database, holds up nobody.

use std::{borrow::Cow, sync::Arc};

use sqlx::{AssertSqlSafe, Row as _, postgres::PgRow};
use tokio::time::Instant;
use uuid::Uuid;

use super::{Effect, Postgres, attempt::Retries, commit_watch, end, errors::translate, query::execute_batch};
use crate::{
    database::{
        change_log::{
            CommitWatch, CurrentRow, EntryKey, EntryTexts, LogBounds, LogEntry, LogPage, LogStats, OnCommit, PAGE,
            Position, RetentionLimits, SessionEntries, Snapshot, pruned, read_context, read_entry, read_image,
        },
        principal::Principal,
        row::{Read, Row},
        statement::Statement,
        value::Value,
    },
    error::{Error, Result},
    model::ColumnType,
    policy::{Table, quoted},
};

/// The most entries that one call of `prune_changes` deletes.
const PRUNE_STEP: i64 = 500;

static CAPTURE_STATE: Statement = Statement::new(
    "SELECT feed.is_on, database.incarnation FROM townsquare.feed AS feed, townsquare.database AS database",
);
static HEAD: Statement = Statement::new("SELECT settled, snapshot, last FROM townsquare.feed_head()");
static SETTLED: Statement = Statement::new("SELECT townsquare.settled_id()");
static READ_PAGE: Statement = Statement::new(
    "SELECT id, transaction, table_name, kind, old_row, new_row, old_context, new_context, at
     FROM townsquare.changes_after($1, $2)",
);
// One snapshot sees a deletion of entries together with the position up to which entries were deleted. The limit is a
// constant, because a bound one lets PostgreSQL read the whole range and sort it.
static READ_SETTLED_PAGE: Statement = Statement::new(
    "SELECT id, transaction::text, table_name, kind, old_row::text, new_row::text, old_context::text, new_context::text, at,
        (SELECT pruned_to FROM townsquare.feed)
     FROM townsquare.changes WHERE id > $1 AND id <= $2 ORDER BY id LIMIT 256",
);
const _: () = assert!(PAGE == 256, "the limit of READ_SETTLED_PAGE");
static SESSION_ENTRIES: Statement = Statement::new(
    "SELECT started.id, started.transaction::text, ended.id, ended.transaction::text,
        EXISTS (SELECT FROM townsquare.sessions WHERE sessions.id = $2)
     FROM (VALUES (1)) AS always
     LEFT JOIN townsquare.changes AS started ON started.id > $1 AND started.kind = 'session_started'
        AND started.new_row ->> 'session_id' = CAST($2 AS TEXT)
     LEFT JOIN townsquare.changes AS ended ON ended.id > $1 AND ended.kind = 'session_ended'
        AND ended.old_row ->> 'session_id' = CAST($2 AS TEXT)",
);
static PRUNE: Statement = Statement::new("SELECT townsquare.prune_changes($1, $2, $3, $4)");
static BOUNDS: Statement = Statement::new(
    "SELECT pruned_to, COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0) FROM townsquare.feed",
);
// The entries above the settled one are committed, but a transaction that may write one before them runs.
static STATS: Statement = Statement::new(
    "SELECT (SELECT max(id) FROM townsquare.changes), first.id, first.at,
        (SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp() - waiting.at) * 1000000 AS BIGINT)
         FROM townsquare.changes AS waiting WHERE waiting.id > settled ORDER BY waiting.id LIMIT 1)
     FROM (SELECT townsquare.settled_id() AS settled) AS log,
        (SELECT id, at FROM townsquare.changes ORDER BY id LIMIT 1) AS first",
);

/// Ends when another transaction writes to the captured tables for as long.
const START_CAPTURE: &str = "BEGIN; SET LOCAL lock_timeout = '300ms'; SELECT townsquare.set_capture(true); COMMIT";

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

fn capture_state(row: &Row<'_>) -> Result<(bool, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn number(row: &Row<'_>) -> Result<i64> {
    row.get(0)
}

fn flag(row: &Row<'_>) -> Result<bool> {
    row.get(0)
}

fn position(row: &Row<'_>) -> Result<Position> {
    position_of(row.get(0)?, &row.get::<String>(1)?, row.get(2)?)
}

fn bounds(row: &Row<'_>) -> Result<LogBounds> {
    Ok(LogBounds { pruned: EntryKey { id: row.get(0)?, transaction: 0 }, end: up_to(row.get(1)?) })
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

/// A key that is not before any entry with this id.
const fn up_to(id: i64) -> EntryKey {
    EntryKey { id, transaction: u64::MAX }
}

/// The position of a snapshot; `settled` was read before it, `last` after it.
fn position_of(settled: i64, snapshot: &str, last: i64) -> Result<Position> {
    let snapshot: Snapshot = format!("{snapshot}@{last}").parse().map_err(|()| unreadable("snapshot"))?;
    let mut position = Position { after: up_to(settled), seen: Some(Arc::new(snapshot)) };
    position.advance_to(up_to(settled));
    Ok(position)
}

fn unreadable(what: &str) -> Error {
    super::errors::internal(format_args!("the server sent a {what} of another form"))
}

/// Reads an entry; `None` in place of one that another program wrote in another form.
fn entry(row: &Row<'_>) -> Result<(EntryKey, Option<LogEntry>)> {
    let transaction: String = row.get(1)?;
    let key = EntryKey { id: row.get(0)?, transaction: transaction_id(&transaction)? };
    let (table, kind): (Option<String>, Option<String>) = (row.get_optional(2)?, row.get_optional(3)?);
    let mut texts = EntryTexts::default();
    for (text, column) in texts.iter_mut().zip(4..) {
        *text = row.get_optional::<String>(column)?.map(Cow::Owned);
    }
    let names = (table.as_deref().unwrap_or_default(), kind.as_deref().unwrap_or_default());
    Ok((key, read_entry(key, names, &texts, row.get(8)?)))
}

/// Reads a row of [`READ_SETTLED_PAGE`]: the position up to which entries were deleted, and an entry.
fn settled_entry(row: &Row<'_>) -> Result<(i64, (EntryKey, Option<LogEntry>))> {
    Ok((row.get(9)?, entry(row)?))
}

/// The page of at most `limit` entries after `after` that was read.
fn page(read: Vec<(EntryKey, Option<LogEntry>)>, after: EntryKey, limit: usize) -> LogPage {
    let is_last = read.len() < limit;
    let end = read.last().map_or(after, |(key, _)| *key);
    let mut entries = Vec::with_capacity(read.len());
    for (key, entry) in read {
        match entry {
            Some(entry) => entries.push(entry),
            None => tracing::warn!(id = key.id, "an entry of the change log cannot be read"),
        }
    }
    LogPage { entries, end, is_last }
}

impl Postgres {
    pub(in crate::database) async fn start_capture(&self) -> Result<Arc<str>> {
        let began = Instant::now();
        loop {
            let (is_on, incarnation) = self.one(&CAPTURE_STATE, &[], capture_state).await?;
            if is_on {
                return Ok(incarnation.into());
            }
            match self.in_runtime(self.switch_capture_on()).await {
                // Others wait behind the lock, so it is waited for in short turns.
                Err(error)
                    if is_lock_timeout(&error) && began.elapsed() < self.pool.shared().options.operation_timeout => {}
                switched => switched?,
            }
        }
    }

    async fn switch_capture_on(&self) -> Result<()> {
        let mut connection = self.pool.acquire(&Principal::Service).await?;
        let result = execute_batch(&mut connection, START_CAPTURE).await;
        if result.is_ok() || execute_batch(&mut connection, "ROLLBACK").await.is_ok() {
            connection.release();
        }
        result
    }

    pub(in crate::database) async fn head(&self) -> Result<Position> {
        self.one(&HEAD, &[], position).await
    }

    pub(in crate::database) async fn session_entries(
        &self,
        session_id: Uuid,
        after: EntryKey,
    ) -> Result<SessionEntries> {
        self.one(&SESSION_ENTRIES, &[after.id.into(), session_id.into()], session_entries).await
    }

    pub(in crate::database) async fn read_changes(&self, after: EntryKey, limit: usize) -> Result<LogPage> {
        let values = [after.id.into(), i64::try_from(limit).unwrap_or(i64::MAX).into()];
        let read = self.fetch(&Principal::Service, &READ_PAGE, &values, entry).await?;
        Ok(page(read, after, limit))
    }

    pub(in crate::database) async fn read_changes_up_to(&self, after: EntryKey, end: EntryKey) -> Result<LogPage> {
        let values = [after.id.into(), end.id.into()];
        let read = self.fetch(&Principal::Service, &READ_SETTLED_PAGE, &values, settled_entry).await?;
        match read.first() {
            Some((pruned_to, _)) if after.id < *pruned_to => Err(pruned()),
            Some(_) => Ok(page(read.into_iter().map(|(_, entry)| entry).collect(), after, PAGE)),
            // Rare: the writers of the entries rolled back, the entries were deleted, or the ids are equal.
            None => self.read_changes(after, PAGE).await,
        }
    }

    pub(in crate::database) async fn rows_and_position(
        &self,
        table: Table,
        equality: Option<(&'static str, &str)>,
    ) -> Result<(Vec<CurrentRow>, Position)> {
        // Before the rows, so that they contain every entry up to it.
        let settled = self.one(&SETTLED, &[], number).await?;
        let rows = self.in_runtime(self.current_rows(table, equality)).await?;
        let text = |row: &PgRow, column| row.try_get::<Option<String>, _>(column).map_err(translate);
        let first = rows.first().ok_or_else(|| unreadable("result"))?;
        let snapshot = text(first, 0)?.ok_or_else(|| unreadable("snapshot"))?;
        // Any row's value was read after the snapshot was taken.
        let position = position_of(settled, &snapshot, first.try_get(1).map_err(translate)?)?;
        let mut current = Vec::with_capacity(rows.len());
        for row in &rows {
            // Without a row of the table there is one row, whose image is NULL.
            let Some(image) = text(row, 2)? else { continue };
            match read_image(table, &image) {
                Some(image) => {
                    let context = text(row, 3)?.and_then(|text| read_context(table, &text));
                    current.push(CurrentRow { image, context });
                }
                None => tracing::warn!(table = table.name(), "a live query left out a row that cannot be read"),
            }
        }
        Ok((current, position))
    }

    /// Reads the rows of a table in one snapshot: each with the snapshot and the last id of the log.
    async fn current_rows(&self, table: Table, equality: Option<(&'static str, &str)>) -> Result<Vec<PgRow>> {
        // Values of one form only compare as those of the image do.
        let equality = equality.and_then(|(name, value)| match table.column(name)?.column_type {
            ColumnType::Uuid => Some((name, Value::from(Uuid::try_parse(value).ok()?))),
            ColumnType::Text => Some((name, Value::from(value))),
            _ => None,
        });
        let condition =
            equality.as_ref().map_or_else(String::new, |(name, _)| format!(" WHERE \"current\".{} = $1", quoted(name)));
        let sql = format!(
            "SELECT pg_current_snapshot()::text, COALESCE(pg_sequence_last_value('townsquare.changes_id'), 0), image, context
             FROM (VALUES (1)) AS always LEFT JOIN (SELECT {} FROM {}.{} AS \"current\"{condition}) AS rows ON true",
            image_and_context(table),
            table.schema(),
            quoted(table.name()),
        );
        // In a transaction, because a pooler may give a statement that is prepared outside of one to another server process,
        // which would run what another client has prepared there.
        let mut connection = self.begin(&Principal::Service, &Retries::new()).await?;
        let mut arguments = sqlx::postgres::PgArguments::default();
        if let Some((_, value)) = &equality {
            super::types::bind(&mut arguments, value)?;
        }
        let query = sqlx::query_with(AssertSqlSafe(sql), arguments).persistent(false);
        let rows = query.fetch_all(&mut *connection).await.map_err(translate);
        end(connection, rows, Effect::Reads).await
    }

    pub(in crate::database) async fn watch_commits(&self, on_commit: OnCommit) -> Result<CommitWatch> {
        commit_watch::start(
            Arc::clone(self.pool.shared()),
            self.pool.lifetime(),
            self.runtimes.client_runtime(),
            on_commit,
        )
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
        let values = [rows.into(), age.into(), keep_after.map(|key| key.id).into(), PRUNE_STEP.into()];
        let pruned = self.execute(&Principal::Service, &PRUNE, &values, flag, Effect::Writes).await?;
        Ok(pruned == [true])
    }

    pub(in crate::database) async fn log_stats(&self) -> Result<LogStats> {
        Ok(self.fetch(&Principal::Service, &STATS, &[], stats).await?.pop().unwrap_or_default())
    }

    pub(in crate::database) async fn log_bounds(&self) -> Result<LogBounds> {
        self.one(&BOUNDS, &[], bounds).await
    }

    /// Runs a statement that returns one row, for the service.
    async fn one<T>(&self, statement: &'static Statement, values: &[Value<'_>], read: Read<T>) -> Result<T> {
        self.fetch(&Principal::Service, statement, values, read).await?.pop().ok_or_else(Error::not_found)
    }
}

/// Whether a lock was not free in time, or two transactions waited for each other.
fn is_lock_timeout(error: &Error) -> bool {
    matches!(error.code(), Some("55P03" | "40P01"))
}

/// The SQL of a current row's image and of its context, as the triggers write them.
const fn image_and_context(table: Table) -> &'static str {
    match table {
        Table::Fidgets => {
            "row_to_json(\"current\")::text AS image, (SELECT json_build_object('owner_id', spaces.owner_id,
                 'is_public', spaces.is_public)::text FROM public.spaces WHERE spaces.id = \"current\".space_id) AS context"
        }
        Table::Files => {
            "townsquare.file_image(\"current\")::text AS image, townsquare.file_context(\"current\")::text AS context"
        }
        _ => "row_to_json(\"current\")::text AS image, NULL::text AS context",
    }
}

//! The change log of a SQLite database: the table `townsquare_changes`, which triggers write.
//!
//! Invariant: write transactions run one after another, so the order of ids is the order of the commits.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use uuid::Uuid;

use super::{Sqlite, capture, commit_watch, connection::Connection, errors::translate};
use crate::{
    clock::earlier,
    database::{
        change_log::{
            CAPTURE_STATE, CommitWatch, CurrentRow, CurrentRows, CursorKey, EntryKey, EntryProof, Erasure, ErasureSql,
            LogEnd, LogPage, LogPoint, LogSize, LogStats, OnCommit, OutlinedRow, PageBuilder, Position,
            RetentionLimits, SessionEntries, TableSet, other_history, pruned, read_capture_state,
        },
        row::{Read, Row},
        statement::Statement,
        value::Value,
    },
    error::{Error, Result},
    model::timestamp_text,
    policy::{Caller, Column, RowImage, RowKey, Table, quoted},
};

/// About the bytes of an entry as it is stored. SQLite finds the length of a value without reading it.
macro_rules! bytes {
    () => {
        "100 + coalesce(octet_length(old), 0) + coalesce(octet_length(new), 0) + coalesce(octet_length(old_context), 0)
            + coalesce(octet_length(new_context), 0)"
    };
}

/// The most entries that are counted at once.
const COUNT_STEP: i64 = 10_000;

/// The most entries that one write deletes. It takes some milliseconds.
const PRUNE_STEP: i64 = 2_000;

/// The most bytes that one write deletes, because `secure_delete` overwrites them. Deletes one entry at least.
const PRUNE_BYTES: i64 = 4 << 20;

static START_CAPTURE: Statement = Statement::new("UPDATE townsquare.feed SET is_on = TRUE");
// The log ends after an entry that no reader has, so that every position in it expires and each reader notices.
static ADD_END: Statement = Statement::new("INSERT INTO townsquare.changes (table_name, kind) VALUES ('', 'end')");
static STOP_CAPTURE: Statement = Statement::new(
    "UPDATE townsquare.feed SET is_on = FALSE, counted_bytes = 0,
        (pruned_id, counted_id, pruned_tag) = (SELECT id, id, tag FROM townsquare.changes ORDER BY id DESC LIMIT 1)",
);
static EMPTY_LOG: Statement = Statement::new("DELETE FROM townsquare.changes");
static BOUNDS: Statement =
    Statement::new("SELECT (SELECT min(id) FROM townsquare.changes), (SELECT max(id) FROM townsquare.changes)");
// The last entry, which may have been pruned.
static END: Statement = Statement::new(
    "SELECT coalesce((SELECT max(id) FROM townsquare.changes), pruned_id),
        coalesce((SELECT tag FROM townsquare.changes ORDER BY id DESC LIMIT 1), pruned_tag)
     FROM townsquare.feed",
);
static PRUNED: Statement = Statement::new("SELECT pruned_id, pruned_tag FROM townsquare.feed");
static TIME_OF_ENTRY: Statement = Statement::new("SELECT at FROM townsquare.changes WHERE id = $1");
// Of the $1 oldest entries, the last one before the first that is not older than $2. A clock that was wrong for a while gave
// wrong times: an old time among fresh ones must not delete what is before it.
static AGED_PREFIX: Statement = Statement::new(
    "SELECT coalesce(min(CASE WHEN at >= $2 THEN id - 1 END), max(id))
     FROM (SELECT id, at FROM townsquare.changes ORDER BY id LIMIT $1) AS oldest",
);
static DELETE_ENTRIES: Statement = Statement::new("DELETE FROM townsquare.changes WHERE id <= $1");
static COUNTED: Statement = Statement::new("SELECT counted_id, counted_bytes FROM townsquare.feed");
// The last id of the next $2 entries after $1, and their bytes.
static UNCOUNTED: Statement = Statement::new(concat!(
    "SELECT max(id), coalesce(sum(bytes), 0) FROM (SELECT id, ",
    bytes!(),
    " AS bytes FROM townsquare.changes WHERE id > $1 ORDER BY id LIMIT $2) AS uncounted"
));
// Adds the bytes of the next $1 entries. One statement reads and adds them: entries that are erased meanwhile are not counted
// with the bytes that they had.
static COUNT: Statement = Statement::new(concat!(
    "UPDATE townsquare.feed SET (counted_id, counted_bytes) = (
        SELECT coalesce(max(id), counted_id), counted_bytes + coalesce(sum(bytes), 0) FROM (SELECT id, ",
    bytes!(),
    " AS bytes FROM townsquare.changes WHERE id > counted_id ORDER BY id LIMIT $1) AS uncounted)"
));
// Subtracts the bytes of the entries up to $1, which are about to be deleted.
static UNCOUNT: Statement = Statement::new(concat!(
    "UPDATE townsquare.feed SET counted_id = max(counted_id, $1), counted_bytes = max(0, counted_bytes - (
        SELECT coalesce(sum(",
    bytes!(),
    "), 0) FROM townsquare.changes WHERE id <= $1 AND id <= counted_id))"
));
// Of the $1 oldest entries, the first one with which they have at least $2 bytes, or the last one; and the last one before they
// have more than $3 bytes.
static LARGE_PREFIX: Statement = Statement::new(concat!(
    "SELECT coalesce(min(CASE WHEN total >= $2 THEN id END), max(id)),
        coalesce(max(CASE WHEN total <= $3 THEN id END), min(id))
     FROM (SELECT id, sum(bytes) OVER (ORDER BY id) AS total FROM (SELECT id, ",
    bytes!(),
    " AS bytes FROM townsquare.changes ORDER BY id LIMIT $1) AS oldest) AS summed"
));
static SIZE: Statement = Statement::new(concat!(
    "SELECT feed.pruned_id, coalesce((SELECT max(id) FROM townsquare.changes), feed.pruned_id) - feed.pruned_id,
        feed.counted_bytes + uncounted.bytes, uncounted.count
     FROM townsquare.feed AS feed, (SELECT coalesce(sum(bytes), 0) AS bytes, count(*) AS count FROM (SELECT ",
    bytes!(),
    " AS bytes FROM townsquare.changes WHERE id > (SELECT counted_id FROM townsquare.feed) ORDER BY id LIMIT $1) AS entry
     ) AS uncounted"
));
// The images of sessions have the id first: {"session_id":"…","user_id":"…"}.
static SESSION_ENTRIES: Statement = Statement::new(
    "SELECT (SELECT id FROM townsquare.changes WHERE id > $1 AND kind = 'session_started' AND instr(new, $2) > 0),
        (SELECT id FROM townsquare.changes WHERE id > $1 AND kind = 'session_ended' AND instr(old, $2) > 0),
        EXISTS (SELECT 1 FROM townsquare.sessions WHERE id = $2)",
);
static SET_PRUNED: Statement = Statement::new(
    "UPDATE townsquare.feed SET pruned_id = $1,
        pruned_tag = coalesce((SELECT tag FROM townsquare.changes WHERE id = $1), pruned_tag)
     WHERE pruned_id < $1",
);

/// Erases users from the log. The contexts stay, so that the feed can deliver the `DELETE` of their rows.
pub(in crate::database) static ERASURE: LazyLock<Erasure> = LazyLock::new(|| {
    Erasure::new(&ErasureSql {
        head: "SELECT coalesce(max(id), 0) FROM townsquare.changes",
        old: "entry.old",
        new: "entry.new",
        may_be_of_user: "(instr(entry.old, $1) OR instr(entry.new, $1) OR instr(entry.old_context, $1)
            OR instr(entry.new_context, $1))",
        id: str::to_owned,
        erased: |image| format!("{{erased {image}}}"),
        is_listed: "entry.id {any $2}",
        recount: "UPDATE townsquare.feed SET counted_id = 0, counted_bytes = 0",
    })
});

// The first row is the entry that the reader stands on, unless it has been pruned.
const READ_PAGE: &str =
    "SELECT id, table_name, kind, old, new, old_context, new_context, at, tag FROM townsquare_changes
    WHERE id >= ?1 ORDER BY id LIMIT ?2";

/// Reads the ids of the first and the last entry.
fn bounds(row: &Row<'_>) -> Result<Option<(i64, i64)>> {
    let (first, last): (Option<i64>, Option<i64>) = (row.get_optional(0)?, row.get_optional(1)?);
    Ok(first.zip(last))
}

/// Reads the id and the tag of an entry: the point after it.
fn point(row: &Row<'_>) -> Result<LogPoint> {
    Ok(point_after(row.get(0)?, row.get(1)?))
}

const fn point_after(id: i64, tag: i64) -> LogPoint {
    LogPoint { after: key(id), stands_on: EntryProof { id, transaction: 0, mark: tag } }
}

fn session_entries(row: &Row<'_>) -> Result<SessionEntries> {
    let (started, ended) = (row.get_optional(0)?.map(key), row.get_optional(1)?.map(key));
    Ok(SessionEntries { started, ended, exists: row.get(2)? })
}

const fn key(id: i64) -> EntryKey {
    EntryKey { transaction: 0, id }
}

// The methods are async, because the methods of PostgreSQL are.
#[allow(clippy::unused_async, reason = "the methods of PostgreSQL, which are called in the same way, wait")]
impl Sqlite {
    pub(in crate::database) async fn capture_state(&self) -> Result<(bool, CursorKey)> {
        self.refuse_inherited()?;
        self.one(&CAPTURE_STATE, &[], read_capture_state)
    }

    pub(in crate::database) async fn switch_capture(&self, is_on: bool) -> Result<()> {
        if self.capture_state().await?.0 == is_on {
            return Ok(());
        }
        let switch = self.write_as_service(move |transaction| {
            Box::pin(async move {
                if is_on {
                    return transaction.execute(&START_CAPTURE, &[]).await;
                }
                transaction.execute(&ADD_END, &[]).await?;
                transaction.execute(&STOP_CAPTURE, &[]).await?;
                transaction.execute(&EMPTY_LOG, &[]).await
            })
        });
        switch.await.map(drop)
    }

    pub(in crate::database) async fn head(&self) -> Result<Position> {
        Ok(self.one(&END, &[], point)?.into())
    }

    pub(in crate::database) async fn log_end(&self) -> Result<LogEnd> {
        let settled = self.one(&END, &[], point)?.after;
        Ok(LogEnd { settled, last_id: settled.id })
    }

    pub(in crate::database) async fn check_position(&self, position: &Position) -> Result<()> {
        self.read_changes(position.point(), None, TableSet::default()).await.map(drop)
    }

    pub(in crate::database) async fn session_entries(
        &self,
        session_id: Uuid,
        after: EntryKey,
    ) -> Result<SessionEntries> {
        let values = [after.id.into(), session_id.into()];
        self.one(&SESSION_ENTRIES, &values, session_entries)
    }

    /// Reads the page after `after`. The page may have entries after the end that the reader needs.
    pub(in crate::database) async fn read_changes(
        &self,
        after: LogPoint,
        _end: Option<EntryKey>,
        tables: TableSet,
    ) -> Result<LogPage> {
        self.refuse_inherited()?;
        self.readers.with_connection(|connection| {
            let (page, begins_with) = read_page(connection, after, tables)?;
            if begins_with == Some(after.stands_on) {
                return Ok(page);
            }
            // The entry that the reader stands on is the last one that was pruned, or the page misses entries. Read after the
            // page, so that pruning in between is noticed.
            let last_pruned = connection.fetch(Caller::Service, &PRUNED, &[], point)?.pop();
            match last_pruned.ok_or_else(Error::not_found)? {
                last_pruned if last_pruned.stands_on == after.stands_on => Ok(page),
                last_pruned if after.stands_on.id < last_pruned.after.id => Err(pruned()),
                _ => Err(other_history()),
            }
        })
    }

    pub(in crate::database) async fn rows_and_position<Shows>(
        self: &Arc<Self>,
        table: Table,
        equality: Option<(Column, &str)>,
        rows: CurrentRows<Shows>,
    ) -> Result<(Vec<RowImage>, Position)>
    where
        Shows: Fn(&CurrentRow) -> Option<bool> + Send + 'static,
    {
        let equality = equality.map(|(column, text)| (column.name, text.to_owned()));
        let this = Arc::clone(self);
        self.pool.run(move || this.read_rows(table, equality.as_ref(), rows)).await?
    }

    pub(in crate::database) async fn rows_with_keys(&self, table: Table, keys: &[RowKey]) -> Result<Vec<OutlinedRow>> {
        let sql = rows_with_keys_sql(table);
        let keys = serde_json::Value::from(keys.to_vec()).to_string();
        self.readers.with_connection(|connection| {
            let mut statement = connection.0.prepare_cached(&sql).map_err(translate)?;
            let mut found = statement.query([keys]).map_err(translate)?;
            let mut rows = Vec::new();
            while let Some(row) = found.next().map_err(translate)? {
                let (image, context) = (optional_text(row, 0), optional_text(row, 1));
                rows.extend(image.and_then(|image| OutlinedRow::read(table, &image, context.as_deref())));
            }
            Ok(rows)
        })
    }

    /// Reads the rows of a table, or those with a text in a column.
    fn read_rows<Shows: Fn(&CurrentRow) -> Option<bool>>(
        &self,
        table: Table,
        equality: Option<&(&'static str, String)>,
        mut rows: CurrentRows<Shows>,
    ) -> Result<(Vec<RowImage>, Position)> {
        // The image has the text of a BLOB, too.
        let condition = |name| format!(" WHERE {} IN (?1, CAST(?1 AS BLOB))", quoted(name));
        let condition = equality.map_or_else(String::new, |(name, _)| condition(*name));
        let sql = format!("{}{condition}", rows_sql(table));
        self.readers.with_connection(|connection| {
            let snapshot = connection.0.unchecked_transaction().map_err(translate)?;
            let end = connection.fetch(Caller::Service, &END, &[], point)?.pop();
            let position = end.ok_or_else(Error::not_found)?.into();
            let mut statement = snapshot.prepare_cached(&sql).map_err(translate)?;
            let parameters = equality.iter().map(|(_, value)| value);
            let mut found = statement.query(rusqlite::params_from_iter(parameters)).map_err(translate)?;
            while let Some(row) = found.next().map_err(translate)? {
                rows.add(optional_text(row, 0).as_deref(), optional_text(row, 1).as_deref())?;
            }
            Ok((rows.into_rows(), position))
        })
    }

    pub(in crate::database) async fn watch_commits(&self, on_commit: OnCommit) -> Result<CommitWatch> {
        let listeners = self.writer.get()?.commit_listener();
        if self.is_in_memory() {
            return Ok(commit_watch::start_in_process(listeners, on_commit));
        }
        commit_watch::start(listeners, self.readers.open_dedicated()?, on_commit)
    }

    pub(in crate::database) async fn prune_changes(
        &self,
        limits: RetentionLimits,
        keep_after: Option<EntryKey>,
    ) -> Result<bool> {
        self.refuse_inherited()?;
        let Some((first, last)) = self.one(&BOUNDS, &[], bounds)? else { return Ok(false) };
        let (already_counted, counted_id, counted_bytes) = self.counted()?;
        let prefix_at = |enough_bytes: i64| -> Result<(i64, i64)> {
            let values = [PRUNE_STEP.into(), enough_bytes.into(), PRUNE_BYTES.into()];
            let read = |row: &Row<'_>| Ok((row.get_optional::<i64>(0)?, row.get_optional::<i64>(1)?));
            let (enough, step_end) = self.one(&LARGE_PREFIX, &values, read)?;
            Ok((enough.unwrap_or(0), step_end.unwrap_or(0)))
        };
        let too_old = |times: u32| -> Result<i64> {
            let oldest_kept = earlier(self.clock.now(), limits.age.saturating_mul(times));
            let values = [PRUNE_STEP.into(), timestamp_text(oldest_kept).into()];
            Ok(self.one(&AGED_PREFIX, &values, |row| row.get_optional(0))?.unwrap_or(0))
        };
        let too_many = |times: i64| {
            let kept = i64::try_from(limits.rows).unwrap_or(i64::MAX).saturating_mul(times);
            last.saturating_sub(kept)
        };
        let too_large = |times: i64| -> Result<i64> {
            let kept = i64::try_from(limits.bytes).unwrap_or(i64::MAX).saturating_mul(times);
            if counted_bytes <= kept { Ok(0) } else { Ok(prefix_at(counted_bytes - kept)?.0) }
        };
        let mut limit = too_many(1).max(too_old(1)?).max(too_large(1)?);
        if let Some(keep) = keep_after {
            limit = limit.min(keep.id.max(too_many(4)).max(too_old(4)?).max(too_large(4)?));
        }
        let is_uncounted = counted_id < last;
        if limit < first {
            if already_counted < counted_id {
                let count = self.write_as_service(|transaction| {
                    Box::pin(async move { transaction.execute(&COUNT, &[COUNT_STEP.into()]).await })
                });
                count.await?;
            }
            return Ok(is_uncounted);
        }
        let step_end = prefix_at(0)?.1;
        let end = limit.min(step_end);
        let delete = self.write_as_service(move |transaction| {
            Box::pin(async move {
                transaction.execute(&COUNT, &[COUNT_STEP.into()]).await?;
                transaction.execute(&SET_PRUNED, &[end.into()]).await?;
                transaction.execute(&UNCOUNT, &[end.into()]).await?;
                transaction.execute(&DELETE_ENTRIES, &[end.into()]).await
            })
        });
        delete.await?;
        Ok(is_uncounted || limit > end || end == step_end)
    }

    /// The last entry that is counted, the last one that the next count adds, and the bytes up to it.
    fn counted(&self) -> Result<(i64, i64, i64)> {
        let (counted_id, bytes) = self.one(&COUNTED, &[], |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)))?;
        let values = [counted_id.into(), COUNT_STEP.into()];
        let read = |row: &Row<'_>| Ok((row.get_optional::<i64>(0)?, row.get::<i64>(1)?));
        let (end, added) = self.one(&UNCOUNTED, &values, read)?;
        Ok((counted_id, end.unwrap_or(counted_id), bytes + added))
    }

    pub(in crate::database) async fn log_size(&self) -> Result<LogSize> {
        self.refuse_inherited()?;
        self.one(&SIZE, &[LogSize::UNCOUNTED.into()], LogSize::read)
    }

    pub(in crate::database) async fn recount_changes(&self) -> Result<()> {
        let recount = self
            .write_as_service(|transaction| Box::pin(async move { transaction.execute(&ERASURE.recount, &[]).await }));
        recount.await.map(drop)
    }

    pub(in crate::database) async fn log_stats(&self) -> Result<LogStats> {
        let Some((first, last)) = self.one(&BOUNDS, &[], bounds)? else { return Ok(LogStats::default()) };
        let oldest = self.rows(&TIME_OF_ENTRY, &[first.into()], |row| row.get(0))?;
        let retained = u64::try_from(last - first + 1).unwrap_or_default();
        Ok(LogStats { retained, oldest: oldest.first().copied(), ..LogStats::default() })
    }

    /// Runs a statement that returns one row.
    fn one<T>(&self, statement: &'static Statement, values: &[Value<'_>], read: Read<T>) -> Result<T> {
        self.rows(statement, values, read)?.pop().ok_or_else(Error::not_found)
    }

    fn rows<T>(&self, statement: &'static Statement, values: &[Value<'_>], read: Read<T>) -> Result<Vec<T>> {
        self.readers.with_connection(|connection| connection.fetch(Caller::Service, statement, values, read))
    }
}

/// Reads a page of the log in one statement. Returns it with the proof of the entry that it begins after; `None` if the log
/// does not have an entry with that id.
fn read_page(connection: &Connection, after: LogPoint, tables: TableSet) -> Result<(LogPage, Option<EntryProof>)> {
    let mut statement = connection.0.prepare_cached(READ_PAGE).map_err(translate)?;
    let rows_wanted = i64::try_from(LogPage::MAX_ENTRIES).unwrap_or(i64::MAX).saturating_add(1);
    let mut rows = statement.query((after.after.id, rows_wanted)).map_err(translate)?;
    let (mut builder, mut begins_with) = (PageBuilder::new(after, tables), None);
    while let Some(row) = rows.next().map_err(translate)? {
        let read = point_after(row.get(0).map_err(translate)?, row.get(8).map_err(translate)?);
        if read.after.id == after.after.id {
            begins_with = Some(read.stands_on);
            continue;
        }
        let at = optional_text(row, 7).and_then(|at| at.parse().ok()).unwrap_or_default();
        let names = [1, 2].map(|column| optional_text(row, column).unwrap_or_default());
        // SQLite reads a large text when it is asked for.
        let texts = || std::array::from_fn(|index| optional_text(row, index + 3));
        if !builder.add(read, (&names[0], &names[1]), at, texts) || builder.is_full() {
            builder.page.is_last = false;
            break;
        }
    }
    Ok((builder.page, begins_with))
}

/// The text of a column; `None` for NULL.
fn optional_text<'row>(row: &'row rusqlite::Row<'_>, column: usize) -> Option<Cow<'row, str>> {
    let value = row.get_ref(column).ok()?;
    value.as_bytes_or_null().ok()?.map(String::from_utf8_lossy)
}

/// The SQL that reads the image and the context of every row of a table.
fn rows_sql(table: Table) -> String {
    let (from, context) = rows_and_context(table);
    format!("SELECT {}, {context} FROM {from}", capture::image_sql(table, "row"))
}

/// The SQL that reads the outline and the context of the rows with keys: a JSON array of arrays.
fn rows_with_keys_sql(table: Table) -> String {
    let (from, context) = rows_and_context(table);
    let outline = table.outline().iter().filter_map(|name| table.column(name));
    let is_key =
        |(index, name): (usize, &&str)| format!("row.{} = json_extract(wanted.value, '$[{index}]')", quoted(name));
    let condition = table.key().iter().enumerate().map(is_key).collect::<Vec<_>>().join(" AND ");
    format!(
        "SELECT {}, {context} FROM json_each(?1) AS wanted CROSS JOIN {from} ON {condition}",
        capture::object_sql(outline, "row")
    )
}

/// What rows of a table are read from, as `row`, and the SQL of the context of a row.
fn rows_and_context(table: Table) -> (String, String) {
    let name = if table == Table::Files { "townsquare_files".to_owned() } else { quoted(table.name()) };
    (format!("{name} AS row"), capture::context_sql(table, "row").unwrap_or_else(|| "NULL".to_owned()))
}

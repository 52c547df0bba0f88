//! The change log of a SQLite database: the table `townsquare_changes`, which triggers write.
//!
//! Invariant: write transactions run one after another, so the order of ids is the order of the commits.

use std::{borrow::Cow, fmt::Write as _, sync::Arc};

use jiff::Timestamp;
use uuid::Uuid;

use super::{
    Sqlite, commit_watch,
    connection::{Connection, timestamp_text},
    errors::translate,
};
use crate::{
    clock::earlier,
    database::{
        change_log::{
            CommitWatch, CurrentRow, EntryKey, EntryTexts, LogBounds, LogEntry, LogPage, LogStats, OnCommit, Position,
            RetentionLimits, SessionEntries, pruned, read_context, read_entry, read_image,
        },
        principal::Principal,
        row::Row,
        statement::Statement,
        transaction::Effect,
    },
    error::Result,
    model::ColumnType,
    policy::{Caller, Table, quoted},
};

/// The bytes of images after which a page ends, so that large rows do not fill the memory.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// The most entries that one write deletes. It takes well under a millisecond.
const PRUNE_STEP: i64 = 200;

static CAPTURE_STATE: Statement = Statement::new(
    "SELECT feed.is_on, database.incarnation FROM townsquare.feed AS feed, townsquare.database AS database",
);
static START_CAPTURE: Statement = Statement::new("UPDATE townsquare.feed SET is_on = TRUE");
static BOUNDS: Statement = Statement::new(
    "SELECT pruned_id, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'townsquare_changes'), 0),
        (SELECT min(id) FROM townsquare.changes), (SELECT max(id) FROM townsquare.changes)
     FROM townsquare.feed",
);
static PRUNED: Statement = Statement::new("SELECT pruned_id FROM townsquare.feed");
static TIME_OF_ENTRY: Statement = Statement::new("SELECT at FROM townsquare.changes WHERE id = $1");
// Of the $1 oldest entries, the last one before the first that is not older than $2.
static AGED_PREFIX: Statement = Statement::new(
    "SELECT max(id) FROM (SELECT id, at FROM townsquare.changes ORDER BY id LIMIT $1) AS oldest
     WHERE at < $2",
);
static DELETE_ENTRIES: Statement = Statement::new("DELETE FROM townsquare.changes WHERE id <= $1");
// The images of sessions have the id first: {"session_id":"…","user_id":"…"}.
static SESSION_ENTRIES: Statement = Statement::new(
    "SELECT (SELECT id FROM townsquare.changes WHERE id > $1 AND kind = 'session_started' AND instr(new, $2) > 0),
        (SELECT id FROM townsquare.changes WHERE id > $1 AND kind = 'session_ended' AND instr(old, $2) > 0),
        EXISTS (SELECT 1 FROM townsquare.sessions WHERE id = $2)",
);
static SET_PRUNED: Statement = Statement::new("UPDATE townsquare.feed SET pruned_id = max(pruned_id, $1)");

const READ_PAGE: &str = "SELECT id, table_name, kind, old, new, old_context, new_context, at FROM townsquare_changes
    WHERE id > ?1 ORDER BY id LIMIT ?2";

/// The ids that bound the log.
struct Bounds {
    pruned: i64,
    end: i64,
    /// The first and the last entry.
    entries: Option<(i64, i64)>,
}

fn bounds(row: &Row<'_>) -> Result<Bounds> {
    let (first, last): (Option<i64>, Option<i64>) = (row.get_optional(2)?, row.get_optional(3)?);
    Ok(Bounds { pruned: row.get(0)?, end: row.get(1)?, entries: first.zip(last) })
}

fn session_entries(row: &Row<'_>) -> Result<SessionEntries> {
    let (started, ended) = (row.get_optional(0)?.map(key), row.get_optional(1)?.map(key));
    Ok(SessionEntries { started, ended, exists: row.get(2)? })
}

fn capture_state(row: &Row<'_>) -> Result<(bool, String)> {
    Ok((row.get(0)?, row.get(1)?))
}

fn time(row: &Row<'_>) -> Result<Timestamp> {
    row.get(0)
}

fn optional_id(row: &Row<'_>) -> Result<Option<i64>> {
    row.get_optional(0)
}

const fn key(id: i64) -> EntryKey {
    EntryKey { transaction: 0, id }
}

// The methods are async, because those of PostgreSQL are.
#[allow(clippy::unused_async, reason = "the methods of PostgreSQL, which are called in the same way, wait")]
impl Sqlite {
    pub(in crate::database) async fn start_capture(&self) -> Result<Arc<str>> {
        self.refuse_inherited()?;
        let (is_on, incarnation) = self.one(&CAPTURE_STATE, capture_state)?;
        if !is_on {
            let start = self.write(Arc::new(Principal::Service), Effect::Writes, |transaction| {
                Box::pin(async move { transaction.execute(&START_CAPTURE, &[]).await })
            });
            start.await.map_err(|failed| failed.error)?;
        }
        Ok(incarnation.into())
    }

    pub(in crate::database) async fn head(&self) -> Result<Position> {
        Ok(Position::after(key(self.one(&BOUNDS, bounds)?.end)))
    }

    pub(in crate::database) async fn log_bounds(&self) -> Result<LogBounds> {
        let bounds = self.one(&BOUNDS, bounds)?;
        Ok(LogBounds { pruned: key(bounds.pruned), end: key(bounds.end) })
    }

    pub(in crate::database) async fn session_entries(
        &self,
        session_id: Uuid,
        after: EntryKey,
    ) -> Result<SessionEntries> {
        let values = [after.id.into(), session_id.into()];
        let find =
            |connection: &Connection| connection.fetch(Caller::Service, &SESSION_ENTRIES, &values, session_entries);
        self.readers.with_connection(find)?.pop().ok_or_else(crate::error::Error::not_found)
    }

    pub(in crate::database) async fn read_changes(&self, after: EntryKey, limit: usize) -> Result<LogPage> {
        self.refuse_inherited()?;
        self.readers.with_connection(|connection| {
            let page = read_page(connection, after, limit)?;
            // The log has no gaps but at its beginning. So only a page that does not begin with the next entry can have missed
            // some, and the bound is read after the page, so that pruning in between is noticed.
            if page.entries.first().is_none_or(|first| Some(first.key.id) != after.id.checked_add(1)) {
                let pruned_id = connection.fetch(Caller::Service, &PRUNED, &[], |row| row.get::<i64>(0))?;
                if pruned_id.first().is_some_and(|pruned_id| after.id < *pruned_id) {
                    return Err(pruned());
                }
            }
            Ok(page)
        })
    }

    pub(in crate::database) async fn rows_and_position(
        self: &Arc<Self>,
        table: Table,
        equality: Option<(&'static str, &str)>,
    ) -> Result<(Vec<CurrentRow>, Position)> {
        self.refuse_inherited()?;
        let (this, equality) = (Arc::clone(self), equality.map(|(column, value)| (column, value.to_owned())));
        self.pool.run(move || this.read_rows(table, equality)).await?
    }

    fn read_rows(&self, table: Table, equality: Option<(&'static str, String)>) -> Result<(Vec<CurrentRow>, Position)> {
        // Texts of one form only compare as the image does.
        let equality = equality.filter(|(column, _)| {
            let column_type = table.column(column).map(|column| column.column_type);
            matches!(column_type, Some(ColumnType::Uuid | ColumnType::Text))
        });
        let condition = equality.as_ref().map_or_else(String::new, |(name, _)| format!(" WHERE {} = ?1", quoted(name)));
        let sql = format!("{}{condition}", rows_sql(table));
        self.readers.with_connection(|connection| {
            let snapshot = connection.0.unchecked_transaction().map_err(translate)?;
            let position = connection.fetch(Caller::Service, &BOUNDS, &[], bounds)?;
            let position = Position::after(key(position.first().map_or(0, |bounds| bounds.end)));
            let mut statement = snapshot.prepare_cached(&sql).map_err(translate)?;
            let parameters = equality.iter().map(|(_, value)| value);
            let mut found = statement.query(rusqlite::params_from_iter(parameters)).map_err(translate)?;
            let mut rows = Vec::new();
            while let Some(row) = found.next().map_err(translate)? {
                match optional_text(row, 0).and_then(|text| read_image(table, &text)) {
                    Some(image) => {
                        let context = optional_text(row, 1).and_then(|text| read_context(table, &text));
                        rows.push(CurrentRow { image, context });
                    }
                    None => tracing::warn!(table = table.name(), "a live query left out a row that cannot be read"),
                }
            }
            Ok((rows, position))
        })
    }

    pub(in crate::database) async fn watch_commits(&self, on_commit: OnCommit) -> Result<CommitWatch> {
        self.refuse_inherited()?;
        commit_watch::start(self.writer.commit_listener(), self.readers.open_dedicated()?, on_commit)
    }

    pub(in crate::database) async fn prune_changes(
        &self,
        limits: RetentionLimits,
        keep_after: Option<EntryKey>,
    ) -> Result<bool> {
        self.refuse_inherited()?;
        let bounds = self.one(&BOUNDS, bounds)?;
        let Some((first, last)) = bounds.entries else { return Ok(false) };
        let step_end = first.saturating_add(PRUNE_STEP - 1);
        let too_old = |times: u32| -> Result<i64> {
            let oldest_kept = earlier(self.clock.now(), limits.age.saturating_mul(times));
            let values = [PRUNE_STEP.into(), timestamp_text(oldest_kept).into()];
            let prefix = self
                .readers
                .with_connection(|connection| connection.fetch(Caller::Service, &AGED_PREFIX, &values, optional_id))?;
            Ok(prefix.into_iter().flatten().next().unwrap_or(0))
        };
        let too_many = |times: i64| {
            let kept = i64::try_from(limits.rows).unwrap_or(i64::MAX).saturating_mul(times);
            last.saturating_sub(kept)
        };
        let mut limit = too_many(1).max(too_old(1)?);
        if let Some(keep) = keep_after {
            limit = limit.min(keep.id.max(too_many(4)).max(too_old(4)?));
        }
        let end = limit.min(step_end);
        if end < first {
            return Ok(false);
        }
        let delete = self.write(Arc::new(Principal::Service), Effect::Writes, move |transaction| {
            Box::pin(async move {
                transaction.execute(&SET_PRUNED, &[end.into()]).await?;
                transaction.execute(&DELETE_ENTRIES, &[end.into()]).await
            })
        });
        delete.await.map_err(|failed| failed.error)?;
        Ok(limit > end || end == step_end)
    }

    pub(in crate::database) async fn log_stats(&self) -> Result<LogStats> {
        let bounds = self.one(&BOUNDS, bounds)?;
        let Some((first, last)) = bounds.entries else { return Ok(LogStats::default()) };
        let oldest = self
            .readers
            .with_connection(|connection| connection.fetch(Caller::Service, &TIME_OF_ENTRY, &[first.into()], time))?;
        let retained = u64::try_from(last - first + 1).unwrap_or_default();
        Ok(LogStats { retained, oldest: oldest.first().copied(), ..LogStats::default() })
    }

    /// Runs a statement that returns one row.
    fn one<T>(&self, statement: &'static Statement, read: crate::database::row::Read<T>) -> Result<T> {
        let mut rows =
            self.readers.with_connection(|connection| connection.fetch(Caller::Service, statement, &[], read))?;
        rows.pop().ok_or_else(crate::error::Error::not_found)
    }
}

/// Reads a page of the log in one statement.
fn read_page(connection: &Connection, after: EntryKey, limit: usize) -> Result<LogPage> {
    let mut statement = connection.0.prepare_cached(READ_PAGE).map_err(translate)?;
    let mut rows = statement.query((after.id, i64::try_from(limit).unwrap_or(i64::MAX))).map_err(translate)?;
    let mut page = LogPage { entries: Vec::new(), end: after, is_last: true };
    let (mut count, mut bytes) = (0, 0);
    while let Some(row) = rows.next().map_err(translate)? {
        page.end = key(row.get(0).map_err(translate)?);
        let (entry, size) = entry_of(row);
        match entry {
            Some(entry) => page.entries.push(entry),
            None => tracing::warn!(id = page.end.id, "an entry of the change log cannot be read"),
        }
        (count, bytes) = (count + 1, bytes + size);
        if count == limit || bytes > MAX_PAGE_BYTES {
            page.is_last = false;
            break;
        }
    }
    Ok(page)
}

/// Reads an entry, and the size of its images. `None` for an entry that another program wrote in another form.
fn entry_of(row: &rusqlite::Row<'_>) -> (Option<LogEntry>, usize) {
    let texts: EntryTexts<'_> = std::array::from_fn(|index| optional_text(row, index + 3));
    let size = texts.iter().flatten().map(|text| text.len()).sum();
    let read = || {
        let (table, kind) = (optional_text(row, 1)?, optional_text(row, 2)?);
        let at = optional_text(row, 7)?.parse().unwrap_or_default();
        read_entry(key(row.get(0).ok()?), (&table, &kind), &texts, at)
    };
    (read(), size)
}

/// The text of a column; `None` for NULL.
fn optional_text<'row>(row: &'row rusqlite::Row<'_>, column: usize) -> Option<Cow<'row, str>> {
    let value = row.get_ref(column).ok()?;
    value.as_bytes_or_null().ok()?.map(String::from_utf8_lossy)
}

/// The SQL that reads the image and the context of every row of a table.
fn rows_sql(table: Table) -> String {
    let (from, context) = match table {
        Table::Fidgets => (
            "fidgets AS row",
            "(SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space \
             WHERE space.id = row.space_id)",
        ),
        Table::Files => (
            "townsquare_files AS row",
            "json_object('access', row.access, 'first_segment', row.first_segment, 'holder', \
             (SELECT user_id FROM townsquare_identities WHERE public_key = row.first_segment))",
        ),
        _ => ("", "NULL"),
    };
    let from = if from.is_empty() { format!("{} AS row", quoted(table.name())) } else { from.to_owned() };
    format!("SELECT {}, {context} FROM {from}", image_sql(table, "row"))
}

/// The SQL of the image of a row, as the triggers write it.
fn image_sql(table: Table, row: &str) -> String {
    let mut sql = String::from("json_object(");
    for (index, column) in table.columns().iter().enumerate() {
        let value = format!("{row}.\"{}\"", column.name);
        let value = match column.column_type {
            ColumnType::Uuid | ColumnType::Text | ColumnType::Timestamp => format!("CAST({value} AS TEXT)"),
            ColumnType::Integer | ColumnType::Boolean => value,
            ColumnType::Json | ColumnType::Texts => format!("json(CAST({value} AS TEXT))"),
        };
        // Writing to a String cannot fail.
        let _ = write!(sql, "{}'{}', {value}", if index == 0 { "" } else { ", " }, column.name);
    }
    sql.push(')');
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The SQL without white space and quotes around names.
    fn compact(sql: &str) -> String {
        sql.chars().filter(|character| !character.is_whitespace() && *character != '"').collect()
    }

    #[test]
    fn the_triggers_write_every_column_of_every_table() {
        let migration = compact(include_str!("../../../migrations/sqlite/0006_realtime.sql"));
        for table in Table::ALL {
            for (kind, row) in [("insert", "NEW"), ("update", "OLD"), ("delete", "OLD")] {
                let image = compact(&format!("'{}', '{kind}', {}", table.name(), image_sql(table, row)));
                assert!(migration.contains(&image), "{}, {kind}: {image}", table.name());
            }
            let new = compact(&format!(", {}", image_sql(table, "NEW")));
            assert!(migration.contains(&new), "{}: {new}", table.name());
        }
    }
}

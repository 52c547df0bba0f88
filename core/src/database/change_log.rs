//! The change log: every committed change of a row, in the order in which the feed delivers it (DESIGN 5).
//!
//! Invariant: triggers of the database write the log in the transaction of the change, so it has exactly what was
//! committed, whoever wrote it. [`Database::read_changes`] returns committed entries only, in the order of their keys, and
//! no entry with a smaller key appears later. Both engines return equal images for equal rows: uuids in lower case, times in
//! RFC 3339, UTC, with six decimal places, booleans and integers as such, JSON as the JSON itself, NULL as null.

mod cursor;
mod erasure;
mod image;
mod page;
mod position;
mod pressure;
mod size;
mod snapshot;

use std::{any::Any, collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use self::image::read_image;
pub(crate) use self::{
    cursor::CursorKey,
    image::{LoggedRow, is_erased, read_context},
    page::LogPage,
    position::{EntryKey, EntryProof, LogEnd, LogPoint, Position},
    pressure::LogPressure,
    size::{LogSize, LogStats, RetentionLimits},
    snapshot::Snapshot,
};
pub(in crate::database) use self::{
    erasure::{Erasure, ErasureSql},
    image::{EntryTexts, read_entry},
    page::PageBuilder,
};
use super::{
    Database, Engine,
    principal::{CurrentPrincipal, Principal, session_ended},
};
use crate::{
    error::{Error, ErrorKind, Result},
    model::memory_of_map,
    policy::{Column, RowImage, RowKey, Table},
};

/// The most memory of the rows that a live query begins with.
const CURRENT_ROWS_MEMORY: usize = 64 << 20;

crate::model::named! {
    /// What an entry says.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub(crate) enum EntryKind {
        Insert = "insert",
        Update = "update",
        Delete = "delete",
        /// The row did not change, but who may see it: `old` and `new` are equal, the contexts differ.
        Visibility = "visibility",
        /// A session began: sign-in. `new` has `session_id` and `user_id`.
        SessionStarted = "session_started",
        /// A session ended: sign-out, revocation, a change of the password, or its user was deleted. `old` has `session_id`
        /// and `user_id`.
        SessionEnded = "session_ended",
        /// A session got new tokens, which makes its old ones invalid. `new` has `session_id` and `user_id`.
        SessionRotated = "session_rotated",
    }

    pub(crate) const ALL;

    /// The name in the log.
    pub(crate) fn name;
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogEntry {
    pub(crate) key: EntryKey,
    pub(crate) proof: EntryProof,
    /// `Users` for entries of sessions.
    pub(crate) table: Table,
    pub(crate) kind: EntryKind,
    pub(crate) old: Option<Arc<LoggedRow>>,
    pub(crate) new: Option<Arc<LoggedRow>>,
    /// What the policy needs besides the old row, as JSON; see [`may_see`](crate::policy::may_see).
    pub(crate) old_context: Option<Box<str>>,
    /// What the policy needs besides the new row.
    pub(crate) new_context: Option<Box<str>>,
    /// When the change was made.
    pub(crate) at: Timestamp,
}

/// A row of a table as it is now, with what the policy needs besides it.
#[derive(Debug)]
pub(crate) struct CurrentRow {
    pub(crate) row: LoggedRow,
    pub(crate) context: Option<RowImage>,
}

/// What policies need of a current row: the columns of [`Table::outline`], and the context.
#[derive(Debug)]
pub(crate) struct OutlinedRow {
    pub(crate) image: RowImage,
    pub(crate) context: Option<RowImage>,
    /// The id of the last entry that deletes a row with this key; 0 for none. The entries before it are of other rows.
    pub(crate) last_deletion: i64,
}

impl OutlinedRow {
    /// `None` if the row cannot be read.
    pub(in crate::database) fn read(table: Table, image: &str, context: Option<&str>) -> Option<OutlinedRow> {
        let context = context.and_then(|text| read_context(table, text));
        Some(OutlinedRow { image: read_image(table, image)?, context, last_deletion: 0 })
    }
}

/// The rows that a live query begins with. Only the rows that its caller sees are kept, and their memory is bounded.
pub(in crate::database) struct CurrentRows<Shows> {
    table: Table,
    shows: Shows,
    rows: Vec<RowImage>,
    memory: usize,
}

impl<Shows: Fn(&CurrentRow) -> Option<bool>> CurrentRows<Shows> {
    pub(in crate::database) fn new(table: Table, shows: Shows) -> CurrentRows<Shows> {
        CurrentRows { table, shows, rows: Vec::new(), memory: 0 }
    }

    /// Keeps a row if the caller sees it. The texts are the image and the context.
    ///
    /// # Errors
    /// `TooLarge` if the rows take too much memory.
    pub(in crate::database) fn add(&mut self, image: Option<&str>, context: Option<&str>) -> Result<()> {
        let context = context.and_then(|text| read_context(self.table, text));
        let row = CurrentRow { row: LoggedRow::new(self.table, image.unwrap_or_default()), context };
        let Some(shows) = (self.shows)(&row) else {
            tracing::warn!(table = self.table.name(), "a live query left out a row that cannot be read");
            return Ok(());
        };
        if shows {
            let image = Arc::unwrap_or_clone(row.row.into_image());
            self.memory = self.memory.saturating_add(memory_of_map(&image));
            if self.memory > CURRENT_ROWS_MEMORY {
                let message = "The rows of the live query take more than 64 MiB of memory; a filter can select fewer";
                return Err(Error::new(ErrorKind::TooLarge, message));
            }
            self.rows.push(image);
        }
        Ok(())
    }

    pub(in crate::database) fn into_rows(self) -> Vec<RowImage> {
        self.rows
    }
}

/// A set of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TableSet(u8);

/// Where the log has the entries of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SessionEntries {
    /// `None` if the entry was pruned or is not in the range that was searched.
    pub(crate) started: Option<EntryKey>,
    pub(crate) ended: Option<EntryKey>,
    /// Whether the session has not ended.
    pub(crate) exists: bool,
}

impl EntryKind {
    pub(in crate::database) fn from_name(name: &str) -> Option<EntryKind> {
        EntryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the entry is of a session. Every reader gets it.
    pub(in crate::database) const fn is_of_session(self) -> bool {
        matches!(self, EntryKind::SessionStarted | EntryKind::SessionRotated | EntryKind::SessionEnded)
    }
}

impl TableSet {
    pub(crate) fn contains(self, table: Table) -> bool {
        self.0 & TableSet::bit(table) != 0
    }

    /// Whether the set contains every table of `other`.
    pub(crate) fn contains_all(self, other: TableSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether a reader with this set wants an entry.
    pub(in crate::database) fn wants(self, table: &str, kind: &str) -> bool {
        EntryKind::from_name(kind).is_some_and(EntryKind::is_of_session)
            || Table::from_name(table).is_some_and(|table| self.contains(table))
    }

    /// The names of the tables.
    #[cfg(feature = "postgres")]
    pub(in crate::database) fn names(self) -> Vec<String> {
        Table::ALL.into_iter().filter(|table| self.contains(*table)).map(|table| table.name().to_owned()).collect()
    }

    const fn bit(table: Table) -> u8 {
        1 << table as u8
    }
}

impl FromIterator<Table> for TableSet {
    fn from_iter<I: IntoIterator<Item = Table>>(tables: I) -> TableSet {
        TableSet(tables.into_iter().fold(0, |bits, table| bits | TableSet::bit(table)))
    }
}

/// What is told of each commit. It must return at once.
pub(crate) type OnCommit = Arc<dyn Fn() + Send + Sync>;

/// Tells of commits until it is dropped. A drop leaves no thread and no connection.
pub(crate) struct CommitWatch(
    #[allow(dead_code, reason = "it is held until it is dropped")] Box<dyn Any + Send + Sync>,
);

impl LogEntry {
    /// The point after the entry.
    pub(crate) fn point(&self) -> LogPoint {
        LogPoint { after: self.key, stands_on: self.proof }
    }

    /// The primary key of the row; `None` for entries of sessions.
    pub(crate) fn row_key(&self) -> Option<RowKey> {
        let row = self.new.as_deref().or(self.old.as_deref()).filter(|_| !self.kind.is_of_session())?;
        self.table.key_of(row.judged()?.as_ref())
    }
}

impl CommitWatch {
    /// A watch that lasts as long as `guard`.
    pub(crate) fn new(guard: impl Any + Send + Sync) -> CommitWatch {
        CommitWatch(Box::new(guard))
    }
}

crate::model::opaque!(CommitWatch);

/// The error for a feed without changes, because nothing writes the log.
pub(crate) fn capture_is_off() -> Error {
    Error::unavailable("The change feed is switched off")
}

impl Database {
    /// Whether the triggers write the log, and the key of the database's cursors.
    pub(crate) async fn capture_state(&self) -> Result<(bool, CursorKey)> {
        on_engine!(self, engine => engine.capture_state().await)
    }

    /// Switches the triggers on that write the log. When this returns, every transaction that commits later writes its changes
    /// to the log.
    pub(crate) async fn start_capture(&self) -> Result<()> {
        on_engine!(self, engine => engine.switch_capture(true).await)
    }

    /// Switches the triggers off that write the log, and empties it. Every position in it expires.
    pub(crate) async fn stop_capture(&self) -> Result<()> {
        on_engine!(self, engine => engine.switch_capture(false).await)
    }

    /// The position after the last commit.
    ///
    /// # Errors
    /// `Unavailable` if capture is off.
    pub(crate) async fn head(&self) -> Result<Position> {
        let head = on_engine!(self, engine => engine.head().await)?;
        // Afterwards: a position that is read before capture is switched off expires.
        if self.capture_state().await?.0 { Ok(head) } else { Err(capture_is_off()) }
    }

    /// How far the log is.
    pub(crate) async fn log_end(&self) -> Result<LogEnd> {
        on_engine!(self, engine => engine.log_end().await)
    }

    /// Reads the next entries after `after`, in the order of the feed. Rows of tables that are not in `tables` are not read.
    ///
    /// # Errors
    /// `CursorExpired` if entries after `after` have been pruned, and if `after` is of another history of the database;
    /// `Unavailable` on a server in recovery.
    pub(crate) async fn read_changes(&self, after: LogPoint, tables: TableSet) -> Result<LogPage> {
        on_engine!(self, engine => engine.read_changes(after, None, tables).await)
    }

    /// As [`read_changes`](Database::read_changes), for a reader that has no use for entries after `end`: a key that
    /// [`read_changes`](Database::read_changes) has reached or [`head`](Database::head) returned. `is_last` of the page means
    /// that no more come up to `end`. The page may have entries after it.
    ///
    /// # Errors
    /// Those of [`read_changes`](Database::read_changes).
    pub(crate) async fn read_changes_up_to(&self, after: LogPoint, end: EntryKey, tables: TableSet) -> Result<LogPage> {
        on_engine!(self, engine => engine.read_changes(after, Some(end), tables).await)
    }

    /// How long a reader is to wait between two reads while several transactions write.
    pub(crate) fn pause_between_reads(&self) -> Duration {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => Duration::ZERO,
            // A read looks at the locks of all writers, which holds them up.
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Duration::from_millis(4),
        }
    }

    /// Reads the rows of a table for which `shows` returns true, and the position of the snapshot in which they were read. No
    /// policy applies. It may leave out rows whose image does not have the text of `equality`. `shows` returns `None` for a
    /// row that cannot be read.
    ///
    /// # Errors
    /// `TooLarge` if the rows take more than 64 MiB of memory.
    pub(crate) async fn rows_and_position(
        &self,
        table: Table,
        equality: Option<(Column, &str)>,
        shows: impl Fn(&CurrentRow) -> Option<bool> + Send + 'static,
    ) -> Result<(Vec<RowImage>, Position)> {
        on_engine!(self, engine => engine.rows_and_position(table, equality, CurrentRows::new(table, shows)).await)
    }

    /// Reads the columns of [`Table::outline`] of the current rows with these keys. No policy applies.
    pub(crate) async fn rows_with_keys(&self, table: Table, keys: Vec<RowKey>) -> Result<HashMap<RowKey, OutlinedRow>> {
        if keys.is_empty() {
            return Ok(HashMap::new());
        }
        let rows = on_engine!(self, engine => engine.rows_with_keys(table, &keys).await)?;
        Ok(rows.into_iter().filter_map(|row| Some((table.key_of(&row.image)?, row))).collect())
    }

    /// Calls `on_commit` after each commit of any process, until the watch is dropped. It may call too often. When this
    /// returns, no later commit is missed.
    pub(crate) async fn watch_commits(&self, on_commit: OnCommit) -> Result<CommitWatch> {
        on_engine!(self, engine => engine.watch_commits(on_commit).await)
    }

    /// Deletes some thousand of the oldest entries beyond the limits in one short write, but none after `keep_after` as long as the log is
    /// within four times its limits. Returns true if there is more to delete. On PostgreSQL it does nothing while another client deletes.
    pub(crate) async fn prune_changes(&self, limits: RetentionLimits, keep_after: Option<EntryKey>) -> Result<bool> {
        on_engine!(self, engine => engine.prune_changes(limits, keep_after).await)
    }

    /// The size of the log, about as [`prune_changes`](Database::prune_changes) would count it. Cheap.
    pub(crate) async fn log_size(&self) -> Result<LogSize> {
        on_engine!(self, engine => engine.log_size().await)
    }

    /// How long to wait between two looks at the size of the log while the client writes.
    pub(crate) fn pause_between_sizes(&self) -> Duration {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => Duration::from_millis(20),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Duration::from_millis(50),
        }
    }

    /// What the writes of this client and its pruning tell each other.
    pub(crate) fn log_pressure(&self) -> Arc<LogPressure> {
        Arc::clone(&self.log_pressure)
    }

    /// Makes the next calls of [`prune_changes`](Database::prune_changes) count the bytes of the log again, because entries may
    /// have changed their size after they were counted.
    pub(crate) async fn recount_changes(&self) -> Result<()> {
        on_engine!(self, engine => engine.recount_changes().await)
    }

    /// The figures of the log; zeros if capture was never on.
    pub(crate) async fn log_stats(&self) -> Result<LogStats> {
        on_engine!(self, engine => engine.log_stats().await)
    }

    /// Finds the entries of a session after `after`, also of transactions that the feed still waits for.
    pub(crate) async fn session_entries(&self, session_id: Uuid, after: EntryKey) -> Result<SessionEntries> {
        on_engine!(self, engine => engine.session_entries(session_id, after).await)
    }

    /// Checks that a handle may still act for a session: it holds the session's access token.
    ///
    /// # Errors
    /// `Unauthorized` if the session has ended, if its tokens were replaced and the handle does not have the new ones, if the
    /// access token has expired, and if the handle has signed out or acts for another session.
    pub(crate) async fn check_session(&self, handle: &CurrentPrincipal, session_id: Uuid) -> Result<()> {
        let mut principal = handle.valid_principal(self.clock.now()).await?;
        loop {
            let Principal::User(credential) = &*principal else { return Err(session_ended()) };
            if credential.session_id != session_id {
                return Err(session_ended());
            }
            let values = [session_id.into(), credential.access_hash.as_str().into()];
            let found: Option<Uuid> = self.service().fetch_optional(&HAS_SESSION, &values, |row| row.get(0)).await?;
            if found.is_some() {
                return Ok(());
            }
            principal = handle.renewed_principal(&principal, session_ended()).await?;
        }
    }

    /// The position of a cursor that a program stored.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is no cursor; `CursorExpired` for one of another incarnation, for one that stands on an entry
    /// which the log does not have, and for one with following entries that have been pruned.
    pub(crate) async fn position_of(&self, cursor: &str, key: &CursorKey) -> Result<Position> {
        let position = key.position(cursor)?;
        self.check_position(&position).await?;
        Ok(position)
    }

    /// Checks that the log has the entries that a position stands on, and what follows them.
    ///
    /// # Errors
    /// `CursorExpired` if it has not.
    pub(crate) async fn check_position(&self, position: &Position) -> Result<()> {
        on_engine!(self, engine => engine.check_position(position).await)
    }
}

pub(in crate::database) static CAPTURE_STATE: super::Statement = super::Statement::new(
    "SELECT feed.is_on, database.cursor_key, database.incarnation
     FROM townsquare.feed AS feed, townsquare.database AS database",
);

pub(in crate::database) fn read_capture_state(row: &super::Row<'_>) -> Result<(bool, CursorKey)> {
    Ok((row.get(0)?, CursorKey::new(&row.get::<String>(1)?, &row.get::<String>(2)?)))
}

static HAS_SESSION: super::Statement =
    super::Statement::new("SELECT id FROM townsquare.sessions WHERE id = $1 AND access_hash = $2");

/// The error for a position after which entries are missing.
pub(crate) fn pruned() -> Error {
    Error::cursor_expired("The change feed no longer has what follows the cursor")
}

/// The error for a position in a log that does not have the entry on which the position stands.
pub(in crate::database) fn other_history() -> Error {
    Error::cursor_expired("The cursor is of another history of the database, which has lost changes since")
}

/// The id of the session that an entry of a session is about.
pub(crate) fn session_of(entry: &LogEntry) -> Option<Uuid> {
    let row = match entry.kind {
        EntryKind::SessionStarted | EntryKind::SessionRotated => entry.new.as_deref(),
        EntryKind::SessionEnded => entry.old.as_deref(),
        _ => None,
    };
    let columns: RowImage = serde_json::from_str(row?.text()).ok()?;
    columns.get("session_id").and_then(Json::as_str).and_then(|id| Uuid::try_parse(id).ok())
}

//! The change log: every committed change of a row, in the order in which the feed delivers it (DESIGN 5).
//!
//! Invariant: triggers of the database write the log in the transaction of the change, so it has exactly what was
//! committed, whoever wrote it. [`Database::read_changes`] returns committed entries only, in the order of their keys, and
//! no entry with a smaller key appears later. Both engines return equal images for equal rows: uuids in lower case, times in
//! RFC 3339, UTC, with six decimal places, booleans and integers as such, JSON as the JSON itself, NULL as null.

mod cursor;
mod image;
mod snapshot;

use std::{any::Any, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::Value as Json;
use uuid::Uuid;

use self::cursor::parse_cursor;
pub(in crate::database) use self::image::{EntryTexts, read_context, read_entry, read_image};
pub(crate) use self::{cursor::cursor_text, snapshot::Snapshot};
use super::{Database, Engine};
use crate::{
    error::{Error, Result},
    policy::{RowImage, Table},
};

/// The most entries that a reader takes at once.
pub(crate) const PAGE: usize = 256;

/// The place of an entry in the log. The order of keys is the order of the feed.
///
/// PostgreSQL takes an entry's id while its transaction holds the lock of the changed row. So the ids of one row's changes
/// have the order of the changes, which the ids of their transactions need not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct EntryKey {
    /// The number of the row in the log.
    pub(crate) id: i64,
    /// PostgreSQL: the id of the transaction. SQLite: 0, because its transactions write one after another.
    pub(crate) transaction: u64,
}

/// A position in the log: after some entries and before all others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Position {
    /// Every entry up to this key is before the position.
    pub(crate) after: EntryKey,
    /// PostgreSQL: the entries of transactions that this snapshot sees are before the position, too. `advance_to` drops it
    /// when it says nothing more.
    pub(crate) seen: Option<Arc<Snapshot>>,
}

/// What an entry says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum EntryKind {
    Insert,
    Update,
    Delete,
    /// The row did not change, but who may see it: `old` and `new` are equal, the contexts differ.
    Visibility,
    /// A session began: sign-in. `new` has `session_id` and `user_id`.
    SessionStarted,
    /// A session ended: sign-out, revocation, a change of the password, or its user was deleted. `old` has `session_id`
    /// and `user_id`.
    SessionEnded,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogEntry {
    pub(crate) key: EntryKey,
    /// `Users` for entries of sessions.
    pub(crate) table: Table,
    pub(crate) kind: EntryKind,
    pub(crate) old: Option<Arc<RowImage>>,
    pub(crate) new: Option<Arc<RowImage>>,
    /// What the policy needs besides the old row; see [`may_see`](crate::policy::may_see).
    pub(crate) old_context: Option<RowImage>,
    /// What the policy needs besides the new row.
    pub(crate) new_context: Option<RowImage>,
    /// When the change was made.
    pub(crate) at: Timestamp,
}

/// A row of a table as it is now, with what the policy needs besides it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CurrentRow {
    pub(crate) image: RowImage,
    pub(crate) context: Option<RowImage>,
}

/// A part of the log, read in one snapshot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogPage {
    /// At most as many entries as asked for.
    pub(crate) entries: Vec<LogEntry>,
    /// The key up to which the log was read. It can be after the last of `entries`, because an entry that cannot be read is
    /// left out.
    pub(crate) end: EntryKey,
    /// True if the log has nothing after `end` yet.
    pub(crate) is_last: bool,
}

/// How much of the log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RetentionLimits {
    pub(crate) age: Duration,
    pub(crate) rows: u64,
}

/// The figures of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LogStats {
    /// The number of entries; it may be an estimate.
    pub(crate) retained: u64,
    pub(crate) oldest: Option<Timestamp>,
    /// How long committed entries have been held back by a transaction that stays open (PostgreSQL).
    pub(crate) lag: Duration,
}

/// Where the log has the entries of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SessionEntries {
    /// `None` if the entry was pruned or is not in the range that was searched.
    pub(crate) started: Option<EntryKey>,
    pub(crate) ended: Option<EntryKey>,
    /// Whether the session has not ended.
    pub(crate) exists: bool,
}

/// The range of positions that the log can serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogBounds {
    /// The key of the last entry that was pruned; the smallest key if none was.
    pub(crate) pruned: EntryKey,
    /// No entry after this key exists yet.
    pub(crate) end: EntryKey,
}

impl EntryKind {
    pub(crate) const ALL: [EntryKind; 6] = [
        EntryKind::Insert,
        EntryKind::Update,
        EntryKind::Delete,
        EntryKind::Visibility,
        EntryKind::SessionStarted,
        EntryKind::SessionEnded,
    ];

    /// The name in the log.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            EntryKind::Insert => "insert",
            EntryKind::Update => "update",
            EntryKind::Delete => "delete",
            EntryKind::Visibility => "visibility",
            EntryKind::SessionStarted => "session_started",
            EntryKind::SessionEnded => "session_ended",
        }
    }

    pub(in crate::database) fn from_name(name: &str) -> Option<EntryKind> {
        EntryKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What is told of each commit. It must return at once.
pub(crate) type OnCommit = Arc<dyn Fn() + Send + Sync>;

/// Tells of commits until it is dropped. A drop leaves no thread and no connection.
pub(crate) struct CommitWatch(
    #[allow(dead_code, reason = "it is held until it is dropped")] Box<dyn Any + Send + Sync>,
);

impl EntryKey {
    /// Before every entry.
    pub(crate) const START: EntryKey = EntryKey { id: 0, transaction: 0 };

    /// Whether a change of caller at this key counts for an entry: the entry is after it, and in another transaction. A
    /// user whose session ends with the user's own deletion still gets what that deletes.
    pub(crate) fn counts_for(self, entry: EntryKey) -> bool {
        self < entry && (self.transaction == 0 || self.transaction != entry.transaction)
    }
}

impl Position {
    /// The position after the entry with this key and all before it.
    #[cfg(any(feature = "sqlite", test))]
    pub(crate) fn after(key: EntryKey) -> Position {
        Position { after: key, seen: None }
    }

    /// Moves the position behind the entry with this key, which is after it.
    pub(crate) fn advance_to(&mut self, key: EntryKey) {
        self.after = key;
        self.seen.take_if(|snapshot| key.id >= snapshot.last_id);
    }

    /// Whether the entry is after this position: it is still to be delivered.
    pub(crate) fn includes(&self, key: &EntryKey) -> bool {
        *key > self.after && !self.seen.as_ref().is_some_and(|snapshot| snapshot.sees(key.transaction))
    }
}

impl CommitWatch {
    /// A watch that lasts as long as `guard`.
    pub(crate) fn new(guard: impl Any + Send + Sync) -> CommitWatch {
        CommitWatch(Box::new(guard))
    }
}

impl fmt::Debug for CommitWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitWatch").finish_non_exhaustive()
    }
}

/// Runs a method of the engine.
macro_rules! on_engine {
    ($database:expr, $engine:ident => $call:expr) => {
        match &$database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite($engine) => $call,
            #[cfg(feature = "postgres")]
            Engine::Postgres($engine) => $call,
        }
    };
}

impl Database {
    /// Switches the triggers on that write the log, for good, and returns the incarnation id of the database. When this
    /// returns, every transaction that commits later writes its changes to the log.
    pub(crate) async fn start_capture(&self) -> Result<Arc<str>> {
        on_engine!(self, engine => engine.start_capture().await)
    }

    /// The position after the last commit. Capture is on.
    pub(crate) async fn head(&self) -> Result<Position> {
        on_engine!(self, engine => engine.head().await)
    }

    /// Reads at most `limit` entries after `after`, in the order of the feed.
    ///
    /// # Errors
    /// `CursorExpired` if entries after `after` have been pruned.
    pub(crate) async fn read_changes(&self, after: EntryKey, limit: usize) -> Result<LogPage> {
        on_engine!(self, engine => engine.read_changes(after, limit).await)
    }

    /// Reads at most [`PAGE`] entries after `after`, for a reader that has no use for those after `end`: a key that
    /// [`read_changes`](Database::read_changes) has reached or [`head`](Database::head) returned. `is_last` of the page means
    /// that no more come up to `end`. The page may have entries after it.
    ///
    /// # Errors
    /// `CursorExpired` if entries after `after` have been pruned.
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "SQLite reads a page of any end"))]
    pub(crate) async fn read_changes_up_to(&self, after: EntryKey, end: EntryKey) -> Result<LogPage> {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(engine) => engine.read_changes(after, PAGE).await,
            // Looks at no locks: no transaction that runs will write an entry before `end`.
            #[cfg(feature = "postgres")]
            Engine::Postgres(engine) => engine.read_changes_up_to(after, end).await,
        }
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

    /// Reads the rows of a table, or those whose column equals a value, and the position of the snapshot in which they were
    /// read. No policy applies.
    pub(crate) async fn rows_and_position(
        &self,
        table: Table,
        equality: Option<(&'static str, &str)>,
    ) -> Result<(Vec<CurrentRow>, Position)> {
        on_engine!(self, engine => engine.rows_and_position(table, equality).await)
    }

    /// Calls `on_commit` after each commit of any process, until the watch is dropped. It may call too often. When this
    /// returns, no later commit is missed.
    pub(crate) async fn watch_commits(&self, on_commit: OnCommit) -> Result<CommitWatch> {
        on_engine!(self, engine => engine.watch_commits(on_commit).await)
    }

    /// Deletes a small number of the oldest entries beyond the limits, but none after `keep_after` as long as the log is
    /// within four times its limits. Returns true if there is more to delete.
    pub(crate) async fn prune_changes(&self, limits: RetentionLimits, keep_after: Option<EntryKey>) -> Result<bool> {
        on_engine!(self, engine => engine.prune_changes(limits, keep_after).await)
    }

    /// The figures of the log; zeros if capture was never on.
    pub(crate) async fn log_stats(&self) -> Result<LogStats> {
        on_engine!(self, engine => engine.log_stats().await)
    }

    /// The range of positions that the log can serve.
    pub(crate) async fn log_bounds(&self) -> Result<LogBounds> {
        on_engine!(self, engine => engine.log_bounds().await)
    }

    /// Finds the entries of a session after `after`, which include those of transactions that the feed still waits for.
    pub(crate) async fn session_entries(&self, session_id: Uuid, after: EntryKey) -> Result<SessionEntries> {
        on_engine!(self, engine => engine.session_entries(session_id, after).await)
    }

    /// Whether the session has not ended.
    pub(crate) async fn has_session(&self, session_id: Uuid) -> Result<bool> {
        let found: Option<Uuid> =
            self.service().fetch_optional(&HAS_SESSION, &[session_id.into()], |row| row.get(0)).await?;
        Ok(found.is_some())
    }

    /// The position of a cursor that a program stored.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is no cursor; `CursorExpired` for one of another incarnation, for one whose following
    /// entries have been pruned, and for one that is after every entry of this database.
    pub(crate) async fn position_of(&self, cursor: &str, incarnation: &str) -> Result<Position> {
        let position = parse_cursor(cursor, incarnation)?;
        let bounds = self.log_bounds().await?;
        if position.after < bounds.pruned {
            return Err(pruned());
        }
        if position.after > bounds.end {
            return Err(Error::cursor_expired("The cursor is after every change of this database"));
        }
        Ok(position)
    }
}

static HAS_SESSION: super::Statement = super::Statement::new("SELECT id FROM townsquare.sessions WHERE id = $1");

/// The error for a position after which entries are missing.
pub(in crate::database) fn pruned() -> Error {
    Error::cursor_expired("The change feed no longer has what follows the cursor")
}

/// The id of the session that an entry of a session is about.
pub(crate) fn session_of(entry: &LogEntry) -> Option<Uuid> {
    let image = match entry.kind {
        EntryKind::SessionStarted => entry.new.as_deref(),
        EntryKind::SessionEnded => entry.old.as_deref(),
        _ => None,
    };
    image.and_then(|image| image.get("session_id")).and_then(Json::as_str).and_then(|id| Uuid::try_parse(id).ok())
}

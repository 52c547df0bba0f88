//! The change log of a SQLite database.

use std::sync::Arc;

use super::Sqlite;
use crate::{
    database::change_log::{
        CommitWatch, CurrentRow, EntryKey, LogBounds, LogPage, LogStats, OnCommit, Position, RetentionLimits,
    },
    error::{Error, ErrorKind, Result},
    policy::Table,
};

fn missing<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Internal, "The change log of SQLite does not exist yet"))
}

#[allow(clippy::unused_async, reason = "the skeleton")]
impl Sqlite {
    pub(in crate::database) async fn start_capture(&self) -> Result<Arc<str>> {
        missing()
    }
    pub(in crate::database) async fn head(&self) -> Result<Position> {
        missing()
    }
    pub(in crate::database) async fn read_changes(&self, _after: EntryKey, _limit: usize) -> Result<LogPage> {
        missing()
    }
    pub(in crate::database) async fn rows_and_position(
        &self,
        _table: Table,
        _equality: Option<(&'static str, &str)>,
    ) -> Result<(Vec<CurrentRow>, Position)> {
        missing()
    }
    pub(in crate::database) async fn watch_commits(&self, _on_commit: OnCommit) -> Result<CommitWatch> {
        missing()
    }
    pub(in crate::database) async fn prune_changes(
        &self,
        _limits: RetentionLimits,
        _keep_after: Option<EntryKey>,
    ) -> Result<bool> {
        missing()
    }
    pub(in crate::database) async fn log_stats(&self) -> Result<LogStats> {
        missing()
    }
    pub(in crate::database) async fn log_bounds(&self) -> Result<LogBounds> {
        missing()
    }
}

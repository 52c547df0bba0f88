//! Brings a SQLite database to this library's version, in one transaction.
//!
//! Invariant: a database is at a whole version or untouched. Whoever comes second waits for the lock and then finds
//! the work done; a database from the future is refused.

use rusqlite::{Connection, TransactionBehavior};

use super::{connection::timestamp_text, errors::translate};
use crate::{
    clock::Clock,
    error::{Error, Result},
};

/// The migrations in order; a migration's version is its place, counted from 1.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_catalog", include_str!("../../../migrations/sqlite/0001_catalog.sql")),
    ("0002_tables", include_str!("../../../migrations/sqlite/0002_tables.sql")),
    ("0003_auth", include_str!("../../../migrations/sqlite/0003_auth.sql")),
];

pub(super) fn run(connection: &mut Connection, application_id: i64, clock: &Clock) -> Result<()> {
    if version(connection).map_err(translate)? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(translate)?;
    let done = version(&transaction).map_err(translate)?.unwrap_or(0);
    let missing = MIGRATIONS.get(done..).ok_or_else(|| newer(done))?;
    let apply = || -> rusqlite::Result<()> {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {application_id};
             CREATE TABLE IF NOT EXISTS townsquare_migrations (
                 version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
             );"
        ))?;
        for (version, (name, sql)) in (done + 1..).zip(missing) {
            transaction.execute_batch(sql)?;
            transaction.execute(
                "INSERT INTO townsquare_migrations (version, name, applied_at) VALUES (?1, ?2, ?3)",
                (version as i64, name, timestamp_text(clock.now())),
            )?;
        }
        Ok(())
    };
    apply().map_err(translate)?;
    transaction.commit().map_err(translate)
}

/// Refuses a database that a newer library wrote.
pub(super) fn refuse_newer(connection: &Connection) -> Result<()> {
    match version(connection).map_err(translate)? {
        Some(done) if done > MIGRATIONS.len() => Err(newer(done)),
        _ => Ok(()),
    }
}

fn newer(done: usize) -> Error {
    Error::config(format!(
        "The database is at version {done}, written by a newer townsquare; this one knows {}",
        MIGRATIONS.len()
    ))
}

/// The newest migration applied; `None` in a new file.
fn version(connection: &Connection) -> rusqlite::Result<Option<usize>> {
    let exists = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'townsquare_migrations'";
    if connection.query_row(exists, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let newest = connection
        .query_row("SELECT max(version) FROM townsquare_migrations", [], |row| row.get::<_, Option<i64>>(0))?;
    Ok(newest.map(|version| usize::try_from(version).unwrap_or(usize::MAX)))
}

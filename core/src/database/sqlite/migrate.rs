//! The migrations of a SQLite database.
//!
//! Invariant: all missing migrations are applied in one transaction, or none. A second process that opens the database
//! meanwhile waits for the lock and then finds the migrations applied. A database of a newer version is refused.

use rusqlite::{Connection, TransactionBehavior};

use super::{connection::timestamp_text, errors::translate};
use crate::{
    clock::Clock,
    error::{Error, Result},
};

/// The migrations in order. A migration's version is its position, counted from 1.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_catalog", include_str!("../../../migrations/sqlite/0001_catalog.sql")),
    ("0002_tables", include_str!("../../../migrations/sqlite/0002_tables.sql")),
    ("0003_auth", include_str!("../../../migrations/sqlite/0003_auth.sql")),
];

/// Applies the missing migrations. A new file becomes a database with this `application_id`.
///
/// # Errors
/// `Config` if a newer version of the library wrote the database.
pub(super) fn run(connection: &mut Connection, application_id: i64, clock: &Clock) -> Result<()> {
    if version(connection).map_err(translate)? == Some(MIGRATIONS.len()) {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(translate)?;
    let applied = version(&transaction).map_err(translate)?.unwrap_or(0);
    let missing = MIGRATIONS.get(applied..).ok_or_else(|| newer(applied))?;
    let apply = || -> rusqlite::Result<()> {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {application_id};
             CREATE TABLE IF NOT EXISTS townsquare_migrations (
                 version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
             );"
        ))?;
        for (version, (name, sql)) in (applied + 1..).zip(missing) {
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

/// Returns `Config` if a newer version of the library wrote the database.
pub(super) fn refuse_newer(connection: &Connection) -> Result<()> {
    match version(connection).map_err(translate)? {
        Some(version) if version > MIGRATIONS.len() => Err(newer(version)),
        _ => Ok(()),
    }
}

fn newer(version: usize) -> Error {
    Error::config(format!(
        "The database is at version {version}, written by a newer townsquare; this one knows {}",
        MIGRATIONS.len()
    ))
}

/// The version of the newest applied migration; `None` for a new file.
fn version(connection: &Connection) -> rusqlite::Result<Option<usize>> {
    let exists = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'townsquare_migrations'";
    if connection.query_row(exists, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let newest = connection
        .query_row("SELECT max(version) FROM townsquare_migrations", [], |row| row.get::<_, Option<i64>>(0))?;
    Ok(newest.map(|version| usize::try_from(version).unwrap_or(usize::MAX)))
}

//! The migrations of a SQLite database.
//!
//! Invariant: all missing migrations and triggers are applied in one transaction, or none. A second process that opens the database
//! meanwhile waits for the lock and then finds the migrations applied. A database of a newer version, or of another build of
//! this version, is refused.

use rusqlite::{Connection, TransactionBehavior};

use super::{capture, errors::translate};
use crate::{
    clock::Clock,
    database::migration::{self, AppliedMigration, SQLITE as MIGRATIONS},
    error::{Error, Result},
    model::{MigrationPlan, timestamp_text},
};

/// Returns the version of a database; 0 for a new one.
///
/// # Errors
/// `Config` if the database needs a newer version of the library, or if another build of this version made it.
pub(super) fn version(connection: &Connection) -> Result<usize> {
    migration::compare(MIGRATIONS, &applied(connection).map_err(translate)?)
}

/// Returns the error of an `open` that may not migrate, if a database at `version` needs it.
///
/// # Errors
/// Those of SQLite.
pub(super) fn must_not_migrate(connection: &Connection, version: usize) -> Result<Option<Error>> {
    let message = "The triggers of the database are not those of this library";
    let is_complete = is_complete(connection, version)?;
    let missing = migration::must_not_migrate(MIGRATIONS, version);
    Ok(missing.or_else(|| (!is_complete).then(|| Error::not_migrated(message))))
}

/// Whether a database at `version` needs no change. A newer library keeps its own triggers.
fn is_complete(connection: &Connection, version: usize) -> Result<bool> {
    let is_newer = version > MIGRATIONS.len();
    Ok(is_newer || version == MIGRATIONS.len() && capture::is_installed(connection).map_err(translate)?)
}

/// What [`run`] would do to a database at `version`.
///
/// # Errors
/// Those of SQLite.
pub(super) fn plan(connection: &Connection, version: usize) -> Result<MigrationPlan> {
    Ok(migration::plan(MIGRATIONS, version, is_complete(connection, version)?))
}

/// Applies the missing migrations and makes the triggers of the change log. A new file becomes a database with this `application_id`.
///
/// # Errors
/// Those of [`version`].
pub(super) fn run(connection: &mut Connection, application_id: i64, clock: &Clock) -> Result<()> {
    if is_complete(connection, version(connection)?)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(translate)?;
    let applied = version(&transaction)?;
    if is_complete(&transaction, applied)? {
        return Ok(());
    }
    let apply = || -> rusqlite::Result<()> {
        transaction.execute_batch(&format!(
            "PRAGMA application_id = {application_id};
             CREATE TABLE IF NOT EXISTS townsquare_migrations (
                 version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL,
                 minimum_version INTEGER NOT NULL, checksum TEXT
             );"
        ))?;
        for (version, migration) in (1..).zip(MIGRATIONS).skip(applied) {
            transaction.execute_batch(migration.sql)?;
            transaction.execute(
                "INSERT INTO townsquare_migrations (version, name, applied_at, minimum_version, checksum)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                (
                    version as i64,
                    migration.name,
                    timestamp_text(clock.now()),
                    migration.minimum_version as i64,
                    migration.checksum(),
                ),
            )?;
        }
        capture::install(&transaction)
    };
    apply().map_err(translate)?;
    transaction.commit().map_err(translate)
}

/// Returns the SQL that makes a copy a database of its own. `shares_store` says whether its objects are in the store of the
/// original; otherwise the first client records the id of its store.
pub(super) fn change_identity(shares_store: bool) -> String {
    // The signed URLs of the original are not valid on the copy.
    format!(
        "UPDATE townsquare_database SET incarnation = lower(hex(randomblob(16))), url_key = lower(hex(randomblob(32))),
            place = '', cursor_key = lower(hex(randomblob(32))), {}",
        if shares_store { "owns_store = 0" } else { "store_id = ''" }
    )
}

/// The migrations of a database, in order; none for a new file.
pub(super) fn applied(connection: &Connection) -> rusqlite::Result<Vec<AppliedMigration>> {
    // A query, because another process may have created the table after this connection read the schema.
    let exists = "SELECT count(*) FROM sqlite_schema WHERE name = 'townsquare_migrations'";
    if connection.query_row(exists, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Vec::new());
    }
    let select = "SELECT version, name, minimum_version, checksum FROM townsquare_migrations ORDER BY version";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(AppliedMigration {
            version: row.get(0)?,
            name: row.get(1)?,
            minimum_version: row.get(2)?,
            checksum: row.get(3)?,
        })
    };
    connection.prepare(select)?.query_map([], read)?.collect()
}

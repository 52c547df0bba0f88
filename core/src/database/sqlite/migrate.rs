//! The migrations of a SQLite database.
//!
//! Invariant: all missing migrations and triggers are applied in one transaction, or none. A second process that opens the database
//! meanwhile waits for the lock and then finds the migrations applied. A database of a newer version, or of another build of
//! this version, is refused.

use rusqlite::{Connection, TransactionBehavior};

use super::{capture, connection::timestamp_text, errors::translate};
use crate::{
    clock::Clock,
    database::migration::{self, AppliedMigration, Migration},
    error::{Error, Result},
};

macro_rules! migrations {
    ($($name:literal needs $minimum_version:literal;)*) => {
        &[$(Migration {
            name: $name,
            sql: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
            minimum_version: $minimum_version,
        }),*]
    };
}

/// The engines share the numbers in the names; 0021 is another migration on each. PostgreSQL alone has 0009, 0012, 0019 and 0024. No
/// migration has the numbers 0014, 0016 and 0022. The version of a migration is its position, not its number.
const MIGRATIONS: &[Migration] = migrations! {
    "0001_catalog" needs 1;
    "0002_tables" needs 2;
    "0003_auth" needs 3;
    "0004_reliability" needs 4;
    "0005_files" needs 4;
    "0006_realtime" needs 4;
    "0007_file_store" needs 4;
    "0008_discovery" needs 4;
    "0010_credentials" needs 4;
    "0011_feed_history" needs 4;
    "0013_checksums" needs 4;
    "0015_copies" needs 4;
    "0017_refresh_nonce" needs 4;
    "0018_space_ids" needs 4;
    "0020_url_generations" needs 4;
    "0021_known_clients" needs 4;
    "0023_log_size" needs 4;
};

/// The version that added the column `minimum_version`. Older databases work with a library of their version only.
const FIRST_WITH_MINIMUM: usize = 4;

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
    if version < MIGRATIONS.len() {
        return Ok(Some(migration::must_not_migrate(MIGRATIONS, version)));
    }
    Ok((!is_complete(connection, version)?).then(|| {
        Error::config("Option migrate is false, and the triggers of the database are not those of this library")
    }))
}

/// Whether a database at `version` needs no change. A newer library keeps its own triggers.
fn is_complete(connection: &Connection, version: usize) -> Result<bool> {
    let is_newer = version > MIGRATIONS.len();
    Ok(is_newer || version == MIGRATIONS.len() && capture::is_installed(connection).map_err(translate)?)
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
                 version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL
             );"
        ))?;
        for (version, migration) in (1..).zip(MIGRATIONS).skip(applied) {
            transaction.execute_batch(migration.sql)?;
            transaction.execute(
                "INSERT INTO townsquare_migrations (version, name, applied_at) VALUES (?1, ?2, ?3)",
                (version as i64, migration.name, timestamp_text(clock.now())),
            )?;
            if version >= FIRST_WITH_MINIMUM {
                transaction.execute(
                    "UPDATE townsquare_migrations SET minimum_version = ?2 WHERE version = ?1",
                    (version as i64, migration.minimum_version as i64),
                )?;
            }
        }
        // Also for migrations that were applied before the column existed.
        for (version, migration) in (1_i64..).zip(MIGRATIONS) {
            transaction.execute(
                "UPDATE townsquare_migrations SET checksum = ?2 WHERE version = ?1 AND checksum IS NULL",
                (version, migration.checksum()),
            )?;
        }
        capture::install(&transaction)
    };
    apply().map_err(translate)?;
    transaction.commit().map_err(translate)
}

/// The columns that make a copy a database of its own, each with its new value.
const IDENTITY: [(&str, &str); 4] = [
    ("incarnation", "lower(hex(randomblob(16)))"),
    // The signed URLs of the original are not valid on the copy.
    ("url_key", "lower(hex(randomblob(32)))"),
    ("place", "''"),
    ("cursor_key", "lower(hex(randomblob(32)))"),
];

/// The further column of a copy with its objects in another store. The first client records the id of that store.
const OTHER_STORE: (&str, &str) = ("store_id", "''");

/// The further column of a copy with its objects in the store of the original.
const SAME_STORE: (&str, &str) = ("owns_store", "0");

/// Returns the SQL that makes a copy a database of its own. The migrations give an older copy the columns that it lacks.
/// `shares_store` says whether its objects are in the store of the original.
pub(super) fn change_identity(connection: &Connection, shares_store: bool) -> Result<String> {
    let columns = "SELECT count(*) FROM pragma_table_info('townsquare_database') WHERE name = ?1";
    let has = |column: &str| -> Result<bool> {
        Ok(connection.query_row(columns, [column], |row| row.get::<_, i64>(0)).map_err(translate)? == 1)
    };
    // An older copy cannot say that the store is not its own, so it forgets the store.
    let store = if shares_store && has(SAME_STORE.0)? { SAME_STORE } else { OTHER_STORE };
    let mut changes = Vec::new();
    for (column, value) in IDENTITY.into_iter().chain([store]) {
        if has(column)? {
            changes.push(format!("{column} = {value}"));
        }
    }
    Ok(if changes.is_empty() {
        String::new()
    } else {
        format!("UPDATE townsquare_database SET {}", changes.join(", "))
    })
}

/// The migrations of a database, in order; none for a new file.
fn applied(connection: &Connection) -> rusqlite::Result<Vec<AppliedMigration>> {
    let mut columns = connection.prepare("SELECT name FROM pragma_table_info('townsquare_migrations')")?;
    let columns = columns.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    if columns.is_empty() {
        return Ok(Vec::new());
    }
    let or_null = |column: &'static str| if columns.iter().any(|found| found == column) { column } else { "NULL" };
    let (minimum_version, checksum) = (or_null("minimum_version"), or_null("checksum"));
    let select =
        format!("SELECT version, name, {minimum_version}, {checksum} FROM townsquare_migrations ORDER BY version");
    let read = |row: &rusqlite::Row<'_>| {
        Ok(AppliedMigration {
            version: row.get(0)?,
            name: row.get(1)?,
            minimum_version: row.get(2)?,
            checksum: row.get(3)?,
        })
    };
    let mut migrations = connection.prepare(&select)?;
    let migrations = migrations.query_map([], read)?;
    migrations.collect()
}

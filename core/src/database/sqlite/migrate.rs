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

/// A migration. Its version is its position in [`MIGRATIONS`], counted from 1.
struct Migration {
    name: &'static str,
    sql: &'static str,
    /// The oldest schema version whose library works with a database that has this migration.
    minimum_version: usize,
}

macro_rules! migrations {
    ($($name:literal needs $minimum_version:literal;)*) => {
        &[$(Migration {
            name: $name,
            sql: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
            minimum_version: $minimum_version,
        }),*]
    };
}

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
};

/// The version that added the column `minimum_version`. Older databases work with a library of their version only.
const FIRST_WITH_MINIMUM: usize = 4;

/// The version of a database and the oldest version whose library works with it.
#[derive(Debug, Clone, Copy)]
struct SchemaVersion {
    version: usize,
    minimum_version: usize,
}

impl SchemaVersion {
    /// # Errors
    /// `Config` if the database needs a newer library than this one.
    fn require_compatible(self) -> Result<()> {
        if self.minimum_version <= MIGRATIONS.len() {
            return Ok(());
        }
        Err(Error::config(format!(
            "The database is at version {}, written by a newer townsquare; it needs a library that knows version {}, and \
             this one knows {}",
            self.version,
            self.minimum_version,
            MIGRATIONS.len()
        )))
    }
}

/// Applies the missing migrations. A new file becomes a database with this `application_id`.
///
/// # Errors
/// `Config` if the database needs a newer version of the library.
pub(super) fn run(connection: &mut Connection, application_id: i64, clock: &Clock) -> Result<()> {
    if is_up_to_date(schema_version(connection).map_err(translate)?)? {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(translate)?;
    let found = schema_version(&transaction).map_err(translate)?;
    if is_up_to_date(found)? {
        return Ok(());
    }
    let applied = found.map_or(0, |found| found.version);
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
        Ok(())
    };
    apply().map_err(translate)?;
    transaction.commit().map_err(translate)
}

/// Whether no migration is missing.
fn is_up_to_date(found: Option<SchemaVersion>) -> Result<bool> {
    let Some(found) = found else { return Ok(false) };
    found.require_compatible()?;
    Ok(found.version >= MIGRATIONS.len())
}

/// Returns `Config` if the database needs a newer version of the library.
pub(super) fn refuse_newer(connection: &Connection) -> Result<()> {
    schema_version(connection).map_err(translate)?.map_or(Ok(()), SchemaVersion::require_compatible)
}

/// The columns that make a copy a database of its own, each with its new value.
const IDENTITY: [(&str, &str); 3] = [
    ("incarnation", "lower(hex(randomblob(16)))"),
    // The signed URLs of the original are not valid on the copy.
    ("url_key", "lower(hex(randomblob(32)))"),
    // The copy's files are in another object store, whose id the first client records.
    ("store_id", "''"),
];

/// The SQL that makes a copy a database of its own. A migration adds what an older copy lacks.
pub(super) fn change_identity(connection: &Connection) -> Result<String> {
    let columns = "SELECT count(*) FROM pragma_table_info('townsquare_database') WHERE name = ?1";
    let mut changes = Vec::new();
    for (column, value) in IDENTITY {
        let count = connection.query_row(columns, [column], |row| row.get::<_, i64>(0)).map_err(translate)?;
        if count == 1 {
            changes.push(format!("{column} = {value}"));
        }
    }
    Ok(if changes.is_empty() {
        String::new()
    } else {
        format!("UPDATE townsquare_database SET {}", changes.join(", "))
    })
}

/// The version of a database; `None` for a new file.
fn schema_version(connection: &Connection) -> rusqlite::Result<Option<SchemaVersion>> {
    let exists = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'townsquare_migrations'";
    if connection.query_row(exists, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(None);
    }
    let read = |column: &str| -> rusqlite::Result<Option<usize>> {
        let newest = format!("SELECT max({column}) FROM townsquare_migrations");
        let newest = connection.query_row(&newest, [], |row| row.get::<_, Option<i64>>(0))?;
        Ok(newest.map(|version| usize::try_from(version).unwrap_or(usize::MAX)))
    };
    let Some(version) = read("version")? else { return Ok(None) };
    let minimum_version = if version < FIRST_WITH_MINIMUM { Some(version) } else { read("minimum_version")? };
    Ok(Some(SchemaVersion { version, minimum_version: minimum_version.unwrap_or(version) }))
}

//! The migrations of a PostgreSQL database.
//!
//! Invariant: all missing migrations are applied in one transaction, or none. A second process that opens the database
//! meanwhile waits for the advisory lock and then finds the migrations applied. A database of a newer version, or of another
//! build of this version, is refused.

use sqlx::{
    AssertSqlSafe, Executor as _, PgConnection, Row as _,
    postgres::{PgArguments, PgRow},
};

use super::{
    adoption::{self, Differences},
    errors::{cannot_set_up, translate},
    role_mode::Roles,
    types,
};
use crate::{
    clock::Clock,
    database::migration::{self, AppliedMigration, Migration},
    error::{Error, Result},
};

macro_rules! migrations {
    ($($name:literal needs $minimum_version:expr;)*) => {
        &[$(Migration {
            name: $name,
            sql: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
            minimum_version: $minimum_version,
        }),*]
    };
}

/// The engines share the numbers in the names; 0021 is another migration on each. No migration has the numbers 0014, 0016 and 0022.
/// The version of a migration is its position, not its number.
const MIGRATIONS: &[Migration] = migrations! {
    "0001_catalog" needs 1;
    "0002_tables" needs 2;
    "0003_auth" needs 3;
    "0004_reliability" needs 4;
    "0005_files" needs 4;
    "0006_realtime" needs 4;
    "0007_file_store" needs 4;
    "0008_discovery" needs 4;
    "0009_roles" needs ITSELF;
    "0010_credentials" needs 9;
    "0011_feed_history" needs 9;
    "0012_visibility" needs 9;
    "0013_checksums" needs 9;
    "0015_copies" needs 9;
    "0017_refresh_nonce" needs 9;
    "0018_space_ids" needs 9;
    "0019_erasure" needs 9;
    "0020_url_generations" needs 9;
    "0021_definers" needs 9;
    "0023_log_size" needs 9;
    "0024_file_places" needs 9;
};

/// The minimum version of a migration that no older library works with.
const ITSELF: usize = usize::MAX;

/// The migration that creates the public tables.
const TABLES: &str = "0002_tables";

/// The version that added the column `minimum_version`. Older databases work with a library of their version only.
const FIRST_WITH_MINIMUM: usize = 4;

/// How the schema of a database compares with this library's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaState {
    /// Migrations are missing.
    Outdated,
    Current,
    /// A newer library wrote the schema and says that this one works with it. Its policies are left alone.
    NewerCompatible,
}

/// The advisory lock of this library's migrations: "twsq" twice.
const LOCK: i64 = 0x7477_7371_7477_7371;

/// Compares the schema with this library's.
///
/// # Errors
/// `Config` if the database needs a newer version of the library.
pub(super) async fn state(connection: &mut PgConnection) -> Result<SchemaState> {
    Ok(match version(connection).await? {
        version if version < MIGRATIONS.len() => SchemaState::Outdated,
        version if version == MIGRATIONS.len() => SchemaState::Current,
        _ => SchemaState::NewerCompatible,
    })
}

/// Takes the advisory lock of migrations until the transaction of the caller ends.
pub(super) async fn lock(connection: &mut PgConnection) -> Result<()> {
    let lock = AssertSqlSafe(format!("SELECT pg_advisory_xact_lock({LOCK})"));
    connection.execute(lock).await.map(drop).map_err(translate)
}

/// Applies the missing migrations, in the transaction of the caller, which holds the [`lock`]. Returns the state after
/// it: another process, also one of a newer library, may have migrated the database while this one waited for the lock.
/// `adopt` says whether to take tables that another program made.
///
/// # Errors
/// `Config` if the login role lacks a right, or if the database needs a newer version of the library.
pub(super) async fn apply(
    connection: &mut PgConnection,
    roles: &Roles,
    clock: &Clock,
    adopt: bool,
) -> Result<SchemaState> {
    let applied = version(connection).await?;
    let mut differences = Differences::default();
    if applied == 0 {
        differences = adoption::check(connection, roles, adopt).await?;
        let create = "CREATE SCHEMA townsquare; CREATE TABLE townsquare.migrations (
             version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL
         )";
        connection.execute(sqlx::raw_sql(create)).await.map_err(cannot_set_up)?;
    }
    for (version, migration) in (1..).zip(MIGRATIONS).skip(applied) {
        if migration.name == TABLES && differences.has_tables() {
            differences.adopt(connection).await?;
        } else {
            connection.execute(sqlx::raw_sql(migration.sql)).await.map_err(cannot_set_up)?;
        }
        let mut arguments = PgArguments::default();
        for value in [(version as i64).into(), migration.name.into(), clock.now().into()] {
            types::bind(&mut arguments, &value)?;
        }
        let insert = "INSERT INTO townsquare.migrations (version, name, applied_at) VALUES ($1, $2, $3)";
        // Without a name, which would stay on a server process that a pooler shares between clients.
        let insert = sqlx::query_with(insert, arguments).persistent(false);
        insert.execute(&mut *connection).await.map_err(translate)?;
        if version >= FIRST_WITH_MINIMUM {
            let update = "UPDATE townsquare.migrations SET minimum_version = $2 WHERE version = $1";
            let update = sqlx::query(update).bind(version as i64).bind(migration.minimum_version.min(version) as i64);
            update.persistent(false).execute(&mut *connection).await.map_err(translate)?;
        }
    }
    if applied < MIGRATIONS.len() {
        record_checksums(connection).await?;
    }
    Ok(if applied > MIGRATIONS.len() { SchemaState::NewerCompatible } else { SchemaState::Current })
}

/// Records the checksums of the migrations that have none, also of those that were applied before the column existed.
async fn record_checksums(connection: &mut PgConnection) -> Result<()> {
    let names: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.name).collect();
    let checksums: Vec<String> = MIGRATIONS.iter().map(Migration::checksum).collect();
    let update = "UPDATE townsquare.migrations AS applied SET checksum = known.checksum
        FROM unnest($1::text[], $2::text[]) AS known (name, checksum)
        WHERE applied.name = known.name AND applied.checksum IS NULL";
    let update = sqlx::query(update).bind(names).bind(checksums).persistent(false);
    update.execute(connection).await.map(drop).map_err(translate)
}

/// Returns the error of an `open` that may not migrate, if a database at `version` needs it.
pub(super) fn must_not_migrate(version: usize) -> Option<Error> {
    (version < MIGRATIONS.len()).then(|| migration::must_not_migrate(MIGRATIONS, version))
}

/// Returns the version of a database; 0 for a database without the schema `townsquare`.
///
/// # Errors
/// `Config` if the database needs a newer version of the library, or if another build of this version made it.
pub(super) async fn version(connection: &mut PgConnection) -> Result<usize> {
    // The query reads the system catalogs: a failed lookup by name before the lock was taken may be cached.
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class AS class
        JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
        WHERE namespace.nspname = 'townsquare' AND class.relname = 'migrations')";
    let exists: bool = connection.fetch_one(exists).await.map_err(translate)?.try_get(0).map_err(translate)?;
    if !exists {
        return Ok(0);
    }
    // As JSON, because an older database lacks two of the columns.
    let applied = "SELECT version, name, (to_jsonb(migrations) ->> 'minimum_version')::bigint,
            to_jsonb(migrations) ->> 'checksum'
        FROM townsquare.migrations AS migrations ORDER BY version";
    let rows = connection.fetch_all(applied).await.map_err(translate)?;
    let read = |row: &PgRow| {
        Ok(AppliedMigration {
            version: row.try_get(0)?,
            name: row.try_get(1)?,
            minimum_version: row.try_get(2)?,
            checksum: row.try_get(3)?,
        })
    };
    let applied = rows.iter().map(read).collect::<Result<Vec<_>, sqlx::Error>>().map_err(translate)?;
    migration::compare(MIGRATIONS, &applied)
}

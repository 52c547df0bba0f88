//! The migrations of a PostgreSQL database.
//!
//! Invariant: all missing migrations are applied in one transaction, or none. A second process that opens the database
//! meanwhile waits for the advisory lock and then finds the migrations applied. A database of a newer version, or of another
//! build of this version, is refused.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, postgres::PgArguments};

use super::{
    adoption::{self, Differences},
    errors::{cannot_set_up, translate},
    query::{tuples, value},
    role_mode::Roles,
    types,
};
use crate::{
    clock::Clock,
    database::migration::{self, AppliedMigration, POSTGRES as MIGRATIONS},
    error::Result,
};

/// The migration that creates the public tables.
pub(super) const TABLES: &str = "0002_tables";

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
             version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL,
             minimum_version BIGINT NOT NULL, checksum TEXT
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
        for value in [
            (version as i64).into(),
            migration.name.into(),
            clock.now().into(),
            (migration.minimum_version as i64).into(),
            migration.checksum().into(),
        ] {
            types::bind(&mut arguments, &value)?;
        }
        let insert = "INSERT INTO townsquare.migrations (version, name, applied_at, minimum_version, checksum)
            VALUES ($1, $2, $3, $4, $5)";
        // Without a name, which would stay on a server process that a pooler shares between clients.
        let insert = sqlx::query_with(insert, arguments).persistent(false);
        insert.execute(&mut *connection).await.map_err(translate)?;
    }
    Ok(if applied > MIGRATIONS.len() { SchemaState::NewerCompatible } else { SchemaState::Current })
}

/// Returns the version of a database; 0 for a database without the schema `townsquare`.
///
/// # Errors
/// `Config` if the database needs a newer version of the library, or if another build of this version made it.
pub(super) async fn version(connection: &mut PgConnection) -> Result<usize> {
    migration::compare(MIGRATIONS, &applied(connection).await?)
}

/// The migrations of a database, in order; none for a database without the schema `townsquare`.
pub(super) async fn applied(connection: &mut PgConnection) -> Result<Vec<AppliedMigration>> {
    // The query reads the system catalogs: a failed lookup by name before the lock was taken may be cached.
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class AS class
        JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
        WHERE namespace.nspname = 'townsquare' AND class.relname = 'migrations')";
    if !value::<bool>(connection, exists).await? {
        return Ok(Vec::new());
    }
    let applied = "SELECT version, name, minimum_version, checksum FROM townsquare.migrations ORDER BY version";
    let applied: Vec<(i64, String, i64, Option<String>)> = tuples(connection, applied, &[]).await?;
    let read =
        |(version, name, minimum_version, checksum)| AppliedMigration { version, name, minimum_version, checksum };
    Ok(applied.into_iter().map(read).collect())
}

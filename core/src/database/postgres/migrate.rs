//! The migrations of a PostgreSQL database.
//!
//! Invariant: all missing migrations are applied in one transaction, or none. A second process that opens the database
//! meanwhile waits for the advisory lock and then finds the migrations applied. A database of a newer version is
//! refused.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _, postgres::PgArguments};

use super::{
    errors::{cannot_set_up, translate},
    types,
};
use crate::{
    clock::Clock,
    error::{Error, Result},
};

/// The migrations in order. A migration's version is its position, counted from 1.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_catalog", include_str!("../../../migrations/postgres/0001_catalog.sql")),
    ("0002_tables", include_str!("../../../migrations/postgres/0002_tables.sql")),
    ("0003_auth", include_str!("../../../migrations/postgres/0003_auth.sql")),
];

/// The advisory lock of this library's migrations: "twsq" twice.
const LOCK: i64 = 0x7477_7371_7477_7371;

/// True if every migration is applied, and no newer one.
pub(super) async fn is_current(connection: &mut PgConnection) -> Result<bool> {
    Ok(version(connection).await? == Some(MIGRATIONS.len()))
}

/// Takes the advisory lock and applies the missing migrations, in the transaction of the caller.
///
/// # Errors
/// `Config` if the login role lacks a right, or if a newer version of the library wrote the database.
pub(super) async fn apply(connection: &mut PgConnection, clock: &Clock) -> Result<()> {
    let lock = AssertSqlSafe(format!("SELECT pg_advisory_xact_lock({LOCK})"));
    connection.execute(lock).await.map_err(translate)?;
    let applied = version(connection).await?.unwrap_or(0);
    let Some(missing) = MIGRATIONS.get(applied..) else {
        return Err(Error::config(format!(
            "The database is at version {applied}, written by a newer townsquare; this one knows {}",
            MIGRATIONS.len()
        )));
    };
    if applied == 0 {
        let create = "CREATE SCHEMA townsquare; CREATE TABLE townsquare.migrations (
             version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL
         )";
        connection.execute(sqlx::raw_sql(create)).await.map_err(cannot_set_up)?;
    }
    for (version, (name, sql)) in (applied + 1..).zip(missing) {
        connection.execute(sqlx::raw_sql(*sql)).await.map_err(cannot_set_up)?;
        let mut arguments = PgArguments::default();
        for value in [(version as i64).into(), (*name).into(), clock.now().into()] {
            types::bind(&mut arguments, &value)?;
        }
        let insert = "INSERT INTO townsquare.migrations (version, name, applied_at) VALUES ($1, $2, $3)";
        sqlx::query_with(insert, arguments).execute(&mut *connection).await.map_err(translate)?;
    }
    Ok(())
}

/// The version of the newest applied migration; `None` for a database without the schema `townsquare`.
async fn version(connection: &mut PgConnection) -> Result<Option<usize>> {
    // The query reads the system catalogs: a failed lookup by name before the lock was taken may be cached.
    let exists = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_class AS class
        JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
        WHERE namespace.nspname = 'townsquare' AND class.relname = 'migrations')";
    let exists: bool = connection.fetch_one(exists).await.map_err(translate)?.try_get(0).map_err(translate)?;
    if !exists {
        return Ok(None);
    }
    let newest = connection.fetch_one("SELECT max(version) FROM townsquare.migrations").await.map_err(translate)?;
    let newest: Option<i64> = newest.try_get(0).map_err(translate)?;
    Ok(newest.map(|version| usize::try_from(version).unwrap_or(usize::MAX)))
}

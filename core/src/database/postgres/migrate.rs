//! Brings a PostgreSQL database to this library's version, in one transaction.
//!
//! Invariant: a database is at a whole version or untouched. Whoever comes second waits for the lock and then finds
//! the work done; a database from the future is refused. Policies follow the library's rules, not a version.

use sqlx::{AssertSqlSafe, Executor as _, PgConnection, Row as _};

use super::{command, errors::translate, policies, pool::Pool, role::Roles, types};
use crate::{
    clock::Clock,
    database::Principal,
    error::{Error, Result},
};

/// The migrations in order; a migration's version is its place, counted from 1.
const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_catalog", include_str!("../../../migrations/postgres/0001_catalog.sql")),
    ("0002_tables", include_str!("../../../migrations/postgres/0002_tables.sql")),
    ("0003_auth", include_str!("../../../migrations/postgres/0003_auth.sql")),
];

/// The advisory lock of this library's migrations: "twsq" twice.
const LOCK: i64 = 0x7477_7371_7477_7371;

/// Returns the roles that the connection can have.
pub(super) async fn run(pool: &Pool, clock: &Clock) -> Result<Roles> {
    let mut connection = pool.lend(&Principal::Service).await.map_err(unusable)?;
    let roles = policies::roles(&mut connection).await?;
    let is_current = version(&mut connection).await? == Some(MIGRATIONS.len())
        && policies::are_current(&mut connection, roles).await?;
    if !is_current {
        command(&mut connection, "BEGIN").await?;
        // Where it fails the connection is not given back but closed, and the server undoes what was begun.
        apply(&mut connection, clock, roles).await?;
        command(&mut connection, "COMMIT").await?;
    }
    connection.give_back();
    Ok(roles)
}

async fn apply(connection: &mut PgConnection, clock: &Clock, roles: Roles) -> Result<()> {
    let lock = AssertSqlSafe(format!("SELECT pg_advisory_xact_lock({LOCK})"));
    connection.execute(lock).await.map_err(translate)?;
    let done = version(connection).await?.unwrap_or(0);
    let Some(missing) = MIGRATIONS.get(done..) else {
        return Err(Error::config(format!(
            "The database is at version {done}, written by a newer townsquare; this one knows {}",
            MIGRATIONS.len()
        )));
    };
    if done == 0 {
        let own = "CREATE SCHEMA townsquare; CREATE TABLE townsquare.migrations (
             version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at TIMESTAMPTZ NOT NULL
         )";
        connection.execute(sqlx::raw_sql(own)).await.map_err(not_permitted)?;
    }
    for (version, (name, sql)) in (done + 1..).zip(missing) {
        connection.execute(sqlx::raw_sql(*sql)).await.map_err(not_permitted)?;
        let mut arguments = sqlx::postgres::PgArguments::default();
        for value in [(version as i64).into(), (*name).into(), clock.now().into()] {
            types::bind(&mut arguments, &value)?;
        }
        let insert = "INSERT INTO townsquare.migrations (version, name, applied_at) VALUES ($1, $2, $3)";
        sqlx::query_with(insert, arguments).execute(&mut *connection).await.map_err(translate)?;
    }
    // Whoever had the lock before may have made them already.
    if policies::are_current(connection, roles).await? { Ok(()) } else { policies::apply(connection, roles).await }
}

/// The newest migration applied; `None` in a database without us.
async fn version(connection: &mut PgConnection) -> Result<Option<usize>> {
    // Asked of the catalog's tables: a name looked up before the lock was ours may be remembered as missing.
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

fn unusable(error: Error) -> Error {
    let why = std::error::Error::source(&error).map_or_else(|| error.message().to_owned(), ToString::to_string);
    Error::config(format!("Option database_url: cannot connect: {why}")).because_of(error)
}

/// A refusal during migration: what the server says names the grant or the object.
pub(super) fn not_permitted(error: sqlx::Error) -> Error {
    match error.as_database_error().map(|failure| failure.message().to_owned()) {
        Some(message) => Error::config(format!("Option database_url: the database cannot be set up: {message}"))
            .because_of(translate(error)),
        None => translate(error),
    }
}

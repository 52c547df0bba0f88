//! Prepares a database when it is opened: the roles, migrations, policies.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _};
use tokio::time::Instant;

use super::{
    errors::{cannot_connect, translate},
    migrate::{self, SchemaState},
    policies,
    pool::{Pool, PooledConnection},
    query::execute_batch,
    role_mode::Roles,
};
use crate::{clock::Clock, error::Result};

/// How long a change of a table waits for other transactions. Meanwhile it blocks later ones, so it is short.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// How long to wait before the next attempt after [`LOCK_TIMEOUT`].
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// The SQLSTATE of a lock that was not free in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Brings the database up to date and returns its roles. Waits for locks for `patience` at most.
///
/// # Errors
/// `Config` if the server cannot be reached, if the login role lacks a right, or if a newer version of the library
/// wrote the database. A refused database is left unchanged.
pub(super) async fn run(pool: &Pool, clock: &Clock, patience: Duration) -> Result<Roles> {
    let deadline = Instant::now() + patience;
    loop {
        let mut connection = pool.acquire_unset().await.map_err(cannot_connect)?;
        match prepare(&mut connection, clock).await {
            Ok(roles) => {
                connection.release();
                return Ok(roles);
            }
            // The connection is closed and not released, so the server rolls the transaction back.
            Err(error) if error.code() == Some(LOCK_NOT_AVAILABLE) && Instant::now() < deadline => {
                drop(connection);
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
}

async fn prepare(connection: &mut PooledConnection, clock: &Clock) -> Result<Roles> {
    let roles = Roles::read(connection).await?;
    match migrate::state(connection).await? {
        SchemaState::NewerCompatible => return Ok(roles),
        SchemaState::Current
            if !roles.can_be_restricted() && policies::outdated(connection, &roles).await?.is_empty() =>
        {
            return Ok(roles);
        }
        SchemaState::Current | SchemaState::Outdated => {}
    }
    execute_batch(connection, "BEGIN").await?;
    let roles = change(connection, clock).await?;
    execute_batch(connection, "COMMIT").await?;
    Ok(roles)
}

/// Creates what is missing, in the transaction of the caller.
async fn change(connection: &mut PooledConnection, clock: &Clock) -> Result<Roles> {
    migrate::lock(connection).await?;
    // Another process may have changed the database while this one waited for the lock.
    let roles = Roles::read(connection).await?.restrict(connection).await?;
    let mut settings = format!("SET LOCAL lock_timeout = '{}ms';", LOCK_TIMEOUT.as_millis());
    if roles.is_member_of_service {
        // What this transaction creates belongs to the service, not to the login role.
        settings.push_str(&format!("SET LOCAL ROLE {};", roles.service));
    }
    connection.execute(sqlx::raw_sql(AssertSqlSafe(settings))).await.map_err(translate)?;
    policies::check_functions(connection, &roles).await?;
    if migrate::apply(connection, clock).await? == SchemaState::Current {
        policies::apply(connection, &roles).await?;
    }
    Ok(roles)
}

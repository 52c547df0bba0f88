//! Prepares a database when it is opened: the roles, migrations, policies.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    connection_principal::Lifetime,
    errors::cannot_connect,
    migrate::{self, SchemaState},
    policies,
    pool::{Pool, PooledConnection},
    pooler,
    query::execute_batch,
    role_mode::Roles,
    servers::is_read_only,
};
use crate::{
    clock::Clock,
    database::options::PostgresOptions,
    error::{Error, ErrorKind, Result},
};

/// How long a change of a table waits for other transactions. Meanwhile it blocks later ones, so it is short.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// How long to wait before the next attempt after [`LOCK_TIMEOUT`].
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// The SQLSTATE of a lock that was not free in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Brings the database up to date. Returns its roles, and how long connections belong to the pool. Waits for locks for
/// the operation timeout at most.
///
/// # Errors
/// `Unavailable` if the server does not accept connections now, or if it is read-only and outdated. `Config` if the URL or
/// the server's set-up has to change: unknown roles, missing rights, a newer version of the library. A refused database is
/// left unchanged.
pub(super) async fn run(pool: &Pool, clock: &Clock) -> Result<(Roles, Lifetime)> {
    let patience = pool.shared().options.operation_timeout;
    let deadline = Instant::now() + patience;
    let mut connection = pool.acquire_unset().await.map_err(cannot_connect)?;
    let lifetime = pooler::detect(pool, &mut connection).await?;
    loop {
        match prepare(&mut connection, clock, pool.shared().options).await {
            Ok(roles) => {
                connection.release();
                return Ok((roles, lifetime));
            }
            Err(error) => {
                // Here and not by closing the connection: nothing of the attempt is left when `open` fails.
                execute_batch(&mut connection, "ROLLBACK").await.map_err(|_| error.clone())?;
                if error.code() != Some(LOCK_NOT_AVAILABLE) || Instant::now() >= deadline {
                    return Err(error);
                }
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// Does everything in one transaction, because a pooler may give the next one to another server process.
async fn prepare(connection: &mut PooledConnection, clock: &Clock, options: PostgresOptions) -> Result<Roles> {
    let begin = format!(
        "BEGIN; SET LOCAL search_path = pg_catalog, public; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {}",
        options.operation_timeout.as_millis()
    );
    execute_batch(connection, &begin).await?;
    let roles = Roles::read(connection).await?;
    let is_current = match migrate::state(connection).await? {
        SchemaState::NewerCompatible => true,
        SchemaState::Current => policies::outdated(connection, &roles).await?.is_empty(),
        SchemaState::Outdated => false,
    };
    let is_read_only = is_read_only(connection).await?;
    let roles = match (is_current, is_read_only) {
        (false, true) => {
            let message = "the database is read-only, and its schema or policies are not those of this version";
            return Err(Error::database(Some("25006"), ErrorKind::Unavailable, message));
        }
        (true, true) => roles,
        (true, false) if !roles.can_be_restricted() => roles,
        (_, false) => change(connection, clock, options.adopt).await?,
    };
    execute_batch(connection, "COMMIT").await?;
    Ok(roles)
}

/// Creates what is missing, in the transaction of the caller.
async fn change(connection: &mut PooledConnection, clock: &Clock, adopt: bool) -> Result<Roles> {
    migrate::lock(connection).await?;
    // Another process may have changed the database while this one waited for the lock.
    let roles = Roles::read(connection).await?.restrict(connection).await?;
    let mut settings = format!("SET LOCAL lock_timeout = {};", LOCK_TIMEOUT.as_millis());
    if roles.is_member_of_service {
        // What this transaction creates belongs to the service, not to the login role.
        settings.push_str(&format!("SET LOCAL ROLE {};", roles.service));
    }
    execute_batch(connection, &settings).await?;
    policies::check_functions(connection, &roles).await?;
    if migrate::apply(connection, clock, adopt).await? == SchemaState::Current {
        policies::apply(connection, &roles).await?;
    }
    Ok(roles)
}

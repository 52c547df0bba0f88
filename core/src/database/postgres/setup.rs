//! Prepares a database when it is opened: the roles, migrations, policies.

use std::{future::pending, pin::pin, time::Duration};

use jiff::{SignedDuration, Timestamp};
use sqlx::{Executor as _, Row as _};
use tokio::time::Instant;

use super::{
    adoption,
    connection::{
        pool::{Pool, PooledConnection},
        pooler,
        principal::Lifetime,
        servers::is_read_only,
    },
    errors::{cannot_connect, internal, no_server_answered, translate},
    migrate::{self, SchemaState},
    policies,
    query::{BEGIN, execute_batch},
    role_mode::Roles,
    stored_files,
};
use crate::{
    clock::Clock,
    database::{
        migration::{POSTGRES, must_be_current, must_not_migrate, plan},
        options::{OpenOptions, PostgresOptions},
        stored_files::StoredFiles,
    },
    error::{Error, ErrorKind, Result},
};

/// How long a change of a table waits for other transactions. Meanwhile it blocks later ones, so it is short.
const LOCK_TIMEOUT: Duration = Duration::from_millis(500);

/// How long to wait before the next attempt after [`LOCK_TIMEOUT`].
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// How far the clock of this machine may be from the clock of the server without a warning.
pub(super) const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// The SQLSTATE of a lock that was not free in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Connects to the server, and finds out how long connections belong to the pool.
///
/// # Errors
/// `Unavailable` if the server accepts no connections; `Config` if the URL or the server's set-up has to change.
pub(super) async fn connect(pool: &Pool, own_clock: &Clock) -> Result<(PooledConnection, Lifetime)> {
    let mut connection = pool.acquire_unset().await.map_err(cannot_connect)?;
    let lifetime = pooler::detect(pool, &mut connection).await?;
    // A pooler accepts connections also while its database is away, and then lets the first query wait.
    let limit = pool.shared().options.operation_timeout;
    let set = pool.shared().timeout(limit, set_clock(pool, &mut connection, own_clock)).await;
    set.unwrap_or_else(|_| Err(no_server_answered(limit)))?;
    Ok((connection, lifetime))
}

/// Runs work of `open`, which may take as long as its migrations need, unless the server at this position goes silent: a machine that
/// dies closes no connection.
///
/// # Errors
/// `Unavailable` if the server is silent; the errors of `work`.
pub(super) async fn while_server_answers<T>(
    pool: &Pool,
    server: usize,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let (mut work, servers) = (pin!(work), &pool.shared().servers);
    loop {
        let done: Result<Result<T>, _> = pool.shared().timeout(servers.patience(), work.as_mut()).await;
        match done {
            Ok(done) => return done,
            Err(_) if servers.is_silent(server).await => return Err(no_server_answered(servers.silence_limit())),
            Err(_) => {}
        }
    }
}

/// Checks whether the database may be opened, and reads what it knows of its object store. Changes nothing.
///
/// # Errors
/// `Config`, as [`run`].
pub(super) async fn check(connection: &mut PooledConnection, options: &OpenOptions) -> Result<StoredFiles> {
    let checked = async {
        begin(connection, options.postgres).await?;
        let roles = Roles::read(connection).await?;
        let version = migrate::version(connection).await?;
        let mut stored_files = if version == 0 {
            // A move takes no table that another program made.
            let adopts = options.postgres.adopt && !options.is_move_target;
            adoption::check(connection, &roles, adopts).await?;
            StoredFiles::default()
        } else {
            stored_files::read(connection, version).await?
        };
        if options.is_plan {
            // `prepare` changes nothing under the same conditions.
            let is_current = is_current(connection, &roles).await? && !roles.can_be_restricted();
            stored_files.plan = Some(plan(POSTGRES, version, is_current));
        }
        if options.is_move_target && version > 0 {
            must_be_current(POSTGRES, version)?;
            stored_files.usage = stored_files::read_usage(connection).await?;
        }
        Ok(stored_files)
    };
    let checked = checked.await;
    match (checked, execute_batch(connection, "ROLLBACK").await) {
        (Ok(_), Err(error)) => Err(error),
        (checked, _) => checked,
    }
}

/// Brings the database up to date and returns its roles. Waits for locks for the operation timeout at most.
///
/// # Errors
/// `Unavailable` if the server is read-only and outdated. `Config` if the URL or the server's set-up has to change: unknown
/// roles, missing rights, a newer version of the library, a migration that the options do not allow. A refused database is left
/// unchanged.
pub(super) async fn run(pool: &Pool, mut connection: PooledConnection, options: &OpenOptions) -> Result<Roles> {
    let deadline = Instant::now() + options.postgres.operation_timeout;
    loop {
        match prepare(&mut connection, options).await {
            Ok(roles) => {
                connection.release();
                return Ok(roles);
            }
            Err(error) => {
                // Here and not by closing the connection: nothing of the attempt is left when `open` fails.
                execute_batch(&mut connection, "ROLLBACK").await.map_err(|_| error.clone())?;
                if error.code() != Some(LOCK_NOT_AVAILABLE) || Instant::now() >= deadline {
                    return Err(error);
                }
                // Ends at the time limit. The caller's runtime may have no timers.
                let _ = pool.shared().timeout(RETRY_PAUSE, pending::<()>()).await;
            }
        }
    }
}

/// Sets the clock of the pool to the server's time. Warns if the clock of this machine shows another one.
async fn set_clock(pool: &Pool, connection: &mut PooledConnection, own_clock: &Clock) -> Result<()> {
    let clock = &pool.shared().clock;
    let asked = clock.moment();
    // The simple protocol, because a prepared statement would stay on a server process that a pooler shares.
    let sql = "SELECT CAST(EXTRACT(EPOCH FROM pg_catalog.clock_timestamp()) * 1000000 AS BIGINT)::text";
    let row = connection.fetch_one(sqlx::raw_sql(sql)).await.map_err(translate)?;
    let micros: String = row.try_get(0).map_err(translate)?;
    let time = micros.parse().ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    clock.synchronize(asked, time.ok_or_else(|| internal("the server sent a time of another form"))?);
    let ahead = own_clock.now().duration_since(clock.now());
    if ahead.abs() > CLOCK_TOLERANCE {
        tracing::warn!(
            seconds = ahead.as_secs(),
            "the clock of this machine is ahead of the clock of the PostgreSQL server (or, if negative, behind it); sessions \
             and rows have the times of the server"
        );
    }
    Ok(())
}

/// Does everything in one transaction, because a pooler may give the next one to another server process.
async fn prepare(connection: &mut PooledConnection, options: &OpenOptions) -> Result<Roles> {
    begin(connection, options.postgres).await?;
    let roles = Roles::read(connection).await?;
    let is_current = is_current(connection, &roles).await?;
    let is_read_only = is_read_only(connection).await?;
    let roles = match (is_current, is_read_only) {
        (false, true) => {
            let message = "the database is read-only, and its schema or policies are not those of this version";
            return Err(Error::database(Some("25006"), ErrorKind::Unavailable, message));
        }
        (true, true) => roles,
        (true, false) if !roles.can_be_restricted() => roles,
        (_, false) if !options.migrate => return Err(must_not_change(connection).await),
        (_, false) => change(connection, options).await?,
    };
    execute_batch(connection, "COMMIT").await?;
    Ok(roles)
}

/// Whether the schema and the policies are those of this library, or of a newer one whose database it can use.
async fn is_current(connection: &mut PooledConnection, roles: &Roles) -> Result<bool> {
    Ok(match migrate::state(connection).await? {
        SchemaState::NewerCompatible => true,
        SchemaState::Current => policies::outdated(connection, roles).await?.is_empty(),
        SchemaState::Outdated => false,
    })
}

async fn begin(connection: &mut PooledConnection, options: PostgresOptions) -> Result<()> {
    // What the migrations say must not depend on the settings of the server, the database or the role.
    let begin = format!(
        "{BEGIN}; SET LOCAL search_path = pg_catalog, public; SET LOCAL row_security = on;
         SET LOCAL standard_conforming_strings = on; SET LOCAL statement_timeout = 0;
         SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = {}",
        options.operation_timeout.as_millis()
    );
    execute_batch(connection, &begin).await
}

/// The error of an `open` that may not change the database, for a database that it would have to change.
async fn must_not_change(connection: &mut PooledConnection) -> Error {
    let message = "The roles or policies of the database are not those of this library";
    match migrate::version(connection).await {
        Ok(version) => must_not_migrate(POSTGRES, version).unwrap_or_else(|| Error::not_migrated(message)),
        Err(error) => error,
    }
}

/// Creates what is missing, in the transaction of the caller.
async fn change(connection: &mut PooledConnection, options: &OpenOptions) -> Result<Roles> {
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
    if migrate::apply(connection, &roles, &options.clock, options.postgres.adopt).await? == SchemaState::Current {
        policies::apply(connection, &roles).await?;
    }
    Ok(roles)
}

//! Finds out whether a pooler shares server connections between clients after each transaction.
//!
//! Invariant: the answer comes from behaviour. PostgreSQL, and a pooler in session mode, give each connection a server
//! process of its own until the connection ends. A pooler in transaction mode gives the process that one connection has
//! just left to the next connection that asks.

use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{Connection as _, Executor as _, PgConnection, Row as _};

use super::{
    super::{
        errors::translate,
        query::{BEGIN, execute_batch},
    },
    pool::{Pool, PooledConnection},
    principal::Lifetime,
};
use crate::{
    clock::Clock,
    config::DatabasePooler,
    error::{Error, ErrorKind, Result},
};

/// How often the connections take turns.
const ROUNDS: usize = 4;

/// The further connections that are compared with the first one. Several pooler processes may listen on one port, and two
/// connections to different ones share no server process. With up to four pooler processes, two of five connections reach the same
/// one.
const OTHERS: usize = 4;

/// How long each further connection after the second may take, unless the second took more than a quarter of it. A pooler in session
/// mode without a free process lets them wait, and a busy machine must not look like one.
const FURTHER_TIMEOUT: Duration = Duration::from_millis(1_500);

/// How long the other connections may take to get a server process, together.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns how long a connection of the pool belongs to it. `connection` is one of them, set to no principal.
///
/// # Errors
/// `Config`, naming the option `database_pooler`, if the option is `session` and a pooler shares connections, or if it is
/// `auto` and the second connection that the answer needs gets no answer.
pub(in crate::database) async fn detect(pool: &Pool, connection: &mut PooledConnection) -> Result<Lifetime> {
    let shared = pool.shared();
    match shared.options.pooler {
        DatabasePooler::Session if shared.servers.is_without_names => {
            return Err(Error::config(
                "Option database_pooler is session, but the parameters of database_url ask for transaction mode",
            ));
        }
        DatabasePooler::Session => {}
        DatabasePooler::Transaction => return Ok(Lifetime::Transaction),
        DatabasePooler::Auto if shared.servers.is_without_names => return Ok(Lifetime::Transaction),
        DatabasePooler::Auto => {}
    }
    let server = connection.server();
    let probing = async {
        // A pooler gives a process with the first statement. So the first two connections have one before further ones ask.
        process(connection).await?;
        let connect = || async {
            let mut other = shared.servers.connect_to(server).await?;
            process(&mut other).await.map(|_| other)
        };
        let began = Clock::default().moment();
        let mut others = vec![connect().await?];
        let limit = FURTHER_TIMEOUT.max(4 * Clock::default().moment().since(began));
        let further = (1..OTHERS).map(|_| shared.timeout(limit, connect()));
        // The server may allow this role few connections, or a pooler in session mode may have no process for one.
        others.extend(join_all(further).await.into_iter().filter_map(|connected| connected.ok()?.ok()));
        let is_shared = take_turns(std::iter::once(&mut **connection).chain(&mut others).collect()).await;
        for other in others {
            // A failure is ignored: the server notices a closed socket as well.
            let _ = other.close().await;
        }
        is_shared
    };
    let is_session = shared.options.pooler == DatabasePooler::Session;
    match shared.timeout(PROBE_TIMEOUT, probing).await {
        Ok(Ok(true)) if is_session => Err(Error::config(
            "Option database_pooler is session, but the server gives its processes to other clients after each transaction, \
             as a pooler in transaction mode does; set the option to auto or transaction",
        )),
        Ok(Ok(true)) => Ok(Lifetime::Transaction),
        Ok(Ok(false)) => Ok(Lifetime::Session),
        // The server allows this role no second connection.
        Ok(Err(error)) if is_session && error.code() == Some("53300") => Ok(Lifetime::Session),
        Ok(Err(error)) if matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Config) => Err(error),
        // A pooler in transaction mode would have given the second connection the process of the first.
        Ok(Err(_)) | Err(_) if is_session => Ok(Lifetime::Session),
        Ok(Err(_)) | Err(_) => Err(Error::config(
            "Option database_pooler: cannot find out how the server shares connections, because a second connection got no \
             answer; set the option to session or transaction",
        )),
    }
}

/// Returns true if two of the connections are seen with the same server process, or one of them with several.
async fn take_turns(mut connections: Vec<&mut PgConnection>) -> Result<bool> {
    let mut seen = vec![None; connections.len()];
    for round in 0..ROUNDS {
        // Each one asks right after the one before it has ended its transaction.
        for (turn, connection) in connections.iter_mut().enumerate() {
            let process = if (turn + round) % 2 == 0 {
                process(connection).await?
            } else {
                process_in_transaction(connection).await?
            };
            let is_another = seen[turn].as_ref().is_some_and(|before| *before != process);
            if is_another
                || seen.iter().enumerate().any(|(other, seen)| other != turn && seen.as_ref() == Some(&process))
            {
                return Ok(true);
            }
            seen[turn] = Some(process);
        }
        // In the next round they ask in the other order.
        connections.reverse();
        seen.reverse();
    }
    Ok(false)
}

async fn process(connection: &mut PgConnection) -> Result<String> {
    // The simple protocol, because a prepared statement would stay on a shared server process.
    let row = connection.fetch_one(sqlx::raw_sql("SELECT pg_backend_pid()::text")).await.map_err(translate)?;
    row.try_get(0).map_err(translate)
}

async fn process_in_transaction(connection: &mut PgConnection) -> Result<String> {
    execute_batch(connection, BEGIN).await?;
    let process = process(connection).await;
    execute_batch(connection, "ROLLBACK").await?;
    process
}

//! Finds out whether a pooler shares server connections between clients after each transaction.
//!
//! Invariant: the answer comes from behaviour. PostgreSQL, and a pooler in session mode, give each connection a server
//! process of its own until the connection ends. A pooler in transaction mode gives the process that one connection has
//! just left to the next connection that asks.

use std::time::Duration;

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
    config::DatabasePooler,
    error::{Error, ErrorKind, Result},
};

/// How often the connections take turns.
const ROUNDS: usize = 4;

/// How long the second connection may take to get a server process.
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
        let mut second = shared.servers.connect_to(server).await?;
        let is_shared = take_turns(connection, &mut second).await;
        // A failure is ignored: the server notices a closed socket as well.
        let _ = second.close().await;
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

/// Returns true if the connections are seen with the same server process, or one of them with several.
async fn take_turns(first: &mut PgConnection, second: &mut PgConnection) -> Result<bool> {
    let mut own = [None, None];
    for round in 0..ROUNDS {
        // The second one asks right after the first one's transaction has ended, and the other way round.
        let (one, other) = if round % 2 == 0 { (&mut *first, &mut *second) } else { (&mut *second, &mut *first) };
        let processes = [process(one).await?, process_in_transaction(other).await?];
        let processes = if round % 2 == 0 {
            processes
        } else {
            let [one, other] = processes;
            [other, one]
        };
        for (own, process) in own.iter_mut().zip(&processes) {
            if own.replace(process.clone()).is_some_and(|before| before != *process) {
                return Ok(true);
            }
        }
        if processes[0] == processes[1] {
            return Ok(true);
        }
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

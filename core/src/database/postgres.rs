//! The PostgreSQL engine, through sqlx.
//!
//! Invariant: a connection returns to the pool only in a known state. A connection whose use was interrupted, by a
//! connection error or a dropped future, is closed. The database itself enforces the policies (`policies`). Any
//! executor can poll the futures, because each enters a tokio runtime by itself (`in_runtime`).

mod change_log;
mod commit_watch;
mod connection_principal;
mod dialect;
mod errors;
mod in_runtime;
mod migrate;
mod policies;
mod pool;
pub(super) mod query;
mod role_mode;
mod setup;
pub(super) mod types;

use std::time::Duration;

use sqlx::{
    Connection as _,
    postgres::{PgConnectOptions, PgRow},
};
use tokio::runtime::Handle;

use self::{
    errors::{leaves_connection_usable, of_write, was_disconnected},
    in_runtime::{InRuntime, RuntimeSelector},
    pool::{Pool, PooledConnection},
    query::execute_batch,
};
use super::{
    options::OpenOptions,
    principal::Principal,
    row::Read,
    statement::Statement,
    transaction::{FailedWrite, Transaction, Work},
    value::Value,
};
use crate::{
    config::Secret,
    error::{Error, ErrorKind, Result},
};

/// The capacity of a connection's prepared statement cache: more than the library has statements.
const MAX_STATEMENTS: usize = 512;

/// How long `close` waits for one connection to send its termination message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An open PostgreSQL database.
pub(super) struct Postgres {
    pool: Pool,
    runtimes: RuntimeSelector,
}

impl Postgres {
    pub(super) async fn open(url: &Secret, options: &OpenOptions, runtime: Handle) -> Result<Postgres> {
        let connect: PgConnectOptions = url
            .reveal()
            .parse()
            // The driver's error may quote the URL and its password, so it is not the source of ours.
            .map_err(|_| Error::config("Option database_url is not a PostgreSQL URL that can be read"))?;
        let connect = connect.application_name("townsquare").statement_cache_capacity(MAX_STATEMENTS);
        let mut pool = Pool::new(connect, options.busy_timeout, runtime.clone());
        let runtimes = RuntimeSelector::new(runtime).await?;
        let role_mode = InRuntime::new(runtimes.clone(), setup::run(&pool, &options.clock)).await?;
        pool.set_role_mode(role_mode);
        Ok(Postgres { pool, runtimes })
    }

    /// Runs one statement that changes nothing and returns its rows.
    pub(super) async fn fetch<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let rows = self.in_runtime(self.fetch_rows(principal, statement, values, |error| error)).await?;
        query::read_rows(&rows, read)
    }

    /// Runs one statement that changes rows, in a transaction of its own, and returns its rows.
    ///
    /// # Errors
    /// [`Error::outcome_unknown`] if the connection was lost before the server answered.
    pub(super) async fn execute<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let rows = self.in_runtime(self.fetch_rows(principal, statement, values, of_write)).await?;
        query::read_rows(&rows, read)
    }

    /// Runs `work` in a transaction and returns its result after the commit.
    ///
    /// # Errors
    /// [`Error::outcome_unknown`] if the connection was lost before the server answered the commit.
    pub(super) async fn write<T: Send + 'static, W>(&self, principal: &Principal, work: W) -> Result<T, FailedWrite<W>>
    where
        W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Send + 'static,
    {
        self.in_runtime(async {
            let mut connection = match self.begin(principal).await {
                Ok(connection) => connection,
                Err(error) => return Err(FailedWrite { error, work: Some(work) }),
            };
            let result = work(&mut Transaction::postgres(&mut connection, principal.caller())).await;
            end(connection, result).await.map_err(FailedWrite::from)
        })
        .await
    }

    /// Closes the idle connections. A connection in use is closed when it is released.
    pub(super) fn close(&self) {
        let idle = self.pool.close();
        if Handle::try_current().is_ok() {
            // A thread of a runtime must not wait. The server notices a closed socket as well.
            let _entered = self.runtimes.client_runtime().enter();
            return drop(idle);
        }
        self.runtimes.client_runtime().block_on(async {
            for connection in idle {
                // A failure is ignored: the server notices a closed socket as well.
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.close()).await;
            }
        });
    }

    /// Runs one statement outside of a transaction block. `failure` makes the error of a statement that was sent.
    async fn fetch_rows(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        failure: fn(Error) -> Error,
    ) -> Result<Vec<PgRow>> {
        let mut connection = self.pool.acquire(principal).await?;
        let mut result = query::fetch(&mut connection, principal.caller(), statement, values).await;
        // The server closed the connection while it was idle, so it never ran the statement.
        if connection.was_idle() && result.as_ref().err().is_some_and(was_disconnected) {
            drop(connection);
            connection = self.pool.acquire_new(principal).await?;
            result = query::fetch(&mut connection, principal.caller(), statement, values).await;
        }
        if result.as_ref().err().is_none_or(leaves_connection_usable) {
            connection.release();
        }
        result.map_err(failure)
    }

    /// Acquires a connection and begins a transaction on it.
    ///
    /// # Errors
    /// `Unauthorized` if the principal's session has ended.
    async fn begin(&self, principal: &Principal) -> Result<PooledConnection> {
        // The session is checked in the same round trip as BEGIN: a transaction without a statement needs a valid
        // session, too.
        let begin = match principal {
            Principal::User(_) => "BEGIN; SELECT townsquare.admitted()",
            Principal::Anonymous | Principal::Vouched(_) | Principal::Service => "BEGIN",
        };
        let mut connection = self.pool.acquire(principal).await?;
        match execute_batch(&mut connection, begin).await {
            Ok(()) => Ok(connection),
            Err(error) if error.kind() == ErrorKind::Unauthorized => {
                if execute_batch(&mut connection, "ROLLBACK").await.is_ok() {
                    connection.release();
                }
                Err(error)
            }
            // The server may have closed the connection while it was idle.
            Err(_) if connection.was_idle() => {
                drop(connection);
                connection = self.pool.acquire_new(principal).await?;
                execute_batch(&mut connection, begin).await?;
                Ok(connection)
            }
            Err(error) => Err(error),
        }
    }

    fn in_runtime<F: Future>(&self, future: F) -> InRuntime<F> {
        InRuntime::new(self.runtimes.clone(), future)
    }
}

/// Commits the transaction of `connection` if `result` is `Ok`, else rolls it back.
async fn end<T>(mut connection: PooledConnection, result: Result<T>) -> Result<T> {
    let ended = execute_batch(&mut connection, if result.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
    if ended.is_ok() {
        connection.release();
    }
    match (result, ended) {
        (Ok(_), Err(error)) => Err(of_write(error)),
        (result, _) => result,
    }
}

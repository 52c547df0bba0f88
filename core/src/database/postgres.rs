//! The PostgreSQL engine, by sqlx.
//!
//! Invariant: a connection goes back to the pool only in a known state; one whose use was cut short (an error of the
//! connection, a dropped future) is closed. Futures bring their runtime along, so any executor can poll them.

mod dialect;
mod entered;
mod errors;
mod migrate;
mod pool;
pub(super) mod types;

use std::sync::Arc;

use sqlx::{
    Connection as _, Executor as _, PgConnection,
    postgres::{PgArguments, PgConnectOptions, PgRow},
};
use tokio::runtime::Handle;

use self::{dialect::Postgresql, entered::Entered, errors::translate, pool::Pool};
use super::{OpenOptions, Row, Statement, Transaction, Under, Value, Work, row::Columns};
use crate::{
    config::Secret,
    error::{Error, ErrorKind, Result},
    policy::Caller,
};

/// An open PostgreSQL database.
#[derive(Clone)]
pub(super) struct Postgres(Arc<Parts>);

struct Parts {
    pool: Pool,
    runtime: Handle,
}

/// The connection of a transaction under way.
pub(super) struct Connection {
    lent: pool::Lent,
    caller: Caller,
}

impl Postgres {
    pub(super) async fn open(url: &Secret, options: &OpenOptions, runtime: Handle) -> Result<Postgres> {
        let connect: PgConnectOptions = url
            .reveal()
            .parse()
            // The driver's words may quote the URL, and with it a password.
            .map_err(|_| Error::config("Option database_url is not a PostgreSQL URL that can be read"))?;
        let connect = connect.application_name("townsquare").statement_cache_capacity(512);
        let pool = Pool::new(connect, options.busy_timeout);
        let opened = Postgres(Arc::new(Parts { pool, runtime }));
        opened.entered(migrate::run(&opened.0.pool, &options.clock)).await?;
        Ok(opened)
    }

    pub(super) async fn fetch<T>(
        &self,
        caller: Caller,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let work = async {
            let mut lent = self.0.pool.lend().await?;
            let was_idle = lent.was_idle();
            match run(&mut lent, caller, statement, values).await {
                // The server went away while the connection lay idle: nothing was read or changed by this yet.
                Err(error) if was_idle && error.code().is_none() && error.is_retryable() => {
                    let mut lent = self.0.pool.connect_new().await?;
                    let rows = run(&mut lent, caller, statement, values).await?;
                    lent.give_back();
                    Ok(rows)
                }
                Err(error) if error.code().is_none() => Err(error),
                result => {
                    lent.give_back();
                    result
                }
            }
        };
        let rows = self.entered(work).await?;
        rows.iter().map(|row| read(&Row(Columns::Postgres(row)))).collect()
    }

    /// One statement that changes something: it is its own transaction.
    pub(super) async fn change<T>(
        &self,
        caller: Caller,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let work = async {
            let mut lent = self.0.pool.lend().await?;
            let result = run(&mut lent, caller, statement, values).await;
            if result.as_ref().err().is_none_or(|error| error.code().is_some()) {
                lent.give_back();
            }
            result
        };
        let rows = self.entered(work).await?;
        rows.iter().map(|row| read(&Row(Columns::Postgres(row)))).collect()
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        caller: Caller,
        work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let transaction = async {
            let mut lent = self.0.pool.lend().await?;
            let was_idle = lent.was_idle();
            if let Err(error) = command(&mut lent, "BEGIN").await {
                if !was_idle {
                    return Err(error);
                }
                lent = self.0.pool.connect_new().await?;
                command(&mut lent, "BEGIN").await?;
            }
            let mut transaction = Transaction(Under::Postgres(Connection { lent, caller }));
            let result = work(&mut transaction).await;
            #[allow(irrefutable_let_patterns, reason = "a build may have one engine")]
            let Under::Postgres(Connection { mut lent, .. }) = transaction.0 else { return result };
            let ended = command(&mut lent, if result.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
            if ended.is_ok() {
                lent.give_back();
            }
            match (result, ended) {
                (Ok(_), Err(error)) => Err(error),
                (result, _) => result,
            }
        };
        self.entered(transaction).await
    }

    /// Says goodbye to the server on every idle connection; connections in use are closed when they come back.
    pub(super) fn close(&self) {
        let idle = self.0.pool.close();
        self.0.runtime.block_on(async {
            for connection in idle {
                // The server notices a closed socket as well; this is politeness.
                let _ = tokio::time::timeout(std::time::Duration::from_secs(1), connection.close()).await;
            }
        });
    }

    fn entered<F: Future>(&self, future: F) -> Entered<F> {
        Entered::new(self.0.runtime.clone(), future)
    }
}

impl Connection {
    pub(super) async fn fetch<T>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let rows = run(&mut self.lent, self.caller, statement, values).await?;
        rows.iter().map(|row| read(&Row(Columns::Postgres(row)))).collect()
    }

    pub(super) async fn execute(&mut self, statement: &'static Statement, values: &[Value<'_>]) -> Result<u64> {
        let (sql, arguments) = prepare(self.caller, statement, values)?;
        let done = sqlx::query_with(sql, arguments).execute(&mut *self.lent).await.map_err(translate)?;
        Ok(done.rows_affected())
    }
}

async fn run(
    connection: &mut PgConnection,
    caller: Caller,
    statement: &'static Statement,
    values: &[Value<'_>],
) -> Result<Vec<PgRow>> {
    let (sql, arguments) = prepare(caller, statement, values)?;
    sqlx::query_with(sql, arguments).fetch_all(connection).await.map_err(translate)
}

fn prepare(caller: Caller, statement: &'static Statement, values: &[Value<'_>]) -> Result<(&'static str, PgArguments)> {
    let runnable = statement.for_postgres::<Postgresql>(caller);
    let mut arguments = PgArguments::default();
    for value in values {
        types::bind(&mut arguments, value)?;
    }
    if runnable.binds_caller {
        types::bind(&mut arguments, &caller.id().into())?;
    }
    Ok((runnable.sql, arguments))
}

async fn command(connection: &mut PgConnection, sql: &'static str) -> Result<()> {
    connection.execute(sql).await.map(drop).map_err(translate)
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::database(Some("XX000"), ErrorKind::Internal, error)
}

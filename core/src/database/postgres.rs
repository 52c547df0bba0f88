//! The PostgreSQL engine, by sqlx.
//!
//! Invariant: a connection goes back to the pool only in a known state; one whose use was cut short (an error of the
//! connection, a dropped future) is closed. Policies are the database's own (`policies`), under a role that they bind. Futures bring their runtime along, so any executor can poll them.

mod dialect;
mod entered;
mod errors;
mod migrate;
mod policies;
mod pool;
mod role;
pub(super) mod types;

use std::sync::Arc;

use sqlx::{
    Connection as _, Executor as _, PgConnection,
    postgres::{PgArguments, PgConnectOptions, PgRow},
};
use tokio::runtime::Handle;

use self::{
    dialect::Postgresql,
    entered::{Entered, Home},
    errors::translate,
    pool::Pool,
};
use super::{OpenOptions, Principal, Row, Statement, Transaction, Under, Value, Work, row::Columns};
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
    home: Home,
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
        let mut pool = Pool::new(connect, options.busy_timeout, runtime.clone());
        let home = Home::new(runtime).await?;
        let roles = Entered::new(home.clone(), migrate::run(&pool, &options.clock)).await?;
        pool.set_roles(roles);
        Ok(Postgres(Arc::new(Parts { pool, home })))
    }

    /// One statement, which is its own transaction when it changes something.
    pub(super) async fn fetch<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let work = self.run_alone(principal, statement, values);
        let rows = self.entered(work).await?;
        rows.iter().map(|row| read(&Row(Columns::Postgres(row)))).collect()
    }

    pub(super) async fn write<T: Send + 'static>(
        &self,
        principal: &Principal,
        work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let transaction = async {
            let mut lent = self.0.pool.lend(principal).await?;
            // One batch: work without a statement is only for those whose session stands, too.
            let begin = match principal {
                Principal::User(_) => "BEGIN; SELECT townsquare.admitted()",
                Principal::Anonymous | Principal::Service => "BEGIN",
            };
            if let Err(error) = command(&mut lent, begin).await {
                if error.kind() == ErrorKind::Unauthorized {
                    if command(&mut lent, "ROLLBACK").await.is_ok() {
                        lent.give_back();
                    }
                    return Err(error);
                }
                if !lent.was_idle() {
                    return Err(error);
                }
                drop(lent);
                lent = self.0.pool.lend_new(principal).await?;
                command(&mut lent, begin).await?;
            }
            let mut transaction = Transaction(Under::Postgres(Connection { lent, caller: principal.caller() }));
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
        self.0.home.runtime().block_on(async {
            for connection in idle {
                // The server notices a closed socket as well; this is politeness.
                let _ = tokio::time::timeout(std::time::Duration::from_secs(1), connection.close()).await;
            }
        });
    }

    /// Runs a statement outside of a transaction.
    async fn run_alone(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Vec<PgRow>> {
        let mut lent = self.0.pool.lend(principal).await?;
        let mut result = run(&mut lent, principal.caller(), statement, values).await;
        // The server closed the connection while it lay idle, and said so: the statement never ran.
        if lent.was_idle() && result.as_ref().err().is_some_and(was_terminated) {
            drop(lent);
            lent = self.0.pool.lend_new(principal).await?;
            result = run(&mut lent, principal.caller(), statement, values).await;
        }
        if result.as_ref().err().is_none_or(leaves_connection_whole) {
            lent.give_back();
        }
        result
    }

    fn entered<F: Future>(&self, future: F) -> Entered<F> {
        Entered::new(self.0.home.clone(), future)
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

/// Whether the server ended the connection before it read the statement (57P01 to 57P05: shutdown, idle time-out).
fn was_terminated(error: &Error) -> bool {
    error.code().is_some_and(|code| code.starts_with("57P")) || is_broken_pipe(error)
}

/// Whether the connection was gone when the statement was to be sent.
fn is_broken_pipe(error: &Error) -> bool {
    use std::{error::Error as _, io::ErrorKind::BrokenPipe};
    let cause = error.source().and_then(|source| source.downcast_ref::<sqlx::Error>());
    matches!(cause, Some(sqlx::Error::Io(io)) if io.kind() == BrokenPipe)
}

/// Whether the connection may be used after this failure: the server answered, and did not hang up.
fn leaves_connection_whole(error: &Error) -> bool {
    error.kind() == ErrorKind::Unauthorized
        || error.code().is_some_and(|code| !code.starts_with("57P") && !code.starts_with("08"))
}

fn internal(error: impl std::fmt::Display) -> Error {
    Error::database(Some("XX000"), ErrorKind::Internal, error)
}

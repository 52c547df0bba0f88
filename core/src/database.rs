//! The database: statements and transactions, the same for every engine.
//!
//! Invariant: no other module knows an engine, a driver or a dialect. Whatever runs, runs for somebody: rows are
//! reached through a [`Scope`], which asks for the session of a user and binds the user's id into every policy that a
//! [`Statement`] names. What a write returned is committed.

mod acting;
#[cfg(feature = "postgres")]
mod postgres;
mod row;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
mod value;

use std::{future::Future, path::Path, pin::Pin, sync::Arc, time::Duration};

use tokio::runtime::Handle;

#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::restore;
pub(crate) use self::{
    acting::{Acting, Pass, Principal, session_ended, session_expired},
    row::{Row, record},
    statement::Statement,
    value::Value,
};
use crate::{
    clock::Clock,
    config::{DatabaseLocation, Durability},
    error::{Error, Result},
    policy::Caller,
};

/// A future that a transaction's work returns.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// How a row is read.
pub(crate) type Read<T> = fn(&Row<'_>) -> Result<T>;

/// An open database. Cheap to clone; the last clone, or [`Database::close`], closes it.
#[derive(Clone)]
pub(crate) struct Database {
    engine: Engine,
    clock: Clock,
}

#[derive(Clone)]
enum Engine {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::Sqlite),
    #[cfg(feature = "postgres")]
    Postgres(postgres::Postgres),
}

/// The database as one handle's caller sees it.
#[derive(Clone)]
pub(crate) struct Scope {
    database: Database,
    acting: Acting,
}

/// A transaction under way, for one caller.
pub(crate) struct Transaction(Under);

enum Under {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::Writing),
    #[cfg(feature = "postgres")]
    Postgres(postgres::Connection),
}

/// How a database is opened.
pub(crate) struct OpenOptions {
    #[cfg_attr(not(feature = "sqlite"), allow(dead_code, reason = "a server decides that for itself"))]
    pub(crate) durability: Durability,
    pub(crate) busy_timeout: Duration,
    pub(crate) clock: Clock,
}

impl Database {
    /// Opens the database, creating or migrating it.
    ///
    /// # Errors
    /// `Config` for a place that cannot be used, for a file that is no database of ours, and for one that a newer
    /// version of the library wrote; it stays as it was.
    pub(crate) async fn open(location: DatabaseLocation, options: OpenOptions, runtime: Handle) -> Result<Database> {
        let clock = options.clock.clone();
        let engine = match location {
            #[cfg(feature = "sqlite")]
            DatabaseLocation::Sqlite { file, folder } => {
                Engine::Sqlite(sqlite::Sqlite::open(file, folder, options, runtime).await?)
            }
            #[cfg(feature = "postgres")]
            DatabaseLocation::Postgres(url) => {
                Engine::Postgres(postgres::Postgres::open(&url, &options, runtime).await?)
            }
            #[allow(unreachable_patterns, reason = "a build may leave an engine out")]
            DatabaseLocation::Sqlite { .. } => return Err(left_out("sqlite")),
            #[allow(unreachable_patterns, reason = "a build may leave an engine out")]
            DatabaseLocation::Postgres(_) => return Err(left_out("postgres")),
        };
        Ok(Database { engine, clock })
    }

    /// The database as whoever `acting` stands for sees it.
    pub(crate) fn scope(&self, acting: Acting) -> Scope {
        Scope { database: self.clone(), acting }
    }

    /// The database past every policy.
    pub(crate) fn service(&self) -> Scope {
        self.scope(Acting::new(Principal::Service))
    }

    /// Copies a SQLite database to a file while writers go on.
    ///
    /// # Errors
    /// `InvalidInput` on PostgreSQL, which has tools of its own for that, and for a target that exists.
    #[cfg_attr(not(feature = "sqlite"), allow(unused_variables, reason = "PostgreSQL is not copied to a file"))]
    pub(crate) async fn backup(&self, target: &Path) -> Result<()> {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.backup(target).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Err(Error::invalid_input(
                "A PostgreSQL database is backed up with its own tools (pg_dump, pg_basebackup)",
            )),
        }
    }

    /// Ends the database's threads and closes its files; waits for the write under way. Later calls fail as closed.
    pub(crate) fn close(&self) {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.close(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => postgres.close(),
        }
    }
}

impl Scope {
    /// Who it is.
    pub(crate) fn caller(&self) -> Caller {
        self.acting.principal().caller()
    }

    /// Who it is, unless the access token is too old to say so.
    async fn principal(&self) -> Result<Arc<Principal>> {
        let principal = self.acting.settled().await;
        principal.check_expiry(self.database.clock.now())?;
        Ok(principal)
    }

    /// The rows of a statement that changes nothing.
    ///
    /// On SQLite it runs on the calling thread: for point reads and short lists, not for scans.
    pub(crate) async fn fetch<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let principal = self.principal().await?;
        let fetched = self.fetch_for(&principal, statement, values, read).await;
        match self.acting.successor(&principal, &fetched).await {
            Some(principal) => self.fetch_for(&principal, statement, values, read).await,
            None => fetched,
        }
    }

    async fn fetch_for<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.fetch(principal, statement, values, read),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => postgres.fetch(principal, statement, values, read).await,
        }
    }

    /// [`fetch`](Scope::fetch) for lists without a bound: on SQLite it leaves the calling thread.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => {
                let principal = self.principal().await?;
                let scanned = sqlite.scan(Arc::clone(&principal), statement, values.clone(), read).await;
                match self.acting.successor(&principal, &scanned).await {
                    Some(principal) => sqlite.scan(principal, statement, values, read).await,
                    None => scanned,
                }
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => self.fetch(statement, &values, read).await,
        }
    }

    /// Runs a statement that changes nothing and returns its row, or `None` when there is none.
    pub(crate) async fn fetch_optional<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.fetch(statement, values, read).await?.pop())
    }

    /// Runs a statement that changes nothing and returns its row.
    ///
    /// # Errors
    /// `NotFound` when there is no row.
    pub(crate) async fn fetch_one<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<T> {
        self.fetch_optional(statement, values, read).await?.ok_or_else(Error::not_found)
    }

    /// Runs one statement that changes rows, as a transaction of its own. Returns the row of its `RETURNING`, or `None`
    /// when it changed nothing.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.change(statement, values, read).await?.pop())
    }

    /// Runs one statement that changes something, as a transaction of its own; the rows it returns.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => {
                let work = sqlite.write(self.principal().await?, move |transaction| {
                    Box::pin(async move { transaction.fetch(statement, &values, read).await })
                });
                work.await
            }
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => self.fetch(statement, &values, read).await,
        }
    }

    /// Runs `work` in a transaction and returns what it returned, once that is committed. An error undoes it.
    ///
    /// Work must await nothing but the transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        let principal = self.principal().await?;
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.write(principal, work).await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => postgres.write(&principal, work).await,
        }
    }
}

impl Transaction {
    /// Runs a statement and returns its row, or `None` when there is none.
    pub(crate) async fn fetch_optional<T>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Option<T>> {
        Ok(self.fetch(statement, values, read).await?.pop())
    }

    /// Runs a statement; the rows it returns.
    pub(crate) async fn fetch<T>(
        &mut self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        match &mut self.0 {
            #[cfg(feature = "sqlite")]
            Under::Sqlite(writing) => writing.fetch(statement, values, read),
            #[cfg(feature = "postgres")]
            Under::Postgres(connection) => connection.fetch(statement, values, read).await,
        }
    }

    /// Says that nobody will read soon what this transaction writes: an engine that caches it in this process's memory
    /// does not keep it.
    pub(crate) fn forget_pages(&mut self) {
        match &mut self.0 {
            #[cfg(feature = "sqlite")]
            Under::Sqlite(writing) => writing.forget_pages(),
            #[cfg(feature = "postgres")]
            Under::Postgres(_) => {}
        }
    }

    /// Runs a statement; the number of rows it changed.
    pub(crate) async fn execute(&mut self, statement: &'static Statement, values: &[Value<'_>]) -> Result<u64> {
        match &mut self.0 {
            #[cfg(feature = "sqlite")]
            Under::Sqlite(writing) => writing.execute(statement, values),
            #[cfg(feature = "postgres")]
            Under::Postgres(connection) => connection.execute(statement, values).await,
        }
    }
}

fn left_out(feature: &str) -> Error {
    Error::config(format!("Option database_url: this build leaves out the feature {feature}"))
}

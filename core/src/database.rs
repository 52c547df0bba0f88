//! The database: statements and transactions, the same for every engine.
//!
//! Invariant: no other module knows an engine, a driver or a dialect. A statement is written once: `$1…$n` in order
//! of first use, and the library's own tables as `townsquare.name` (PostgreSQL's schema; SQLite's prefix
//! `townsquare_`). What a write returned is committed.

mod row;
#[cfg(feature = "sqlite")]
mod sqlite;
mod value;

use std::{future::Future, pin::Pin, time::Duration};

pub(crate) use row::Row;
pub(crate) use value::Value;

use crate::{
    clock::Clock,
    config::{DatabaseLocation, Durability},
    error::{Error, Result},
};

/// A future that a transaction's work returns.
pub(crate) type Work<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// An open database. Cheap to clone; the last clone, or [`Database::close`], closes it.
#[derive(Clone)]
pub(crate) struct Database(Engine);

#[derive(Clone)]
enum Engine {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::Sqlite),
}

/// A transaction under way.
pub(crate) struct Transaction(Under);

enum Under {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::Connection),
}

/// How a database is opened.
pub(crate) struct OpenOptions {
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
    pub(crate) fn open(location: DatabaseLocation, options: &OpenOptions) -> Result<Database> {
        match location {
            #[cfg(feature = "sqlite")]
            DatabaseLocation::Sqlite { file, folder } => {
                Ok(Database(Engine::Sqlite(sqlite::Sqlite::open(file, folder.as_deref(), options)?)))
            }
            #[cfg(not(feature = "sqlite"))]
            DatabaseLocation::Sqlite { .. } => Err(left_out("sqlite")),
            DatabaseLocation::Postgres => Err(left_out("postgres")),
        }
    }

    /// The rows of a statement that changes nothing.
    ///
    /// On SQLite it runs on the calling thread: for point reads and short lists, not for scans.
    pub(crate) async fn fetch<T>(
        &self,
        sql: &'static str,
        values: &[Value<'_>],
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.fetch(sql, values, read),
        }
    }

    /// Runs `work` in a transaction and returns what it returned, once that is committed. An error undoes it.
    ///
    /// On SQLite, work must await nothing but the transaction.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Transaction) -> Work<'t, T> + Send + 'static,
    ) -> Result<T> {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.write(work).await,
        }
    }

    /// Ends the database's threads and closes its files; waits for the write under way. Later calls fail as closed.
    pub(crate) fn close(&self) {
        match &self.0 {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.close(),
        }
    }
}

impl Transaction {
    /// Runs a statement; the number of rows it changed.
    pub(crate) async fn execute(&mut self, sql: &'static str, values: &[Value<'_>]) -> Result<u64> {
        match &mut self.0 {
            #[cfg(feature = "sqlite")]
            Under::Sqlite(connection) => connection.execute(sql, values),
        }
    }
}

fn left_out(feature: &str) -> Error {
    Error::config(format!("Option database_url: this build leaves out the feature {feature}"))
}

//! The database: statements and transactions, the same for SQLite and PostgreSQL.
//!
//! Invariant: no other module knows an engine, a driver or a SQL dialect. Rows are reached only through a [`Scope`],
//! which checks the session of a user and applies the policies that a [`Statement`] names. A write that returned `Ok`
//! is committed.

/// Calls a method of the engine.
macro_rules! on_engine {
    ($database:expr, $engine:ident => $call:expr) => {
        match &$database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite($engine) => $call,
            #[cfg(feature = "postgres")]
            Engine::Postgres($engine) => $call,
        }
    };
}

mod call;
pub(crate) mod change_log;
mod copies;
mod deletion;
mod erasure;
mod file_contents;
mod inspection;
mod key_pages;
mod lease;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod migration;
mod moment;
mod options;
mod owner_usage;
mod page;
#[cfg(feature = "postgres")]
mod postgres;
mod primary;
mod principal;
mod readable_page;
mod row;
mod row_stream;
#[cfg(feature = "sqlite")]
mod sqlite;
mod statement;
mod stored_files;
mod transaction;
mod transfer;
mod value;
mod written;

use std::sync::{Arc, atomic::Ordering};

use jiff::Timestamp;
use tokio::sync::{Notify, RwLock};

#[cfg(feature = "postgres")]
pub(crate) use self::postgres::{ProjectMoment, ProjectObject, is_same_project};
#[cfg(all(test, feature = "sqlite"))]
pub(crate) use self::sqlite::query_plan;
#[cfg(feature = "sqlite")]
pub use self::sqlite::remove_named_files;
#[cfg(feature = "sqlite")]
pub(crate) use self::sqlite::{
    ReservedPlace, Restore, prepare_backup, prepare_restore, refuse_unfinished_restore, reserve_place,
};
pub(crate) use self::{
    call::call,
    erasure::UserEntries,
    file_contents::{DELETE_CONTENT, PUT_CONTENT},
    key_pages::{KeyPages, key_pages},
    lease::{HeldLease, LeaseRenewal},
    moment::DatabaseMoment,
    options::{OpenOptions, PostgresOptions, ReplicaOptions},
    owner_usage::{OWNER_USAGE, OwnerUsage},
    page::{Page, PageStart},
    principal::{Credential, CurrentPrincipal, Principal, SharedByHandles, Signer, session_ended, session_expired},
    readable_page::ReadablePage,
    row::{Read, Row, readable_record, record},
    row_stream::RowStream,
    statement::Statement,
    stored_files::StoredFiles,
    transaction::{Effect, Transaction, Work},
    transfer::{
        FILES, FilePlace, MoveMark, MoveProgress, Problem, RecordRow, RecordTable, TableDigest, TransferRow,
        TransferTable, in_order_of_removal, record_tables, require_unused, tables, unfinished_move,
    },
    value::Value,
    written::LogPlace,
};
use self::{change_log::LogPressure, transaction::FailedWrite};
use crate::{
    clock::Clock,
    config::DatabaseLocation,
    error::{Error, Result},
    policy::Caller,
    threads::RuntimeHandle,
};

/// An open database. Cheap to clone. [`Database::close`] closes it, and so does dropping the last clone.
#[derive(Clone)]
pub(crate) struct Database {
    engine: Engine,
    clock: Clock,
    handles: Arc<SharedByHandles>,
    /// Between the writes and the pruning of the change log.
    log_pressure: Arc<LogPressure>,
    /// Notified when a deletion may have left objects of files that no row needs.
    superfluous_objects: Arc<Notify>,
    /// A write to PostgreSQL holds it for reading while it has a connection; a pause of all writers for writing.
    write_gate: Arc<RwLock<()>>,
}

#[derive(Clone)]
enum Engine {
    #[cfg(feature = "sqlite")]
    Sqlite(Arc<sqlite::Sqlite>),
    #[cfg(feature = "postgres")]
    Postgres(Arc<postgres::Postgres>),
}

/// What a database is doing.
pub(crate) struct DatabaseLoad {
    /// Connections in use. On SQLite those that read.
    pub(crate) busy: usize,
    /// Connections that are kept for the next call.
    pub(crate) idle: usize,
    /// Transactions that wait for the writer. `None` on PostgreSQL.
    pub(crate) writes_waiting: Option<usize>,
    /// Reads that a replica may answer, by the server that did. Empty without a replica.
    pub(crate) replica_reads: Vec<(&'static str, u64)>,
}

/// The database as one caller sees it: every statement runs for the principal of one client handle.
#[derive(Clone)]
pub(crate) struct Scope {
    database: Database,
    principal: CurrentPrincipal,
}

/// A database that was checked and not changed yet.
pub(crate) struct PreparedDatabase {
    engine: PreparedEngine,
    clock: Clock,
}

enum PreparedEngine {
    #[cfg(feature = "sqlite")]
    Sqlite(Box<sqlite::PreparedSqlite>),
    #[cfg(feature = "postgres")]
    Postgres(Box<postgres::PreparedPostgres>),
}

impl PreparedDatabase {
    /// Checks the database, and reads what it knows of its object store. Changes nothing.
    ///
    /// # Errors
    /// `Config` if the location cannot be used, if the file is not a townsquare database, if a newer version or another build
    /// of the library wrote the database, and if it needs a migration that the options do not allow.
    pub(crate) async fn new(
        location: DatabaseLocation,
        options: OpenOptions,
        runtime: RuntimeHandle,
    ) -> Result<(PreparedDatabase, StoredFiles)> {
        #[cfg(feature = "sqlite")]
        let own_clock = options.clock.clone();
        let (engine, clock, stored_files) = match location {
            #[cfg(feature = "sqlite")]
            location @ (DatabaseLocation::Sqlite { .. } | DatabaseLocation::SqliteMemory) => {
                let (file, folder) = match location {
                    DatabaseLocation::Sqlite { file, folder } => (Some(file), folder),
                    _ => (None, None),
                };
                let mut prepared = sqlite::PreparedSqlite::new(file, folder, options, runtime.blocking).await?;
                let stored_files = prepared.take_stored_files();
                (PreparedEngine::Sqlite(Box::new(prepared)), own_clock, stored_files)
            }
            #[cfg(feature = "postgres")]
            DatabaseLocation::Postgres(url) => {
                let (prepared, stored_files) = postgres::PreparedPostgres::new(&url, options, runtime).await?;
                let clock = prepared.clock().clone();
                (PreparedEngine::Postgres(Box::new(prepared)), clock, stored_files)
            }
            #[cfg(not(feature = "sqlite"))]
            DatabaseLocation::Sqlite { .. } | DatabaseLocation::SqliteMemory => return Err(missing_feature("sqlite")),
            #[cfg(not(feature = "postgres"))]
            DatabaseLocation::Postgres(_) => return Err(missing_feature("postgres")),
        };
        Ok((PreparedDatabase { engine, clock }, stored_files))
    }

    /// Opens the database, creates it if it is missing, and migrates it.
    ///
    /// # Errors
    /// Those of [`PreparedDatabase::new`]: another process may have changed the database meanwhile. A refused database is left
    /// unchanged.
    pub(crate) async fn open(self) -> Result<Database> {
        let PreparedDatabase { engine, clock } = self;
        let engine = match engine {
            #[cfg(feature = "sqlite")]
            PreparedEngine::Sqlite(prepared) => Engine::Sqlite(Arc::new(prepared.open().await?)),
            #[cfg(feature = "postgres")]
            PreparedEngine::Postgres(prepared) => Engine::Postgres(Arc::new(prepared.open().await?)),
        };
        let (log_pressure, superfluous_objects) = (Arc::new(LogPressure::new()), Arc::new(Notify::new()));
        let (handles, write_gate) = (Arc::default(), Arc::default());
        let database = Database { engine, clock, handles, log_pressure, superfluous_objects, write_gate };
        database.recognize_copy().await?;
        Ok(database)
    }
}

impl Database {
    /// The clock by which the processes on the database compare times. On PostgreSQL it shows the server's time: the clocks
    /// of the processes' machines differ. The processes on one SQLite file share a machine and its clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The database as the principal that `principal` holds sees it.
    pub(crate) fn scope(&self, principal: CurrentPrincipal) -> Scope {
        Scope { database: self.clone(), principal }
    }

    /// The database as the service sees it: no policy applies.
    pub(crate) fn service(&self) -> Scope {
        self.scope(self.handle_of(Principal::Service))
    }

    /// The current principal of a new handle with a fixed caller.
    pub(crate) fn handle_of(&self, principal: Principal) -> CurrentPrincipal {
        CurrentPrincipal::new(principal, Arc::clone(&self.handles))
    }

    /// What the database is doing.
    pub(crate) fn load(&self) -> Result<DatabaseLoad> {
        match &self.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.load(),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => Ok(postgres.load()),
        }
    }

    /// Finishes the submitted writes, ends the database's threads and closes its files or connections. Later calls
    /// return `Closed`.
    pub(crate) fn close(&self) {
        self.handles.is_closed.store(true, Ordering::Release);
        on_engine!(self, engine => engine.close());
    }
}

#[cfg(feature = "postgres")]
static NOW: Statement = Statement::new("SELECT clock_timestamp()");

impl AsRef<CurrentPrincipal> for Scope {
    fn as_ref(&self) -> &CurrentPrincipal {
        &self.principal
    }
}

impl Scope {
    /// The time by which the processes on the database compare times. On PostgreSQL it is the server's: the clocks of the
    /// processes' machines differ. The processes on one SQLite file share a machine and its clock.
    pub(crate) async fn now(&self) -> Result<Timestamp> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => Ok(self.database.clock.now()),
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => self.fetch_one(&NOW, &[], |row| row.get(0)).await,
        }
    }

    /// Waits until the commits of this client so far are on the disk, also with `durability=normal`. A PostgreSQL server has
    /// its own settings.
    ///
    /// # Errors
    /// `Unavailable` if the disk fails.
    pub(crate) async fn flush_commits(&self) -> Result<()> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.flush_commits().await,
            #[cfg(feature = "postgres")]
            Engine::Postgres(_) => Ok(()),
        }
    }

    /// Whether the database runs in this process.
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.database.engine, Engine::Sqlite(_))
    }

    /// Takes this moment of the database.
    pub(crate) async fn moment(&self) -> Result<DatabaseMoment> {
        #[cfg(test)]
        crate::threads::turn::turn("moment").await?;
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.moment().await.map(DatabaseMoment::Sqlite),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => {
                let moment = postgres::PostgresMoment::take(Arc::clone(postgres)).await?;
                Ok(DatabaseMoment::Postgres(Box::new(moment)))
            }
        }
    }

    /// Notified when a deletion may have left objects of files that no row needs.
    pub(crate) fn superfluous_objects(&self) -> &Arc<Notify> {
        &self.database.superfluous_objects
    }

    /// The caller that policies see.
    pub(crate) fn caller(&self) -> Caller {
        self.principal.principal().caller()
    }

    /// The same database as another principal sees it.
    pub(crate) fn for_principal(&self, principal: CurrentPrincipal) -> Scope {
        self.database.scope(principal)
    }

    /// The current principal of this handle.
    pub(crate) fn current_principal(&self) -> &CurrentPrincipal {
        &self.principal
    }

    /// The current principal of a new handle with a fixed caller, on the same database.
    pub(crate) fn handle_of(&self, principal: Principal) -> CurrentPrincipal {
        self.database.handle_of(principal)
    }

    /// The current principal of a new handle that is anonymous until a sign-in, on the same database.
    pub(crate) fn signed_out_handle(&self) -> CurrentPrincipal {
        CurrentPrincipal::signed_out(Arc::clone(&self.database.handles))
    }

    /// Runs a statement that changes nothing and returns its rows.
    ///
    /// On SQLite the statement runs on the calling thread: use it for point reads and short lists, and
    /// [`scan`](Scope::scan) for lists without a bound.
    pub(crate) async fn fetch<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        #[cfg(test)]
        crate::threads::turn::turn("read").await?;
        self.with_principal(|principal| async move {
            match &self.database.engine {
                #[cfg(feature = "sqlite")]
                Engine::Sqlite(sqlite) => sqlite.fetch(&principal, statement, values, read),
                #[cfg(feature = "postgres")]
                Engine::Postgres(postgres) => {
                    Box::pin(postgres.read(&principal, &self.principal, statement, values, read)).await
                }
            }
        })
        .await
    }

    /// Runs a statement that changes nothing and returns its row, or `None` if there is no row.
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
    /// `NotFound` if there is no row.
    pub(crate) async fn fetch_one<T>(
        &self,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<T> {
        self.fetch_optional(statement, values, read).await?.ok_or_else(Error::not_found)
    }

    /// Does what [`fetch`](Scope::fetch) does, for lists without a bound: on SQLite it runs on a blocking thread.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Vec<T>> {
        #[cfg(test)]
        crate::threads::turn::turn("read").await?;
        let values = &values;
        self.with_principal(|principal| async move {
            match &self.database.engine {
                #[cfg(feature = "sqlite")]
                Engine::Sqlite(sqlite) => sqlite.scan(principal, statement, values.clone(), read).await,
                #[cfg(feature = "postgres")]
                Engine::Postgres(postgres) => {
                    Box::pin(postgres.read(&principal, &self.principal, statement, values, read)).await
                }
            }
        })
        .await
    }

    /// Runs one statement that changes rows, in a transaction of its own. Returns the row of its `RETURNING` clause, or
    /// `None` if the statement changed nothing.
    pub(crate) async fn execute<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Option<T>> {
        self.execute_with(Effect::Writes, statement, values, read).await
    }

    /// Does what [`execute`](Scope::execute) does, for a statement of which two runs have the effect of one. On PostgreSQL
    /// it runs once more if the connection is lost.
    pub(crate) async fn execute_idempotent<T: Send + 'static>(
        &self,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Option<T>> {
        let executed = self.execute_with(Effect::IdempotentWrites, statement, values, read).await;
        executed.map_err(Error::of_idempotent_call)
    }

    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "SQLite always answers"))]
    async fn execute_with<T: Send + 'static>(
        &self,
        effect: Effect,
        statement: &'static Statement,
        values: Vec<Value<'static>>,
        read: Read<T>,
    ) -> Result<Option<T>> {
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(_) => {
                self.write(move |transaction| {
                    Box::pin(async move { transaction.fetch_optional(statement, &values, read).await })
                })
                .await
            }
            // PostgreSQL makes a single statement a transaction, which saves the round trips of BEGIN and COMMIT.
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => {
                let (values, _written) = (&values, self.principal.written().during_write());
                let rows = self.with_principal(|principal| async move {
                    let _gate = self.database.write_gate.read().await;
                    postgres.execute(&principal, statement, values, read, effect).await
                });
                self.database.log_pressure.wait().await;
                let rows = rows.await?;
                self.database.log_pressure.call();
                Ok(rows.into_iter().next_back())
            }
        }
    }

    /// Runs `work` in a transaction, commits the transaction, and returns the result of `work`. The transaction is
    /// rolled back if `work` returns an error. Like [`with_principal`](Scope::with_principal), tries again with a
    /// refreshed token.
    ///
    /// A caller that drops the future on SQLite before the transaction begins cancels the write. A transaction that has
    /// begun may be committed even if the caller drops the future.
    ///
    /// `work` must await nothing but its transaction. PostgreSQL runs a copy of it again if the transaction was given up
    /// because of another one.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send + 'static,
    ) -> Result<T> {
        self.write_with(Effect::Writes, work).await
    }

    /// Does what [`write`](Scope::write) does, for work of which two runs have the effect of one. On PostgreSQL it runs once
    /// more if the connection is lost, and its errors say that the call may be repeated.
    pub(crate) async fn write_idempotent<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send + 'static,
    ) -> Result<T> {
        self.write_with(Effect::IdempotentWrites, work).await.map_err(Error::of_idempotent_call)
    }

    /// Does what [`write`](Scope::write) does. `effect` decides when the transaction may run again.
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "SQLite always answers"))]
    async fn write_with<T: Send + 'static>(
        &self,
        effect: Effect,
        work: impl for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send + 'static,
    ) -> Result<T> {
        #[cfg(test)]
        crate::threads::turn::turn("write").await?;
        self.database.log_pressure.wait().await;
        let (mut principal, mut work) = (self.principal().await?, work);
        let _written = self.principal.written().during_write();
        loop {
            let written = match &self.database.engine {
                #[cfg(feature = "sqlite")]
                Engine::Sqlite(sqlite) => sqlite.write(Arc::clone(&principal), work).await,
                #[cfg(feature = "postgres")]
                Engine::Postgres(postgres) => {
                    let _gate = self.database.write_gate.read().await;
                    postgres.write(&principal, work, effect).await
                }
            };
            let FailedWrite { error, work: unused } = match written {
                Ok(result) => {
                    self.database.log_pressure.call();
                    return Ok(result);
                }
                Err(failed) => failed,
            };
            work = unused.ok_or_else(|| error.clone())?;
            principal = self.principal.renewed_principal(&principal, error).await?;
        }
    }

    /// Does what [`write`](Scope::write) does, in a transaction that it shares with no other write, for a caller whose principal
    /// needs no refresh. `work` may [hold](Transaction::hold) its transaction.
    async fn write_alone<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send + 'static,
    ) -> Result<T> {
        let principal = self.principal().await?;
        let _written = self.principal.written().during_write();
        match &self.database.engine {
            #[cfg(feature = "sqlite")]
            Engine::Sqlite(sqlite) => sqlite.submit(principal, work, true).await.map_err(|failed| failed.error),
            #[cfg(feature = "postgres")]
            Engine::Postgres(postgres) => {
                postgres.write(&principal, work, Effect::Writes).await.map_err(|failed| failed.error)
            }
        }
    }

    /// Calls `attempt` with the current principal. Calls it again with the new principal whenever the session's token was
    /// refreshed in the meantime and the database no longer accepts the old token.
    async fn with_principal<T, F>(&self, attempt: impl Fn(Arc<Principal>) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut principal = self.principal().await?;
        loop {
            let error = match attempt(Arc::clone(&principal)).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            principal = self.principal.renewed_principal(&principal, error).await?;
        }
    }

    /// The current principal.
    ///
    /// # Errors
    /// `Closed` if the handle is closed; those of [`valid_principal`](CurrentPrincipal::valid_principal).
    async fn principal(&self) -> Result<Arc<Principal>> {
        self.principal.check_open()?;
        self.principal.valid_principal(self.database.clock.now()).await
    }
}

#[cfg(not(all(feature = "sqlite", feature = "postgres")))]
fn missing_feature(feature: &str) -> Error {
    Error::config(format!("Option database_url: this build leaves out the feature {feature}"))
}

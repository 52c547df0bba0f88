//! The PostgreSQL engine, through sqlx.
//!
//! Invariant: a connection returns to the pool only in a known state. A connection whose use was interrupted, by a
//! connection error or a dropped future, is closed. The database itself enforces the policies (`policies`). Any
//! executor can poll the futures, because each enters a tokio runtime by itself (`in_runtime`).

mod adoption;
pub(in crate::database) mod change_log;
mod commit_watch;
pub(super) mod connection;
mod dialect;
mod errors;
mod in_runtime;
mod inspection;
mod log_place;
mod migrate;
mod moment;
mod policies;
pub(super) mod query;
mod replica;
mod role_mode;
mod setup;
mod stored_files;
mod supabase;
pub(super) mod types;

use std::{
    pin::{Pin, pin},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use futures_util::future::{Either, select};
use sqlx::{Connection as _, postgres::PgRow};
use tokio::runtime::Handle;

use self::{
    connection::{
        attempt::{Failure, Retries},
        pool::{Pool, PooledConnection},
        principal::Lifetime,
        server_url::ServerUrl,
        servers::{Servers, in_recovery},
    },
    errors::{fell_silent, leaves_connection_usable, of_write, past_deadline},
    in_runtime::InRuntime,
    log_place::PRIMARY_PLACE,
    query::{BEGIN, execute_batch},
    replica::{Replica, ReplicaUrl},
};
pub(crate) use self::{
    moment::PostgresMoment,
    supabase::{ProjectMoment, ProjectObject, is_same_project},
};
use super::{
    DatabaseLoad,
    options::OpenOptions,
    principal::{CurrentPrincipal, Principal},
    row::{Read, Row},
    statement::Statement,
    stored_files::StoredFiles,
    transaction::{Effect, FailedWrite, Transaction, Work},
    value::Value,
    written::{LogPlace, Needed, later},
};
use crate::{
    clock::Clock,
    config::Secret,
    error::{Error, ErrorKind, Result},
    threads::{self, BoxedFuture, RuntimeHandle},
};

/// How long `close` waits for one connection to send its termination message.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// How much longer than the server's own time limit the client waits for an answer.
const GRACE: Duration = Duration::from_secs(1);

/// An open PostgreSQL database.
pub(super) struct Postgres {
    pool: Pool,
    replica: Option<Replica>,
}

/// A PostgreSQL database that was checked and not changed yet.
pub(super) struct PreparedPostgres {
    pool: Pool,
    connection: PooledConnection,
    lifetime: Lifetime,
    replica: Option<ReplicaUrl>,
    options: OpenOptions,
}

/// The work of a transaction, and what it returned when it last ran.
struct RepeatableWork<T, W> {
    work: W,
    result: Option<T>,
}

trait RunWork: Send {
    /// Runs a copy of the work, and keeps its result.
    fn run<'t>(&'t mut self, transaction: &'t mut Transaction<'_>) -> Work<'t, ()>;
}

impl<T: Send, W> RunWork for RepeatableWork<T, W>
where
    W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send,
{
    fn run<'t>(&'t mut self, transaction: &'t mut Transaction<'_>) -> Work<'t, ()> {
        let work = self.work.clone();
        Box::pin(async move {
            self.result = Some(work(transaction).await?);
            Ok(())
        })
    }
}

impl PreparedPostgres {
    /// Connects to the database and checks it. Returns what it knows of its object store, too.
    pub(super) async fn new(
        url: &Secret,
        mut options: OpenOptions,
        runtime: RuntimeHandle,
    ) -> Result<(PreparedPostgres, StoredFiles)> {
        let replica = options.replica.as_ref().map(|replica| ReplicaUrl::parse(&replica.url)).transpose()?;
        let servers = Servers::new(ServerUrl::parse(url)?, options.postgres.connect_timeout, runtime.tokio.clone());
        let server_clock = options.clock.of_server();
        let own_clock = std::mem::replace(&mut options.clock, server_clock);
        let pool = Pool::new(servers, options.postgres, options.clock.clone(), runtime.clone());
        let check = async {
            let (mut connection, lifetime) = setup::connect(&pool, &own_clock).await?;
            let (server, check) = (connection.server(), setup::check(&mut connection, &options));
            let stored_files = setup::while_server_answers(&pool, server, check).await?;
            Ok((connection, lifetime, stored_files))
        };
        let (connection, lifetime, stored_files) = InRuntime::new(&runtime, check).await?;
        Ok((PreparedPostgres { pool, connection, lifetime, replica, options }, stored_files))
    }

    /// Brings the database up to date.
    pub(super) async fn open(self) -> Result<Postgres> {
        let PreparedPostgres { mut pool, connection, lifetime, replica, options } = self;
        let runtime = pool.shared().runtime.clone();
        let server = connection.server();
        let run = setup::while_server_answers(&pool, server, setup::run(&pool, connection, &options));
        let roles = InRuntime::new(&runtime, run).await?;
        (pool.roles, pool.lifetime) = (roles, lifetime);
        // A move reads what it has just written.
        let replica = replica.zip(options.replica).filter(|_| !options.is_move_target);
        let replica = replica.map(|(url, replica)| Replica::start(url, &replica, options.postgres, &pool));
        Ok(Postgres { pool, replica })
    }

    /// The clock that shows the server's time.
    pub(super) fn clock(&self) -> &Clock {
        &self.options.clock
    }
}

/// Where the primary is in its write-ahead log. What the client has committed is before that place.
static LOG_PLACE: Statement = Statement::new(PRIMARY_PLACE);

impl Postgres {
    /// Runs one statement that changes nothing and returns its rows, those of the replica where it may answer.
    pub(super) async fn read<T>(
        &self,
        principal: &Principal,
        handle: &CurrentPrincipal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
    ) -> Result<Vec<T>> {
        let Some(replica) = &self.replica else {
            return self.execute(principal, statement, values, read, Effect::Reads).await;
        };
        let on_replica = async { Ok::<_, Error>(replica.read(self, principal, handle, statement, values).await) };
        if let Some(rows) = self.in_runtime(on_replica).await? {
            return query::read_rows(&rows, statement, read);
        }
        let rows = self.execute(principal, statement, values, read, Effect::Reads).await;
        // Else a later read on the replica could miss what this one has found, as the next page of a list.
        handle.seen().note_read();
        rows
    }

    /// Where the primary is in its write-ahead log.
    async fn log_place(&self) -> Result<LogPlace> {
        let read = |row: &Row<'_>| LogPlace::of([row.get(0)?, row.get(1)?, row.get(2)?]);
        // On the primary: a standby has no such place.
        let places = self.execute(&Principal::Service, &LOG_PLACE, &[], read, Effect::ReadsLog).await?;
        places.into_iter().next().ok_or_else(|| errors::internal("the server has no log"))
    }

    /// The position of what was written, and of what the handle was told, as [`LogPlace`] writes it. Empty if there is nothing.
    pub(super) async fn read_position(&self, handle: &CurrentPrincipal) -> Result<String> {
        let (written, Needed { places: [_, told], .. }) = (handle.written(), handle.seen().needed());
        let Needed { uncovered, places: [mut own, _] } = written.needed();
        if let Some(ended) = uncovered {
            let place = self.log_place().await?;
            written.cover(ended, place);
            own = Some(place);
        }
        let place = own.map(|own| later(told, own)).or(told);
        Ok(place.map(|place| place.to_string()).unwrap_or_default())
    }

    /// Runs one statement in a transaction of its own and returns its rows.
    ///
    /// # Errors
    /// [`Error::outcome_unknown`] if the connection was lost before the server answered.
    pub(super) async fn execute<T>(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        read: Read<T>,
        effect: Effect,
    ) -> Result<Vec<T>> {
        let is_sent = AtomicBool::new(false);
        let rows = self.fetch_rows(principal, statement, values, effect, &is_sent).await;
        let rows = rows.map_err(|error| outcome_of_closed(error, effect.writes() && is_sent.into_inner()))?;
        query::read_rows(&rows, statement, read)
    }

    /// Runs `work` in a transaction and returns its result after the commit. Runs it again if the server gave the
    /// transaction up because of another one, and once more if it is idempotent and the connection was lost.
    ///
    /// # Errors
    /// [`Error::outcome_unknown`] if the connection was lost before the server answered the commit.
    pub(super) async fn write<T: Send + 'static, W>(
        &self,
        principal: &Principal,
        work: W,
        effect: Effect,
    ) -> Result<T, FailedWrite<W>>
    where
        W: for<'t> FnOnce(&'t mut Transaction<'_>) -> Work<'t, T> + Clone + Send + 'static,
    {
        let mut work = RepeatableWork { work, result: None };
        match self.run_transaction(principal, &mut work, effect).await {
            Ok(()) => Ok(work.result.expect("a transaction is committed after its work")),
            Err(FailedWrite { error, work: unused }) => Err(FailedWrite { error, work: unused.map(|()| work.work) }),
        }
    }

    /// Does what [`write`](Postgres::write) does. Work of every type runs through this one function.
    fn run_transaction<'a>(
        &'a self,
        principal: &'a Principal,
        work: &'a mut dyn RunWork,
        effect: Effect,
    ) -> BoxedFuture<'a, Result<(), FailedWrite<()>>> {
        Box::pin(async move {
            let (is_committing, mut retries) = (AtomicBool::new(false), Retries::new());
            let run = async {
                loop {
                    let mut begun = None;
                    let begin = async { begun = Some(self.begin(principal, effect, &retries).await) };
                    self.unless_silent(&retries, pin!(begin)).await;
                    let mut connection = match begun {
                        Some(Ok(connection)) => connection,
                        Some(Err(error)) if retries.allow_reconnect(&error) => continue,
                        Some(Err(error)) => {
                            return Err(FailedWrite { error: retries.outcome(error), work: Some(()) });
                        }
                        None => continue,
                    };
                    let mut ended = None;
                    let transaction = async {
                        let lifetime = self.pool.lifetime;
                        let mut transaction = Transaction::postgres(&mut connection, lifetime, principal.caller());
                        let result = work.run(&mut transaction).await;
                        is_committing.store(result.is_ok() || retries.is_in_doubt(), Ordering::Relaxed);
                        ended = Some(end(connection, result, effect).await);
                    };
                    self.unless_silent(&retries, pin!(transaction)).await;
                    let error = match ended {
                        Some(Ok(())) => return Ok(()),
                        Some(Err(error)) => error,
                        None if is_committing.load(Ordering::Relaxed) => of_write(self.fell_silent()),
                        None => self.fell_silent(),
                    };
                    self.after(&error);
                    if !retries.allow_transaction(&error, effect) {
                        return Err(retries.outcome(error).into());
                    }
                    is_committing.store(retries.is_in_doubt(), Ordering::Relaxed);
                }
            };
            let done = self.in_runtime(async {
                let answered = self.pool.shared().timeout(self.deadline(), run).await;
                answered.unwrap_or_else(|_| Err(self.past_deadline(&is_committing).into()))
            });
            done.await.map_err(|FailedWrite { error, work }| {
                let error = outcome_of_closed(error, effect.writes() && is_committing.load(Ordering::Relaxed));
                FailedWrite { error, work }
            })
        })
    }

    pub(super) fn load(&self) -> DatabaseLoad {
        let (mut busy, mut idle) = self.pool.connections();
        let mut replica_reads = Vec::new();
        if let Some(replica) = &self.replica {
            let (busy_on_replica, idle_on_replica) = replica.connections();
            (busy, idle) = (busy + busy_on_replica, idle + idle_on_replica);
            replica_reads.extend(replica.reads());
        }
        DatabaseLoad { busy, idle, writes_waiting: None, replica_reads }
    }

    /// Closes the idle connections. A connection in use is closed when it is released.
    pub(super) fn close(&self) {
        let mut idle = self.pool.close();
        idle.extend(self.replica.iter().flat_map(Replica::close));
        if Handle::try_current().is_ok() {
            // A thread of a runtime must not wait. The server notices a closed socket as well.
            let _entered = self.pool.shared().runtime.tokio.enter();
            return drop(idle);
        }
        let close = async {
            for connection in idle {
                // A failure is ignored: the server notices a closed socket as well.
                let _ = tokio::time::timeout(CLOSE_TIMEOUT, connection.close()).await;
            }
            Ok::<(), Error>(())
        };
        if let Err(error) = threads::wait(self.in_runtime(close)) {
            tracing::debug!(%error, "another call has closed the client");
        }
    }

    /// Runs one statement.
    fn fetch_rows<'a>(
        &'a self,
        principal: &'a Principal,
        statement: &'static Statement,
        values: &'a [Value<'a>],
        effect: Effect,
        is_sent: &'a AtomicBool,
    ) -> InRuntime<'a, Result<Vec<PgRow>>> {
        self.in_runtime(async move {
            let mut retries = Retries::new();
            let run = async {
                loop {
                    is_sent.store(retries.is_in_doubt(), Ordering::Relaxed);
                    let mut ended = None;
                    let attempt = async {
                        ended = Some(self.run_statement(principal, statement, values, effect, is_sent, &retries).await);
                    };
                    self.unless_silent(&retries, pin!(attempt)).await;
                    let failure = match ended {
                        Some(Ok(rows)) => return Ok(rows),
                        Some(Err(failure)) => failure,
                        // Nothing can have been committed.
                        None if !is_sent.load(Ordering::Relaxed) => continue,
                        None => Failure { error: self.fell_silent(), was_begun: true, was_sent: true, was_idle: false },
                    };
                    self.after(&failure.error);
                    let has_alternatives = self.pool.shared().servers.has_alternatives();
                    if !retries.allow(&failure, effect, has_alternatives) {
                        let is_unknown = effect.writes() && failure.was_sent;
                        return Err(retries.outcome(if is_unknown { of_write(failure.error) } else { failure.error }));
                    }
                }
            };
            let answered = self.pool.shared().timeout(self.deadline(), run).await;
            answered.unwrap_or_else(|_| {
                let may_have_written = AtomicBool::new(effect.writes() && is_sent.load(Ordering::Relaxed));
                Err(self.past_deadline(&may_have_written))
            })
        })
    }

    /// Runs a part of an operation. Gives it up before its end if its server has fallen silent and the URL names others. The part
    /// stores its result, because this code would be made anew for each type of a part.
    async fn unless_silent(&self, retries: &Retries, mut part: Pin<&mut (dyn Future<Output = ()> + Send)>) {
        let shared = self.pool.shared();
        if !shared.servers.has_alternatives() {
            return part.await;
        }
        loop {
            if shared.timeout(shared.servers.patience(), part.as_mut()).await.is_ok() {
                return;
            }
            let Some(server) = retries.server() else { continue };
            let is_silent = pin!(shared.servers.is_silent(server));
            match select(part.as_mut(), is_silent).await {
                Either::Left(_) => return,
                Either::Right((true, _)) if retries.server() == Some(server) => {
                    // A closed pool has no idle connections.
                    let _ = self.pool.forget_idle();
                    return;
                }
                Either::Right(_) => {}
            }
        }
    }

    /// Runs one statement outside of a transaction block; in a transaction of its own if only a transaction keeps the principal.
    async fn run_statement(
        &self,
        principal: &Principal,
        statement: &'static Statement,
        values: &[Value<'_>],
        effect: Effect,
        is_sent: &AtomicBool,
        retries: &Retries,
    ) -> Result<Vec<PgRow>, Failure> {
        let (lifetime, caller) = (self.pool.lifetime, principal.caller());
        if lifetime == Lifetime::Transaction {
            let mut connection = self.begin(principal, effect, retries).await?;
            let was_idle = connection.was_idle();
            let result = query::fetch(&mut connection, lifetime, caller, statement, values).await;
            let was_sent = result.is_ok();
            is_sent.fetch_or(was_sent, Ordering::Relaxed);
            let ended = end(connection, result, effect).await;
            return ended.map_err(|error| Failure { error, was_begun: true, was_sent, was_idle });
        }
        let mut connection = self.acquire(principal, effect, retries).await?;
        // Any other statement runs again if the connection turns out to be lost.
        if effect == Effect::Writes && connection.is_lost().await {
            drop(connection);
            connection = self.acquire_new(principal, effect, retries).await?;
        }
        is_sent.store(true, Ordering::Relaxed);
        let result = query::fetch(&mut connection, lifetime, caller, statement, values).await;
        let was_idle = connection.was_idle();
        if result.as_ref().err().is_none_or(leaves_connection_usable) {
            connection.release();
        }
        result.map_err(|error| Failure { error, was_begun: true, was_sent: true, was_idle })
    }

    /// Acquires a connection for the next attempt: a new one if the last attempt lost its connection. A server in recovery
    /// serves reads only, so for everything else the other servers of the URL are tried.
    async fn acquire(&self, principal: &Principal, effect: Effect, retries: &Retries) -> Result<PooledConnection> {
        if retries.has_lost_connection() {
            return self.acquire_new(principal, effect, retries).await;
        }
        retries.set_server(None);
        let mut connection = self.pool.acquire(principal).await?;
        retries.set_server(Some(connection.server()));
        match check_server(&mut connection, effect).await {
            Ok(()) => Ok(connection),
            Err(error) => {
                let may_find_primary = connection.was_idle() && self.pool.shared().servers.has_alternatives();
                if leaves_connection_usable(&error) {
                    connection.release();
                }
                if may_find_primary { self.acquire_new(principal, effect, retries).await } else { Err(error) }
            }
        }
    }

    async fn acquire_new(&self, principal: &Principal, effect: Effect, retries: &Retries) -> Result<PooledConnection> {
        retries.set_server(None);
        let mut connection = self.pool.acquire_new(principal).await?;
        retries.set_server(Some(connection.server()));
        check_server(&mut connection, effect).await?;
        Ok(connection)
    }

    /// Acquires a connection for the next attempt and begins a transaction on it.
    ///
    /// # Errors
    /// `Unauthorized` if the principal's session has ended.
    async fn begin(&self, principal: &Principal, effect: Effect, retries: &Retries) -> Result<PooledConnection> {
        let connection = self.acquire(principal, effect, retries).await?;
        let was_idle = connection.was_idle();
        match self.begin_on(connection, principal, effect).await {
            // The server may have closed the connection while it was idle.
            Err(error) if was_idle && error.kind() != ErrorKind::Unauthorized => {
                let connection = self.acquire_new(principal, effect, retries).await?;
                self.begin_on(connection, principal, effect).await
            }
            begun => begun,
        }
    }

    async fn begin_on(
        &self,
        mut connection: PooledConnection,
        principal: &Principal,
        effect: Effect,
    ) -> Result<PooledConnection> {
        // A transaction without a statement needs a valid session, too.
        let check = match principal {
            Principal::User(user) => format!("SELECT townsquare.admitted('{}')", user.user_id.hyphenated()),
            Principal::Vouched(signer) if effect != Effect::Reads => {
                format!("SELECT townsquare.vouched('{}', {})", signer.user_id.hyphenated(), signer.generation)
            }
            Principal::Anonymous | Principal::Vouched(_) | Principal::Service => String::new(),
        };
        let begun = match self.pool.lifetime {
            // In the same round trip.
            Lifetime::Session => execute_batch(&mut connection, &format!("{BEGIN}; {check}")).await,
            Lifetime::Transaction => {
                execute_batch(&mut connection, BEGIN).await?;
                let state = self.pool.set_for_transaction(&mut connection, principal).await?;
                if state.is_in_recovery && effect != Effect::Reads {
                    return Err(in_recovery());
                }
                if check.is_empty() { Ok(()) } else { execute_batch(&mut connection, &check).await }
            }
        };
        match begun {
            Ok(()) => Ok(connection),
            Err(error) => {
                if error.kind() == ErrorKind::Unauthorized && execute_batch(&mut connection, "ROLLBACK").await.is_ok() {
                    connection.release();
                }
                Err(error)
            }
        }
    }

    /// Forgets connections that are of no use after `error`: to a server that was lost, or that another one replaced.
    fn after(&self, error: &Error) {
        let is_replaced = errors::is_read_only(error) && self.pool.shared().servers.has_alternatives();
        if errors::is_lost(error) || is_replaced {
            // A closed pool has no idle connections.
            let _ = self.pool.forget_idle();
        }
    }

    /// How long the client waits: the server's own time limit, which ends a statement with an answer, comes first.
    fn deadline(&self) -> Duration {
        self.pool.shared().options.operation_timeout + GRACE
    }

    fn fell_silent(&self) -> Error {
        fell_silent(self.pool.shared().servers.silence_limit())
    }

    fn past_deadline(&self, may_have_written: &AtomicBool) -> Error {
        let error = past_deadline(self.pool.shared().options.operation_timeout);
        if may_have_written.load(Ordering::Relaxed) { Error::outcome_unknown().caused_by(error) } else { error }
    }

    fn in_runtime<'a, R>(&'a self, future: impl Future<Output = R> + Send + 'a) -> InRuntime<'a, R> {
        InRuntime::new(&self.pool.shared().runtime, future)
    }
}

/// The error of an operation that may have met the end of the client. `may_be_committed`: the server has the write.
fn outcome_of_closed(error: Error, may_be_committed: bool) -> Error {
    let is_closed = error.kind() == ErrorKind::Closed;
    if is_closed && may_be_committed { Error::outcome_unknown().caused_by(error) } else { error }
}

/// Checks that the server of the connection may run a statement.
///
/// # Errors
/// `Unavailable` (25006) if the server is in recovery and the statement does more than read.
async fn check_server(connection: &mut PooledConnection, effect: Effect) -> Result<()> {
    if effect == Effect::Reads { Ok(()) } else { connection.check_primary().await }
}

/// Commits the transaction of `connection` if `result` is `Ok`, else rolls it back.
async fn end<T>(mut connection: PooledConnection, result: Result<T>, effect: Effect) -> Result<T> {
    let ended = execute_batch(&mut connection, if result.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
    if ended.is_ok() {
        connection.release();
    }
    match (result, ended) {
        (Ok(_), Err(error)) if effect.writes() => Err(of_write(error)),
        (Ok(_), Err(error)) => Err(error),
        (result, _) => result,
    }
}

//! Reads on a replica, a streaming standby of the primary (option `database_replica_url`).
//!
//! Invariant: a read on a replica sees everything that the client has written, and that its handle has read on the primary or was told
//! of, and nothing that is older than `database_replica_max_lag`. Both are places in the primary's write-ahead log that the server of
//! the connection must have replayed before the read, never times of two machines. If the replica cannot answer so, the primary does.
//!
//! Only statements that [may lag](Statement::may_lag) go to a replica, for callers without a session: a standby learns late that a
//! session has ended.
//!
//! A task asks the primary for its place in the log, sets the replica up when it can be reached, and tries it again after a failure.
//! So no read waits for a replica that is gone, except those that it had begun to answer, and those for [`READ_TIMEOUT`].
//!
//! A standby of a copy of the primary has the cluster, the timeline and places of the primary's log, but other rows. So the task writes a
//! row on the primary ([`Proof`]) and looks for it on the replica, before any read goes there and again when the server there is another
//! process.

mod primary_log;
mod proof;

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{Executor as _, PgConnection, postgres::PgRow};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use self::{
    primary_log::{LOOKS_PER_LAG, PrimaryLog},
    proof::Proof,
};
use super::{
    Postgres,
    connection::{
        pool::{Pool, PooledConnection},
        pool_state::Shared,
        pooler,
        principal::Lifetime,
        server_url::ServerUrl,
        servers::Servers,
    },
    end,
    errors::{internal, is_lost, leaves_connection_usable, no_server_answered, translate},
    log_place::{self, Replayed, read_primary},
    query::{self, BEGIN, execute_batch},
    role_mode::Roles,
};
use crate::{
    clock::Clock,
    config::Secret,
    database::{
        options::{PostgresOptions, ReplicaOptions},
        principal::{CurrentPrincipal, Principal},
        statement::Statement,
        transaction::Effect,
        value::Value,
        written::LogPlace,
    },
    error::{Error, ErrorKind, Result},
};

/// The shortest and the longest pause between two of these questions.
const LOOK_INTERVALS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// How long the set-up of the replica may take in one attempt.
const SET_UP_TIMEOUT: Duration = Duration::from_secs(10);

/// The first and the longest pause before a read looks again whether the replica has replayed a place.
const REPLAY_PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// How long a read may take on the replica that has its place. Then the primary reads, and the replica is out: a read may wait for
/// a lock that replay holds, or for a server process that does not run.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Takes the locks that reads take, if replay holds none of them. It does not wait: a server process that waits goes on to wait when its
/// client is gone.
const TRIAL: &str =
    "LOCK TABLE public.spaces, public.fidgets, public.users, public.community_configs, public.community_domains,
        public.\"spaceRegistrations\" IN ACCESS SHARE MODE NOWAIT; SELECT";

/// How long a connection is trusted to go to a standby.
const STANDBY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The least pause between two attempts to set the replica up, each of which opens several connections, and between two proofs, each of
/// which is a row.
const SET_UP_PAUSE: Duration = Duration::from_secs(5);

/// The replica of an open database. Dropping it ends its task.
pub(super) struct Replica {
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    /// Set when the replica was reached for the first time.
    pool: OnceLock<Pool>,
    /// Whether no read goes to the replica until the task has reached it again.
    is_out: AtomicBool,
    /// Whether the log says why no read goes to the replica.
    has_warned: AtomicBool,
    /// The server process that has shown a proof, and the primary's timeline then. After a failover it may follow another server.
    proven: Mutex<Option<(String, u64)>>,
    /// What the replica had not replayed when a read had waited for it long enough. Until it has, no read waits.
    missed: Mutex<Option<LogPlace>>,
    primary_log: Mutex<PrimaryLog>,
    /// The connections of the primary.
    primary: Arc<Shared>,
    /// The roles of the primary.
    roles: Roles,
    /// Reads that the replica could have answered: those that it has, and those that the primary has.
    answered: [AtomicU64; 2],
    wait: Duration,
    max_lag: Duration,
}

/// Who answers a read, in metrics: as the counts in [`State::answered`].
const ANSWERED_BY: [&str; 2] = ["replica", "primary"];

/// What a read needs of a server.
#[derive(Debug, Clone, Copy)]
struct Needed {
    /// What any read needs: the answer is new enough.
    floor: LogPlace,
    /// What this read needs.
    place: LogPlace,
}

/// The URL of a replica, which can be read.
pub(super) struct ReplicaUrl(ServerUrl);

impl ReplicaUrl {
    /// # Errors
    /// `Config`, naming the option, for a URL that cannot be read, and for one with several servers: of two standbys, the one that
    /// answers next may be behind the one that has answered.
    pub(super) fn parse(url: &Secret) -> Result<ReplicaUrl> {
        let parsed = ServerUrl::parse(url).map_err(of_replica)?;
        if parsed.servers.len() > 1 {
            return Err(Error::config(
                "Option database_replica_url names one server; other processes may name other replicas",
            ));
        }
        Ok(ReplicaUrl(parsed))
    }
}

impl Replica {
    /// Starts the task. Reads go to the primary until the replica was reached.
    pub(super) fn start(
        url: ReplicaUrl,
        options: &ReplicaOptions,
        of_primary: PostgresOptions,
        primary: &Pool,
    ) -> Replica {
        let runtime = &primary.shared().runtime;
        let servers = Servers::new(url.0, of_primary.connect_timeout, runtime.tokio.clone());
        // A clock of its own: times come from the primary.
        let pool = Pool::new(servers, of_primary, Clock::default().of_server(), runtime.clone());
        let state = Arc::new(State {
            pool: OnceLock::new(),
            is_out: AtomicBool::new(true),
            has_warned: AtomicBool::new(false),
            proven: Mutex::default(),
            missed: Mutex::default(),
            primary_log: Mutex::default(),
            primary: Arc::clone(primary.shared()),
            roles: primary.roles.clone(),
            answered: Default::default(),
            wait: options.wait,
            max_lag: options.max_lag,
        });
        let task = runtime.spawn(watch(Arc::clone(&state), pool));
        Replica { state, task }
    }

    /// How many connections are in use, and how many are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        self.state.pool.get().map_or((0, 0), Pool::connections)
    }

    /// The reads that the replica could have answered, by the server that did.
    pub(super) fn reads(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ANSWERED_BY.into_iter().zip(self.state.answered.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    /// Ends the task and returns the idle connections. Later reads go to the primary.
    pub(super) fn close(&self) -> Vec<PgConnection> {
        self.task.abort();
        self.state.is_out.store(true, Ordering::Relaxed);
        self.state.pool.get().map(Pool::close).unwrap_or_default()
    }

    /// Reads rows on the replica. `None` if the primary has to read them.
    pub(super) async fn read(
        &self,
        primary: &Postgres,
        principal: &Principal,
        handle: &CurrentPrincipal,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Option<Vec<PgRow>> {
        if !matches!(principal, Principal::Anonymous | Principal::Service) || !statement.may_lag {
            return None;
        }
        let state = &self.state;
        let try_replica = async {
            let pool = state.pool.get().filter(|_| !state.is_out.load(Ordering::Relaxed))?;
            let needed = state.needed(primary, handle).await?;
            let limit = primary.deadline();
            let read = state.read(pool, principal, needed, statement, values);
            match pool.shared().timeout(limit, read).await.unwrap_or_else(|_| Err(no_server_answered(limit))) {
                Ok(rows) => rows,
                Err(error) => {
                    if is_lost(&error) {
                        state.leave(pool, format_args!("the replica is lost, the primary answers all reads: {error}"));
                    } else {
                        tracing::debug!(%error, "the primary reads what the replica could not");
                    }
                    None
                }
            }
        };
        let rows = try_replica.await;
        let answered_by = usize::from(rows.is_none());
        state.answered[answered_by].fetch_add(1, Ordering::Relaxed);
        #[cfg(feature = "metrics")]
        crate::metrics::recorder::count_replica_read(ANSWERED_BY[answered_by]);
        rows
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    /// What the replica must have replayed before a read of this handle. `None` if only the primary can answer.
    async fn needed(&self, primary: &Postgres, handle: &CurrentPrincipal) -> Option<Needed> {
        let (floor, mut newest) = self.primary_log.lock().floor(self.max_lag)?;
        let (written, seen) = (handle.written().needed(), handle.seen().needed());
        let mut least = floor.place;
        if written.uncovered.or(seen.uncovered).is_some() {
            newest = self.ask(primary).await?;
            for (calls, uncovered) in [(handle.written(), written.uncovered), (handle.seen(), seen.uncovered)] {
                if let Some(ended) = uncovered {
                    calls.cover(ended, newest);
                }
            }
            least = newest.place;
        }
        for place in written.places.into_iter().chain(seen.places).flatten() {
            if place.system == newest.system && place.is_after(newest) {
                newest = self.ask(primary).await?;
            }
            // No standby of this primary will ever have a place of another cluster, or of a history that a failover ended.
            if place.system != newest.system || place.is_after(newest) {
                return None;
            }
            // What is left of an earlier timeline is before each place of this one.
            least = least.max(if place.is_of_log(newest) { place.place } else { newest.place });
        }
        // The floor may be on the timeline before. Then `least` is at most more than the read needs.
        Some(Needed { floor, place: LogPlace { place: least, ..newest } })
    }

    async fn ask(&self, primary: &Postgres) -> Option<LogPlace> {
        let place = self.primary.timeout(self.wait, primary.log_place()).await.ok()?.ok()?;
        self.primary_log.lock().newest = Some(place);
        Some(place)
    }

    /// Reads rows on a server that has replayed what is needed. `None` if none has in time, or if all connections are busy.
    async fn read(
        &self,
        pool: &Pool,
        principal: &Principal,
        needed: Needed,
        statement: &'static Statement,
        values: &[Value<'_>],
    ) -> Result<Option<Vec<PgRow>>> {
        let shared = pool.shared();
        let (deadline, (mut pause, longest)) = (Instant::now() + self.wait, REPLAY_PAUSES);
        let mut connection = loop {
            let limit = shared.servers.connect_timeout();
            match shared.timeout(limit, self.acquire_after(pool, principal, needed.place)).await {
                Ok(Ok(Acquired::Connection(connection))) => break connection,
                Ok(Ok(Acquired::Behind(replayed))) if !replayed.covers(needed.floor) => {
                    self.leave(pool, "the replica is too far behind: the primary answers all reads");
                    return Ok(None);
                }
                Ok(Ok(Acquired::Behind(replayed))) => {
                    let mut missed = self.missed.lock();
                    if missed.is_some_and(|missed| missed.is_of_log(replayed) && missed.place > replayed.place) {
                        return Ok(None);
                    }
                    if Instant::now() + pause > deadline {
                        *missed = Some(needed.place);
                        return Ok(None);
                    }
                }
                Ok(Err(error)) => return Err(error),
                Err(_) if shared.permits.available_permits() == 0 => return Ok(None),
                Err(_) => return Err(no_server_answered(limit)),
            }
            sleep(pause).await;
            pause = (pause * 2).min(longest);
        };
        let fetch = query::fetch(&mut connection, pool.lifetime, principal.caller(), statement, values);
        let rows = shared.timeout(READ_TIMEOUT, fetch).await.map_err(|_| no_server_answered(READ_TIMEOUT))?;
        release(connection, pool.lifetime, rows).await.map(Some)
    }

    /// Does what [`acquire`] does, for a standby that has replayed `place`.
    ///
    /// # Errors
    /// `Unavailable` if the server is no standby of the primary, or is not the process that has shown a proof.
    async fn acquire_after(&self, pool: &Pool, principal: &Principal, place: LogPlace) -> Result<Acquired> {
        let mut connection = acquire(pool, principal).await?;
        if pool.lifetime == Lifetime::Session && connection.has_replayed(place, STANDBY_CHECK_INTERVAL) {
            return Ok(Acquired::Connection(connection));
        }
        let Replayed { place: replayed, server } = read_replayed(&mut connection, place.system).await?;
        if !self.is_proven(&server, place) {
            return Err(Error::new(ErrorKind::Unavailable, "the server of database_replica_url is another one"));
        }
        connection.note_replayed(replayed);
        if replayed.covers(place) {
            return Ok(Acquired::Connection(connection));
        }
        release(connection, pool.lifetime, Ok(())).await.map(|()| Acquired::Behind(replayed))
    }

    /// Whether this server process has shown a proof on the timeline of `place`.
    fn is_proven(&self, server: &str, place: LogPlace) -> bool {
        self.proven.lock().as_ref().is_some_and(|(proven, timeline)| proven == server && *timeline == place.timeline)
    }

    /// Sends no read to the replica until the task has found that it may answer.
    fn leave(&self, pool: &Pool, why: impl fmt::Display) {
        if !self.is_out.swap(true, Ordering::Relaxed) {
            self.has_warned.store(true, Ordering::Relaxed);
            tracing::warn!("{why}");
        }
        // A closed pool has no idle connections.
        let _ = pool.forget_idle();
    }

    /// Says once why the replica is not used.
    fn warn_once(&self, why: impl fmt::Display) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!("the replica cannot be used, the primary answers all reads: {why}");
        }
    }

    /// Asks the primary for its place in the log.
    async fn look_at_primary(&self, connection: &mut Option<PgConnection>) {
        let asked = Instant::now();
        let look = async {
            let mut open = self.connect_to_primary(connection).await?;
            let place = read_primary(&mut open).await?;
            *connection = Some(open);
            place.ok_or_else(|| internal("the primary has no log"))
        };
        match self.primary.timeout(self.primary.servers.silence_limit(), look).await {
            Ok(Ok(place)) => self.primary_log.lock().add(asked, place, self.max_lag),
            Ok(Err(error)) => tracing::debug!(%error, "the primary does not say where it is in its log"),
            Err(_) => tracing::debug!("the primary does not say in time where it is in its log"),
        }
    }

    /// Sets the replica up, or tries it again after a failure.
    async fn look_at_replica(&self, task: &mut Task) {
        if !self.is_out.load(Ordering::Relaxed) {
            return;
        }
        let Some((floor, newest)) = self.primary_log.lock().floor(self.max_lag) else { return };
        if let Some((mut pool, next)) = task.unset.take_if(|(_, next)| *next <= Instant::now()) {
            let done = self.primary.timeout(SET_UP_TIMEOUT, set_up(&mut pool, &self.roles)).await;
            match done.unwrap_or_else(|_| Err(no_server_answered(SET_UP_TIMEOUT))) {
                // It is set once.
                Ok(()) => drop(self.pool.set(pool)),
                Err(error) => {
                    self.warn_once(&error);
                    task.unset = Some((pool, next.max(Instant::now()) + SET_UP_PAUSE));
                }
            }
        }
        let Some(pool) = self.pool.get() else { return };
        let limit = pool.shared().servers.silence_limit();
        match pool.shared().timeout(limit, self.try_replica(pool, task, floor, newest)).await {
            Ok(Ok(())) => {
                self.is_out.store(false, Ordering::Relaxed);
                self.has_warned.store(false, Ordering::Relaxed);
                tracing::info!("the replica answers reads");
            }
            Ok(Err(error)) => self.warn_once(&error),
            Err(_) => self.warn_once(no_server_answered(limit)),
        }
    }

    /// Finds out whether the replica may answer reads.
    ///
    /// # Errors
    /// If it may not, or not yet.
    async fn try_replica(&self, pool: &Pool, task: &mut Task, floor: LogPlace, newest: LogPlace) -> Result<()> {
        let mut connection = acquire(pool, &Principal::Service).await?;
        let obstacle = self.obstacle(&mut connection, task, floor, newest).await;
        let obstacle = release(connection, pool.lifetime, obstacle).await?;
        obstacle.map_or(Ok(()), |obstacle| Err(Error::new(ErrorKind::Unavailable, obstacle)))
    }

    /// Why the server of this connection may not answer reads.
    async fn obstacle(
        &self,
        connection: &mut PgConnection,
        task: &mut Task,
        floor: LogPlace,
        newest: LogPlace,
    ) -> Result<Option<&'static str>> {
        let Replayed { place, server } = read_replayed(connection, newest.system).await?;
        if !place.covers(floor) || !floor.is_of_log(newest) {
            return Ok(Some("it is further behind than it may be"));
        }
        connection.execute(sqlx::raw_sql(TRIAL)).await.map_err(translate)?;
        if !self.is_proven(&server, newest) {
            if !task.proof.as_ref().is_some_and(|proof| proof.is_for(&server)) {
                if task.next_proof > Instant::now() {
                    return Ok(Some("it has to show that it follows the primary"));
                }
                task.next_proof = Instant::now() + SET_UP_PAUSE;
                let mut primary = self.connect_to_primary(&mut task.primary).await?;
                task.proof = Some(Proof::write(&mut primary, &self.roles.service, server.clone()).await?);
                task.primary = Some(primary);
            }
            let proof = task.proof.as_ref().expect("it was written");
            if !proof.is_on(connection).await? {
                return Ok(Some("it lacks what the primary has just written: it is late, or a standby of a copy"));
            }
            *self.proven.lock() = Some((server, newest.timeline));
            task.proof = None;
        }
        Ok(None)
    }

    /// The connection that the task has kept, or a new one.
    async fn connect_to_primary(&self, kept: &mut Option<PgConnection>) -> Result<PgConnection> {
        match kept.take() {
            Some(open) => Ok(open),
            None => self.primary.servers.connect().await,
        }
    }
}

/// What the task keeps from one look to the next.
struct Task {
    /// A connection to the primary.
    primary: Option<PgConnection>,
    /// The pool of the replica until it is set up, and when that is tried next.
    unset: Option<(Pool, Instant)>,
    /// A proof that the replica did not have yet.
    proof: Option<Proof>,
    /// When the next proof may be written.
    next_proof: Instant,
}

/// Looks at the primary and the replica until it is aborted.
async fn watch(state: Arc<State>, pool: Pool) {
    let (least, most) = LOOK_INTERVALS;
    let interval = (state.max_lag / LOOKS_PER_LAG).clamp(least, most);
    let mut task = Task { primary: None, unset: Some((pool, Instant::now())), proof: None, next_proof: Instant::now() };
    loop {
        state.look_at_primary(&mut task.primary).await;
        state.look_at_replica(&mut task).await;
        sleep(interval).await;
    }
}

/// Finds out how the replica shares its connections, and whether it is a copy of the primary's database.
///
/// # Errors
/// `Config` if the login role has other rights there than on the primary, or if it is another database: its policies would not
/// hold.
async fn set_up(pool: &mut Pool, roles: &Roles) -> Result<()> {
    let mut connection = pool.acquire_unset().await?;
    let found = Roles::read(&mut connection).await.map_err(of_replica)?;
    if found != *roles {
        return Err(Error::config(
            "Option database_replica_url: it names another database than database_url, or another login role with other rights",
        ));
    }
    pool.lifetime = pooler::detect(pool, &mut connection).await?;
    pool.roles = found;
    connection.release();
    Ok(())
}

/// What [`State::acquire_after`] found.
enum Acquired {
    Connection(PooledConnection),
    /// What the server has replayed.
    Behind(LogPlace),
}

/// Acquires a connection that is set to `principal`; behind a pooler in transaction mode in a transaction.
async fn acquire(pool: &Pool, principal: &Principal) -> Result<PooledConnection> {
    let mut connection = pool.acquire(principal).await?;
    if pool.lifetime == Lifetime::Transaction {
        execute_batch(&mut connection, BEGIN).await?;
        pool.set_for_transaction(&mut connection, principal).await?;
    }
    Ok(connection)
}

/// Reads how far a standby of the cluster `system` is.
///
/// # Errors
/// `Unavailable` if the server is no such standby.
async fn read_replayed(connection: &mut PgConnection, system: u64) -> Result<Replayed> {
    let replayed = log_place::read_replayed(connection).await?.filter(|replayed| replayed.place.system == system);
    let message = "the server of database_replica_url is no standby of the server of database_url";
    replayed.ok_or_else(|| Error::new(ErrorKind::Unavailable, message))
}

/// Returns a connection to its pool after a read.
async fn release<T>(connection: PooledConnection, lifetime: Lifetime, result: Result<T>) -> Result<T> {
    if lifetime == Lifetime::Transaction {
        return end(connection, result, Effect::Reads).await;
    }
    if result.as_ref().err().is_none_or(leaves_connection_usable) {
        connection.release();
    }
    result
}

/// The error of a replica that says what is wrong with an option: of the primary, as it is written.
fn of_replica(error: Error) -> Error {
    if error.kind() != ErrorKind::Config {
        return error;
    }
    Error::config(error.message().replacen("Option database_url", "Option database_replica_url", 1))
}

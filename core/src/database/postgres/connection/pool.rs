//! The connection pool.
//!
//! Invariant: at most `max_connections` server processes work for the pool. Each connection serves one call at a time. The
//! client's runtime waits for its socket. A connection that is dropped and not released keeps its permit until its server
//! process has answered or was cancelled (`drain`), and is closed.
//!
//! sqlx's own pool pings a connection each time it returns, from a spawned task, which costs every read a second round
//! trip. This pool is a stack and a semaphore.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{Connection as _, PgConnection};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

use super::{
    super::{errors::no_server_answered, role_mode::Roles},
    drain::drain,
    pool_state::{OpenConnection, Shared},
    principal::{self, ConnectionPrincipal, Lifetime, ServerState},
    servers::{Servers, in_recovery, is_in_recovery},
};
use crate::{
    clock::Clock,
    database::{options::PostgresOptions, principal::Principal, written::LogPlace},
    error::{Error, ErrorKind, Result},
    threads::RuntimeHandle,
};

/// How many connections the pool opens before it sets an idle one to another principal, which costs a round trip.
const CONNECTIONS_BEFORE_SWITCH: usize = 4;

/// How long after its last use a connection counts as open. A ping costs a round trip.
const RECENT: Duration = Duration::from_millis(1);

/// How long to wait before the next attempt to connect to a server that is full or starts.
const CONNECT_PAUSE: Duration = Duration::from_millis(100);

/// How often a full server is tried again after a connection of this pool was closed: its server process may still be ending.
const TRIES_AFTER_CLOSE: u32 = 20;

pub(in crate::database) struct Pool {
    /// The roles of the connections: [`Roles::unknown`] in a new pool.
    pub(in crate::database) roles: Roles,
    /// How long a connection belongs to the client: a pooler may hand it to another one after each transaction.
    pub(in crate::database) lifetime: Lifetime,
    shared: Arc<Shared>,
}

/// A connection in use.
pub(in crate::database) struct PooledConnection {
    /// `None` only while it is released or dropped.
    open: Option<OpenConnection>,
    was_idle: bool,
    shared: Arc<Shared>,
    /// Returned to the semaphore together with the connection.
    permit: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(in crate::database) fn new(
        servers: Servers,
        options: PostgresOptions,
        clock: Clock,
        runtime: RuntimeHandle,
    ) -> Pool {
        let permits = Arc::new(Semaphore::new(options.max_connections as usize));
        let idle = Mutex::new(Some(Vec::new()));
        let shared = Shared { servers, options, clock, runtime, permits, idle, freed: Notify::new() };
        let pool = Pool { roles: Roles::unknown(), lifetime: Lifetime::Session, shared: Arc::new(shared) };
        pool.start_closing_old_connections();
        pool
    }

    pub(in crate::database) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// How many connections are in use, and how many are idle.
    pub(in crate::database) fn connections(&self) -> (usize, usize) {
        let busy = self.max_connections() - self.shared.permits.available_permits().min(self.max_connections());
        (busy, self.shared.idle.lock().as_ref().map_or(0, Vec::len))
    }

    /// Opens a connection that is set to no principal.
    pub(in crate::database) async fn acquire_unset(&self) -> Result<PooledConnection> {
        let permit = self.permit().await?;
        self.connect(permit).await
    }

    /// Acquires a connection, set to `principal`. Prefers the most recently used idle one that is already set to `principal`, then a new one while there are few, then the least recently used idle one: so a few
    /// principals that take turns soon have a connection each.
    ///
    /// # Errors
    /// `Unavailable` if no connection is free or the server does not accept one in time; `Closed` after
    /// [`Pool::close`].
    pub(in crate::database) async fn acquire(&self, principal: &Principal) -> Result<PooledConnection> {
        let permit = self.permit().await?;
        let mut connection = match self.take_idle(principal)? {
            Some((open, true)) => return Ok(self.pooled(open, true, permit)),
            Some((open, false)) => self.pooled(open, true, permit),
            None => return self.connect_for(principal, permit).await,
        };
        let limit = self.shared.servers.connect_timeout();
        match self.shared.timeout(limit, self.set_principal(&mut connection, principal)).await {
            Ok(Ok(())) => Ok(connection),
            // The server may have closed the connection while it was idle. A new one shows whether the server is up.
            failed => {
                if failed.is_err() {
                    self.shared.servers.note_silence(connection.server());
                }
                drop(connection);
                self.acquire_new(principal).await
            }
        }
    }

    /// Opens a connection, set to `principal`, after another one was lost.
    pub(in crate::database) async fn acquire_new(&self, principal: &Principal) -> Result<PooledConnection> {
        self.forget_idle()?;
        let permit = self.permit().await?;
        self.connect_for(principal, permit).await
    }

    /// Closes the idle connections, which are likely to fail like one that was lost.
    pub(in crate::database) fn forget_idle(&self) -> Result<()> {
        let stale = self.shared.idle.lock().as_mut().ok_or_else(Error::closed)?.split_off(0);
        drop(stale);
        Ok(())
    }

    /// Takes an idle connection, and whether it is set to `principal`. Returns `None` where a new connection is better.
    fn take_idle(&self, principal: &Principal) -> Result<Option<(OpenConnection, bool)>> {
        let mut idle = self.shared.idle.lock();
        let idle = idle.as_mut().ok_or_else(Error::closed)?;
        let expired = self.shared.take_expired(idle);
        let is_set = |open: &OpenConnection| self.lifetime == Lifetime::Transaction || open.principal.is(principal);
        let best = idle.iter().rposition(is_set);
        let found = match best.map(|position| (idle.remove(position), true)) {
            None => {
                let has_few = self.has_few(idle);
                let is_free = |open: &OpenConnection| !has_few || open.principal == ConnectionPrincipal::Unset;
                let other = idle.iter().position(is_free);
                other.map(|position| (idle.remove(position), false))
            }
            found => found,
        };
        drop(expired);
        Ok(found)
    }

    /// Whether another connection is better than setting an idle one to another principal.
    fn has_few(&self, idle: &[OpenConnection]) -> bool {
        self.shared.open_connections(idle) < self.max_connections().min(CONNECTIONS_BEFORE_SWITCH)
    }

    async fn connect_for(&self, principal: &Principal, permit: OwnedSemaphorePermit) -> Result<PooledConnection> {
        let mut connection = self.connect(permit).await?;
        self.set_principal(&mut connection, principal).await?;
        Ok(connection)
    }

    /// Sets the connection to `principal` for its session. After an error the connection must not be used.
    async fn set_principal(&self, connection: &mut PooledConnection, principal: &Principal) -> Result<()> {
        let open = connection.open.as_mut().expect(NOT_RELEASED);
        if self.lifetime == Lifetime::Session && !open.principal.is(principal) {
            let is_new = open.principal == ConnectionPrincipal::Unset;
            let state = self.set(&mut open.connection, principal, is_new).await?;
            open.process = Some(state.process);
            open.is_in_recovery = state.is_in_recovery;
            open.principal = principal.into();
            // The server has just answered.
            open.released = Instant::now();
        }
        Ok(())
    }

    /// Sets the connection to `principal` for the transaction that it has begun.
    pub(in crate::database) async fn set_for_transaction(
        &self,
        connection: &mut PooledConnection,
        principal: &Principal,
    ) -> Result<ServerState> {
        self.set(connection, principal, false).await
    }

    /// Sets a connection to `principal`, and the clock to the server's time.
    async fn set(&self, connection: &mut PgConnection, principal: &Principal, is_new: bool) -> Result<ServerState> {
        let (timeout, clock) = (self.shared.options.operation_timeout, &self.shared.clock);
        let asked = clock.moment();
        let state = principal::set(connection, principal, &self.roles, self.lifetime, is_new, timeout).await?;
        clock.synchronize(asked, state.time);
        Ok(state)
    }

    /// Waits for the right to use a connection.
    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        let permits = &self.shared.permits;
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(permit);
        }
        match self.shared.with_timeout(Arc::clone(permits).acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| Error::closed()),
            // 53300: too many connections.
            Err(_) => Err(Error::database(
                Some("53300"),
                ErrorKind::Unavailable,
                format!(
                    "all {} connections were busy for {:?}",
                    self.shared.options.max_connections, self.shared.options.operation_timeout
                ),
            )),
        }
    }

    /// Connects. Waits while the server is full and the pool has other connections, or while it starts after a crash.
    async fn connect(&self, permit: OwnedSemaphorePermit) -> Result<PooledConnection> {
        let mut last_error = None;
        let connecting = async {
            let mut tries_after_close = 0;
            loop {
                let error = match self.shared.servers.connect_to_one().await {
                    Ok(connected) => return Ok(connected),
                    Err(error) => error,
                };
                let is_worth_waiting = match error.code() {
                    Some("53300") => {
                        // The place of an idle connection of this pool on the server serves this call.
                        let idle = self.shared.idle.lock().as_mut().ok_or_else(Error::closed)?.pop();
                        tries_after_close = match idle {
                            Some(_) => TRIES_AFTER_CLOSE,
                            None => tries_after_close.saturating_sub(1),
                        };
                        tries_after_close > 0 || self.shared.permits.available_permits() + 1 < self.max_connections()
                    }
                    // Only a pool that has worked before waits: `open` reports a server that starts.
                    Some("57P03") => self.roles != Roles::unknown(),
                    _ => false,
                };
                if !is_worth_waiting {
                    return Err(error);
                }
                last_error = Some(error);
                let _ = self.shared.timeout(CONNECT_PAUSE, self.shared.freed.notified()).await;
            }
        };
        let connected = self.shared.with_timeout(connecting).await;
        match connected {
            Ok(connected) => {
                let ((connection, server), now) = (connected?, Instant::now());
                let principal = ConnectionPrincipal::Unset;
                Ok(self.pooled(
                    OpenConnection {
                        connection,
                        server,
                        principal,
                        process: None,
                        is_in_recovery: false,
                        replayed: None,
                        opened: now,
                        released: now,
                    },
                    false,
                    permit,
                ))
            }
            // What the server said, if it said something.
            Err(_) => Err(last_error.unwrap_or_else(|| no_server_answered(self.shared.options.operation_timeout))),
        }
    }

    fn max_connections(&self) -> usize {
        self.shared.options.max_connections as usize
    }

    /// Closes connections that were idle, or open, for too long, until the pool is dropped.
    fn start_closing_old_connections(&self) {
        let shared = Arc::downgrade(&self.shared);
        let options = self.shared.options;
        let interval = options.idle_timeout.min(options.max_lifetime).div_f64(2.0).max(Duration::from_millis(10));
        self.shared.runtime.spawn(async move {
            loop {
                tokio::time::sleep(interval).await;
                let Some(shared) = shared.upgrade() else { return };
                let expired = match shared.idle.lock().as_mut() {
                    Some(idle) => shared.take_expired(idle),
                    None => return,
                };
                drop(expired);
            }
        });
    }

    fn pooled(&self, open: OpenConnection, was_idle: bool, permit: OwnedSemaphorePermit) -> PooledConnection {
        PooledConnection { open: Some(open), was_idle, shared: Arc::clone(&self.shared), permit: Some(permit) }
    }

    /// Closes the pool and returns the idle connections. Later calls fail with `Closed`.
    pub(in crate::database) fn close(&self) -> Vec<PgConnection> {
        self.shared.permits.close();
        let idle = self.shared.idle.lock().take().unwrap_or_default();
        idle.into_iter().map(|open| open.connection).collect()
    }
}

impl PooledConnection {
    /// True if the connection was idle before, so the server may have closed it.
    pub(in crate::database) fn was_idle(&self) -> bool {
        self.was_idle
    }

    /// The position of the server in the URL.
    pub(in crate::database) fn server(&self) -> usize {
        self.open.as_ref().expect(NOT_RELEASED).server
    }

    /// Whether the standby of this connection is known to have replayed this place. What was noted longer than `interval` ago does not
    /// count: the server may have been promoted.
    pub(in crate::database) fn has_replayed(&self, place: LogPlace, interval: Duration) -> bool {
        let noted = self.open.as_ref().expect(NOT_RELEASED).replayed;
        noted.is_some_and(|(at, replayed)| at.elapsed() < interval && replayed.covers(place))
    }

    /// Notes what the standby of this connection has replayed.
    pub(in crate::database) fn note_replayed(&mut self, place: LogPlace) {
        self.open.as_mut().expect(NOT_RELEASED).replayed = Some((Instant::now(), place));
    }

    /// Checks that the server is not in recovery. Costs a round trip only if it was.
    ///
    /// # Errors
    /// `Unavailable` (25006).
    pub(in crate::database) async fn check_primary(&mut self) -> Result<()> {
        let open = self.open.as_mut().expect(NOT_RELEASED);
        if open.is_in_recovery {
            open.is_in_recovery = is_in_recovery(&mut open.connection).await?;
        }
        if open.is_in_recovery { Err(in_recovery()) } else { Ok(()) }
    }

    /// Whether the server closed the connection while it was idle, or is gone. Asks the server, unless the connection has
    /// been idle for less than [`RECENT`].
    pub(in crate::database) async fn is_lost(&mut self) -> bool {
        let open = self.open.as_mut().expect(NOT_RELEASED);
        if !self.was_idle || open.released.elapsed() < RECENT {
            return false;
        }
        let ping = self.shared.timeout(self.shared.servers.connect_timeout(), open.connection.ping());
        !matches!(ping.await, Ok(Ok(())))
    }

    /// Returns the connection to the pool. It must be in a known state, outside of a transaction.
    pub(in crate::database) fn release(mut self) {
        if let Some(idle) = self.shared.idle.lock().as_mut()
            && let Some(mut open) = self.open.take()
        {
            open.released = Instant::now();
            idle.push(open);
        }
        drop(self.permit.take());
        self.shared.freed.notify_one();
    }
}

impl Drop for PooledConnection {
    fn drop(&mut self) {
        let (Some(open), Some(permit)) = (self.open.take(), self.permit.take()) else { return };
        self.shared.runtime.spawn(drain(open, permit, Arc::clone(&self.shared)));
    }
}

/// Why `open` is `Some`.
const NOT_RELEASED: &str = "only `release` takes the connection, and it consumes self";

impl Deref for PooledConnection {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.open.as_ref().expect(NOT_RELEASED).connection
    }
}

impl DerefMut for PooledConnection {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.open.as_mut().expect(NOT_RELEASED).connection
    }
}

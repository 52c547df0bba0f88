//! The connection pool.
//!
//! Invariant: at most [`Pool::SIZE`] connections are open. Each serves one call at a time, inside the runtime that
//! opened it, which polls its socket. A connection that is dropped and not released is closed.
//!
//! sqlx's own pool pings a connection each time it returns, from a spawned task, which costs every read a second round
//! trip. This pool is a stack and a semaphore.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use sqlx::{ConnectOptions, PgConnection, postgres::PgConnectOptions};
use tokio::{
    runtime::{Handle, Id},
    sync::{OwnedSemaphorePermit, Semaphore},
};

use super::{
    connection_principal::{self, ConnectionPrincipal},
    errors::translate,
    role_mode::RoleMode,
};
use crate::{
    database::principal::Principal,
    error::{Error, ErrorKind, Result},
};

pub(super) struct Pool {
    connect: PgConnectOptions,
    /// How long a call waits for a free connection, and for a new one.
    timeout: Duration,
    role_mode: RoleMode,
    /// Runs the timers: the caller's runtime may have none.
    timer_runtime: Handle,
    permits: Arc<Semaphore>,
    idle: IdleConnections,
}

/// The idle connections in the order of their release; `None` once the pool is closed.
type IdleConnections = Arc<Mutex<Option<Vec<OpenConnection>>>>;

struct OpenConnection {
    connection: PgConnection,
    /// The runtime that polls the socket.
    runtime: Id,
    principal: ConnectionPrincipal,
}

/// A connection in use.
pub(super) struct PooledConnection {
    /// `None` only while it is released.
    open: Option<OpenConnection>,
    was_idle: bool,
    idle: IdleConnections,
    /// Returned to the semaphore together with the connection.
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// The most connections. A server allows 100 by default, for all of its clients.
    const SIZE: usize = 32;

    pub(super) fn new(connect: PgConnectOptions, timeout: Duration, timer_runtime: Handle) -> Pool {
        Pool {
            connect,
            timeout,
            role_mode: RoleMode::LoginOnly,
            timer_runtime,
            permits: Arc::new(Semaphore::new(Pool::SIZE)),
            idle: Arc::new(Mutex::new(Some(Vec::new()))),
        }
    }

    /// How a connection outside of the pool is opened.
    pub(super) fn connect_options(&self) -> &PgConnectOptions {
        &self.connect
    }

    /// How long a call waits for a connection.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Sets the role mode of the connections. A new pool assumes [`RoleMode::LoginOnly`].
    pub(super) fn set_role_mode(&mut self, role_mode: RoleMode) {
        self.role_mode = role_mode;
    }

    /// Acquires a connection of the current runtime, set to `principal`. Prefers the most recently used idle one that
    /// is already set to `principal`, then any idle one, then opens a new one.
    ///
    /// # Errors
    /// `Unavailable` if no connection is free or the server does not accept one in time; `Closed` after
    /// [`Pool::close`].
    pub(super) async fn acquire(&self, principal: &Principal) -> Result<PooledConnection> {
        let permit = self.permit().await?;
        let runtime = Handle::current().id();
        let idle = {
            let mut idle = self.idle.lock();
            let idle = idle.as_mut().ok_or_else(Error::closed)?;
            let is_usable = |open: &OpenConnection| open.runtime == runtime;
            let best = idle.iter().rposition(|open| is_usable(open) && open.principal.is(principal));
            best.or_else(|| idle.iter().rposition(is_usable)).map(|position| idle.remove(position))
        };
        let Some(open) = idle else { return self.connect_for(principal, permit).await };
        let mut connection = self.pooled(open, true, permit);
        match connection.set_principal(principal, self.role_mode).await {
            Ok(()) => Ok(connection),
            // The server may have closed the connection while it was idle. A new one shows whether the server is up.
            Err(_) => {
                drop(connection);
                self.acquire_new(principal).await
            }
        }
    }

    /// Opens a connection, set to `principal`, after an idle one failed.
    pub(super) async fn acquire_new(&self, principal: &Principal) -> Result<PooledConnection> {
        // The other idle connections are likely to fail as well.
        let stale = self.idle.lock().as_mut().ok_or_else(Error::closed)?.split_off(0);
        drop(stale);
        let permit = self.permit().await?;
        self.connect_for(principal, permit).await
    }

    async fn connect_for(&self, principal: &Principal, permit: OwnedSemaphorePermit) -> Result<PooledConnection> {
        let mut connection = self.connect(permit).await?;
        connection.set_principal(principal, self.role_mode).await?;
        Ok(connection)
    }

    /// Waits for the right to use a connection.
    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        match self.with_timeout(Arc::clone(&self.permits).acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| Error::closed()),
            // 53300: too many connections.
            Err(_) => Err(Error::database(
                Some("53300"),
                ErrorKind::Unavailable,
                format!("all {} connections were busy for {:?}", Pool::SIZE, self.timeout),
            )),
        }
    }

    async fn connect(&self, permit: OwnedSemaphorePermit) -> Result<PooledConnection> {
        self.close_surplus();
        match self.with_timeout(self.connect.connect()).await {
            Ok(connection) => {
                let (connection, runtime) = (connection.map_err(translate)?, Handle::current().id());
                // A new connection has the login role and no settings, which is what the service needs.
                Ok(self.pooled(
                    OpenConnection { connection, runtime, principal: ConnectionPrincipal::Service },
                    false,
                    permit,
                ))
            }
            // 08001: unable to establish a connection.
            Err(_) => Err(Error::database(
                Some("08001"),
                ErrorKind::Unavailable,
                format!("the server did not accept a connection within {:?}", self.timeout),
            )),
        }
    }

    /// Closes the longest idle connections beyond the free permits. They belong to other runtimes, which may have
    /// ended.
    fn close_surplus(&self) {
        let mut surplus = Vec::new();
        if let Some(idle) = self.idle.lock().as_mut() {
            let count = idle.len().saturating_sub(self.permits.available_permits());
            surplus.extend(idle.drain(..count));
        }
        // The sockets are closed outside the lock.
        drop(surplus);
    }

    fn with_timeout<F: Future>(&self, future: F) -> tokio::time::Timeout<F> {
        let _entered = self.timer_runtime.enter();
        tokio::time::timeout(self.timeout, future)
    }

    fn pooled(&self, open: OpenConnection, was_idle: bool, permit: OwnedSemaphorePermit) -> PooledConnection {
        PooledConnection { open: Some(open), was_idle, idle: Arc::clone(&self.idle), _permit: permit }
    }

    /// Closes the pool and returns the idle connections. Later calls fail with `Closed`.
    pub(super) fn close(&self) -> Vec<PgConnection> {
        self.permits.close();
        let idle = self.idle.lock().take().unwrap_or_default();
        idle.into_iter().map(|open| open.connection).collect()
    }
}

impl PooledConnection {
    /// True if the connection was idle before, so the server may have closed it.
    pub(super) fn was_idle(&self) -> bool {
        self.was_idle
    }

    /// Sets the connection to `principal`. After an error the connection must not be used.
    async fn set_principal(&mut self, principal: &Principal, role_mode: RoleMode) -> Result<()> {
        let open = self.open.as_mut().expect(NOT_RELEASED);
        if !open.principal.is(principal) {
            open.principal = connection_principal::set(&mut open.connection, principal, role_mode).await?;
        }
        Ok(())
    }

    /// Returns the connection to the pool. It must be in a known state, outside of a transaction.
    pub(super) fn release(mut self) {
        if let Some(idle) = self.idle.lock().as_mut() {
            idle.extend(self.open.take());
        }
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

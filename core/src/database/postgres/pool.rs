//! The connections to the server.
//!
//! Invariant: at most [`Pool::SIZE`] are open, each used by one caller at a time, inside the runtime that it was made
//! in, which is the one that hears its socket; one that is not given back is closed. The driver's own pool pings a
//! connection each time it comes back, from a task of its own: that is a second round trip for every read, so a stack
//! and a semaphore stand here instead.

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
    errors::translate,
    role::{self, Roles, Working},
};
use crate::{
    database::Principal,
    error::{Error, ErrorKind, Result},
};

pub(super) struct Pool {
    connect: PgConnectOptions,
    patience: Duration,
    roles: Roles,
    /// A caller's runtime may have no timers.
    timers: Handle,
    permits: Arc<Semaphore>,
    idle: Idle,
}

/// In the order in which they came back; `None` once closed.
type Idle = Arc<Mutex<Option<Vec<Kept>>>>;

/// A connection, the runtime that hears its socket, and for whom it works.
struct Kept {
    connection: PgConnection,
    runtime: Id,
    working: Working,
}

/// A connection in use.
pub(super) struct Lent {
    kept: Option<Kept>,
    was_idle: bool,
    idle: Idle,
    /// Held as long as the connection is.
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    /// Connections at once; a server has 100 by default, for everybody.
    const SIZE: usize = 32;

    pub(super) fn new(connect: PgConnectOptions, patience: Duration, timers: Handle) -> Pool {
        Pool {
            connect,
            patience,
            roles: Roles::One,
            timers,
            permits: Arc::new(Semaphore::new(Pool::SIZE)),
            idle: Arc::new(Mutex::new(Some(Vec::new()))),
        }
    }

    /// Which roles its connections can have, once that is known.
    pub(super) fn set_roles(&mut self, roles: Roles) {
        self.roles = roles;
    }

    /// A connection that works for `principal`, of the runtime that the caller is inside: of those that do already the one
    /// used last, or any, or a new one.
    pub(super) async fn lend(&self, principal: &Principal) -> Result<Lent> {
        let permit = self.permit().await?;
        let runtime = Handle::current().id();
        let found = {
            let mut idle = self.idle.lock();
            let idle = idle.as_mut().ok_or_else(Error::closed)?;
            let here = |kept: &Kept| kept.runtime == runtime;
            let fitting = idle.iter().rposition(|kept| here(kept) && kept.working.is_for(principal));
            fitting.or_else(|| idle.iter().rposition(here)).map(|place| idle.remove(place))
        };
        let Some(found) = found else { return self.new_for(principal, permit).await };
        let mut lent = self.lent(found, true, permit);
        match lent.work_for(principal, self.roles).await {
            Ok(()) => Ok(lent),
            // It may have gone stale: a new one says whether the server is there.
            Err(_) => {
                drop(lent);
                self.lend_new(principal).await
            }
        }
    }

    /// A connection that was certainly not left idle while the server restarted.
    pub(super) async fn lend_new(&self, principal: &Principal) -> Result<Lent> {
        // The others that lay idle are as old as the one that failed.
        let stale = self.idle.lock().as_mut().ok_or_else(Error::closed)?.split_off(0);
        drop(stale);
        let permit = self.permit().await?;
        self.new_for(principal, permit).await
    }

    async fn new_for(&self, principal: &Principal, permit: OwnedSemaphorePermit) -> Result<Lent> {
        let mut lent = self.open(permit).await?;
        lent.work_for(principal, self.roles).await?;
        Ok(lent)
    }

    async fn permit(&self) -> Result<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Ok(permit);
        }
        match self.in_time(Arc::clone(&self.permits).acquire_owned()).await {
            Ok(permit) => permit.map_err(|_| Error::closed()),
            // 53300: too many connections.
            Err(_) => Err(Error::database(
                Some("53300"),
                ErrorKind::Unavailable,
                format!("all {} connections were busy for {:?}", Pool::SIZE, self.patience),
            )),
        }
    }

    async fn open(&self, permit: OwnedSemaphorePermit) -> Result<Lent> {
        self.make_room();
        match self.in_time(self.connect.connect()).await {
            Ok(connection) => {
                let (connection, runtime) = (connection.map_err(translate)?, Handle::current().id());
                // Fresh from the server it has the role that logged in, and no settings: as the service needs it.
                Ok(self.lent(Kept { connection, runtime, working: Working::Service }, false, permit))
            }
            // 08001: unable to establish a connection.
            Err(_) => Err(Error::database(
                Some("08001"),
                ErrorKind::Unavailable,
                format!("the server did not accept a connection within {:?}", self.patience),
            )),
        }
    }

    /// Closes what lies idle too long in other runtimes, of which some may be no more.
    fn make_room(&self) {
        let mut superfluous = Vec::new();
        if let Some(idle) = self.idle.lock().as_mut() {
            let more = idle.len().saturating_sub(self.permits.available_permits());
            superfluous.extend(idle.drain(..more));
        }
        // Outside the lock: each says goodbye to its socket.
        drop(superfluous);
    }

    fn in_time<F: Future>(&self, future: F) -> tokio::time::Timeout<F> {
        let _inside = self.timers.enter();
        tokio::time::timeout(self.patience, future)
    }

    fn lent(&self, kept: Kept, was_idle: bool, permit: OwnedSemaphorePermit) -> Lent {
        Lent { kept: Some(kept), was_idle, idle: Arc::clone(&self.idle), _permit: permit }
    }

    /// Lends no more; what lay idle.
    pub(super) fn close(&self) -> Vec<PgConnection> {
        self.permits.close();
        let idle = self.idle.lock().take().unwrap_or_default();
        idle.into_iter().map(|kept| kept.connection).collect()
    }
}

impl Lent {
    /// Whether it was used before, and may have gone stale since.
    pub(super) fn was_idle(&self) -> bool {
        self.was_idle
    }

    /// Has it work for `principal`; one that fails to is not to be used.
    async fn work_for(&mut self, principal: &Principal, roles: Roles) -> Result<()> {
        let kept = self.kept.as_mut().expect(TAKEN);
        if !kept.working.is_for(principal) {
            kept.working = role::change(&mut kept.connection, principal, roles).await?;
        }
        Ok(())
    }

    /// Back to the pool: it is in a known state, outside of a transaction.
    pub(super) fn give_back(mut self) {
        if let Some(idle) = self.idle.lock().as_mut() {
            idle.extend(self.kept.take());
        }
    }
}

/// Why a connection in use is there.
const TAKEN: &str = "only give_back takes it, and takes self with it";

impl Deref for Lent {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.kept.as_ref().expect(TAKEN).connection
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.kept.as_mut().expect(TAKEN).connection
    }
}

//! What the connections of a pool share with it.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use sqlx::PgConnection;
use tokio::{
    sync::{Notify, Semaphore},
    time::Instant,
};

use super::{principal::ConnectionPrincipal, servers::Servers};
use crate::{
    clock::Clock,
    database::{options::PostgresOptions, written::LogPlace},
    threads::RuntimeHandle,
};

/// What connections in use share with the pool.
pub(in crate::database) struct Shared {
    pub(in crate::database) servers: Servers,
    pub(in crate::database) options: PostgresOptions,
    /// The server's time.
    pub(in crate::database) clock: Clock,
    /// The client's runtime, which waits for the sockets and the timers.
    pub(in crate::database) runtime: RuntimeHandle,
    pub(in crate::database) permits: Arc<Semaphore>,
    /// The idle connections in the order of their release; `None` once the pool is closed.
    pub(in crate::database) idle: Mutex<Option<Vec<OpenConnection>>>,
    /// Notified when a connection is released or closed.
    pub(in crate::database) freed: Notify,
}

/// An open connection, in use or idle.
pub(in crate::database) struct OpenConnection {
    pub(in crate::database) connection: PgConnection,
    /// The position of its server in the URL.
    pub(in crate::database) server: usize,
    pub(in crate::database) principal: ConnectionPrincipal,
    /// The process id of the server process; `None` behind a pooler in transaction mode.
    pub(in crate::database) process: Option<i32>,
    /// The server was a standby when the connection was set to its principal. It may have become the primary since.
    pub(in crate::database) is_in_recovery: bool,
    /// On a replica: what the server was last found to have replayed, and when.
    pub(in crate::database) replayed: Option<(Instant, LogPlace)>,
    pub(in crate::database) opened: Instant,
    pub(in crate::database) released: Instant,
}

impl Shared {
    /// Limits a future to the operation timeout.
    pub(in crate::database) fn with_timeout<F: Future>(&self, future: F) -> tokio::time::Timeout<F> {
        self.timeout(self.options.operation_timeout, future)
    }

    pub(in crate::database) fn timeout<F: Future>(&self, limit: Duration, future: F) -> tokio::time::Timeout<F> {
        let _entered = self.runtime.tokio.enter();
        tokio::time::timeout(limit, future)
    }

    /// The number of open connections, in use and idle.
    pub(in crate::database) fn open_connections(&self, idle: &[OpenConnection]) -> usize {
        self.used_connections() + idle.len()
    }

    /// The number of connections in use, for a caller that has a permit and no connection yet.
    pub(in crate::database) fn used_connections(&self) -> usize {
        let permits = (self.options.max_connections as usize).saturating_sub(self.permits.available_permits());
        permits.saturating_sub(1)
    }

    /// Takes the connections out of `idle` that were idle, or open, for too long.
    pub(in crate::database) fn take_expired(&self, idle: &mut Vec<OpenConnection>) -> Vec<OpenConnection> {
        let (idle_timeout, max_lifetime) = (self.options.idle_timeout, self.options.max_lifetime);
        let is_expired = |open: &mut OpenConnection| {
            open.released.elapsed() >= idle_timeout || open.opened.elapsed() >= max_lifetime
        };
        idle.extract_if(.., is_expired).collect()
    }
}

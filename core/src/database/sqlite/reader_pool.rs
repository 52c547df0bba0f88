//! The connection pool for reads.
//!
//! Invariant: a connection serves one read at a time. A read that finds no idle connection opens one, so reads never
//! wait for each other. After `close` a connection is dropped as soon as its read ends.

use std::{path::PathBuf, time::Duration};

use parking_lot::Mutex;

use super::{connection::Connection, open};
use crate::error::{Error, Result};

pub(super) struct ReaderPool {
    file: PathBuf,
    busy_timeout: Duration,
    /// `None` once closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl ReaderPool {
    /// The most idle connections that the pool keeps. Connections released beyond that are closed.
    const MAX_IDLE: usize = 16;

    pub(super) fn new(file: PathBuf, busy_timeout: Duration) -> ReaderPool {
        ReaderPool { file, busy_timeout, idle: Mutex::new(Some(Vec::new())) }
    }

    /// Runs `work` with a connection of the pool.
    ///
    /// # Errors
    /// `Closed` after [`ReaderPool::close`]; else the errors of opening a connection and of `work`.
    pub(super) fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().as_mut().ok_or_else(Error::closed)?.pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::open_reader(&self.file, self.busy_timeout)?,
        };
        let result = work(&connection);
        if let Some(idle) = self.idle.lock().as_mut().filter(|idle| idle.len() < ReaderPool::MAX_IDLE) {
            idle.push(connection);
        }
        result
    }

    pub(super) fn close(&self) {
        // The files are closed outside the lock, so that a concurrent read gets `Closed` at once.
        let idle = self.idle.lock().take();
        drop(idle);
    }
}

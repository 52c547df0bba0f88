//! Read-only connections, lent to whoever reads.
//!
//! Invariant: a connection serves one call at a time and outlives none past `close`. There are as many as there
//! were readers at once, so no reader ever waits for another.

use std::{path::PathBuf, time::Duration};

use parking_lot::Mutex;

use super::{connection::Connection, open};
use crate::error::{Error, Result};

pub(super) struct Readers {
    file: PathBuf,
    busy_timeout: Duration,
    /// `None` once closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    /// Idle connections kept; a burst's others are closed.
    const KEPT: usize = 16;

    pub(super) fn new(file: PathBuf, busy_timeout: Duration) -> Readers {
        Readers { file, busy_timeout, idle: Mutex::new(Some(Vec::new())) }
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let idle = self.idle.lock().as_mut().ok_or_else(Error::closed)?.pop();
        let connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.file, self.busy_timeout)?,
        };
        let result = work(&connection);
        if let Some(idle) = self.idle.lock().as_mut().filter(|idle| idle.len() < Readers::KEPT) {
            idle.push(connection);
        }
        result
    }

    pub(super) fn close(&self) {
        // Taken out first: closing files under the lock would hold up readers that only want to hear "closed".
        let idle = self.idle.lock().take();
        drop(idle);
    }
}

//! The connection pool for reads.
//!
//! Invariant: a connection serves one read at a time, and at most [`ReaderPool::MAX_OPEN`] connections are open. A read
//! that finds no idle connection opens one; at the limit it waits for another read to end. After `close` no connection is
//! left open, except those of reads that ran longer than `close` waits.

use std::{path::PathBuf, time::Duration};

use parking_lot::{Condvar, Mutex};

use super::{connection::Connection, open};
use crate::error::{Error, ErrorKind, Result};

pub(super) struct ReaderPool {
    file: PathBuf,
    busy_timeout: Duration,
    state: Mutex<PoolState>,
    /// Signalled when a connection is released.
    released: Condvar,
}

#[derive(Default)]
struct PoolState {
    idle: Vec<Connection>,
    /// Idle connections and those in use.
    open: usize,
    is_closed: bool,
}

/// A connection in use; released on drop.
struct PooledReader<'a> {
    pool: &'a ReaderPool,
    /// `None` while it is being opened, or if that failed.
    connection: Option<Connection>,
}

impl ReaderPool {
    /// The most idle connections that the pool keeps. Connections released beyond that are closed.
    const MAX_IDLE: usize = 16;

    /// The most open connections. Each has two file descriptors, and a process often has 1,024.
    const MAX_OPEN: usize = 64;

    /// How long `close` waits for reads that run.
    const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

    pub(super) fn new(file: PathBuf, busy_timeout: Duration) -> ReaderPool {
        ReaderPool { file, busy_timeout, state: Mutex::default(), released: Condvar::new() }
    }

    /// Runs `work` with a connection of the pool.
    ///
    /// # Errors
    /// `Closed` after [`ReaderPool::close`]; `Unavailable` (53300) if all connections stay in use for the busy time-out;
    /// else the errors of opening a connection and of `work`.
    pub(super) fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let mut reader = PooledReader { pool: self, connection: self.take_idle()? };
        if reader.connection.is_none() {
            reader.connection = Some(open::open_reader(&self.file, self.busy_timeout)?);
        }
        reader.connection.as_ref().map_or_else(|| Err(Error::closed()), work)
    }

    /// Opens a connection that is not the pool's.
    pub(super) fn open_dedicated(&self) -> Result<Connection> {
        open::open_reader(&self.file, self.busy_timeout)
    }

    /// Takes an idle connection. Returns `None` if the caller is to open one, for which it has a place.
    fn take_idle(&self) -> Result<Option<Connection>> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return Err(Error::closed());
            }
            if let Some(connection) = state.idle.pop() {
                return Ok(Some(connection));
            }
            if state.open < ReaderPool::MAX_OPEN {
                state.open += 1;
                return Ok(None);
            }
            if self.released.wait_for(&mut state, self.busy_timeout).timed_out() {
                let message = format!("all {} readers were busy for {:?}", ReaderPool::MAX_OPEN, self.busy_timeout);
                return Err(Error::database(Some("53300"), ErrorKind::Unavailable, message));
            }
        }
    }

    /// True after [`ReaderPool::close`] was called: a read that takes long ends early.
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().is_closed
    }

    /// Closes the idle connections and waits for the reads that run. Returns true if no connection is left open.
    pub(super) fn close(&self) -> bool {
        let mut state = self.state.lock();
        state.is_closed = true;
        let idle = std::mem::take(&mut state.idle);
        state.open -= idle.len();
        // Reads that wait for a connection get `Closed`.
        self.released.notify_all();
        while state.open > 0 && !self.released.wait_for(&mut state, ReaderPool::CLOSE_TIMEOUT).timed_out() {}
        let all_closed = state.open == 0;
        drop(state);
        drop(idle);
        all_closed
    }
}

impl Drop for PooledReader<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        let keeps = !state.is_closed && state.idle.len() < ReaderPool::MAX_IDLE;
        match self.connection.take() {
            Some(connection) if keeps => state.idle.push(connection),
            // Closed before its place is free, so that `close` returns with the file closed.
            connection => {
                parking_lot::MutexGuard::unlocked(&mut state, || drop(connection));
                state.open -= 1;
            }
        }
        let is_closed = state.is_closed;
        drop(state);
        if is_closed {
            // Several threads may wait in `close`.
            self.pool.released.notify_all();
        } else {
            self.pool.released.notify_one();
        }
    }
}

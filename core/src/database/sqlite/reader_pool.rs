//! The connection pool for reads.
//!
//! Invariant: a connection serves one read at a time, and at most [`ReaderPool::MAX_OPEN`] connections are open. A read
//! that finds no idle connection opens one; at the limit it waits for another read to end. After `close` no connection is
//! left open, except by reads that ran longer than `close` waits. Once the files of the database were removed or
//! replaced, reads fail after [`CHECK_INTERVAL`] at the latest.

use std::{sync::Arc, time::Duration};

use super::{connection::Connection, memory::Source, open, open_files::OpenFiles};
use crate::{
    clock::{Clock, Moment},
    error::{Error, ErrorKind, Result},
    threads::sync::{Condvar, Mutex, MutexGuard},
};

/// How often reads check that the files of the database are still in place. A check takes half as long as a point read.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct ReaderPool {
    source: Source,
    pub(super) files: Arc<OpenFiles>,
    clock: Clock,
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
    /// When to check the files next.
    next_check: Option<Moment>,
}

/// A connection in use; released on drop.
struct PooledReader<'a> {
    pool: &'a ReaderPool,
    /// `None` once it is released.
    connection: Option<Connection>,
}

impl ReaderPool {
    /// The most idle connections that the pool keeps. Connections released beyond that are closed.
    const MAX_IDLE: usize = 16;

    /// The most open connections. Each has two file descriptors, and a process often has 1,024.
    const MAX_OPEN: usize = 64;

    /// How long `close` waits for reads that run.
    const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

    pub(super) fn new(source: Source, files: Arc<OpenFiles>, busy_timeout: Duration) -> ReaderPool {
        let (clock, state, released) = (Clock::default(), Mutex::default(), Condvar::new());
        ReaderPool { source, files, clock, busy_timeout, state, released }
    }

    /// Runs `work` with a connection of the pool.
    ///
    /// # Errors
    /// `Closed` after [`ReaderPool::close`]; `Unavailable` (53300) if all connections stay in use for the busy time-out, and
    /// (58030) if the files of the database were removed or replaced; else the errors of opening a connection and of `work`.
    pub(super) fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let _pass = match &self.source {
            Source::Memory(_, gate) => Some(gate.read()),
            Source::File(_) => None,
        };
        let reader = PooledReader { pool: self, connection: Some(self.take()?) };
        reader.connection.as_ref().map_or_else(|| Err(Error::closed()), work)
    }

    /// Takes a connection out of the pool. The caller gives it back by [`release`](ReaderPool::release).
    ///
    /// # Errors
    /// Those of [`with_connection`](ReaderPool::with_connection).
    pub(super) fn take(&self) -> Result<Connection> {
        if let Some(connection) = self.take_idle()? {
            return Ok(connection);
        }
        self.open_dedicated().inspect_err(|_| self.release(None))
    }

    /// Gives back a connection; `None` if the one that had a place could not be opened.
    pub(super) fn release(&self, connection: Option<Connection>) {
        let mut state = self.state.lock();
        let keeps = !state.is_closed && state.idle.len() < ReaderPool::MAX_IDLE;
        match connection {
            Some(connection) if keeps => state.idle.push(connection),
            // Closed before its place is free, so that `close` returns with the file closed.
            connection => {
                MutexGuard::unlocked(&mut state, || drop(connection));
                state.open -= 1;
            }
        }
        let is_closed = state.is_closed;
        drop(state);
        if is_closed {
            // Several threads may wait in `close`.
            self.released.notify_all();
        } else {
            self.released.notify_one();
        }
    }

    /// Opens a connection that is not the pool's.
    pub(super) fn open_dedicated(&self) -> Result<Connection> {
        let connection = open::open_reader(&self.source, self.busy_timeout)?;
        // Otherwise the connection may be on another file than the connection that writes.
        self.files.check()?;
        Ok(connection)
    }

    /// Checks the files, unless that was done less than [`CHECK_INTERVAL`] ago.
    fn check_files(&self, state: &mut PoolState) -> Result<()> {
        let now = self.clock.moment();
        if state.next_check.is_none_or(|next| next <= now) {
            self.files.check()?;
            state.next_check = Some(now.after(CHECK_INTERVAL));
        }
        Ok(())
    }

    /// Takes an idle connection. Returns `None` if the caller is to open one, for which it has a place.
    fn take_idle(&self) -> Result<Option<Connection>> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return Err(Error::closed());
            }
            self.check_files(&mut state)?;
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

    /// How many connections are in use, and how many are idle.
    pub(super) fn connections(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.open - state.idle.len(), state.idle.len())
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
        self.pool.release(self.connection.take());
    }
}

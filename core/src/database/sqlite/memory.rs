//! A database in memory: the connections of a client share it by SQLite's file system `memdb`, and nothing is on the disk.
//!
//! Invariant: `memdb` has no write-ahead log, so a reader and a transaction that writes exclude each other. They take turns at
//! the [`Gate`]; so SQLite never finds its lock taken.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::backup::Backup;
use uuid::Uuid;

use super::{connection::Connection, errors::translate};
use crate::{
    error::Result,
    threads::sync::{Condvar, Mutex},
};

/// Where a database is.
#[derive(Debug, Clone)]
pub(super) enum Source {
    File(PathBuf),
    /// The URI of a database in memory, and the gate of its readers and its writer.
    Memory(String, Arc<Gate>),
}

impl Source {
    /// A new database in memory. It is deleted when its last connection is closed.
    pub(super) fn new_memory() -> Source {
        Source::Memory(format!("file:/townsquare-{}?vfs=memdb", Uuid::new_v4().simple()), Arc::default())
    }

    /// The file; `None` for a database in memory.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Source::File(file) => Some(file),
            Source::Memory(..) => None,
        }
    }
}

/// Copies a database into another one in memory, which stays as it is while the database changes.
pub(super) fn copy(source: &Connection) -> Result<Connection> {
    /// The pages that a step copies.
    const ALL: std::ffi::c_int = -1;
    let copy_all = || {
        let mut copy = rusqlite::Connection::open_in_memory()?;
        Backup::new(&source.0, &mut copy)?.step(ALL)?;
        copy.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA query_only = ON;")?;
        Ok(copy)
    };
    copy_all().map(Connection).map_err(translate)
}

/// Lets many readers or one writer pass.
#[derive(Debug, Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    readers: usize,
    has_writer: bool,
    /// New readers wait too, so that they cannot keep the writer waiting forever.
    awaits_writer: bool,
}

/// The pass of a reader or of the writer. Dropping it leaves the gate.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    is_writer: bool,
}

impl Gate {
    /// Waits until no writer has the gate. A thread that has a pass must not ask for another one.
    pub(super) fn read(self: &Arc<Gate>) -> Pass {
        let mut state = self.state.lock();
        while state.has_writer || state.awaits_writer {
            self.changed.wait(&mut state);
        }
        state.readers += 1;
        Pass { gate: Arc::clone(self), is_writer: false }
    }

    /// Waits until nobody has the gate. A database has one writer.
    pub(super) fn write(self: &Arc<Gate>) -> Pass {
        let mut state = self.state.lock();
        state.awaits_writer = true;
        while state.has_writer || state.readers > 0 {
            self.changed.wait(&mut state);
        }
        state.awaits_writer = false;
        state.has_writer = true;
        Pass { gate: Arc::clone(self), is_writer: true }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut state = self.gate.state.lock();
        if self.is_writer {
            state.has_writer = false;
        } else {
            state.readers -= 1;
        }
        drop(state);
        self.gate.changed.notify_all();
    }
}

#[cfg(all(test, shuttle))]
mod schedules;

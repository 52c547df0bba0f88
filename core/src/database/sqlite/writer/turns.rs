//! Turns of the writers of several processes: a lock file beside the database.
//!
//! SQLite does not queue its writers: a process that waits for the write lock asks for it from time to time, and a process
//! that begins a transaction right after each commit leaves it no moment. So a process that finds the write lock taken takes
//! the turn, and keeps it until it has the write lock; and a process that writes without pause looks from time to time
//! whether another one has the turn, and if so waits for its own.
//!
//! Invariant: the turn decides who waits and nothing else. A database is as safe without the file, or on a file system
//! without locks.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use crate::{
    clock::{Clock, Moment},
    regular_file::open_lock_file,
};

/// The longest time that a process writes without looking for others.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// How often a process that waits for its turn tries to take it.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// The turn of one client.
pub(in crate::database::sqlite) struct Turns {
    /// Created by the first process that waits. `None` for a database in memory, which has one process.
    path: Option<PathBuf>,
    state: Mutex<TurnState>,
    clock: Clock,
}

#[derive(Default)]
struct TurnState {
    file: Option<File>,
    /// Whether this client has the turn.
    is_taken: bool,
    /// When to look next whether another process has the turn.
    next_look: Option<Moment>,
}

/// The turn of this client. Dropping it ends the turn.
pub(super) struct Turn<'t>(&'t Turns);

impl Turns {
    /// The turns of the writers of the database `file`.
    pub(in crate::database::sqlite) fn of(file: &Path) -> Turns {
        let mut path: OsString = file.as_os_str().to_owned();
        path.push("-turn");
        Turns { path: Some(path.into()), state: Mutex::default(), clock: Clock::default() }
    }

    /// The turns of the only process that has the database.
    pub(in crate::database::sqlite) fn of_one_process() -> Turns {
        Turns { path: None, state: Mutex::default(), clock: Clock::default() }
    }

    /// Whether this or another process waits for the write lock. Looks at most every [`LOOK_INTERVAL`].
    pub(super) fn is_awaited(&self) -> bool {
        let Some(path) = &self.path else { return false };
        let mut state = self.state.lock();
        if state.is_taken {
            return true;
        }
        let now = self.clock.moment();
        if state.next_look.is_some_and(|next| now < next) {
            return false;
        }
        state.next_look = Some(now.after(LOOK_INTERVAL));
        if state.file.is_none() {
            // There is no file before any process has waited.
            state.file = OpenOptions::new().read(true).write(true).open(path).ok();
        }
        let Some(file) = &state.file else { return false };
        match file.try_lock_shared() {
            Ok(()) => {
                let _ = file.unlock();
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => false,
        }
    }

    /// Waits for the turn until `deadline`, or until `is_cancelled` returns true. `None` if the turn cannot be taken: then the
    /// caller waits for the write lock without it.
    pub(super) fn take(&self, deadline: Moment, is_cancelled: impl Fn() -> bool) -> Option<Turn<'_>> {
        loop {
            match self.try_take() {
                Ok(true) => return Some(Turn(self)),
                Ok(false) if self.clock.moment() >= deadline || is_cancelled() => return None,
                Ok(false) => thread::sleep(POLL_INTERVAL),
                Err(error) => {
                    tracing::debug!(%error, "the writers of several processes take no turns");
                    return None;
                }
            }
        }
    }

    fn try_take(&self) -> io::Result<bool> {
        let Some(path) = &self.path else { return Ok(false) };
        let mut state = self.state.lock();
        if state.file.is_none() {
            state.file = Some(open_lock_file(path)?);
        }
        state.is_taken = match state.file.as_ref().map(File::try_lock) {
            Some(Ok(())) => true,
            Some(Err(TryLockError::Error(error))) => return Err(error),
            Some(Err(TryLockError::WouldBlock)) | None => false,
        };
        Ok(state.is_taken)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_taken = false;
        if let Some(Err(error)) = state.file.as_ref().map(File::unlock) {
            tracing::warn!(%error, "the turn of a writer cannot be ended");
            // Closing the file unlocks it.
            state.file = None;
        }
    }
}

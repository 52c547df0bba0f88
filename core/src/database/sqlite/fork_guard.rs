//! Refuses a database that was open when this process was forked.
//!
//! SQLite keeps its locks by process and its knowledge of them in memory. A forked child has that knowledge without the
//! locks, so a child that opens the parent's database loses committed rows. The list of open files here is copied by the
//! fork as well: an entry of another process id tells that the parent had the file open.
//!
//! Invariant: nothing here waits for a lock without an end, because a fork may copy a lock while it is held.

use std::{
    path::Path,
    sync::{Mutex, MutexGuard, TryLockError},
    time::Duration,
};

use crate::{
    clock::Clock,
    error::{Error, Result},
};

static OPEN_FILES: Mutex<Vec<OpenFile>> = Mutex::new(Vec::new());

/// How long the list of open files may be locked by another thread of this process.
const PATIENCE: Duration = Duration::from_secs(1);

/// A database file that a client of process `process` has open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenFile {
    file: FileId,
    process: u32,
}

#[cfg(unix)]
type FileId = (u64, u64);
#[cfg(not(unix))]
type FileId = std::path::PathBuf;

/// Keeps a database file in the list of open files until it is dropped.
#[derive(Debug)]
pub(super) struct ForkGuard(OpenFile);

impl ForkGuard {
    /// Enters `file`, which exists, in the list of open files.
    ///
    /// # Errors
    /// `Config` if the file was open in the parent of this process when the parent was forked.
    pub(super) fn enter(file: &Path) -> Result<ForkGuard> {
        let cannot_read =
            |error| Error::config(format!("Cannot use {} as database: {error}", file.display())).caused_by(error);
        let entry = OpenFile { file: file_id(file).map_err(cannot_read)?, process: std::process::id() };
        let mut open_files = lock().ok_or_else(|| forked(file))?;
        if open_files.iter().any(|open| open.file == entry.file && open.process != entry.process) {
            return Err(forked(file));
        }
        open_files.push(entry.clone());
        Ok(ForkGuard(entry))
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        if let Some(mut open_files) = lock()
            && let Some(place) = open_files.iter().position(|open| *open == self.0)
        {
            open_files.swap_remove(place);
        }
    }
}

/// The list, or `None` if a fork copied its lock while another thread held it.
fn lock() -> Option<MutexGuard<'static, Vec<OpenFile>>> {
    let clock = Clock::default();
    let end = clock.moment().after(PATIENCE);
    loop {
        match OPEN_FILES.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if clock.moment() >= end => return None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
}

#[cfg(unix)]
fn file_id(file: &Path) -> std::io::Result<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(file)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn file_id(file: &Path) -> std::io::Result<FileId> {
    file.canonicalize()
}

fn forked(file: &Path) -> Error {
    Error::config(format!(
        "{} was open in the parent process when it forked this one, and SQLite does not survive that: start workers \
         before opening the database, or spawn them",
        file.display()
    ))
}

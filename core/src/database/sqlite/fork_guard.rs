//! Refuses a database that was open when this process was forked.
//!
//! SQLite keeps its locks by process and its knowledge of them in memory. A forked child has that knowledge without the
//! locks, so a child that opens the parent's database loses committed rows. The list of open files here is copied by the
//! fork as well: an entry of another process id tells that the parent had the file open.
//!
//! Invariant: nothing here waits for a lock, because a fork may copy a lock while it is held. A change replaces the whole
//! list.

use std::{path::Path, sync::Arc};

use arc_swap::ArcSwapOption;

use super::open_files::{FileId, file_id};
use crate::error::{Error, Result};

static OPEN_FILES: ArcSwapOption<Vec<OpenFile>> = ArcSwapOption::const_empty();

/// A database file that a client of process `process` has open.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenFile {
    /// `None` for a database in memory.
    file: Option<FileId>,
    process: u32,
}

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
        let entry = OpenFile { file: Some(file_id(file).map_err(cannot_read)?), process: std::process::id() };
        let is_inherited = |open: &OpenFile| open.file == entry.file && open.process != entry.process;
        if OPEN_FILES.load().as_deref().is_some_and(|open_files| open_files.iter().any(is_inherited)) {
            return Err(forked(file));
        }
        change(|open_files| open_files.push(entry.clone()));
        Ok(ForkGuard(entry))
    }

    /// Enters a new database in memory.
    pub(super) fn enter_memory() -> ForkGuard {
        let entry = OpenFile { file: None, process: std::process::id() };
        change(|open_files| open_files.push(entry.clone()));
        ForkGuard(entry)
    }

    /// The identity of the database file; `None` for a database in memory.
    pub(super) fn file_id(&self) -> Option<FileId> {
        #[allow(clippy::clone_on_copy, reason = "on Unix it is a pair of numbers, elsewhere a path")]
        self.0.file.clone()
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        // A child process that drops the parent's guard leaves the entry: its copy of SQLite knows the file forever.
        if self.0.process == std::process::id() {
            change(|open_files| {
                if let Some(place) = open_files.iter().position(|open| *open == self.0) {
                    open_files.swap_remove(place);
                }
            });
        }
    }
}

/// Replaces the list by a changed copy.
fn change(change: impl Fn(&mut Vec<OpenFile>)) {
    OPEN_FILES.rcu(|open_files| {
        let mut open_files = open_files.as_deref().cloned().unwrap_or_default();
        change(&mut open_files);
        Some(Arc::new(open_files))
    });
}

fn forked(file: &Path) -> Error {
    Error::config(format!(
        "{} was open in the parent process when it forked this one, and SQLite does not survive that: start workers \
         before opening, or spawn them",
        file.display()
    ))
}

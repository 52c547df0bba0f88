//! Backs up a SQLite database to a file while clients use it, and restores a backup into an unused folder.
//!
//! Invariant: the target is a whole copy or does not exist: the copy is written under a temporary name and renamed when
//! it is complete. A database is read through SQLite only: closing any other descriptor of its file would drop the
//! locks of this process.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{OpenFlags, backup::Backup};

use super::{connection::Connection, errors::translate, migrate, open};
use crate::error::{Error, Result};

/// Pages copied in one step of SQLite's backup.
const PAGES_PER_STEP: std::ffi::c_int = 1_024;

/// Copies the database to `target`.
///
/// # Errors
/// `InvalidInput` if `target` exists; `Unavailable` or `Config` if it cannot be written.
pub(super) fn copy(connection: &Connection, target: &Path) -> Result<()> {
    copy_to(&connection.0, target)
}

fn copy_to(source: &rusqlite::Connection, target: &Path) -> Result<()> {
    if target.exists() {
        return Err(Error::invalid_input(format!("{} exists; a backup does not overwrite a file", target.display())));
    }
    let temporary = TemporaryFile(temporary_name(target));
    {
        let mut copy = rusqlite::Connection::open(&temporary.0).map_err(translate)?;
        // One read transaction for the whole copy: otherwise each write would make the backup start again.
        source.execute_batch("BEGIN").map_err(translate)?;
        let copied = Backup::new(source, &mut copy)
            .and_then(|backup| backup.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None))
            .and_then(|()| copy.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"));
        let ended = source.execute_batch("COMMIT");
        copied.and(ended).map_err(translate)?;
    }
    let sync = fs::File::open(&temporary.0).and_then(|file| file.sync_all());
    let moved = sync.and_then(|()| fs::rename(&temporary.0, target)).and_then(|()| sync_folder(target));
    moved.map_err(|error| cannot("write the copy", target, error))
}

/// Copies the backup `source` into `data_dir` as its database.
///
/// # Errors
/// `Config` if `source` is damaged, is not a townsquare database or has a newer version, and if `data_dir` has a
/// database.
pub(crate) fn restore(source: &Path, data_dir: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if !source.is_file() {
        return Err(Error::config(format!("There is no backup at {}", source.display())));
    }
    let damaged = |why: &str| Error::config(format!("The backup {} is damaged: {why}", source.display()));
    let unreadable = |error| {
        let error = translate(error);
        damaged(error.message()).caused_by(error)
    };
    let backup = rusqlite::Connection::open_with_flags(source, flags).map_err(unreadable)?;
    open::require_application_id(&backup, source)?;
    let integrity: String = backup.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(unreadable)?;
    if integrity != "ok" {
        return Err(damaged(&integrity));
    }
    migrate::refuse_newer(&backup)?;
    fs::create_dir_all(data_dir).map_err(|error| cannot("create the folder", data_dir, error))?;
    let target = data_dir.join(open::FILE_NAME);
    if target.exists() {
        return Err(Error::config(format!("{} exists; a restore does not overwrite a database", target.display())));
    }
    copy_to(&backup, &target)
}

/// A file that is removed on drop, unless it was renamed.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Fails if the file was renamed, as it is after a complete copy.
        let _ = fs::remove_file(&self.0);
    }
}

/// A unique name in the folder of `target`.
fn temporary_name(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", uuid::Uuid::new_v4().simple()));
    target.with_file_name(name)
}

/// Flushes the folder of `target` to disk, so that a rename in it survives a power loss.
fn sync_folder(target: &Path) -> std::io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all())
}

fn cannot(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::config(format!("Cannot {what} {}: {error}", path.display())).caused_by(error)
}

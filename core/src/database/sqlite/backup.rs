//! Copies of a SQLite database: taken while writers go on, and put back where no client is.
//!
//! Invariant: a copy is whole or not there: it is made under another name, checked, and renamed into place. All
//! reading goes through SQLite, whose locks a descriptor of our own would drop.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{OpenFlags, backup::Backup};

use super::{connection::Connection, errors::translate, migrate, open};
use crate::error::{Error, Result};

/// Pages copied between two looks at whether writers want the file.
const PAGES: std::ffi::c_int = 1_024;

/// Writes a consistent copy of the database to `target`, which must not exist.
pub(super) fn copy(connection: &Connection, target: &Path) -> Result<()> {
    copy_to(&connection.0, target)
}

fn copy_to(source: &rusqlite::Connection, target: &Path) -> Result<()> {
    if target.exists() {
        return Err(Error::invalid_input(format!("{} exists; a backup overwrites nothing", target.display())));
    }
    let unfinished = Unfinished(beside(target));
    {
        let mut copy = rusqlite::Connection::open(&unfinished.0).map_err(translate)?;
        // One read transaction holds for the whole copy, so writers do not make it start over.
        source.execute_batch("BEGIN").map_err(translate)?;
        let copied = Backup::new(source, &mut copy)
            .and_then(|backup| backup.run_to_completion(PAGES, Duration::ZERO, None))
            .and_then(|()| copy.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"));
        let ended = source.execute_batch("COMMIT");
        copied.and(ended).map_err(translate)?;
    }
    let sync = fs::File::open(&unfinished.0).and_then(|file| file.sync_all());
    let moved = sync.and_then(|()| fs::rename(&unfinished.0, target)).and_then(|()| sync_folder(target));
    moved.map_err(|error| cannot("write the copy", target, error))
}

/// Puts the copy `source` into `data_dir` as its database.
///
/// # Errors
/// `Config` for a source that is no database of ours or from a newer version, and for a folder that has a database.
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
    open::recognise_ours(&backup, source)?;
    let sound: String = backup.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)).map_err(unreadable)?;
    if sound != "ok" {
        return Err(damaged(&sound));
    }
    migrate::refuse_newer(&backup)?;
    fs::create_dir_all(data_dir).map_err(|error| cannot("create the folder", data_dir, error))?;
    let target = data_dir.join(open::FILE_NAME);
    if target.exists() {
        return Err(Error::config(format!("{} exists; a restore overwrites nothing", target.display())));
    }
    copy_to(&backup, &target)
}

/// A file that goes away unless it was renamed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Not there any more when all went well.
        let _ = fs::remove_file(&self.0);
    }
}

fn beside(target: &Path) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", uuid::Uuid::new_v4().simple()));
    target.with_file_name(name)
}

/// Makes the renaming itself survive a power loss.
fn sync_folder(target: &Path) -> std::io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all())
}

fn cannot(what: &str, path: &Path, error: std::io::Error) -> Error {
    Error::config(format!("Cannot {what} {}: {error}", path.display())).caused_by(error)
}

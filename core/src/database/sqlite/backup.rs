//! Backs up a SQLite database to a file while clients use it, and restores a backup into an unused folder.
//!
//! Invariant: the target is a whole copy or does not exist: the copy is written under a temporary name, and takes the
//! target's name, if that is free, when it is complete. A database is read through SQLite only: closing any other
//! descriptor of its file would drop the locks of this process.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use rusqlite::{
    OpenFlags,
    backup::{Backup, StepResult},
};

use super::{
    connection::Connection,
    errors::translate,
    migrate, open,
    private_file::{self, TemporaryFile},
};
use crate::error::{Error, ErrorKind, Result};

/// Pages copied in one step of SQLite's backup.
const PAGES_PER_STEP: std::ffi::c_int = 1_024;

/// Copies the database to `target`, until `is_cancelled` returns true.
///
/// # Errors
/// `InvalidInput` if `target` exists; `Unavailable` or `Config` if it cannot be written; `Closed` if it was cancelled.
pub(super) fn copy(connection: &Connection, target: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    if target.exists() {
        return Err(target_exists(target));
    }
    copy_to(&connection.0, target, "", is_cancelled)
}

/// Copies `source` to `target`, after the SQL `change` changed the copy.
fn copy_to(source: &rusqlite::Connection, target: &Path, change: &str, is_cancelled: &dyn Fn() -> bool) -> Result<()> {
    let temporary = TemporaryFile::beside(target).map_err(|error| cannot("write the copy", target, error))?;
    {
        let mut copy = rusqlite::Connection::open(&temporary.0).map_err(translate)?;
        // One read transaction for the whole copy: otherwise each write would make the backup start again.
        source.execute_batch("BEGIN").map_err(translate)?;
        let copied = copy_pages(source, &mut copy, is_cancelled);
        let ended = source.execute_batch("COMMIT").map_err(translate);
        copied.and(ended)?;
        let options = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;";
        copy.execute_batch(options).and_then(|()| copy.execute_batch(change)).map_err(translate)?;
    }
    let sync = fs::File::open(&temporary.0).and_then(|file| file.sync_all());
    let installed = sync.and_then(|()| temporary.install(target)).and_then(|()| sync_folder(target));
    installed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => target_exists(target),
        _ => cannot("write the copy", target, error),
    })
}

fn copy_pages(
    source: &rusqlite::Connection,
    copy: &mut rusqlite::Connection,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<()> {
    let backup = Backup::new(source, copy).map_err(translate)?;
    while backup.step(PAGES_PER_STEP).map_err(translate)? != StepResult::Done {
        if is_cancelled() {
            return Err(Error::closed());
        }
    }
    Ok(())
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
    if let Some(damage) = find_damage(&backup, source).map_err(unreadable)? {
        return Err(damaged(&damage));
    }
    migrate::refuse_newer(&backup)?;
    private_file::create_folder(data_dir).map_err(|error| cannot("create the folder", data_dir, error))?;
    let target = data_dir.join(open::FILE_NAME);
    // Without its database file a write-ahead log or a journal still belongs to a database: SQLite would mix its pages
    // into the restored one.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut name = target.clone().into_os_string();
        name.push(suffix);
        let name = PathBuf::from(name);
        if name.exists() {
            return Err(Error::config(format!("{} exists; a restore does not overwrite a database", name.display())));
        }
    }
    let change = migrate::change_incarnation(&backup)?;
    copy_to(&backup, &target, change, &|| false).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Error::config(error.message().to_owned()),
        _ => error,
    })
}

/// Returns the first damage that SQLite finds. Rows from before a CHECK was added are no damage; a warning tells of them.
fn find_damage(backup: &rusqlite::Connection, source: &Path) -> rusqlite::Result<Option<String>> {
    let mut check = backup.prepare(&format!("PRAGMA integrity_check({})", i32::MAX))?;
    let mut findings = check.query([])?;
    let mut is_warned = false;
    while let Some(finding) = findings.next()? {
        let finding: String = finding.get(0)?;
        if finding.starts_with("CHECK constraint failed") {
            if !std::mem::replace(&mut is_warned, true) {
                tracing::warn!(backup = %source.display(), "the backup has a row that a CHECK refuses: {finding}");
            }
        } else if finding != "ok" {
            return Ok(Some(finding));
        }
    }
    Ok(None)
}

fn target_exists(target: &Path) -> Error {
    Error::invalid_input(format!("{} exists; a backup does not overwrite a file", target.display()))
}

/// Flushes the folder of `target` to disk, so that a rename in it survives a power loss.
fn sync_folder(target: &Path) -> io::Result<()> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all())
}

fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    Error::config(format!("Cannot {what} {}: {error}", path.display())).caused_by(error)
}

//! Backs up a SQLite database to a file while clients use it, and restores a backup into an unused folder.
//!
//! Invariant: the target is a whole copy or does not exist: the copy is written under a temporary name, and takes the
//! target's name, if that is free, when it is complete. A database is read through SQLite only: closing any other
//! descriptor of its file would drop the locks of this process.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{OpenFlags, backup::Backup};

use super::{
    connection::Connection,
    errors::translate,
    migrate, open,
    private_file::{self, TemporaryFile},
};
use crate::error::{Error, ErrorKind, Result};

/// Pages copied in one step of SQLite's backup.
const PAGES_PER_STEP: std::ffi::c_int = 1_024;

/// Copies the database to `target`.
///
/// # Errors
/// `InvalidInput` if `target` exists; `Unavailable` or `Config` if it cannot be written.
pub(super) fn copy(connection: &Connection, target: &Path) -> Result<()> {
    if target.exists() {
        return Err(target_exists(target));
    }
    copy_to(&connection.0, target, "")
}

/// Copies `source` to `target`, after `change` changed the copy.
fn copy_to(source: &rusqlite::Connection, target: &Path, change: &str) -> Result<()> {
    let temporary = TemporaryFile::beside(target).map_err(|error| cannot("write the copy", target, error))?;
    {
        let mut copy = rusqlite::Connection::open(&temporary.0).map_err(translate)?;
        // One read transaction for the whole copy: otherwise each write would make the backup start again.
        source.execute_batch("BEGIN").map_err(translate)?;
        let copied = Backup::new(source, &mut copy)
            .and_then(|backup| backup.run_to_completion(PAGES_PER_STEP, Duration::ZERO, None))
            .and_then(|()| copy.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;"))
            .and_then(|()| copy.execute_batch(change));
        let ended = source.execute_batch("COMMIT");
        copied.and(ended).map_err(translate)?;
    }
    let sync = fs::File::open(&temporary.0).and_then(|file| file.sync_all());
    let installed = sync.and_then(|()| temporary.install(target)).and_then(|()| sync_folder(target));
    installed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => target_exists(target),
        _ => cannot("write the copy", target, error),
    })
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
    match integrity.as_str() {
        "ok" => {}
        // A row from before a CHECK was added is no damage: it is read as well as it can be.
        failed if failed.starts_with("CHECK constraint failed") => {
            tracing::warn!(backup = %source.display(), "the backup has a row that a CHECK refuses: {failed}");
        }
        damage => return Err(damaged(damage)),
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
    copy_to(&backup, &target, migrate::change_incarnation(&backup)?).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => Error::config(error.message().to_owned()),
        _ => error,
    })
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

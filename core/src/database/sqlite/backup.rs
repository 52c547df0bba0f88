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
    connection::{Connection, timestamp_text},
    errors::translate,
    migrate, open,
    private_file::{self, TemporaryFile},
};
use crate::{
    error::{Error, ErrorKind, Result},
    model::FileInfo,
};

/// Pages copied in one step of SQLite's backup.
const PAGES_PER_STEP: std::ffi::c_int = 1_024;

/// A file whose bytes are in the object store.
pub(crate) struct BackupObject {
    pub(crate) bucket: String,
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) etag: String,
    /// BLAKE3 in hex.
    pub(crate) digest: String,
}

/// A copy of the database that does not have its name yet. Dropping it removes it.
pub(crate) struct BackupCopy {
    /// Dropped before the file.
    copy: rusqlite::Connection,
    temporary: TemporaryFile,
    target: PathBuf,
}

/// The `user_version` of a backup whose objects stayed in a remote store.
const OBJECTS_ARE_REMOTE: i64 = 1;

/// Copies the database into a file beside `target`, until `is_cancelled` returns true.
///
/// # Errors
/// `InvalidInput` if `target` exists; `Unavailable` or `Config` if it cannot be written; `Closed` if it was cancelled.
pub(super) fn copy(connection: &Connection, target: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<BackupCopy> {
    if target.exists() {
        return Err(target_exists(target));
    }
    let copy = copy_beside(&connection.0, target, is_cancelled)?;
    // The bytes that the backup takes along are of the rows. What a writer has begun is not part of it.
    let settle = "DELETE FROM townsquare_file_intents; DELETE FROM townsquare_file_outbox;";
    copy.copy.execute_batch(settle).map_err(translate)?;
    Ok(copy)
}

fn copy_beside(source: &rusqlite::Connection, target: &Path, is_cancelled: &dyn Fn() -> bool) -> Result<BackupCopy> {
    let temporary = TemporaryFile::beside(target).map_err(|error| cannot("write the copy", target, error))?;
    let mut copy = rusqlite::Connection::open(&temporary.0).map_err(translate)?;
    // One read transaction for the whole copy: otherwise each write would make the backup start again.
    source.execute_batch("BEGIN").map_err(translate)?;
    let copied = copy_pages(source, &mut copy, is_cancelled);
    let ended = source.execute_batch("COMMIT").map_err(translate);
    copied.and(ended)?;
    copy.execute_batch("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL;").map_err(translate)?;
    Ok(BackupCopy { copy, temporary, target: target.to_owned() })
}

impl BackupCopy {
    /// The first 1,000 object files after a bucket and path.
    pub(crate) fn objects_after(&self, bucket: &str, path: &str) -> Result<Vec<BackupObject>> {
        objects_after(&self.copy, bucket, path).map_err(translate)
    }

    /// Gives a file the version whose bytes the backup has.
    pub(crate) fn set_object(&self, info: &FileInfo, digest: &str) -> Result<()> {
        let update =
            "UPDATE townsquare_files SET size = ?3, digest = ?4, etag = ?5, content_type = ?6, cache_control = ?7,
             metadata = ?8, updated_at = ?9 WHERE bucket = ?1 AND path = ?2";
        let metadata = serde_json::json!(info.metadata).to_string();
        let size = i64::try_from(info.size).unwrap_or(i64::MAX);
        let values = rusqlite::params![
            info.bucket,
            info.path,
            size,
            digest,
            info.etag,
            info.content_type,
            info.cache_control,
            metadata,
            timestamp_text(info.updated_at)
        ];
        self.copy.execute(update, values).map(drop).map_err(translate)
    }

    /// Removes a file that was deleted meanwhile.
    pub(crate) fn remove_object(&self, bucket: &str, path: &str) -> Result<()> {
        let delete = "DELETE FROM townsquare_files WHERE bucket = ?1 AND path = ?2";
        self.copy.execute(delete, [bucket, path]).map_err(translate)?;
        self.copy.execute_batch("DELETE FROM townsquare_file_outbox").map_err(translate)
    }

    /// States that the objects stayed in a remote store.
    pub(crate) fn leave_objects(&self) -> Result<()> {
        self.copy.pragma_update(None, "user_version", OBJECTS_ARE_REMOTE).map_err(translate)
    }

    /// Makes the copy durable under its name.
    ///
    /// # Errors
    /// `InvalidInput` if there is a file of that name.
    pub(crate) fn install(self) -> Result<()> {
        let BackupCopy { copy, temporary, target } = self;
        drop(copy);
        let sync = fs::File::open(&temporary.0).and_then(|file| file.sync_all());
        let installed = sync.and_then(|()| temporary.install(&target)).and_then(|()| sync_folder(&target));
        installed.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => target_exists(&target),
            _ => cannot("write the copy", &target, error),
        })
    }
}

fn objects_after(database: &rusqlite::Connection, bucket: &str, path: &str) -> rusqlite::Result<Vec<BackupObject>> {
    let mut statement = database.prepare_cached(
        "SELECT bucket, path, size, etag, coalesce(digest, '') FROM townsquare_files
         WHERE (bucket, path) > (?1, ?2) AND NOT is_inline ORDER BY bucket, path LIMIT 1000",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let size: i64 = row.get(2)?;
        Ok(BackupObject {
            bucket: row.get(0)?,
            path: row.get(1)?,
            size: size.unsigned_abs(),
            etag: row.get(3)?,
            digest: row.get(4)?,
        })
    };
    statement.query_map([bucket, path], read)?.collect()
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

/// A checked backup that is about to be installed.
pub(crate) struct Restore {
    backup: rusqlite::Connection,
    target: PathBuf,
    change: String,
    has_files: bool,
}

/// Checks the backup `source`, and that `data_dir` has no database. Creates the folder.
///
/// # Errors
/// `Config` if `source` is damaged, is not a townsquare database or has a newer version, and if `data_dir` has a
/// database.
pub(crate) fn prepare_restore(source: &Path, data_dir: &Path) -> Result<Restore> {
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
    let change = format!("{}; PRAGMA user_version = 0;", migrate::change_identity(&backup)?);
    let has_files = has_files(&backup).map_err(unreadable)?;
    Ok(Restore { backup, target, change, has_files })
}

/// Whether the backup has the table of files, and took their bytes along.
fn has_files(backup: &rusqlite::Connection) -> rusqlite::Result<bool> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'townsquare_files'";
    let user_version = backup.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))?;
    Ok(user_version != OBJECTS_ARE_REMOTE && backup.query_row(table, [], |row| row.get::<_, i64>(0))? == 1)
}

impl Restore {
    /// The first 1,000 files after a bucket and path whose bytes the backup took along.
    pub(crate) fn objects_after(&self, bucket: &str, path: &str) -> Result<Vec<BackupObject>> {
        match self.has_files {
            true => objects_after(&self.backup, bucket, path).map_err(translate),
            false => Ok(Vec::new()),
        }
    }

    /// Installs the database.
    ///
    /// # Errors
    /// `Config` if a database appeared meanwhile, or if it cannot be written.
    pub(crate) fn install(self) -> Result<()> {
        let copy = copy_beside(&self.backup, &self.target, &|| false)?;
        copy.copy.execute_batch(&self.change).map_err(translate)?;
        copy.install().map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => Error::config(error.message().to_owned()),
            _ => error,
        })
    }
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

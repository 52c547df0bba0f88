//! Backs up a SQLite database to a file while clients use it, and restores a backup into an unused folder.
//!
//! Invariant: the target is there whole, or not at all: see [`CopyStage`]. A database is read through SQLite only: closing
//! any other descriptor of its file would drop the locks of this process.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use rusqlite::{
    OpenFlags,
    backup::{Backup, StepResult},
};

use super::{
    cancellable::cancellable,
    copy_stage::{self, CopyStage},
    errors::translate,
    file_id::beside,
    migrate, open, reserve,
    stored_files::stored_objects,
};
use crate::{
    config::MEMORY_DIR,
    error::{Error, ErrorKind, Result, is_out_of_descriptors, is_out_of_space},
    file_place::{Use, denied_use},
    model::StoredObject,
    regular_file::{create_private_file, require_regular},
};

/// Pages copied in one step of SQLite's backup.
const PAGES_PER_STEP: std::ffi::c_int = 1_024;

/// The `user_version` of a backup whose objects stayed in a remote store.
const OBJECTS_ARE_REMOTE: i64 = 1;

/// A backup without its database.
pub(crate) struct PreparedBackup(CopyStage);

/// A backup that does not have its name yet. Dropping it removes it.
pub(crate) struct BackupCopy {
    /// Dropped before the file.
    copy: rusqlite::Connection,
    stage: CopyStage,
    is_cancelled: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// Prepares a backup to `target`, with files in the folder `files`.
///
/// # Errors
/// `InvalidInput` if one of them exists; `Config` if nothing can be written there.
pub(crate) fn prepare_backup(target: &Path, files: &Path) -> Result<PreparedBackup> {
    let stage = CopyStage::create(target, files).map_err(|error| cannot("write the copy", target, error))?;
    // After what a killed backup left was removed.
    match [target, files].into_iter().find(|path| path.exists()) {
        Some(path) => Err(target_exists(path)),
        None => Ok(PreparedBackup(stage)),
    }
}

impl PreparedBackup {
    /// Where the files of the backup are written. The caller creates the folder if there are any.
    pub(crate) fn files(&self) -> PathBuf {
        self.0.files()
    }

    /// Copies the database that `source` reads, until `is_cancelled` returns true.
    pub(super) fn fill(
        self,
        source: &rusqlite::Connection,
        is_cancelled: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<BackupCopy> {
        let copy = copy_into(source, &self.0, &is_cancelled)?;
        // The bytes that the backup takes along are of the rows. What a writer has begun is not part of it.
        // The keys would let whoever has the backup sign URLs and cursors of the original. The version says where the objects are, and
        // may be that of an earlier backup, from which the database was made.
        let settle = "DELETE FROM townsquare_file_intents; DELETE FROM townsquare_file_outbox;
            UPDATE townsquare_database SET url_key = '', cursor_key = ''; PRAGMA user_version = 0;";
        copy.execute_batch(settle).map_err(translate)?;
        Ok(BackupCopy { copy, stage: self.0, is_cancelled: Arc::new(is_cancelled) })
    }
}

impl BackupCopy {
    /// States that the objects stayed in a remote store.
    pub(crate) fn leave_objects(&self) -> Result<()> {
        self.copy.pragma_update(None, "user_version", OBJECTS_ARE_REMOTE).map_err(translate)
    }

    /// Checks the copy as a restore does. This takes long: call it after the end of the source's transaction.
    ///
    /// # Errors
    /// `Internal` (XX001) if the database is damaged; `Closed` if the backup was cancelled.
    pub(crate) fn verified(self) -> Result<BackupCopy> {
        let is_cancelled = Arc::clone(&self.is_cancelled);
        let find = || find_damage(&self.copy, self.stage.target()).map_err(translate);
        match cancellable(&self.copy, move || is_cancelled(), find)? {
            None => Ok(self),
            Some(damage) => {
                let message = format!("The database is damaged, so that no backup of it could be restored: {damage}");
                Err(Error::database(Some("XX001"), ErrorKind::Internal, message))
            }
        }
    }

    /// Makes the copy and its files durable under their names.
    ///
    /// # Errors
    /// `InvalidInput` if there is a file or a folder of that name.
    pub(crate) fn install(self) -> Result<()> {
        let BackupCopy { copy, stage, .. } = self;
        drop(copy);
        let target = stage.target().to_owned();
        stage.install().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty => target_exists(&target),
            _ => cannot("write the copy", &target, error),
        })
    }
}

/// Copies a database into a stage.
fn copy_into(
    source: &rusqlite::Connection,
    stage: &CopyStage,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<rusqlite::Connection> {
    let path = stage.database();
    create_private_file(&path).map_err(|error| cannot("write the copy", stage.target(), error))?;
    let mut copy = rusqlite::Connection::open(&path).map_err(translate)?;
    copy_pages(source, &mut copy, is_cancelled)?;
    let settings = "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL; PRAGMA secure_delete = ON;";
    copy.execute_batch(settings).map_err(translate)?;
    Ok(copy)
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

/// A place of a database that is kept free. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct ReservedPlace(#[expect(dead_code, reason = "the folder is locked while it is open")] CopyStage);

/// A checked backup that is about to be installed.
pub(crate) struct Restore {
    backup: rusqlite::Connection,
    stage: CopyStage,
    change: String,
    /// The files whose bytes the backup took along.
    objects: Vec<StoredObject>,
}

/// Checks the backup `source`, and that `data_dir` has no database and its folder `files` no files. Creates `data_dir`.
///
/// # Errors
/// `Config` if `source` is damaged (XX001), is no regular file, is not a townsquare database, has a newer version or is of another
/// build, and if `data_dir` has a database or files.
pub(crate) fn prepare_restore(source: &Path, data_dir: &Path, files: &Path) -> Result<Restore> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    require_file(source)?;
    let damaged = |why: &str| Error::damaged_file(format!("The backup {} is damaged: {why}", source.display()));
    let unreadable = |error| match denied_use(source, Use::Read) {
        Some(denied) => cannot("read the backup", source, denied),
        None => match translate(error) {
            error if error.is_damage() => damaged(error.message()).caused_by(error),
            error => {
                let message = format!("Cannot read the backup {}: {}", source.display(), error.message());
                Error::config(message).because_of(error)
            }
        },
    };
    let backup = rusqlite::Connection::open_with_flags(source, flags).map_err(unreadable)?;
    open::require_application_id(&backup, source)?;
    // Before the backup is checked, which takes long: nobody opens a new database there meanwhile.
    let stage = stage_restore(data_dir, files)?;
    let checked = match find_damage(&backup, source) {
        Ok(None) => migrate::version(&backup).map(drop),
        Ok(Some(damage)) => Err(damaged(&damage)),
        Err(error) => Err(unreadable(error)),
    };
    checked?;
    let is_remote = are_objects_remote(&backup).map_err(unreadable)?;
    let change = format!("{}; PRAGMA user_version = 0;", migrate::change_identity(is_remote));
    let has_files = !is_remote && has_files(&backup).map_err(unreadable)?;
    let objects = if has_files { stored_objects(&backup, -1).map_err(unreadable)? } else { Vec::new() };
    // Also of a backup without large files: its store begins empty.
    if !is_remote {
        refuse_files(files)?;
    }
    Ok(Restore { backup, stage, change, objects })
}

/// Keeps the place of a database free for a restore, as the restore does: nobody opens a new database there.
///
/// # Errors
/// `Config` if there is a database, or if nothing can be written there.
pub(crate) fn reserve_place(data_dir: &Path, files: &Path) -> Result<ReservedPlace> {
    stage_restore(data_dir, files).map(ReservedPlace)
}

fn stage_restore(data_dir: &Path, files: &Path) -> Result<CopyStage> {
    if data_dir == Path::new(MEMORY_DIR) {
        return Err(Error::config("A backup is restored into a folder, not into memory"));
    }
    let target = data_dir.join(open::FILE_NAME);
    let stage = CopyStage::create_with_parent(&target, files).map_err(|error| match data_dir.is_dir() {
        true => cannot("write the copy", &target, error),
        false => cannot("create the folder", data_dir, error),
    })?;
    refuse_database(&target)?;
    Ok(stage)
}

/// # Errors
/// `Config` if there is no regular file.
fn require_file(source: &Path) -> Result<()> {
    use io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
    match source.metadata() {
        Ok(metadata) => require_regular(&metadata).map_err(|error| {
            let message = format!("{} is no backup: {error}", source.display());
            Error::config(message).caused_by(error)
        }),
        // A path with a NUL is invalid input.
        Err(error) if matches!(error.kind(), NotFound | NotADirectory | InvalidInput) => {
            Err(Error::config(format!("There is no backup at {}", source.display())))
        }
        Err(error) => Err(cannot("read the backup", source, error)),
    }
}

/// # Errors
/// `Config` if the folder of the files is there and is not an empty folder: a restore gives its own folder this name.
fn refuse_files(files: &Path) -> Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(files) else { return Ok(()) };
    if !metadata.is_dir() {
        return Err(Error::config(format!("{} is no folder; a restore does not overwrite it", files.display())));
    }
    if std::fs::read_dir(files).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(Error::config(format!("{} has files; a restore does not overwrite files", files.display())));
    }
    Ok(())
}

/// # Errors
/// `Config` if a restore to the folder was killed before its end. What it left keeps programs from making an empty database.
pub(crate) fn refuse_unfinished_restore(data_dir: &Path) -> Result<()> {
    if !copy_stage::is_left_unfinished(&data_dir.join(open::FILE_NAME)) {
        return Ok(());
    }
    Err(Error::config(format!("A restore to {} was killed before its end: repeat it", data_dir.display())))
}

/// # Errors
/// `Config` if there is a database or a part of one.
fn refuse_database(target: &Path) -> Result<()> {
    // Without its database file a write-ahead log or a journal still belongs to a database: SQLite would mix its pages
    // into the restored one.
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let name = beside(target, suffix);
        if name.symlink_metadata().is_ok() && !(suffix == "-shm" && reserve::is_left(target)) {
            return Err(database_exists(&name));
        }
    }
    Ok(())
}

fn database_exists(name: &Path) -> Error {
    Error::config(format!("{} exists; a restore does not overwrite a database", name.display()))
}

/// Whether the objects of the backup stayed in a remote store.
fn are_objects_remote(backup: &rusqlite::Connection) -> rusqlite::Result<bool> {
    Ok(backup.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == OBJECTS_ARE_REMOTE)
}

/// Whether the backup has the table of files.
fn has_files(backup: &rusqlite::Connection) -> rusqlite::Result<bool> {
    let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'townsquare_files'";
    Ok(backup.query_row(table, [], |row| row.get::<_, i64>(0))? == 1)
}

impl Restore {
    /// The files whose bytes the backup took along.
    pub(crate) fn objects(&self) -> &[StoredObject] {
        &self.objects
    }

    /// Where they are written. The caller creates the folder if there are any.
    pub(crate) fn files(&self) -> PathBuf {
        self.stage.files()
    }

    /// Installs the files and the database.
    ///
    /// # Errors
    /// `Config` if a database or a file appeared meanwhile, or if the database cannot be written; `Unavailable` if the disk is
    /// full.
    pub(crate) fn install(self) -> Result<()> {
        let target = self.stage.target().to_owned();
        self.copy()?.install().map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => database_exists(&target),
            _ => error,
        })
    }

    /// Writes the database as for [`install`](Restore::install), and removes it with the files.
    ///
    /// # Errors
    /// `Unavailable` if the disk is full; `Config` if nothing can be written there.
    pub(crate) fn try_install(self) -> Result<()> {
        self.copy().map(drop)
    }

    fn copy(self) -> Result<BackupCopy> {
        let Restore { backup, stage, change, .. } = self;
        let copy = copy_into(&backup, &stage, &|| false)?;
        copy.execute_batch(&change).map_err(translate)?;
        Ok(BackupCopy { copy, stage, is_cancelled: Arc::new(|| false) })
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
    // Every open reads these texts, and the check of SQLite does not.
    let mut schema = backup.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    let mut texts = schema.query([])?;
    while let Some(text) = texts.next()? {
        if text.get_ref(0)?.as_str().is_err() {
            return Ok(Some("a statement of its schema is not UTF-8".to_owned()));
        }
    }
    Ok(None)
}

fn target_exists(target: &Path) -> Error {
    Error::invalid_input(format!("{} exists; a backup does not overwrite files", target.display()))
}

fn cannot(what: &str, path: &Path, error: io::Error) -> Error {
    let message = format!("Cannot {what} {}: {error}", path.display());
    if is_out_of_space(&error) {
        return Error::database(Some("53100"), ErrorKind::Unavailable, message).caused_by(error);
    }
    if is_out_of_descriptors(&error) { Error::unavailable(message) } else { Error::config(message) }.caused_by(error)
}

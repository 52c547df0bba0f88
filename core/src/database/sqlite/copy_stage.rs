//! The folder in which a backup or a restore is prepared, beside its target.
//!
//! Invariant: the target has its name when everything is on the disk, and not before: the folder of the files is renamed
//! first, and the database last. A process that is killed leaves nothing but such a folder. The next backup or restore to this
//! target empties it, and removes files that were renamed for a database that was not. The folder itself goes when the database
//! has its name, so that no program makes an empty database there before.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::private_file::{self, parent};
use crate::regular_file::{create_private_file, sync_folder};

/// The lock file of the process that works in the folder.
const LOCK: &str = "lock";
const DATABASE: &str = "database";
const FILES: &str = "files";
/// The file that exists from before the files are renamed.
const INSTALLING: &str = "installing";
/// How often, and how far apart, a folder without a lock is looked at before its process counts as killed.
const LOOKS: u32 = 10;
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// The end of the folder's name.
const SUFFIX: &str = ".part";

/// A folder with a database and its files. Dropping it removes it.
#[derive(Debug)]
pub(super) struct CopyStage {
    folder: PathBuf,
    /// The name that the database gets.
    database: PathBuf,
    /// The name that the folder of the files gets.
    files: PathBuf,
    /// Locked while it is open.
    _lock: File,
}

impl CopyStage {
    /// Does what [`create`](CopyStage::create) does, and creates the folder of the database with its parents if it is missing. It
    /// gets its name with the folder of the copy in it: nobody makes an empty database there before. A process that is killed before
    /// leaves the folder under another name.
    pub(super) fn create_with_parent(database: &Path, files: &Path) -> io::Result<CopyStage> {
        let folder = parent(database);
        let Some(name) = folder.file_name().filter(|_| !folder.exists()) else {
            private_file::create_folder(folder)?;
            return CopyStage::create(database, files);
        };
        private_file::create_parent(parent(folder))?;
        let unnamed = folder.with_file_name(unique(name));
        private_file::create_new_folder(&unnamed)?;
        let staged = CopyStage::create(&unnamed.join(file_name(database)), files);
        let mut stage = staged.inspect_err(|_| drop(fs::remove_dir(&unnamed)))?;
        // A plain rename replaces an empty folder, and a client that has just made it fails in it.
        if let Err(error) = private_file::give_name(&unnamed, folder) {
            drop(stage);
            fs::remove_dir(&unnamed)?;
            // Somebody else may have made the folder.
            return if folder.is_dir() { CopyStage::create(database, files) } else { Err(error) };
        }
        stage.folder = folder.join(file_name(&stage.folder));
        stage.database = database.to_owned();
        sync_folder(parent(folder))?;
        Ok(stage)
    }

    /// Creates the folder, and empties the folders of processes that were killed.
    pub(super) fn create(database: &Path, files: &Path) -> io::Result<CopyStage> {
        for stage in stale_stages_of(database)? {
            stage.empty(database, files)?;
        }
        let (folder, lock) = loop {
            let folder = database.with_file_name(unique(&file_name(database)));
            private_file::create_new_folder(&folder)?;
            // Another process may take the folder for that of a killed one until it is locked. It creates the lock file then, and
            // may remove the folder.
            let lock = match create_private_file(&folder.join(LOCK)) {
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {
                    continue;
                }
                lock => lock?,
            };
            // Another process may look at the lock just now.
            if let Err(error) = lock.lock() {
                tracing::debug!(%error, "the folder of a copy cannot be locked");
            }
            if folder.join(LOCK).try_exists()? {
                break (folder, lock);
            }
        };
        sync_folder(parent(&folder))?;
        Ok(CopyStage { folder, database: database.to_owned(), files: files.to_owned(), _lock: lock })
    }

    /// Where the database is written.
    pub(super) fn database(&self) -> PathBuf {
        self.folder.join(DATABASE)
    }

    /// Where the files are written. The caller creates the folder if there are any.
    pub(super) fn files(&self) -> PathBuf {
        self.folder.join(FILES)
    }

    /// The name that the database gets.
    pub(super) fn target(&self) -> &Path {
        &self.database
    }

    /// Makes everything durable, and gives the files and the database their names.
    ///
    /// # Errors
    /// `AlreadyExists` if there is a database of that name, or a folder with files. Nothing has its name then.
    pub(super) fn install(self) -> io::Result<()> {
        let (staged_files, staged_database) = (self.files(), self.database());
        File::open(&staged_database)?.sync_all()?;
        let has_files = staged_files.exists();
        if has_files {
            sync_tree(&staged_files)?;
            drop(create_private_file(&self.folder.join(INSTALLING))?);
            sync_folder(&self.folder)?;
            // An empty folder is in the way on some systems.
            let _ = fs::remove_dir(&self.files);
            fs::rename(&staged_files, &self.files)?;
        }
        let named =
            sync_folder(parent(&self.files)).and_then(|()| private_file::give_name(&staged_database, &self.database));
        if named.is_err() && has_files {
            // Back into the folder, which is removed.
            fs::rename(&self.files, &staged_files)?;
        }
        named.and_then(|()| sync_folder(parent(&self.database)))?;
        // Otherwise the next `open` removes them.
        if let Err(error) = remove_stale(&self.database) {
            tracing::warn!(%error, "the folder of a killed backup or restore cannot be removed");
        }
        Ok(())
    }
}

impl Drop for CopyStage {
    fn drop(&mut self) {
        // Without the lock, `open` would take the folder for that of a killed process.
        if let Err(error) = empty(&self.folder).and_then(|()| fs::remove_dir_all(&self.folder)) {
            tracing::warn!(%error, folder = %self.folder.display(), "the folder of a copy cannot be removed");
        }
    }
}

/// Whether a process that made a copy to `database` was killed before the end. Without the database, nobody has made another since.
pub(super) fn is_left_unfinished(database: &Path) -> bool {
    let is_left = || {
        let is_any_left = stages_of(database).is_ok_and(|stages| stages.iter().any(|stage| !is_locked(stage)));
        !database.exists() && is_any_left
    };
    // A process that has just made its folder has not locked it yet.
    (0..LOOKS).all(|look| {
        if look > 0 {
            thread::sleep(LOOK_INTERVAL);
        }
        is_left()
    })
}

/// Whether a process prepares a copy to `database`.
pub(super) fn is_in_use(database: &Path) -> bool {
    stages_of(database).is_ok_and(|stages| stages.iter().any(|stage| is_locked(stage)))
}

/// Removes what killed processes left beside a database that has its name.
pub(super) fn remove_stale(database: &Path) -> io::Result<()> {
    stale_stages_of(database)?.into_iter().try_for_each(|stage| remove_all(&stage.folder))
}

/// The folders of processes that were killed, locked. A process that has not locked its folder yet makes another one.
fn stale_stages_of(database: &Path) -> io::Result<Vec<StaleStage>> {
    let mut stale = Vec::new();
    for folder in stages_of(database)? {
        // Its process may have been killed before it created the file, or while it removed the folder.
        let lock = match File::options().write(true).create(true).truncate(false).open(folder.join(LOCK)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            lock => lock?,
        };
        if lock.try_lock().is_ok() {
            stale.push(StaleStage { folder, _lock: lock });
        }
    }
    Ok(stale)
}

/// The folder of a process that was killed.
struct StaleStage {
    folder: PathBuf,
    /// Locked while it is open.
    _lock: File,
}

impl StaleStage {
    /// Removes what the process has written, but not the folder.
    fn empty(&self, database: &Path, files: &Path) -> io::Result<()> {
        remove_named_files(&self.folder, database, files)?;
        empty(&self.folder)
    }
}

/// Removes everything in the folder but the lock.
fn empty(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            remove_all(&entry.path())?;
        }
    }
    Ok(())
}

/// Removes the files of a copy that have their name, if the process with this folder was killed before the database had its own.
pub fn remove_named_files(folder: &Path, database: &Path, files: &Path) -> io::Result<()> {
    let is_there = |name| folder.join(name).exists();
    match is_there(INSTALLING) && is_there(DATABASE) && !is_there(FILES) && !database.exists() {
        true => remove_all(files),
        false => Ok(()),
    }
}

/// Removes a file or a folder, which may be missing.
fn remove_all(path: &Path) -> io::Result<()> {
    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Whether a process prepares a copy in the folder.
fn is_locked(folder: &Path) -> bool {
    let lock = File::open(folder.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The folders in which processes prepare, or prepared, copies to `database`.
fn stages_of(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut prefix = file_name(database);
    prefix.push(".");
    let entries = match fs::read_dir(parent(database)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if name.starts_with(prefix.as_encoded_bytes())
            && name.ends_with(SUFFIX.as_bytes())
            && entry.file_type()?.is_dir()
        {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The name of a folder that is prepared for `name`.
fn unique(name: &OsStr) -> OsString {
    let mut unique = name.to_owned();
    unique.push(format!(".{}{SUFFIX}", uuid::Uuid::new_v4().simple()));
    unique
}

fn file_name(path: &Path) -> OsString {
    path.file_name().unwrap_or_default().to_owned()
}

/// Makes the entries of a folder and of the folders in it durable. The files in them are.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        }
    }
    sync_folder(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_counts_as_in_use_until_it_is_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let database = folder.path().join("town.db");
        let stage = CopyStage::create(&database, &folder.path().join("files")).expect("a folder");
        fs::create_dir(stage.files()).expect("a folder");
        for number in 0..3_000 {
            fs::write(stage.files().join(number.to_string()), "").expect("a file");
        }
        let stage_folder = stage.folder.clone();
        thread::scope(|scope| {
            scope.spawn(|| drop(stage));
            // `lock` is the last file.
            while stage_folder.join(FILES).exists() {
                let is_used = is_in_use(&database);
                assert!(is_used || !stage_folder.join(FILES).exists(), "its process lives");
            }
        });
        assert!(!stage_folder.exists() && !is_left_unfinished(&database));
    }
}

//! A folder for a copy on its way to a store or from it.
//!
//! Invariant: only its owner may read it, and it is removed at the end. A process that is killed leaves it, and the next one with the
//! same parent removes it: a lock tells whether a process uses a folder.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use tempfile::{Builder, TempDir};

use crate::{failure::Failure, output::note};

/// The begin of the names of such folders.
const PREFIX: &str = ".townsquare-copy-";

/// The file that the process with the folder has locked.
const LOCK: &str = "lock";

/// How often a folder is made.
const TRIES: u32 = 3;

/// The folder of the copy. Dropping it removes it.
#[derive(Debug)]
pub(super) struct WorkFolder {
    /// Open until the folder is removed.
    lock: Option<File>,
    folder: TempDir,
    copy: PathBuf,
}

impl WorkFolder {
    /// Makes a folder in `parent`. First removes what killed processes left there.
    pub(super) fn make(parent: &Path) -> Result<WorkFolder, Failure> {
        let failed = |error: io::Error| Failure::of_file(parent, &error);
        remove_leftovers(parent).map_err(failed)?;
        // Another process may take a folder without a lock for a leftover.
        let made = (1..TRIES).find_map(|_| WorkFolder::try_make(parent).ok());
        made.map_or_else(|| WorkFolder::try_make(parent).map_err(failed), Ok)
    }

    fn try_make(parent: &Path) -> io::Result<WorkFolder> {
        let mut builder = Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(parent)?;
        let lock = File::create_new(folder.path().join(LOCK))?;
        lock.try_lock()?;
        let copy = folder.path().join("copy");
        fs::create_dir(&copy)?;
        Ok(WorkFolder { lock: Some(lock), folder, copy })
    }

    /// An empty folder.
    pub(super) fn path(&self) -> &Path {
        &self.copy
    }

    /// Removes the folder.
    pub(super) fn remove(mut self) -> Result<(), Failure> {
        self.remove_once().map_err(|error| Failure::of_file(self.folder.path(), &error))
    }

    fn remove_once(&mut self) -> io::Result<()> {
        self.lock.take().map_or(Ok(()), |lock| remove_locked(self.folder.path(), lock))
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // What this cannot remove, dropping the folder cannot either.
        let _ = self.remove_once();
    }
}

fn remove_leftovers(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !is_ours || !entry.file_type()?.is_dir() {
            continue;
        }
        let path = entry.path();
        let lock = path.join(LOCK);
        match fs::symlink_metadata(&lock) {
            // Another user's folder, or a trap: to open a pipe would wait for its writer.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            Ok(found) if !found.is_file() => continue,
            _ => {}
        }
        let removed = match File::open(lock) {
            Ok(lock) if lock.try_lock().is_ok() => remove_locked(&path, lock),
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
            // The process is making it, or was killed then. This fails for a folder with something in it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_dir(&path),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            note(&format!("What a killed process left stays: {}: {error}", path.display()));
        }
    }
    Ok(())
}

/// Removes a folder whose file `lock` this process has locked as `held`. That goes last: without it, two processes could take the
/// folder for a leftover, and one could remove what the other writes.
pub(super) fn remove_locked(folder: &Path, held: File) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() != LOCK {
            let is_folder = entry.file_type()?.is_dir();
            if is_folder { fs::remove_dir_all(entry.path()) } else { fs::remove_file(entry.path()) }?;
        }
    }
    // Windows removes no file that is open.
    let held = if cfg!(windows) { None } else { Some(held) };
    let removed = fs::remove_dir_all(folder);
    drop(held);
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_no_process_uses_are_removed() {
        let parent = tempfile::tempdir().expect("a folder");
        let used = WorkFolder::make(parent.path()).expect("a folder");
        let left = parent.path().join(format!("{PREFIX}left"));
        fs::create_dir_all(left.join("copy")).expect("a folder");
        fs::write(left.join(LOCK), "").expect("a file");
        let mine = parent.path().join("mine");
        fs::create_dir(&mine).expect("a folder");
        #[cfg(unix)]
        {
            let trap = parent.path().join(format!("{PREFIX}trap"));
            fs::create_dir(&trap).expect("a folder");
            nix::unistd::mkfifo(&trap.join(LOCK), nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        }
        let second = WorkFolder::make(parent.path()).expect("a folder");
        #[cfg(unix)]
        fs::remove_dir_all(parent.path().join(format!("{PREFIX}trap"))).expect("it is left");
        assert!(used.path().exists() && second.path().exists() && mine.exists() && !left.exists());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;

            let mode = fs::metadata(used.folder.path()).expect("a folder").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        used.remove().expect("removed");
        drop(second);
        assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 1);
    }
}

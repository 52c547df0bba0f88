//! Files and folders that only their owner may read, and files that take a name only if it is free.
//!
//! Invariant: no function opens a file that may be a database in use: closing its descriptor would drop the locks of
//! another client of this process.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    file_place::is_open_to_others,
    regular_file::{create_private_file, sync_folder},
};

/// How often the creation of a folder, or of a file in it, is tried.
const TRIES: u32 = 5;

/// A file that is removed on drop.
pub(super) struct TemporaryFile(PathBuf);

impl TemporaryFile {
    /// Creates an empty file with a unique name in the folder of `target`. Only its owner may read it.
    pub(super) fn beside(target: &Path) -> io::Result<(TemporaryFile, fs::File)> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", uuid::Uuid::new_v4().simple()));
        let path = target.with_file_name(name);
        let file = create_private_file(&path)?;
        Ok((TemporaryFile(path), file))
    }

    /// Does what [`give_name`] does.
    pub(super) fn give_name(&self, target: &Path) -> io::Result<()> {
        give_name(&self.0, target)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // Fails if the file was renamed.
        let _ = fs::remove_file(&self.0);
    }
}

/// Gives a file or a folder the name `target`. A file may keep its old name.
///
/// # Errors
/// `AlreadyExists` if there is a file or a folder of that name; it stays as it is.
pub(super) fn give_name(file: &Path, target: &Path) -> io::Result<()> {
    // In one step where the system can: a database with two names is refused by `open`.
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};

        match renameat_with(CWD, file, CWD, target, RenameFlags::NOREPLACE).map_err(io::Error::from) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => {}
        }
    }
    match fs::hard_link(file, target) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links: the check and the rename are two steps there.
        Err(_) if !target.exists() => fs::rename(file, target),
        Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Creates `file` empty, readable by its owner only. A file that exists keeps its mode; a warning tells of a mode that
/// lets others read it.
pub(super) fn create_file(file: &Path) -> io::Result<()> {
    if file.exists() {
        warn_if_shared(file);
        return Ok(());
    }
    // Created under another name: a file under its own name may be in use the moment it exists.
    match TemporaryFile::beside(file)?.0.give_name(file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Creates `folder` and its missing parents for their owner only. A folder that exists keeps its mode; a warning tells of a
/// mode that lets others read it.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        warn_if_shared(folder);
        return Ok(());
    }
    repeat_if_missing(|| try_create_folder(folder))
}

/// Does `create` again a few times if a folder is missing: a restore that fails removes the empty folders that it made.
pub(super) fn repeat_if_missing(create: impl Fn() -> io::Result<()>) -> io::Result<()> {
    let is_missing =
        |created: &io::Result<()>| matches!(created, Err(error) if error.kind() == io::ErrorKind::NotFound);
    let again = (1..TRIES).map(|_| create()).find(|created| !is_missing(created));
    again.unwrap_or_else(create)
}

fn try_create_folder(folder: &Path) -> io::Result<()> {
    if let Some(above) = folder.parent().filter(|above| !above.as_os_str().is_empty()) {
        create_parent(above)?;
    }
    match create_new_folder(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        created => created.and_then(|()| sync_folder(parent(folder))),
    }
}

/// The folder that a file or a folder is in.
pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates a folder that others may share, if it is missing.
pub(super) fn create_parent(folder: &Path) -> io::Result<()> {
    if folder.is_dir() { Ok(()) } else { create_folder(folder) }
}

/// Creates a folder for its owner only. Fails if there is one.
pub(super) fn create_new_folder(folder: &Path) -> io::Result<()> {
    #[allow(unused_mut, reason = "changed on Unix")]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn warn_if_shared(path: &Path) {
    if is_open_to_others(path) {
        tracing::warn!(path = %path.display(), "other users of this machine may read the database; chmod go= would stop that");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn install_does_not_replace_a_file() {
        let folder = std::env::temp_dir().join(format!("townsquare-install-{}", std::process::id()));
        create_folder(&folder).expect("a folder");
        let target = folder.join("target");
        let (temporary, _) = TemporaryFile::beside(&target).expect("a new file");
        fs::write(&target, "appeared meanwhile").expect("a file");
        assert_eq!(temporary.give_name(&target).expect_err("the name is taken").kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).expect("a file"), b"appeared meanwhile");
        fs::remove_file(&target).expect("removed");
        temporary.give_name(&target).expect("the name is free");
        drop(temporary);
        let names = fs::read_dir(&folder).expect("a folder").flatten().map(|entry| entry.file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["target"], "the temporary name is gone");
        let _ = fs::remove_dir_all(&folder);
    }
}

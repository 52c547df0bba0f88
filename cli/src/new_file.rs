//! A new file of this machine that a command writes.
//!
//! Invariant: the file is there when it is whole. It replaces nothing, also no link, and only its owner may read it.

use std::{
    fs::{self, File},
    io,
    path::Path,
};

use tempfile::Builder;

use crate::failure::Failure;

/// The begin of the name of the temporary file. A process that SIGKILL ends leaves it.
const PREFIX: &str = ".townsquare-new-";

/// A path at which there is nothing yet.
#[derive(Debug)]
pub(crate) struct NewFile<'p>(&'p Path);

impl<'p> NewFile<'p> {
    /// Checks the path, before a command does the work for the file.
    ///
    /// # Errors
    /// Usage if something is at the path, also a link to nothing; those of the host if there is no folder for the file.
    pub(crate) fn at(path: &'p Path) -> Result<NewFile<'p>, Failure> {
        let file = NewFile(path);
        match fs::symlink_metadata(path) {
            Ok(_) => return Err(file.exists()),
            // Also for a folder that is missing.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(file.failed(&error)),
        }
        fs::metadata(file.folder()).map_err(|error| file.failed(&error))?;
        Ok(file)
    }

    /// Makes the file with what `write` writes. After a failure there is no file.
    ///
    /// # Errors
    /// Those of `write`; usage if something is at the path now; those of the host.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut File) -> Result<T, Failure>) -> Result<T, Failure> {
        // `tempfile` gives it the mode 0600. Dropping it removes it.
        let mut file = Builder::new().prefix(PREFIX).tempfile_in(self.folder()).map_err(|error| self.failed(&error))?;
        let written = write(file.as_file_mut())?;
        file.as_file().sync_all().map_err(|error| self.failed(&error))?;
        match file.persist_noclobber(self.0) {
            Ok(_) => Ok(written),
            Err(failed) if failed.error.kind() == io::ErrorKind::AlreadyExists => Err(self.exists()),
            Err(failed) => Err(self.failed(&failed.error)),
        }
    }

    /// The failure for an error of the host.
    pub(crate) fn failed(&self, error: &io::Error) -> Failure {
        Failure::of_file(self.0, error)
    }

    fn exists(&self) -> Failure {
        let sentence = format!("{} exists, and this command replaces no file", self.0.display());
        Failure::usage(sentence, "Give another name, or remove the file.")
    }

    fn folder(&self) -> &Path {
        self.0.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::exit_code;

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn a_file_is_there_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new");
        let new = NewFile::at(&path).expect("a new path");
        let write = |file: &mut File, text: &str| file.write_all(text.as_bytes()).map_err(|error| new.failed(&error));
        let failed: Result<(), _> = new.write(|file| {
            write(file, "half")?;
            Err(Failure::interrupted("Try again."))
        });
        assert_eq!(failed.expect_err("the failure").code, exit_code::INTERRUPTED);
        assert_eq!(entries(folder.path()), 0);
        let written = new.write(|file| {
            write(file, "whole")?;
            Ok(path.exists())
        });
        assert!(!written.expect("written"), "the file is not there before it is whole");
        assert_eq!(fs::read_to_string(&path).expect("the file"), "whole");
        assert_eq!(entries(folder.path()), 1);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;

            assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_new_file_replaces_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new");
        let new = NewFile::at(&path).expect("a new path");
        // Another program is first.
        let failed = new.write(|_| fs::write(&path, "mine").map_err(|error| new.failed(&error)));
        assert_eq!(failed.expect_err("refused").code, exit_code::USAGE);
        assert_eq!(NewFile::at(&path).expect_err("refused").code, exit_code::USAGE);
        assert_eq!(NewFile::at(folder.path()).expect_err("refused").code, exit_code::USAGE);
        assert_eq!(fs::read_to_string(&path).expect("the file"), "mine");
        assert_eq!(entries(folder.path()), 1);
        let missing = folder.path().join("missing").join("new");
        assert_eq!(NewFile::at(&missing).expect_err("no folder").code, exit_code::NOT_FOUND);
    }

    #[test]
    #[cfg(unix)]
    fn a_link_to_nothing_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("nowhere"), &path).expect("a link");
        assert_eq!(NewFile::at(&path).expect_err("refused").code, exit_code::USAGE);
    }
}

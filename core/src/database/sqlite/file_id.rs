//! The identity of a file, and the names of the files beside a database.
//!
//! Invariant: the file is not opened: closing its descriptor would drop the locks of this process.

use std::{
    io,
    path::{Path, PathBuf},
};

/// What identifies a file, whatever its name.
#[cfg(unix)]
pub(super) type FileId = (u64, u64);
#[cfg(not(unix))]
pub(super) type FileId = PathBuf;

/// Returns the identity of the file that `path` names.
#[cfg(unix)]
pub(super) fn file_id(path: &Path) -> io::Result<FileId> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = std::fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Elsewhere than on Unix nobody can remove or replace an open file.
#[cfg(not(unix))]
pub(super) fn file_id(path: &Path) -> io::Result<FileId> {
    path.canonicalize()
}

/// The file that SQLite keeps beside a database: `-wal` is the write-ahead log, `-shm` its index, `-journal` the rollback journal.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

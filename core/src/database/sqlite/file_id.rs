//! The identity of a file.
//!
//! Invariant: the file is not opened: closing its descriptor would drop the locks of this process.

use std::{io, path::Path};

/// What identifies a file, whatever its name.
#[cfg(unix)]
pub(super) type FileId = (u64, u64);
#[cfg(not(unix))]
pub(super) type FileId = std::path::PathBuf;

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

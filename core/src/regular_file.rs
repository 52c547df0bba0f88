//! Regular files of the host, which the program names.
//!
//! Invariant: no device, pipe or socket is opened in place of a file. To open a pipe waits for a program that writes it, and nothing
//! ends that wait.

use std::{
    fs::{File, Metadata, OpenOptions},
    io,
    path::Path,
};

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the file system; `InvalidInput` if it is not a regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    require_regular(&file.metadata()?)?;
    Ok(file)
}

/// # Errors
/// `InvalidInput` if it is not a regular file.
pub(crate) fn require_regular(metadata: &Metadata) -> io::Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    let what = if metadata.is_dir() { "it is a folder" } else { "it is a device, a pipe or a socket" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

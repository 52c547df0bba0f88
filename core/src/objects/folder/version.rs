//! The version of an object as an extended attribute of its file, `user.townsquare.version`.
//!
//! A reader compares it with the row and need not read the row again: a writer that replaces the object does not change the
//! open file. A file has no version if the file system has no extended attributes, or if another program wrote the file.

use std::fs::File;

#[cfg(any(target_os = "linux", target_os = "macos"))]
const NAME: &str = "user.townsquare.version";

/// The longest version that is read.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const MAX_LENGTH: usize = 64;

/// Gives a file its version.
pub(super) fn write(file: &File, version: &str) {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    if let Err(error) = rustix::fs::fsetxattr(file, NAME, version.as_bytes(), rustix::fs::XattrFlags::empty()) {
        tracing::debug!(%error, "a file cannot have a version");
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    let _ = (file, version);
}

/// The version of an open file. `None` if it has none.
pub(super) fn read(file: &File) -> Option<String> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        let mut buffer = [0; MAX_LENGTH];
        let length = rustix::fs::fgetxattr(file, NAME, buffer.as_mut_slice()).ok()?;
        std::str::from_utf8(&buffer[..length]).ok().map(str::to_owned)
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = file;
        None
    }
}

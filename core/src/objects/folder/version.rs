//! The version of an object as an extended attribute of its file, `user.townsquare.version`.
//!
//! It saves a reader a second look at the row: the version belongs to the open file, whatever a writer renames meanwhile. Where
//! the file system keeps no such attributes, or another program wrote the file, there is none.

use std::fs::File;

#[cfg(any(target_os = "linux", target_os = "macos"))]
const NAME: &str = "user.townsquare.version";

/// The longest version that is read.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const MAX_LENGTH: usize = 64;

/// Gives a new file its version.
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
    with_version(file, |version| version.map(str::to_owned))
}

/// Whether an open file has this version.
pub(super) fn is(file: &File, version: &str) -> bool {
    with_version(file, |found| found == Some(version))
}

fn with_version<T>(file: &File, use_version: impl FnOnce(Option<&str>) -> T) -> T {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        let mut buffer = [0; MAX_LENGTH];
        let found = rustix::fs::fgetxattr(file, NAME, &mut buffer).ok();
        use_version(found.and_then(|length| std::str::from_utf8(&buffer[..length]).ok()))
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        let _ = file;
        use_version(None)
    }
}

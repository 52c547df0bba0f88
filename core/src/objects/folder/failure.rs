//! I/O errors of the folder as errors of the library.

use std::io;

use crate::error::{Error, NO_SPACE, is_out_of_descriptors, is_out_of_space};

/// Names the failure of the file system. The cause is the I/O error.
pub(super) fn failed(error: io::Error) -> Error {
    let reason = |text: &'static str| (500, text.to_owned());
    let (status, reason) = match error.kind() {
        _ if is_out_of_space(&error) => (507, NO_SPACE.to_owned()),
        io::ErrorKind::PermissionDenied => reason("Permission denied"),
        io::ErrorKind::ReadOnlyFilesystem => reason("Read-only file system"),
        io::ErrorKind::NotADirectory => (409, "A part of the path is a file".to_owned()),
        io::ErrorKind::IsADirectory | io::ErrorKind::DirectoryNotEmpty => (409, "The path is a folder".to_owned()),
        io::ErrorKind::AlreadyExists => (409, error.to_string()),
        io::ErrorKind::InvalidFilename => (400, "the file system refuses this name".to_owned()),
        _ if is_out_of_descriptors(&error) => return Error::no_descriptors(error),
        _ => (500, error.to_string()),
    };
    Error::file(status, reason).caused_by(error)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_full_disk_is_status_507() {
        let error = failed(std::fs::write("/dev/full", b"1").expect_err("this device is always full"));
        assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 507));
        assert_eq!(error.message(), "Storage error: No space left on device");
        for kind in [io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge] {
            assert_eq!(failed(io::Error::from(kind)).status(), 507, "{kind:?}");
        }
    }

    #[test]
    fn a_lack_of_descriptors_is_unavailable() {
        for errno in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
            let error = failed(io::Error::from(errno));
            assert_eq!((error.kind(), error.status()), (ErrorKind::Unavailable, 503));
            assert_eq!(error.message(), "Storage error: Too many open files");
            assert!(error.explanation().contains("ulimit -n"), "{}", error.explanation());
        }
    }
}

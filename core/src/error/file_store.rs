//! Errors of the file store (SPEC 7): the operations that have them, and the failures of other layers that become them.

use std::{error::Error as StdError, fmt, io, iter::successors};

use super::{Error, ErrorKind, Operation};

/// The reason of an error with status 507.
pub(crate) const NO_SPACE: &str = "No space left on device";

/// Whether a write failed because the disk, a quota of it or the process's limit of file sizes (`RLIMIT_FSIZE`) is used up.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// Whether the process or the system has no file descriptor left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

/// The end of the sentence of [`Error::folder_in_the_way`].
const NAME_SHARED: &str = "A file and a folder cannot share a name";

/// SQLSTATE `disk_full`.
const DISK_FULL: &str = "53100";

impl Operation {
    /// Whether the operation is one of the file store: their errors have the statuses of SPEC 7.
    pub(super) const fn is_of_files(self) -> bool {
        use Operation as Of;
        matches!(
            self,
            Of::Upload
                | Of::UploadFrom
                | Of::SecureUpload
                | Of::OpenWriter
                | Of::Download
                | Of::DownloadTo
                | Of::OpenReader
                | Of::DeleteFile
                | Of::DeletePrefix
                | Of::FileExists
                | Of::StatFile
                | Of::ListFiles
                | Of::CopyFile
                | Of::MoveFile
                | Of::SignUrl
                | Of::RotateUrlKey
                | Of::HandleFile
                | Of::ExportFiles
                | Of::Repair
        )
    }
}

/// The reason of the error for a file that has a row and no bytes.
const BYTES_GONE: &str = "its bytes are gone";

impl Error {
    /// The error for a file that has a row and no bytes.
    pub(crate) fn bytes_gone() -> Error {
        Error::file(404, BYTES_GONE)
    }

    /// The error for a file of the host or of the object store that cannot be opened, because [`is_out_of_descriptors`].
    pub(crate) fn no_descriptors(error: io::Error) -> Error {
        Error::file(503, "Too many open files").caused_by(error)
    }

    /// Whether a file has a row and no bytes.
    pub(crate) fn is_loss_of_bytes(&self) -> bool {
        self.reason() == Some(BYTES_GONE)
    }

    /// The error for a path that names a folder, or that has a file in place of a folder.
    pub(crate) fn folder_in_the_way(path: impl fmt::Display) -> Error {
        let reason = format!("{path} is the name of a folder, or a folder in it is the name of a file");
        Error::file(409, NAME_SHARED).with_reason(reason)
    }

    /// Whether it is [`Error::folder_in_the_way`].
    pub(super) fn is_folder_in_the_way(&self) -> bool {
        self.sentence().ends_with(NAME_SHARED)
    }

    /// The error for a disk without room.
    #[cfg(feature = "sqlite")]
    pub(crate) fn disk_full(message: String) -> Error {
        Error::unavailable(message).with_code(DISK_FULL)
    }

    /// Whether the disk of the database has no room.
    pub(crate) fn is_disk_full(&self) -> bool {
        self.code() == Some(DISK_FULL)
    }

    /// Whether one of the causes is that the process or the system has no file descriptor left.
    pub(crate) fn is_out_of_descriptors(&self) -> bool {
        let mut causes = successors(StdError::source(self), |&error| error.source());
        causes.any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_out_of_descriptors))
    }

    /// Whether pages or rows of the database are damaged (SQLSTATE `data_corrupted`, `index_corrupted`).
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self.code(), Some("XX001" | "XX002"))
    }

    /// Sets the status of two failures of other layers, as SPEC 7 and DESIGN 7 say: an ended session (401), and a full disk of
    /// the database (507).
    pub(super) fn of_file_store(self) -> Error {
        match (self.0.status, self.kind(), self.code()) {
            (None, ErrorKind::Unauthorized, _) => Error::file(401, self.message().to_owned()).because_of(self),
            (None, _, Some(DISK_FULL)) => Error::file(507, NO_SPACE).because_of(self),
            _ => self,
        }
    }
}

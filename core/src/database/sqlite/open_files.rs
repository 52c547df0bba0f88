//! The files of an open database. Checks that their paths name the files that the connections have open.
//!
//! SQLite continues writing to a file that was removed or replaced, and nobody reads what it writes there. Another SQLite
//! library in this process does that too: when it closes the database, the process loses its locks, so it takes itself for
//! the last user and removes the write-ahead log.
//!
//! Invariant: no function opens a file: closing its descriptor would drop the locks of this process.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::file_id::{FileId, beside, file_id};
use crate::error::{Error, ErrorKind, Result};

/// The files that the connections of a client have open.
#[derive(Debug)]
pub(super) struct OpenFiles(Vec<OpenFile>);

#[derive(Debug)]
struct OpenFile {
    /// What messages call the file. They contain no path, because callers over HTTP read them.
    what: &'static str,
    path: PathBuf,
    id: FileId,
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAtPath {
    OpenFile,
    OtherFile,
    Nothing,
}

impl OpenFiles {
    /// The files of a database in memory: none.
    pub(super) fn none() -> OpenFiles {
        OpenFiles(Vec::new())
    }

    /// The files of the database at `path`. A connection to it is open and has read in WAL mode, so that the write-ahead log
    /// and its index exist. `opened` is the identity that the database file had before the connection opened it.
    ///
    /// # Errors
    /// `Unavailable` if a file was removed or replaced meanwhile.
    pub(super) fn of(path: &Path, opened: FileId) -> Result<OpenFiles> {
        let cannot_find = |what: &'static str| move |error: io::Error| cannot_find(what).caused_by(error);
        // SQLite resolves symbolic links and puts the other files beside the real one.
        let real = path.canonicalize().map_err(cannot_find(DATABASE))?;
        let opened_beside = |what: &'static str, suffix: &str| {
            let path = beside(&real, suffix);
            let id = file_id(&path).map_err(cannot_find(what))?;
            Ok(OpenFile { what, path, id })
        };
        let database = OpenFile { what: DATABASE, path: path.to_owned(), id: opened };
        let files = OpenFiles(vec![database, opened_beside(LOG, "-wal")?, opened_beside(LOG_INDEX, "-shm")?]);
        files.check()?;
        Ok(files)
    }

    /// The identities of the files.
    #[cfg(unix)]
    pub(super) fn ids(&self) -> Vec<FileId> {
        self.0.iter().map(|file| file.id).collect()
    }

    /// Checks that each path names the file that is open.
    ///
    /// # Errors
    /// `Unavailable`, saying which file was removed or replaced.
    pub(super) fn check(&self) -> Result<()> {
        match self.0.iter().find(|file| file.found() != FileAtPath::OpenFile) {
            None => Ok(()),
            Some(file) => {
                tracing::error!(path = %file.path.display(), "{} was removed or replaced while it was open", file.what);
                Err(cannot_find(file.what))
            }
        }
    }

    /// Whether another file took the place of one of these. Then the paths belong to others, and the write-ahead log must not
    /// be moved into the database.
    pub(super) fn are_replaced(&self) -> bool {
        let [database, others @ ..] = self.0.as_slice() else { return false };
        database.found() != FileAtPath::OpenFile || others.iter().any(|file| file.found() == FileAtPath::OtherFile)
    }
}

impl OpenFile {
    fn found(&self) -> FileAtPath {
        match file_id(&self.path) {
            Ok(id) if id == self.id => FileAtPath::OpenFile,
            Ok(_) => FileAtPath::OtherFile,
            Err(_) => FileAtPath::Nothing,
        }
    }
}

const DATABASE: &str = "the database file";
const LOG: &str = "the write-ahead log of the database";
const LOG_INDEX: &str = "the index of the write-ahead log";

fn cannot_find(what: &str) -> Error {
    // Closing the last connection moves the log that it has open into the database.
    let advice = match what {
        DATABASE => "close every client of it, put the right file back or restore a backup, and open it again",
        _ => "close every client of the database and open it again; if rows are missing then, restore a backup",
    };
    let message =
        format!("{what} was removed or replaced while it was open, so this client reads and writes nothing: {advice}");
    // The code of SQLite's own failures to reach its files.
    Error::database(Some("58030"), ErrorKind::Unavailable, message)
}

//! Room on the disk for the next open.
//!
//! SQLite opens a database in WAL mode with a file of shared memory, `<database>-shm`, and removes the file with the last
//! connection. On a full disk it could not create the file again, so that nobody could read. So a client that closes leaves
//! the file with bytes that nobody reads: SQLite empties the file first and then needs no more room than that.
//!
//! Invariant: the file is never opened here while SQLite may use it, because closing its descriptor would drop the locks of
//! this process.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use super::{file_id::beside, private_file::TemporaryFile};

/// The size of the first part of the shared memory.
const SIZE: usize = 32 << 10;

/// Leaves the file of shared memory beside a database that this client has closed, unless another client has it open.
pub(super) fn keep_room(database: &Path) {
    let file = beside(database, "-shm");
    if file.exists() || !database.exists() {
        return;
    }
    if let Err(error) = write(&file, database)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        tracing::debug!(%error, "no room is kept for the next open");
    }
}

fn write(file: &Path, database: &Path) -> io::Result<()> {
    let (temporary, mut content) = TemporaryFile::beside(file)?;
    content.write_all(&[0; SIZE])?;
    give_access(&content, database)?;
    drop(content);
    temporary.give_name(file)
}

/// Gives the file the mode and the owner of the database, as SQLite does for its files: the next client may be another user's.
///
/// # Errors
/// The owner is another user, and this process is not root, which alone gives files away.
#[cfg(unix)]
fn give_access(file: &fs::File, database: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let (own, wanted) = (file.metadata()?, database.metadata()?);
    let mut mode = wanted.mode() & 0o666;
    if (own.uid(), own.gid()) != (wanted.uid(), wanted.gid())
        && let Err(error) = fchown(file, Some(wanted.uid()), Some(wanted.gid()))
    {
        if own.uid() != wanted.uid() {
            return Err(error);
        }
        // The rights of the database's group are not for another group.
        mode &= 0o600;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn give_access(_: &fs::File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// Whether the file of shared memory of a database that does not exist is one that a client left.
pub(super) fn is_left(database: &Path) -> bool {
    fs::read(beside(database, "-shm")).is_ok_and(|content| content.iter().all(|byte| *byte == 0))
}

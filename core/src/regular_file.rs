//! Regular files of the host, which the program names, and files and folders that only their owner may read.
//!
//! Invariant: no device, pipe or socket is opened in place of a file. To open a pipe waits for a program that writes it, and nothing
//! ends that wait. Nor is a file of an open SQLite database: closing a descriptor of it would drop the locks that the process has on
//! it, and another process would take the database for its own.

use std::{
    fs::{DirBuilder, File, Metadata, OpenOptions},
    io,
    path::Path,
};

#[cfg(all(unix, feature = "sqlite"))]
use parking_lot::Mutex;

/// The device and inode of each file of an open database, once for each client that has it open.
#[cfg(all(unix, feature = "sqlite"))]
static DATABASE_FILES: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// The files of a database that a client has open. Dropped after its connections.
#[cfg(all(unix, feature = "sqlite"))]
#[derive(Debug)]
pub(crate) struct DatabaseFiles(Vec<(u64, u64)>);

#[cfg(all(unix, feature = "sqlite"))]
impl DatabaseFiles {
    pub(crate) fn new(files: Vec<(u64, u64)>) -> DatabaseFiles {
        DATABASE_FILES.lock().extend(&files);
        DatabaseFiles(files)
    }
}

#[cfg(all(unix, feature = "sqlite"))]
impl Drop for DatabaseFiles {
    fn drop(&mut self) {
        let mut all = DATABASE_FILES.lock();
        for file in &self.0 {
            if let Some(position) = all.iter().position(|known| known == file) {
                all.swap_remove(position);
            }
        }
    }
}

/// Opens a regular file for reading.
///
/// # Errors
/// Those of the file system; `InvalidInput` if it is not a regular file, or one of an open database.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    // Before it is open.
    require_no_database(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    require_regular(&file.metadata()?)?;
    Ok(file)
}

/// Creates an empty file that only its owner may read. Fails if there is one.
pub(crate) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Opens a file to lock it. Creates it for its owner only if it is missing.
pub(crate) fn open_lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Creates a folder and its missing parents for their owner only. Folders that exist stay as they are.
pub(crate) fn create_private_folders(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Flushes a folder to disk, so that a new name in it survives a power loss.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems write entries of folders by themselves.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// # Errors
/// `InvalidInput` if it is a file of a database that a client of this process has open. (Known on Unix alone.)
pub(crate) fn require_no_database(metadata: &Metadata) -> io::Result<()> {
    #[cfg(all(unix, feature = "sqlite"))]
    {
        use std::os::unix::fs::MetadataExt as _;
        if DATABASE_FILES.lock().contains(&(metadata.dev(), metadata.ino())) {
            let what = "it is a file of a database that this process has open";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
    }
    #[cfg(not(all(unix, feature = "sqlite")))]
    let _ = metadata;
    Ok(())
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

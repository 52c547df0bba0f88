//! Files of the host that uploads read and downloads write, on the blocking pool.
//!
//! Invariant: a download's target is whole and durable, or as it was before.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use uuid::Uuid;

use super::{core::StorageCore, writer::source_failed};
use crate::{
    error::{Error, NO_SPACE, Result, is_out_of_descriptors, is_out_of_space},
    regular_file::{
        create_private_file, create_private_folders, open_regular, require_no_database, require_regular, sync_folder,
    },
    threads::BlockingPool,
};

/// The bytes that are read at a time.
const CHUNK: usize = 1 << 20;

/// A file of the host that is being read.
pub(super) struct SourceFile {
    file: File,
    pub(super) size: u64,
}

/// A file of the host that is being written, under a temporary name. Dropping it removes the file.
pub(super) struct TargetFile {
    file: Option<File>,
    temporary: PathBuf,
    target: PathBuf,
    replaces: bool,
    /// Those of the file that is replaced.
    permissions: Option<fs::Permissions>,
}

impl SourceFile {
    pub(super) async fn open(pool: &BlockingPool, path: &Path) -> Result<SourceFile> {
        let (source, shown) = (path.to_owned(), path.display());
        let open = move || {
            let file = open_regular(&source)?;
            let size = file.metadata()?.len();
            Ok::<_, io::Error>(SourceFile { file, size })
        };
        let opened = pool.run(open).await?;
        opened.map_err(|error| match is_out_of_descriptors(&error) {
            true => Error::no_descriptors(error),
            false => Error::file(400, format!("the source {shown} cannot be read: {error}")).caused_by(error),
        })
    }

    /// Reads the next bytes; empty at the end.
    pub(super) async fn next_chunk(&mut self, pool: &BlockingPool) -> Result<Bytes> {
        let file = self.file.try_clone().map_err(source_failed)?;
        let read = move || {
            let mut chunk = Vec::with_capacity(CHUNK);
            file.take(CHUNK as u64).read_to_end(&mut chunk)?;
            Ok(Bytes::from(chunk))
        };
        pool.run(read).await?.map_err(source_failed)
    }
}

impl TargetFile {
    /// Creates the temporary file beside `target`, which must not exist at the end.
    ///
    /// # Errors
    /// `InvalidInput` (400) if `target` cannot be created.
    pub(super) async fn new(pool: &BlockingPool, target: PathBuf) -> Result<TargetFile> {
        pool.run(move || TargetFile::create(target, false, None)).await?.map_err(target_failed)
    }

    /// Creates the temporary file beside `target`. A regular file at `target`, or the one that a symbolic link at `target` names, is
    /// replaced at the end and keeps its permissions.
    ///
    /// # Errors
    /// `InvalidInput` (400) if `target` is not a regular file, is one of an open database or in the object store, or cannot be created.
    pub(super) async fn replacing(core: &Arc<StorageCore>, target: PathBuf) -> Result<TargetFile> {
        let of_store = Arc::clone(core);
        let create = move || {
            let (target, permissions) = replaced_file(target).map_err(target_failed)?;
            of_store.objects.require_outside(&target)?;
            TargetFile::create(target, true, permissions).map_err(target_failed)
        };
        core.runtime.blocking.run(create).await?
    }

    fn create(target: PathBuf, replaces: bool, permissions: Option<fs::Permissions>) -> io::Result<TargetFile> {
        let temporary = target.with_file_name(format!(".townsquare-{}", Uuid::new_v4().simple()));
        let file = create_private_file(&temporary)?;
        Ok(TargetFile { file: Some(file), temporary, target, replaces, permissions })
    }

    pub(super) async fn write(&mut self, pool: &BlockingPool, data: Bytes) -> Result<()> {
        let mut file = self.file()?.try_clone().map_err(target_failed)?;
        pool.run(move || file.write_all(&data)).await?.map_err(target_failed)
    }

    /// Makes the file durable under its name.
    pub(super) async fn install(mut self, pool: &BlockingPool) -> Result<()> {
        let install = move || {
            if let Some(file) = self.file.take() {
                if let Some(permissions) = self.permissions.take() {
                    file.set_permissions(permissions)?;
                }
                file.sync_all()?;
            }
            match fs::symlink_metadata(&self.target) {
                Ok(_) if !self.replaces => return Err(io::ErrorKind::AlreadyExists.into()),
                // Another program changed the target meanwhile.
                Ok(metadata) => require_replaceable(&metadata)?,
                Err(_) => {}
            }
            fs::rename(&self.temporary, &self.target)?;
            let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty());
            sync_folder(folder.unwrap_or(Path::new(".")))
        };
        pool.run(install).await?.map_err(target_failed)
    }

    fn file(&self) -> Result<&File> {
        self.file.as_ref().ok_or_else(|| Error::file(500, "The target is already installed"))
    }
}

impl Drop for TargetFile {
    fn drop(&mut self) {
        // After the rename there is nothing under the temporary name.
        let _ = fs::remove_file(&self.temporary);
    }
}

/// The file that a download to `target` replaces, and its permissions if it exists.
fn replaced_file(target: PathBuf) -> io::Result<(PathBuf, Option<fs::Permissions>)> {
    let metadata = match fs::symlink_metadata(&target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((target, None)),
        metadata => metadata?,
    };
    let (target, metadata) = if metadata.is_symlink() {
        let named = fs::canonicalize(&target)
            .map_err(|error| io::Error::new(error.kind(), format!("it is a symbolic link to no file: {error}")))?;
        let metadata = fs::symlink_metadata(&named)?;
        (named, metadata)
    } else {
        (target, metadata)
    };
    require_replaceable(&metadata)?;
    Ok((target, Some(metadata.permissions())))
}

/// # Errors
/// `InvalidInput` for a device or a pipe, which a rename over it would remove for every program, and for a file of an open database.
fn require_replaceable(metadata: &fs::Metadata) -> io::Result<()> {
    require_regular(metadata)?;
    require_no_database(metadata)
}

/// Creates a folder for an export: it must be missing or empty.
pub(super) async fn create_export_folder(pool: &BlockingPool, path: &Path) -> Result<()> {
    let path = path.to_owned();
    let create = move || {
        create_private_folders(&path)?;
        match fs::read_dir(&path)?.next() {
            None => Ok(()),
            Some(_) => Err(io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty")),
        }
    };
    pool.run(create).await?.map_err(target_failed)
}

/// Creates a folder and those that contain it.
pub(super) async fn create_folders(pool: &BlockingPool, path: PathBuf) -> Result<()> {
    pool.run(move || create_private_folders(&path)).await?.map_err(target_failed)
}

/// Copies a file for its owner only, creates the folders above it, and returns the BLAKE3 digest in hex. Blocks the thread.
#[cfg(feature = "sqlite")]
pub(super) fn copy_private(source: &Path, target: &Path) -> io::Result<String> {
    if let Some(folder) = target.parent() {
        create_private_folders(folder)?;
    }
    let (mut source, mut target_file) = (open_regular(source)?, create_private_file(target)?);
    let mut hasher = blake3::Hasher::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        match source.read(&mut chunk)? {
            0 => break,
            length => {
                hasher.update(&chunk[..length]);
                target_file.write_all(&chunk[..length])?;
            }
        }
    }
    target_file.sync_all()?;
    if let Some(folder) = target.parent() {
        sync_folder(folder)?;
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Fails if the answer of a progress callback cancels the call.
pub(crate) fn check_progress(answer: ControlFlow<()>) -> Result<()> {
    match answer {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::cancelled()),
    }
}

fn target_failed(error: io::Error) -> Error {
    if is_out_of_space(&error) {
        return Error::file(507, NO_SPACE).caused_by(error);
    }
    if is_out_of_descriptors(&error) {
        return Error::no_descriptors(error);
    }
    Error::file(400, format!("the target cannot be written: {error}")).caused_by(error)
}

//! Staging in a folder: bytes are written to a file below `.townsquare/staging`, and later renamed.
//!
//! Invariant: the file of a [`FolderStage`] or [`FolderStaged`] that is dropped is removed. Of a process that ended, the file
//! stays without its lock, and [`remove_stale`] removes it.

use std::{
    fs::{File, TryLockError},
    io::{self, BufWriter, Write as _},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use cap_std::fs::{Dir, MetadataExt};
use uuid::Uuid;

use super::{Folder, WorkFolders, failure::failed, tree, version};
use crate::{
    clock::Clock,
    error::{Error, Result},
    objects::hashing::Digester,
    threads::RunningJob,
};

/// Bytes are written in pieces of at least this size, except the last piece.
const PIECE: usize = 1 << 20;

/// A file below `.townsquare/staging`, locked for as long as it is open.
#[derive(Debug)]
pub(super) struct StageFile {
    folders: Arc<WorkFolders>,
    name: String,
    file: File,
    /// Whether the file is an object, and no longer a stage.
    is_installed: bool,
    /// A forked child leaves the files of its parent alone.
    process: u32,
}

impl StageFile {
    fn create(folders: Arc<WorkFolders>, name: &str, version: Option<&str>) -> io::Result<StageFile> {
        let file = tree::create_file(&folders.staging, name)?.into_std();
        if let Some(version) = version {
            version::write(&file, version);
        }
        let stage = StageFile::new(folders, name, file);
        stage.lock();
        Ok(stage)
    }

    /// Gives a file of this size a second name in the staging folder. `None` if that is not possible.
    pub(super) fn link(
        folders: &Arc<WorkFolders>,
        stage_name: &str,
        folder: &Dir,
        name: &str,
        size: u64,
    ) -> io::Result<Option<StageFile>> {
        let Some((file, found)) = tree::open_file(folder, name)? else { return Ok(None) };
        if found != size {
            return Ok(None);
        }
        // Before it has the name, because it may be old enough for `remove_stale`.
        let stage = StageFile::new(Arc::clone(folders), stage_name, file);
        stage.lock();
        match folder.hard_link(name, &folders.staging, stage_name) {
            Ok(()) => Ok(Some(stage)),
            Err(error) => {
                tracing::debug!(%error, "a file cannot have a second name");
                Ok(None)
            }
        }
    }

    fn new(folders: Arc<WorkFolders>, name: &str, file: File) -> StageFile {
        let (name, process) = (name.to_owned(), std::process::id());
        StageFile { folders, name, file, is_installed: false, process }
    }

    fn lock(&self) {
        // Nobody else locks a new file for longer than a moment. Without locks, `remove_stale` looks at the age alone.
        if let Err(TryLockError::Error(error)) = self.file.try_lock() {
            tracing::debug!(%error, "a staging file cannot be locked");
        }
    }

    fn write(&self, parts: &[Bytes]) -> io::Result<()> {
        // Small parts share a system call.
        let mut writer = BufWriter::new(&self.file);
        parts.iter().try_for_each(|part| writer.write_all(part))?;
        writer.flush()
    }

    pub(super) fn rename(&mut self, target: &Dir, name: &str) -> io::Result<()> {
        self.folders.staging.rename(&self.name, target, name)?;
        self.is_installed = true;
        Ok(())
    }

    pub(super) fn exists(&self) -> bool {
        self.folders.staging.symlink_metadata(&self.name).is_ok()
    }
}

impl Drop for StageFile {
    fn drop(&mut self) {
        if self.is_installed || self.process != std::process::id() {
            return;
        }
        match self.folders.staging.remove_file(&self.name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "a staging file cannot be removed");
            }
            _ => {}
        }
    }
}

/// Bytes on their way to the staging file.
#[derive(Debug)]
pub(in crate::objects) struct FolderStage {
    folder: Folder,
    pub(in crate::objects) id: String,
    /// The version that the file gets.
    version: Option<String>,
    size: u64,
    pending: Vec<Bytes>,
    pending_size: usize,
    digester: Digester,
    /// Writes the last piece. `None` before the first piece.
    writing: Option<RunningJob<Result<StageFile>>>,
}

/// A complete staging file.
#[derive(Debug)]
pub(in crate::objects) struct FolderStaged {
    /// Makes the file durable.
    syncing: RunningJob<Result<StageFile>>,
}

impl FolderStage {
    pub(super) fn new(folder: Folder, version: Option<String>) -> FolderStage {
        FolderStage {
            folder,
            id: Uuid::new_v4().simple().to_string(),
            version,
            size: 0,
            pending: Vec::new(),
            pending_size: 0,
            digester: Digester::default(),
            writing: None,
        }
    }

    /// Appends bytes. After an error, and after a call whose future the caller dropped, the stage lacks bytes and must be
    /// dropped.
    pub(in crate::objects) async fn write(&mut self, data: Bytes) -> Result<()> {
        self.size += data.len() as u64;
        self.pending_size += data.len();
        self.pending.push(data);
        if self.pending_size >= PIECE { self.write_pending().await } else { Ok(()) }
    }

    /// Waits until all bytes are written, and starts to make them durable.
    pub(in crate::objects) async fn finish(mut self) -> Result<(FolderStaged, u64, String)> {
        if self.writing.is_none() || self.pending_size > 0 {
            self.write_pending().await?;
        }
        let digest = self.digester.finish().await?;
        let file = self.writing.take().ok_or_else(Error::closed)?.join().await??;
        let sync = move || file.file.sync_all().map(|()| file).map_err(failed);
        Ok((FolderStaged { syncing: self.folder.pool().start(sync)? }, self.size, digest))
    }

    /// Starts to write the pending bytes, and to hash them at the same time. Waits for the piece before.
    async fn write_pending(&mut self) -> Result<()> {
        self.pending_size = 0;
        let data: Arc<[Bytes]> = std::mem::take(&mut self.pending).into();
        self.digester.update(self.folder.pool(), Arc::clone(&data)).await?;
        let file = match self.writing.take() {
            Some(mut writing) => Some(writing.join().await??),
            None => None,
        };
        let (folder, id, version) = (self.folder.clone(), self.id.clone(), self.version.clone());
        self.writing = Some(self.folder.pool().start(move || {
            let file = match file {
                Some(file) => file,
                None => folder
                    .with_work_folders(|folders| StageFile::create(Arc::clone(folders), &id, version.as_deref()))?,
            };
            file.write(&data).map_err(failed)?;
            Ok(file)
        })?);
        Ok(())
    }
}

impl FolderStaged {
    /// A second name of a durable file, on the pool of its folder.
    pub(super) fn linked(folder: &Folder, file: StageFile) -> Result<FolderStaged> {
        Ok(FolderStaged { syncing: folder.pool().start(move || Ok(file))? })
    }

    /// Waits until the file is durable, and returns it.
    pub(super) async fn durable(mut self) -> Result<StageFile> {
        self.syncing.join().await?
    }
}

/// Removes the staging files that are older than `older_than` and that no process has locked. Returns their number.
pub(super) fn remove_stale(staging: &Dir, older_than: Duration) -> io::Result<u32> {
    let mut removed = 0;
    for_each_stale(staging, older_than, |name| match staging.remove_file(name) {
        Ok(()) => {
            removed += 1;
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    })?;
    Ok(removed)
}

/// Counts the files that [`remove_stale`] would remove.
pub(super) fn count_stale(staging: &Dir, older_than: Duration) -> io::Result<u32> {
    let mut count = 0;
    for_each_stale(staging, older_than, |_| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

/// Calls `work` with the name of each file that is older than `older_than` and that no process has locked. The lock is held
/// meanwhile.
fn for_each_stale(staging: &Dir, older_than: Duration, mut work: impl FnMut(&str) -> io::Result<()>) -> io::Result<()> {
    let newest = Clock::default().now().as_second().saturating_sub_unsigned(older_than.as_secs());
    for entry in staging.entries()? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some((file, _)) = tree::open_file(staging, name)? else { continue };
        let is_old = staging.symlink_metadata(name).is_ok_and(|metadata| metadata.mtime() <= newest);
        if is_old && !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            work(name)?;
        }
    }
    Ok(())
}

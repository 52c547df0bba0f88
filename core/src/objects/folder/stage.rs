//! Staging in a folder: bytes are written to a file below `.townsquare/staging`, and later renamed.
//!
//! Invariant: the file of a [`FolderStage`] or [`FolderStaged`] that is dropped is removed. Of a process that ended, the file
//! stays without its lock, and [`remove_stale`] removes it.

use std::{
    fs::{File, TryLockError},
    io::{self, IoSlice, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cap_std::fs::{Dir, MetadataExt};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Folder, WorkFolders, failure::failed, tree, version};
use crate::{
    clock::Clock,
    error::Result,
    objects::hashing::{Digester, Job},
    threads::{BlockingPool, blocking_caller},
};

/// Bytes are written in pieces of at least this size, except the last piece.
const PIECE: usize = 1 << 20;

/// `write` keeps fewer bytes than these until the next `write`, or until `finish`, which has one job write and sync them.
const MAX_PENDING: usize = 4 << 20;

/// A file below `.townsquare/staging`, locked for as long as it is open.
#[derive(Debug)]
pub(super) struct StageFile {
    folders: Arc<WorkFolders>,
    name: String,
    file: File,
    /// Set when the file is an object, and no longer a stage.
    is_installed: AtomicBool,
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
        let (name, is_installed, process) = (name.to_owned(), AtomicBool::new(false), std::process::id());
        StageFile { folders, name, file, is_installed, process }
    }

    fn lock(&self) {
        // Nobody else locks a new file for longer than a moment. Without locks, `remove_stale` looks at the age alone.
        if let Err(TryLockError::Error(error)) = self.file.try_lock() {
            tracing::debug!(%error, "a staging file cannot be locked");
        }
    }

    fn write(&self, data: &[Bytes]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = data.iter().map(|part| IoSlice::new(part)).collect();
        let mut rest = slices.as_mut_slice();
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match (&self.file).write_vectored(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut rest, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub(super) fn rename(&self, target: &Dir, name: &str) -> io::Result<()> {
        self.folders.staging.rename(&self.name, target, name)?;
        self.is_installed.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn exists(&self) -> bool {
        self.folders.staging.symlink_metadata(&self.name).is_ok()
    }
}

impl Drop for StageFile {
    fn drop(&mut self) {
        if self.is_installed.load(Ordering::Acquire) || self.process != std::process::id() {
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
    /// `None` until the first piece is written.
    file: Option<Arc<StageFile>>,
    writing: Option<Job<Result<Arc<StageFile>>>>,
}

/// A complete staging file.
#[derive(Debug)]
pub(in crate::objects) struct FolderStaged {
    pool: BlockingPool,
    file: Option<Arc<StageFile>>,
    /// Makes the file durable. `None` for a file that is durable.
    syncing: Option<Job<Result<()>>>,
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
            digester: Digester::new(),
            file: None,
            writing: None,
        }
    }

    pub(in crate::objects) async fn write(&mut self, data: Bytes) -> Result<()> {
        if self.pending_size >= PIECE {
            self.flush().await?;
        }
        self.size += data.len() as u64;
        self.pending_size += data.len();
        if !data.is_empty() {
            self.pending.push(data);
        }
        if self.pending_size >= MAX_PENDING { self.flush().await } else { Ok(()) }
    }

    pub(in crate::objects) async fn finish(mut self) -> Result<(FolderStaged, u64, String)> {
        self.join_write().await?;
        let (data, write) = self.next_write();
        let (pool, (has_written, written)) = (self.folder.pool().clone(), oneshot::channel());
        let write_and_sync = move || {
            let (file, outcome) = match write() {
                Ok(file) => (Some(Arc::clone(&file)), Ok(file)),
                Err(error) => (None, Err(error)),
            };
            drop(has_written.send(outcome));
            file.map_or(Ok(()), |file| file.file.sync_all().map_err(failed))
        };
        let syncing = Job::start(&pool, write_and_sync)?;
        self.writing = Some(Job::of(written));
        match blocking_caller::is_current() {
            true => self.digester.update_here(&data).await?,
            false => self.digester.update(&pool, data).await?,
        }
        let digest = self.digester.finish().await?;
        self.join_write().await?;
        Ok((FolderStaged { pool, file: self.file.take(), syncing: Some(syncing) }, self.size, digest))
    }

    /// Starts to write the pending bytes, and to hash them at the same time. Waits for those before.
    async fn flush(&mut self) -> Result<()> {
        self.join_write().await?;
        let (data, write) = self.next_write();
        let pool = self.folder.pool();
        self.writing = Some(Job::start(pool, write)?);
        self.digester.update(pool, data).await
    }

    /// Takes the pending bytes, and returns them with what writes them. Requires that nothing is being written.
    fn next_write(&mut self) -> (Arc<[Bytes]>, impl FnOnce() -> Result<Arc<StageFile>> + Send + 'static) {
        self.pending_size = 0;
        let data: Arc<[Bytes]> = std::mem::take(&mut self.pending).into();
        let (folder, file, id, version) =
            (self.folder.clone(), self.file.take(), self.id.clone(), self.version.clone());
        let to_write = Arc::clone(&data);
        let write = move || {
            let file = match file {
                Some(file) => file,
                None => {
                    let create = |folders: &_| StageFile::create(Arc::clone(folders), &id, version.as_deref());
                    Arc::new(folder.with_work_folders(create)?)
                }
            };
            file.write(&to_write).map_err(failed)?;
            Ok(file)
        };
        (data, write)
    }

    async fn join_write(&mut self) -> Result<()> {
        if let Some(writing) = &mut self.writing {
            let file = writing.join().await;
            self.writing = None;
            self.file = Some(file??);
        }
        Ok(())
    }
}

impl FolderStaged {
    pub(super) fn new(pool: BlockingPool, file: StageFile) -> FolderStaged {
        FolderStaged { pool, file: Some(Arc::new(file)), syncing: None }
    }

    /// Waits until the file is durable, and returns it.
    pub(super) async fn durable(mut self) -> Result<Option<Arc<StageFile>>> {
        if let Some(syncing) = &mut self.syncing {
            syncing.join().await??;
        }
        Ok(self.file.take())
    }
}

impl Drop for FolderStage {
    fn drop(&mut self) {
        drop_on(self.folder.pool(), self.file.take());
    }
}

impl Drop for FolderStaged {
    fn drop(&mut self) {
        drop_on(&self.pool, self.file.take());
    }
}

/// Removes the file on a thread of the pool, or here if there is none.
fn drop_on(pool: &BlockingPool, file: Option<Arc<StageFile>>) {
    if let Some(file) = file {
        let _ = pool.submit(move || drop(file));
    }
}

/// Removes the staging files that are older than `older_than` and that no process has locked. Returns their number.
pub(super) fn remove_stale(staging: &Dir, older_than: Duration) -> io::Result<u32> {
    let newest = Clock::default().now().as_second().saturating_sub_unsigned(older_than.as_secs());
    let mut removed = 0;
    for entry in staging.entries()? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some((file, _)) = tree::open_file(staging, name)? else { continue };
        let is_old = staging.symlink_metadata(name).is_ok_and(|metadata| metadata.mtime() <= newest);
        if is_old && !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            match staging.remove_file(name) {
                Ok(()) => removed += 1,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(removed)
}

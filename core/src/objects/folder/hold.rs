//! Holds in a folder: hard links below `.townsquare/held/<id>`.
//!
//! Invariant: the folder of a hold contains a lock file, which is locked while the hold lives. [`remove_stale`] removes the
//! folders of processes that ended.

use std::{
    fs::TryLockError,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use uuid::Uuid;

use super::{Folder, FolderReader, failure::failed, tree};
use crate::{
    error::Result,
    objects::{
        hold::HELD,
        key::{ObjectKey, WORK_FOLDER},
    },
};

/// The name of the lock file.
const LOCK: &str = "lock";

/// How often a hold tries to create its folder.
const TRIES: usize = 16;

/// Second names of objects.
#[derive(Debug)]
pub(in crate::objects) struct FolderHold {
    folder: Folder,
    files: Arc<HoldFiles>,
}

#[derive(Debug)]
struct HoldFiles {
    /// The folder of all holds.
    above: Dir,
    /// The name of this hold in it.
    id: String,
    dir: Dir,
    /// Locked while it is open.
    _lock: std::fs::File,
    has_ended: AtomicBool,
    /// A forked child leaves the files of its parent alone.
    process: u32,
}

impl Folder {
    pub(in crate::objects) async fn begin_hold(&self) -> Result<FolderHold> {
        let begin = |folder: &Folder| {
            folder.with_work_folders(|folders| {
                let work = folders.root.open_dir_nofollow(WORK_FOLDER)?;
                let above = tree::create_folder(&work, HELD)?;
                remove_stale(&work)?;
                let mut more_tries = 1..TRIES;
                loop {
                    match HoldFiles::create(above.try_clone()?) {
                        Err(error) if tree::is_missing(&error) && more_tries.next().is_some() => {}
                        created => return created,
                    }
                }
            })
        };
        Ok(FolderHold { folder: self.clone(), files: Arc::new(self.run(begin).await?) })
    }
}

impl FolderHold {
    /// Returns the size of the object; `None` if there is none.
    pub(in crate::objects) async fn add(&self, key: &ObjectKey, name: &str) -> Result<Option<u64>> {
        let (files, name) = (Arc::clone(&self.files), name.to_owned());
        let add = move |folder: &Folder, key: &ObjectKey| {
            let (names, file) = key.segments()?;
            folder.with_work_folders(|folders| {
                let chain = match tree::Chain::open(&folders.root, &names) {
                    Err(error) if tree::is_missing(&error) => return Ok(None),
                    chain => chain?,
                };
                files.link(chain.parent(), file, &name)
            })
        };
        self.folder.with_key(key, add).await
    }

    pub(in crate::objects) async fn remove(&self, name: &str) -> Result<()> {
        let (files, name) = (Arc::clone(&self.files), name.to_owned());
        let remove = move |_: &Folder| match files.dir.remove_file(&name) {
            Err(error) if !tree::is_missing(&error) => Err(failed(error)),
            _ => Ok(()),
        };
        self.folder.run(remove).await
    }

    pub(in crate::objects) async fn open(&self, name: &str) -> Result<Option<FolderReader>> {
        let (files, name) = (Arc::clone(&self.files), name.to_owned());
        let open = move |folder: &Folder| {
            let Some((file, size)) = tree::open_file(&files.dir, &name).map_err(failed)? else { return Ok(None) };
            Ok(Some(FolderReader::new(folder.clone(), file, size)))
        };
        self.folder.run(open).await
    }

    pub(in crate::objects) async fn end(&self) -> Result<()> {
        let files = Arc::clone(&self.files);
        self.folder.run(move |_| files.end().map_err(failed)).await
    }

    pub(in crate::objects) fn end_later(&self) {
        let files = Arc::clone(&self.files);
        if files.has_ended.load(Ordering::Acquire) || files.process != std::process::id() {
            return;
        }
        let end = move || {
            if let Err(error) = files.end() {
                tracing::warn!(%error, "the folder of a hold cannot be removed");
            }
        };
        let _ = self.folder.pool().submit(end);
    }
}

impl HoldFiles {
    /// Creates the folder of a hold in `above`, and locks it.
    ///
    /// # Errors
    /// `NotFound` if another process has taken the folder for that of a process that ended, because it was not locked yet.
    fn create(above: Dir) -> io::Result<HoldFiles> {
        let id = Uuid::new_v4().simple().to_string();
        let dir = tree::create_folder(&above, &id)?;
        let lock = tree::open_lock_file(&dir, LOCK)?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(io::ErrorKind::NotFound.into()),
            Err(TryLockError::Error(error)) => tracing::debug!(%error, "the folder of a hold cannot be locked"),
            Ok(()) => {}
        }
        // Nobody removes a locked folder. Somebody may have removed it before it was locked.
        dir.symlink_metadata(LOCK)?;
        let process = std::process::id();
        Ok(HoldFiles { above, id, dir, _lock: lock, has_ended: AtomicBool::new(false), process })
    }

    /// Gives the file `file` of `folder` the name `name` in this hold. Returns its size; `None` if it is no regular file.
    fn link(&self, folder: &Dir, file: &str, name: &str) -> io::Result<Option<u64>> {
        match folder.hard_link(file, &self.dir, name) {
            Ok(()) => {}
            Err(error) if tree::is_missing(&error) => return Ok(None),
            // A file system without hard links.
            Err(_) => {
                let Some((mut source, _)) = tree::open_file(folder, file)? else { return Ok(None) };
                io::copy(&mut source, &mut tree::create_file(&self.dir, name)?)?;
            }
        }
        let metadata = self.dir.symlink_metadata(name)?;
        if metadata.is_file() {
            return Ok(Some(metadata.len()));
        }
        self.dir.remove_file(name)?;
        Ok(None)
    }

    fn end(&self) -> io::Result<()> {
        if self.has_ended.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        remove(&self.above, &self.id)
    }
}

/// Removes the folder of a hold. Another process may remove it meanwhile, from the moment when its lock file is gone.
fn remove(above: &Dir, name: &str) -> io::Result<()> {
    match above.remove_dir_all(name) {
        Err(error) if tree::is_missing(&error) => Ok(()),
        removed => removed,
    }
}

/// Removes the holds of processes that ended, below the work folder.
pub(super) fn remove_stale(work: &Dir) -> io::Result<()> {
    let above = match work.open_dir_nofollow(HELD) {
        Err(error) if tree::is_missing(&error) => return Ok(()),
        above => above?,
    };
    for entry in above.entries()? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Ok(dir) = above.open_dir_nofollow(name) else { continue };
        match tree::open_file(&dir, LOCK)? {
            Some((lock, _)) if lock.try_lock().is_ok() => remove(&above, name)?,
            Some(_) => {}
            // Its process was killed before it created the lock file, or is about to create it. Only an empty folder is removed.
            None => drop(above.remove_dir(name)),
        }
    }
    Ok(())
}

//! Objects in a local folder: `<root>/<bucket>/<path>`.
//!
//! Invariant: every access goes through an open folder below the root (cap-std, or `openat2` with the same limits) and
//! follows no symbolic link. Folders have the mode 0700 and files 0600. A file is written below
//! `<root>/.townsquare/staging`, synced and renamed; then its folder is synced. So an object is complete, old or new, at any
//! time and after a crash.

mod failure;
mod hold;
mod list;
mod reader;
mod stage;
mod tree;
mod version;

use std::{
    fmt,
    fs::{File, TryLockError},
    io::{self, Read as _, Write as _},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use cap_fs_ext::DirExt;
use cap_std::{ambient_authority, fs::Dir};
use parking_lot::Mutex;
use uuid::Uuid;

use self::{
    failure::failed,
    stage::StageFile,
    tree::{Chain, is_missing},
};
pub(super) use self::{
    hold::FolderHold,
    list::FolderWalk,
    reader::FolderReader,
    stage::{FolderStage, FolderStaged},
};
use super::{
    ListedObject, ObjectDigest, ObjectStat, STORE_ID,
    key::{ObjectKey, WORK_FOLDER, check_bucket, check_stage_id},
    locks::{IdleLockFiles, LockFiles, Locks, PathLock},
};
use crate::{
    error::{Error, Result},
    file_place::file_place,
    threads::{BlockingPool, RuntimeHandle, blocking_caller},
};

const STAGING: &str = "staging";
const LOCKS: &str = "locks";
/// The lock file that every client of the folder holds.
const CLIENTS: &str = "clients";
/// The file in the work folder with the place of the root.
const PLACE: &str = "place";
/// The most bytes of the files with the id and the place.
const MAX_SMALL_FILE: u64 = 100;
/// A folder may be pruned by another writer between its creation and the rename into it. Each try needs one such writer.
const RENAME_TRIES: usize = 1_000;

/// A local folder. Clones are the same store.
#[derive(Clone)]
pub(super) struct Folder(Arc<FolderInner>);

struct FolderInner {
    path: PathBuf,
    runtime: RuntimeHandle,
    opened: Mutex<Opened>,
    locks: Locks,
}

/// The folders that were opened so far.
#[derive(Default)]
struct Opened {
    root: Option<Arc<Dir>>,
    work: Option<Arc<WorkFolders>>,
    /// The id that the folder has, unless another folder took its place.
    expected_id: Option<String>,
}

/// The root and the folders below `.townsquare`.
#[derive(Debug)]
struct WorkFolders {
    root: Arc<Dir>,
    staging: Dir,
    locks: Dir,
    idle_lock_files: Arc<IdleLockFiles>,
    /// Whether the file system takes names for equal that differ in case.
    ignores_case: bool,
    /// Whether a rename that replaces an open file is one step. NFS and some FUSE file systems first give the open file another
    /// name: a crash in between would leave neither the old object nor the new one.
    replaces_open_files: bool,
    /// The lock file of the clients, locked. `None` if files cannot be locked here.
    _clients: Option<File>,
}

impl Folder {
    pub(super) fn new(path: PathBuf, runtime: RuntimeHandle) -> Folder {
        Folder(Arc::new(FolderInner { path, runtime, opened: Mutex::default(), locks: Locks::new() }))
    }

    pub(super) fn stage(&self, version: Option<String>) -> FolderStage {
        FolderStage::new(self.clone(), version)
    }

    /// Gives an object of this size a second name in the staging folder. `None` if there is no such object, or if the file
    /// system has no hard links.
    pub(super) async fn stage_link(&self, key: &ObjectKey, size: u64) -> Result<Option<(String, FolderStaged)>> {
        let pool = self.pool().clone();
        self.with_key(key, move |folder, key| {
            let (names, name) = key.segments()?;
            let id = Uuid::new_v4().simple().to_string();
            let linked = folder.with_work_folders(|folders| {
                let chain = match Chain::open(&folders.root, &names) {
                    Err(error) if is_missing(&error) => return Ok(None),
                    chain => chain?,
                };
                StageFile::link(folders, &id, chain.parent(), name, size)
            })?;
            Ok(linked.map(|file| (id, FolderStaged::new(pool, file))))
        })
        .await
    }

    pub(super) async fn install(&self, staged: FolderStaged, key: &ObjectKey) -> Result<()> {
        let file = staged.durable().await?.ok_or_else(|| Error::file(500, "The staged bytes are gone"))?;
        self.with_key(key, move |folder, key| {
            let outcome = folder.with_work_folders(|folders| install(folders, &file, key));
            // Removes the staging file here if the rename failed.
            drop(file);
            if let Some((replaced, size)) = outcome? {
                free(folder.pool(), replaced, size);
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn discard(&self, id: &str) -> Result<()> {
        check_stage_id(id)?;
        let id = id.to_owned();
        self.run(move |folder| match folder.work_folders(false)?.map(|folders| folders.staging.remove_file(&id)) {
            Some(Err(error)) if !is_missing(&error) => Err(failed(error)),
            _ => Ok(()),
        })
        .await
    }

    /// Opens an object. `expected` is the size and the version that it probably has: then a small object takes fewer steps.
    pub(super) async fn open_object(
        &self,
        key: &ObjectKey,
        expected: Option<(u64, &str)>,
    ) -> Result<Option<FolderReader>> {
        let expected = expected.map(|(size, version)| (size, version.to_owned()));
        self.with_key(key, move |folder, key| folder.open_reader(key, expected)).await
    }

    pub(super) async fn stat(&self, key: &ObjectKey) -> Result<Option<ObjectStat>> {
        self.with_key(key, |folder, key| {
            let found = folder.open_file(key)?;
            Ok(found.map(|(file, size)| ObjectStat { size, version: version::read(&file) }))
        })
        .await
    }

    /// Gives the file of an object a version, as far as the file system allows.
    pub(super) async fn write_version(&self, key: &ObjectKey, version: &str) -> Result<()> {
        let version = version.to_owned();
        self.with_key(key, move |folder, key| {
            if let Some((file, _)) = folder.open_file(key)? {
                version::write(&file, &version);
            }
            Ok(())
        })
        .await
    }

    pub(super) async fn digest(&self, key: &ObjectKey) -> Result<Option<ObjectDigest>> {
        let open = |folder: &Folder, key: &ObjectKey| folder.open_file(key);
        let Some((file, size)) = self.with_key(key, open).await? else { return Ok(None) };
        // On the pool, because a large file takes long.
        let hash = move || {
            let mut hasher = blake3::Hasher::new();
            reader::for_each_chunk(&file, size, |chunk| {
                hasher.update(chunk);
            })
            .map_err(failed)?;
            let digest = Some(hasher.finalize().to_hex().to_string());
            Ok(Some(ObjectDigest { size, digest, version: None }))
        };
        self.pool().run(hash).await?
    }

    pub(super) async fn remove(&self, key: &ObjectKey) -> Result<()> {
        self.with_key(key, |folder, key| {
            let (folders, name) = key.segments()?;
            let Some(root) = folder.root(false)? else { return Ok(()) };
            match remove(&root, &folders, name) {
                Err(error) if !is_missing(&error) => Err(failed(error)),
                _ => Ok(()),
            }
        })
        .await
    }

    pub(super) async fn lock(&self, key: &ObjectKey, timeout: Duration) -> Result<PathLock> {
        let stripe = Locks::stripe_of(key);
        let opened = self.0.opened.lock().work.clone();
        if let Some(folders) = opened
            && let Some(lock) = self.0.locks.try_lock(key)
            && let Ok(files) = open_lock_files(&folders, stripe)
            && let Some(lock) = lock.try_with_files(files)?
        {
            return Ok(lock);
        }
        // On the runtime, because the timer needs one.
        let (folder, key) = (self.clone(), key.clone());
        let waiting = async move {
            let lock = folder.0.locks.lock(&key).await;
            let opened = folder.0.opened.lock().work.clone();
            let files = match opened.and_then(|folders| open_lock_files(&folders, stripe).ok()) {
                Some(files) => files,
                None => {
                    let open =
                        move |folder: &Folder| folder.with_work_folders(|folders| open_lock_files(folders, stripe));
                    folder.run(open).await?
                }
            };
            lock.with_files(files).await
        };
        let task = self.0.runtime.spawn(async move { tokio::time::timeout(timeout, waiting).await });
        match task.await.map_err(|_| Error::closed())? {
            Ok(lock) => lock,
            Err(_) => Err(Error::file(503, "Another writer holds the lock of this path")),
        }
    }

    /// Starts a listing of a bucket.
    pub(super) async fn walk(&self, bucket: &str) -> Result<FolderWalk> {
        check_bucket(bucket)?;
        let bucket = bucket.to_owned();
        self.run(move |folder| match folder.root(false)? {
            Some(root) => FolderWalk::new(&root, &bucket).map_err(failed),
            None => Ok(FolderWalk::default()),
        })
        .await
    }

    /// Returns the next page of a listing.
    pub(super) async fn next_page(
        &self,
        mut walk: FolderWalk,
        limit: usize,
    ) -> Result<(FolderWalk, Vec<ListedObject>)> {
        self.run(move |_| {
            let page = walk.next(limit).map_err(failed)?;
            Ok((walk, page))
        })
        .await
    }

    pub(super) async fn remove_stale_stages(&self, older_than: Duration) -> Result<u32> {
        self.run(move |folder| match folder.work_folders(false)? {
            Some(folders) => {
                let remove_holds =
                    folders.root.open_dir_nofollow(WORK_FOLDER).and_then(|work| hold::remove_stale(&work));
                remove_holds.and_then(|()| stage::remove_stale(&folders.staging, older_than)).map_err(failed)
            }
            None => Ok(0),
        })
        .await
    }

    pub(super) async fn read_id(&self) -> Result<Option<Vec<u8>>> {
        self.run(move |folder| {
            // Through the path, because the folder may have been replaced or unmounted.
            folder.forget();
            match Dir::open_ambient_dir(&folder.0.path, ambient_authority()).and_then(|root| read_id(&root)) {
                Err(error) if is_missing(&error) => Ok(None),
                id => id.map_err(failed),
            }
        })
        .await
    }

    pub(super) fn expect_id(&self, id: Option<&str>) {
        self.0.opened.lock().expected_id = id.map(str::to_owned);
    }

    pub(super) async fn write_id(&self, content: String) -> Result<()> {
        self.run(move |folder| folder.with_work_folders(|folders| write(folders, STORE_ID, &content))).await
    }

    pub(super) async fn exists(&self) -> Result<bool> {
        self.run(|folder| Ok(folder.0.path.exists())).await
    }

    /// Whether the folder is a copy: it records another place than it has. False if one of them is unknown.
    pub(super) async fn is_copy(&self) -> Result<bool> {
        self.run(|folder| {
            let Some(root) = folder.root(false)? else { return Ok(false) };
            let (recorded, found) = (read(&root, PLACE).map_err(failed)?, file_place(&folder.0.path));
            Ok(recorded.zip(found).is_some_and(|(recorded, found)| recorded.trim_ascii() != found.as_bytes()))
        })
        .await
    }

    /// Records the place of the folder, unless it is recorded.
    pub(super) async fn record_place(&self) -> Result<()> {
        self.run(|folder| {
            let (Some(root), Some(found)) = (folder.root(false)?, file_place(&folder.0.path)) else { return Ok(()) };
            let recorded = read(&root, PLACE).map_err(failed)?;
            if recorded.is_some_and(|recorded| recorded.trim_ascii() == found.as_bytes()) {
                return Ok(());
            }
            folder.with_work_folders(|folders| write(folders, PLACE, &format!("{found}\n")))
        })
        .await
    }

    pub(super) async fn join(&self) -> Result<()> {
        self.run(|folder| folder.work_folders(false).map(drop)).await
    }

    fn pool(&self) -> &BlockingPool {
        &self.0.runtime.blocking
    }

    /// Runs `work`, on the blocking pool unless a thread waits for it: to wake another thread takes longer than to open a file,
    /// and much longer while the processors are busy.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Folder) -> Result<T> + Send + 'static) -> Result<T> {
        if self.runs_here() {
            return work(self);
        }
        let folder = self.clone();
        self.pool().run(move || work(&folder)).await?
    }

    async fn with_key<T: Send + 'static>(
        &self,
        key: &ObjectKey,
        work: impl FnOnce(&Folder, &ObjectKey) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        key.check()?;
        if self.runs_here() {
            return work(self, key);
        }
        let (folder, key) = (self.clone(), key.clone());
        self.pool().run(move || work(&folder, &key)).await?
    }

    fn runs_here(&self) -> bool {
        blocking_caller::is_current() && !self.pool().is_closed()
    }

    fn open_reader(&self, key: &ObjectKey, expected: Option<(u64, String)>) -> Result<Option<FolderReader>> {
        let at_once = self.open_at_once(key)?;
        if let (Some(file), Some((size, version))) = (&at_once, expected)
            && let Some(content) = reader::read_version(file, size, &version)
        {
            let file = at_once.expect("it was read");
            return Ok(Some(FolderReader::new(self.pool().clone(), file, size, Some(version), Some(content))));
        }
        let Some((file, size)) = self.regular_file(key, at_once)? else { return Ok(None) };
        FolderReader::open(self.pool().clone(), file, size).map(Some).map_err(failed)
    }

    fn open_file(&self, key: &ObjectKey) -> Result<Option<(File, u64)>> {
        self.regular_file(key, self.open_at_once(key)?)
    }

    fn open_at_once(&self, key: &ObjectKey) -> Result<Option<File>> {
        Ok(self.root(false)?.and_then(|root| tree::open_at_once(&root, key)))
    }

    /// The file at a key, with its size. `at_once` is what [`tree::open_at_once`] has opened.
    fn regular_file(&self, key: &ObjectKey, at_once: Option<File>) -> Result<Option<(File, u64)>> {
        if let Some(file) = at_once
            && let Ok(metadata) = file.metadata()
            && metadata.is_file()
        {
            return Ok(Some((file, metadata.len())));
        }
        let (folders, name) = key.segments()?;
        let open = |root: &Dir| match Chain::open(root, &folders) {
            Ok(chain) => tree::open_file(chain.parent(), name),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        };
        let Some(root) = self.root(false)? else { return Ok(None) };
        match open(&root).map_err(failed)? {
            None => {
                // The root may have been replaced by another folder.
                self.forget();
                self.root(false)?.map_or(Ok(None), |root| open(&root)).map_err(failed)
            }
            found => Ok(found),
        }
    }

    /// Runs `work` with the folders that writers need, and again with new ones if somebody removed them.
    fn with_work_folders<T>(&self, mut work: impl FnMut(&Arc<WorkFolders>) -> io::Result<T>) -> Result<T> {
        let folders = self.work_folders(true)?.ok_or_else(|| Error::file(500, "The folder is missing"))?;
        match work(&folders) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget();
                let folders = self.work_folders(true)?.ok_or_else(|| Error::file(500, "The folder is missing"))?;
                work(&folders).map_err(failed)
            }
            outcome => outcome.map_err(failed),
        }
    }

    /// Closes the folders. The next call opens them again.
    pub(super) fn forget(&self) {
        let mut opened = self.0.opened.lock();
        (opened.root, opened.work) = (None, None);
    }

    /// The root. `None` if it does not exist and `creates` is false.
    ///
    /// # Errors
    /// 503 if the folder is gone or has another id than it is expected to have; the errors of the file system.
    fn root(&self, creates: bool) -> Result<Option<Arc<Dir>>> {
        let expected_id = match &*self.0.opened.lock() {
            Opened { root: Some(root), .. } => return Ok(Some(Arc::clone(root))),
            Opened { expected_id, .. } => expected_id.clone(),
        };
        let root = match (Dir::open_ambient_dir(&self.0.path, ambient_authority()), &expected_id) {
            (Ok(root), _) => root,
            (Err(error), Some(_)) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::file(503, "The folder with the files of this database is missing").caused_by(error));
            }
            (Err(error), None) if error.kind() == io::ErrorKind::NotFound => match creates {
                true => tree::create_root(&self.0.path).map_err(failed)?,
                false => return Ok(None),
            },
            (Err(error), _) => return Err(failed(error)),
        };
        if let Some(expected) = expected_id {
            let found = match read_id(&root) {
                Err(error) if is_missing(&error) => None,
                found => found.map_err(failed)?,
            };
            if found.as_deref().map(<[u8]>::trim_ascii) != Some(expected.as_bytes()) {
                return Err(Error::file(503, "The folder is not the one with the files of this database"));
            }
        }
        Ok(Some(Arc::clone(self.0.opened.lock().root.insert(Arc::new(root)))))
    }

    /// The folders that writers need. `None` if they do not exist and `creates` is false.
    fn work_folders(&self, creates: bool) -> Result<Option<Arc<WorkFolders>>> {
        if let Some(work) = &self.0.opened.lock().work {
            return Ok(Some(Arc::clone(work)));
        }
        let Some(root) = self.root(creates)? else { return Ok(None) };
        match WorkFolders::open(root, creates) {
            Ok(work) => Ok(Some(Arc::clone(self.0.opened.lock().work.insert(Arc::new(work))))),
            Err(error) if !creates && is_missing(&error) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

impl WorkFolders {
    fn open(root: Arc<Dir>, creates: bool) -> io::Result<WorkFolders> {
        let open = |dir: &Dir, name: &str| match dir.open_dir_nofollow(name) {
            Err(error) if creates && error.kind() == io::ErrorKind::NotFound => tree::create_folder(dir, name),
            opened => opened,
        };
        let work = open(&root, WORK_FOLDER)?;
        let (staging, locks) = (open(&work, STAGING)?, open(&work, LOCKS)?);
        let ignores_case = tree::has_other_spelling(&root, &WORK_FOLDER.to_uppercase());
        let replaces_open_files = tree::is_local(&root);
        let clients = join_clients(&locks, &staging, &work).unwrap_or_else(|error| {
            tracing::debug!(%error, "the clients of the folder are not counted");
            None
        });
        let idle_lock_files = Arc::default();
        Ok(WorkFolders { root, staging, locks, idle_lock_files, ignores_case, replaces_open_files, _clients: clients })
    }
}

/// Takes the lock file of the clients. If no other client has it, also removes the staged bytes and the holds: their processes
/// are dead.
fn join_clients(locks: &Dir, staging: &Dir, work: &Dir) -> io::Result<Option<File>> {
    let file = tree::open_lock_file(locks, CLIENTS)?;
    match file.try_lock() {
        Ok(()) => {
            stage::remove_stale(staging, Duration::ZERO)?;
            hold::remove_stale(work)?;
        }
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.lock_shared()?;
    Ok(Some(file))
}

/// The content of the file with the id of the store.
fn read_id(root: &Dir) -> io::Result<Option<Vec<u8>>> {
    read(root, STORE_ID)
}

/// The content of a small file in the work folder.
fn read(root: &Dir, name: &str) -> io::Result<Option<Vec<u8>>> {
    let work = root.open_dir_nofollow(WORK_FOLDER)?;
    let Some((file, _)) = tree::open_file(&work, name)? else { return Ok(None) };
    let mut content = Vec::new();
    file.take(MAX_SMALL_FILE).read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Replaces a small file in the work folder.
fn write(folders: &WorkFolders, name: &str, content: &str) -> io::Result<()> {
    let work = folders.root.open_dir_nofollow(WORK_FOLDER)?;
    let staged = Uuid::new_v4().simple().to_string();
    let mut file = tree::create_file(&folders.staging, &staged)?.into_std();
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    folders.staging.rename(&staged, &work, name)?;
    tree::sync(&work)
}

fn install(folders: &WorkFolders, file: &StageFile, key: &ObjectKey) -> io::Result<Option<(File, u64)>> {
    let (names, name) = key.segments().map_err(|_| io::Error::from(io::ErrorKind::InvalidFilename))?;
    for _ in 0..RENAME_TRIES {
        let chain = match Chain::create(&folders.root, &names, folders.ignores_case) {
            // Another writer pruned a folder on the way.
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.exists() => continue,
            chain => chain?,
        };
        if folders.ignores_case {
            tree::refuse_other_spelling(chain.parent(), name)?;
        }
        let replaced = match folders.replaces_open_files {
            true => tree::open_file(chain.parent(), name).ok().flatten(),
            false => None,
        };
        match file.rename(chain.parent(), name) {
            Ok(()) => return tree::sync(chain.parent()).map(|()| replaced),
            Err(error) if error.kind() == io::ErrorKind::NotFound && file.exists() => {}
            Err(error) => {
                let is_folder = chain.parent().symlink_metadata(name).is_ok_and(|metadata| metadata.is_dir());
                let outcome = if is_folder {
                    tree::remove_empty_tree(chain.parent(), name)
                        .map_err(|_| io::Error::from(io::ErrorKind::IsADirectory))
                } else {
                    Err(error)
                };
                if let Err(error) = outcome {
                    chain.prune();
                    return Err(error);
                }
            }
        }
    }
    Err(io::Error::other("The folder was removed again and again"))
}

/// Closes a file that was replaced, on the pool: then the file system frees its blocks, which took a third of the time of an
/// upload of 1 MiB (ext4 with `discard`). If the next upload could lack these blocks, they are freed here, before this one
/// returns. (A quota of a user does not show. A forked child may keep the blocks for as long as it lives.)
fn free(pool: &BlockingPool, replaced: File, size: u64) {
    if !pool.is_busy() && tree::has_room(&replaced, size.saturating_mul(100)) {
        // A pool that is closed drops the job here.
        let _ = pool.submit(move || drop(replaced));
    }
}

fn remove(root: &Dir, folders: &[&str], name: &str) -> io::Result<()> {
    let chain = Chain::open(root, folders)?;
    match chain.parent().remove_file(name) {
        Ok(()) => tree::sync(chain.parent())?,
        Err(error) if is_missing(&error) => {}
        // A folder in the place of the file is no object.
        Err(_) if chain.parent().symlink_metadata(name).is_ok_and(|metadata| metadata.is_dir()) => {}
        Err(error) => return Err(error),
    }
    chain.prune();
    Ok(())
}

fn open_lock_files(folders: &WorkFolders, stripe: usize) -> io::Result<LockFiles> {
    folders.idle_lock_files.take_or_open(stripe, |name| tree::open_lock_file(&folders.locks, name))
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folder").field(&self.0.path).finish()
    }
}

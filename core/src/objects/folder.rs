//! Objects in a local folder: `<root>/<bucket>/<path>`.
//!
//! Invariant: every access goes through an open folder below the root (cap-std) and follows no symbolic link. Folders have the
//! mode 0700 and files 0600. A file is written below `<root>/.townsquare/staging`, synced and renamed; then its folder is synced.
//! So an object is complete, old or new, at any time and after a crash.

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
    path::{Path, PathBuf},
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
    locks::{self, LockFiles, Locks, PathLock},
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
pub(super) struct Folder(Arc<FolderState>);

struct FolderState {
    path: PathBuf,
    runtime: RuntimeHandle,
    opened: Mutex<OpenFolders>,
    locks: Locks,
}

/// The folders that were opened so far.
#[derive(Default)]
struct OpenFolders {
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
    /// Whether the file system takes names for equal that differ in case.
    ignores_case: bool,
    /// The lock file of the clients, locked. `None` if files cannot be locked here.
    _clients: Option<File>,
}

impl Folder {
    pub(super) fn new(path: PathBuf, runtime: RuntimeHandle) -> Folder {
        Folder(Arc::new(FolderState { path, runtime, opened: Mutex::default(), locks: Locks::new() }))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(super) fn stage(&self, version: Option<String>) -> FolderStage {
        FolderStage::new(self.clone(), version)
    }

    /// Gives an object of this size a second name in the staging folder. `None` if there is no such object, or if the file
    /// system has no hard links.
    pub(super) async fn stage_link(&self, key: &ObjectKey, size: u64) -> Result<Option<(String, FolderStaged)>> {
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
            linked.map(|file| Ok((id, FolderStaged::linked(folder, file)?))).transpose()
        })
        .await
    }

    pub(super) async fn install(&self, staged: FolderStaged, key: &ObjectKey) -> Result<()> {
        let mut file = staged.durable().await?;
        // The last call drops the file, which removes it if the rename failed.
        self.with_key(key, move |folder, key| folder.with_work_folders(|folders| install(folders, &mut file, key)))
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

    pub(super) async fn open_object(&self, key: &ObjectKey) -> Result<Option<FolderReader>> {
        self.with_key(key, |folder, key| {
            let found = folder.open_file(key)?;
            Ok(found.map(|(file, size)| FolderReader::new(folder.clone(), file, size)))
        })
        .await
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
        let Some((file, _)) = self.with_key(key, open).await? else { return Ok(None) };
        // On the pool, because a large file takes long.
        let hash = move || {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file).map_err(failed)?;
            let digest = Some(hasher.finalize().to_hex().to_string());
            Ok(Some(ObjectDigest { size: hasher.count(), digest, version: None }))
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

    pub(super) async fn make_durable(&self, key: &ObjectKey) -> Result<()> {
        self.with_key(key, |folder, key| {
            let (folders, _) = key.segments()?;
            let Some(root) = folder.root(false)? else { return Ok(()) };
            Chain::open(&root, &folders).and_then(|chain| tree::sync(chain.parent())).map_err(failed)
        })
        .await
    }

    pub(super) async fn lock(&self, key: &ObjectKey, timeout: Duration) -> Result<PathLock> {
        let waiting = async {
            let lock = self.0.locks.lock(key).await;
            let stripe = Locks::stripe_of(key);
            let open = move |folder: &Folder| {
                folder.with_work_folders(|folders| {
                    LockFiles::open(stripe, |name| tree::open_lock_file(&folders.locks, name))
                })
            };
            lock.with_files(self.run(open).await?).await
        };
        locks::within(timeout, waiting).await
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

    pub(super) async fn count_stale_stages(&self, older_than: Duration) -> Result<u32> {
        self.run(move |folder| {
            match folder.root(false)?.map(|root| tree::open_folders(&root, &[WORK_FOLDER, STAGING])) {
                Some(Err(error)) if !is_missing(&error) => Err(failed(error)),
                Some(Ok(staging)) => stage::count_stale(&staging, older_than).map_err(failed),
                Some(Err(_)) | None => Ok(0),
            }
        })
        .await
    }

    pub(super) async fn read_id(&self) -> Result<Option<Vec<u8>>> {
        self.run(move |folder| {
            // Through the path, because the folder may have been replaced or unmounted.
            folder.leave();
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

    pub(super) async fn surrounding_store(&self) -> Result<Option<String>> {
        self.run(|folder| Ok(store_around(&folder.0.path).map(|found| found.display().to_string()))).await
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

    /// Runs `work` on the blocking pool. A thread that waits for its own call runs it here: to wake another thread takes longer
    /// than to open a file.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Folder) -> Result<T> + Send + 'static) -> Result<T> {
        if blocking_caller::is_current() && !self.pool().is_closed() {
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
        let key = key.clone();
        self.run(move |folder| work(folder, &key)).await
    }

    /// Opens the file of an object and returns it with its size. `None` if there is no regular file.
    fn open_file(&self, key: &ObjectKey) -> Result<Option<(File, u64)>> {
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
                self.leave();
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
                self.leave();
                let folders = self.work_folders(true)?.ok_or_else(|| Error::file(500, "The folder is missing"))?;
                work(&folders).map_err(failed)
            }
            outcome => outcome.map_err(failed),
        }
    }

    /// Closes the folders. The next call opens them again.
    pub(super) fn leave(&self) {
        let mut opened = self.0.opened.lock();
        (opened.root, opened.work) = (None, None);
    }

    /// The root. `None` if it does not exist and `creates` is false.
    ///
    /// # Errors
    /// 503 if the folder is gone or has another id than it is expected to have; the errors of the file system.
    fn root(&self, creates: bool) -> Result<Option<Arc<Dir>>> {
        let expected_id = match &*self.0.opened.lock() {
            OpenFolders { root: Some(root), .. } => return Ok(Some(Arc::clone(root))),
            OpenFolders { expected_id, .. } => expected_id.clone(),
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
        let clients = join_clients(&locks, &staging, &work).unwrap_or_else(|error| {
            tracing::debug!(%error, "the clients of the folder are not counted");
            None
        });
        Ok(WorkFolders { root, staging, locks, ignores_case, _clients: clients })
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

fn install(folders: &WorkFolders, file: &mut StageFile, key: &ObjectKey) -> io::Result<()> {
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
        match file.rename(chain.parent(), name) {
            Ok(()) => return tree::sync(chain.parent()),
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

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Folder").field(&self.0.path).finish()
    }
}

/// The folder of a store that `path` lies in. `path` may not exist yet.
pub(crate) fn store_around(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    // Without links: a path can lead into another store by one.
    let above = match path.canonicalize() {
        Ok(real) => real.parent().map(Path::to_owned),
        Err(_) => path.ancestors().find_map(|above| above.canonicalize().ok()),
    };
    let has_store = |above: &&Path| above.join(WORK_FOLDER).join(STORE_ID).is_file();
    above?.ancestors().find(has_store).map(Path::to_owned)
}

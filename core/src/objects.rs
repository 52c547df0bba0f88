//! The object store: the bytes of large files, in a local folder, in memory, or in S3, Google Cloud Storage or Azure.
//!
//! Invariant: an object is replaced whole. [`Objects::install`] makes staged bytes the object of a key in one step, and they
//! are durable when it returns. An [`ObjectReader`] reads one version from its beginning to its end. No key and no symbolic
//! link reads or changes a file outside the root.

mod folder;
#[cfg(feature = "postgres")]
mod foreign;
mod hashing;
mod hold;
mod identity;
mod key;
mod locks;
mod remote;
#[cfg(test)]
mod tests;

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;

#[cfg(feature = "postgres")]
pub(crate) use self::foreign::ForeignObjects;
use self::locks::Locks;
#[cfg(feature = "s3")]
pub use self::remote::{BackupDownload, BackupStore, BackupUpload};
pub(crate) use self::{
    folder::store_around,
    hold::{Held, Hold},
    key::ObjectKey,
    locks::PathLock,
};
use self::{
    folder::{Folder, FolderReader, FolderStage, FolderStaged, FolderWalk},
    remote::{CLOSE_TIMEOUT, Remote, RemoteReader, RemoteStage, RemoteStaged, RemoteWalk, copy_timeout},
};
use crate::{
    config::FilesLocation,
    error::{Error, Result},
    threads::RuntimeHandle,
};

/// The file or object in the work folder with the id of the store.
const STORE_ID: &str = "store";

/// The id of every store in memory.
pub(crate) const MEMORY_ID: &str = "memory";

/// The objects of one page of a listing.
const PAGE: usize = 1_000;

/// A chunk of fewer bytes is copied when it is staged. The library's readers of files and objects make chunks of 1 MiB.
const SMALL_CHUNK: usize = 256 << 10;

/// The size of the blocks that small chunks are copied to.
const BLOCK: usize = 64 << 10;

/// The bytes of an object that are read at a time.
pub(crate) const CHUNK: u64 = 1 << 20;

/// What a remote store keeps beside the bytes. A folder keeps only the version,
/// if the file system supports extended attributes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectAttributes {
    pub(crate) content_type: Option<String>,
    pub(crate) cache_control: Option<String>,
    /// The version of the file, which readers get back. Stored as `townsquare-etag`, in a folder as the extended attribute
    /// `user.townsquare.version`.
    pub(crate) version: Option<String>,
    /// The user's metadata.
    pub(crate) metadata: Vec<(String, String)>,
}

/// Staged bytes that [`Objects::install`] makes an object. Dropping it discards them.
#[derive(Debug)]
pub(crate) struct Staged {
    /// The name for [`Objects::discard`], also from another process.
    pub(crate) id: String,
    pub(crate) size: u64,
    /// BLAKE3 in hex.
    pub(crate) digest: String,
    bytes: Backend<FolderStaged, RemoteStaged>,
}

/// What is known about the bytes at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectDigest {
    pub(crate) size: u64,
    /// BLAKE3 in hex. `None` for an object with a version: the version identifies the bytes, without reading them.
    pub(crate) digest: Option<String>,
    /// [`ObjectAttributes::version`]. `None` in a folder.
    pub(crate) version: Option<String>,
}

impl ObjectDigest {
    /// Whether the object consists of the bytes with this size and digest, written as `version`.
    pub(crate) fn is_of(&self, size: u64, digest: &str, version: &str) -> bool {
        self.size == size
            && match &self.version {
                Some(of_object) => of_object == version,
                None => self.digest.as_deref() == Some(digest),
            }
    }
}

/// What is known about an object without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObjectStat {
    pub(crate) size: u64,
    /// [`ObjectAttributes::version`]. `None` if the object has none.
    pub(crate) version: Option<String>,
}

/// One object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) path: String,
    pub(crate) size: u64,
}

/// A value of a folder or of a remote store.
#[derive(Debug, Clone)]
enum Backend<F, R> {
    Folder(F),
    Remote(R),
}

/// Evaluates `$call` for the value of the backend, whichever it is.
macro_rules! with_backend {
    ($value:expr, $backend:ident => $call:expr) => {
        match $value {
            Backend::Folder($backend) => $call,
            Backend::Remote($backend) => $call,
        }
    };
}
use with_backend;

/// An object store. Clones are the same store.
#[derive(Debug, Clone)]
pub(crate) struct Objects {
    backend: Backend<Folder, Remote>,
    /// The bytes of all stages.
    staged: Arc<AtomicU64>,
}

/// Bytes on their way to an object. Dropping it discards them.
#[derive(Debug)]
pub(crate) struct Stage {
    bytes: Backend<FolderStage, RemoteStage>,
    size: StagedSize,
    /// The last bytes, if they came in small chunks.
    block: Vec<u8>,
}

/// The size of a stage, which counts for its store while the stage exists.
#[derive(Debug)]
struct StagedSize {
    of_store: Arc<AtomicU64>,
    size: u64,
}

impl StagedSize {
    fn grow(&mut self, by: usize) {
        self.size += by as u64;
        self.of_store.fetch_add(by as u64, Ordering::Relaxed);
    }
}

impl Drop for StagedSize {
    fn drop(&mut self) {
        self.of_store.fetch_sub(self.size, Ordering::Relaxed);
    }
}

/// One version of an object, open for reading. Later changes of the object do not affect it.
#[derive(Debug)]
pub(crate) struct ObjectReader(Backend<FolderReader, RemoteReader>);

/// A listing of a bucket, in pages.
#[derive(Debug)]
pub(crate) struct ObjectPages(Option<Backend<(Folder, FolderWalk), (Remote, RemoteWalk)>>);

impl Objects {
    /// Opens a store. A folder is created by the first upload; a remote store is first called then.
    ///
    /// # Errors
    /// `Config` naming `storage_url`.
    pub(crate) fn open(location: FilesLocation, runtime: &RuntimeHandle) -> Result<Objects> {
        let backend = match location {
            FilesLocation::Folder(path) => Backend::Folder(Folder::new(path, runtime.clone())),
            FilesLocation::Memory => Backend::Remote(Remote::memory(runtime.clone())),
            #[cfg(feature = "s3")]
            FilesLocation::Remote { url, environment } => {
                Backend::Remote(Remote::connect(&url, &environment, runtime.clone())?)
            }
            #[cfg(not(feature = "s3"))]
            FilesLocation::Remote { .. } => {
                return Err(Error::config("Option storage_url: this build leaves out the feature s3"));
            }
        };
        Ok(Objects { backend, staged: Arc::default() })
    }

    /// A remote store that is `store`.
    #[cfg(test)]
    pub(crate) fn simulated(store: Box<dyn object_store::ObjectStore>, runtime: RuntimeHandle) -> Objects {
        Objects { backend: Backend::Remote(Remote::simulated(store, runtime)), staged: Arc::default() }
    }

    /// The bytes of all stages.
    pub(crate) fn staged_bytes(&self) -> u64 {
        self.staged.load(Ordering::Relaxed)
    }

    /// Begins to stage bytes. A remote store keeps `attributes` with them, a folder only the version.
    pub(crate) fn stage(&self, attributes: ObjectAttributes) -> Stage {
        let bytes = match &self.backend {
            Backend::Folder(folder) => Backend::Folder(folder.stage(attributes.version)),
            Backend::Remote(remote) => Backend::Remote(remote.stage(attributes)),
        };
        Stage { bytes, size: StagedSize { of_store: Arc::clone(&self.staged), size: 0 }, block: Vec::new() }
    }

    /// Makes staged bytes the object of `key`, in one step and durably. Requires the lock of `key`.
    ///
    /// # Errors
    /// 409 `AlreadyExists` if `key` is a folder, or if a part of it is an object. After any error of a remote store the outcome
    /// is unknown, because the store may still complete the call. The staged bytes stay, so that
    /// [`install_stage`](Objects::install_stage) can repeat it. A caller who does not repeat it
    /// [discards](Objects::discard_later) them.
    pub(crate) async fn install(&self, staged: Staged, key: &ObjectKey) -> Result<()> {
        match (&self.backend, staged.bytes) {
            (Backend::Folder(folder), Backend::Folder(bytes)) => folder.install(bytes, key).await,
            (Backend::Remote(remote), Backend::Remote(bytes)) => remote.install(bytes, staged.size, key).await,
            _ => Err(Error::file(500, "The bytes are staged in another store")),
        }
    }

    /// Makes staged bytes of a remote store, of this size and version, the object of `key`, also the bytes of another process. They
    /// stay staged. False if there are none, and for a folder. Requires the lock of `key`.
    pub(crate) async fn install_stage(
        &self,
        staged_id: &str,
        size: u64,
        key: &ObjectKey,
        version: &str,
    ) -> Result<bool> {
        match &self.backend {
            Backend::Remote(remote) => remote.install_stage(staged_id, size, key, Some(version)).await,
            Backend::Folder(_) => Ok(false),
        }
    }

    /// Stages a second name of the bytes of an object, which has this size and digest. `None` if the store has no such names,
    /// or if the object is not of this size. A remote store has none, but it may [copy](Objects::stage_copy).
    pub(crate) async fn stage_link(&self, key: &ObjectKey, size: u64, digest: String) -> Result<Option<Staged>> {
        let Backend::Folder(folder) = &self.backend else { return Ok(None) };
        let linked = folder.stage_link(key, size).await?;
        Ok(linked.map(|(id, staged)| Staged { id, size, digest, bytes: Backend::Folder(staged) }))
    }

    /// Whether [`stage_copy`](Objects::stage_copy) may return a stage.
    pub(crate) fn copies_on_server(&self) -> bool {
        matches!(&self.backend, Backend::Remote(remote) if remote.copies_on_server())
    }

    /// Has the store copy the object of a reader, whose bytes have this digest, to a stage with these attributes. The bytes do not
    /// pass through this process. `None` if the store cannot, or if the object was replaced or removed since.
    ///
    /// The stage needs attributes of its own: readers and [`ObjectDigest::is_of`] tell by the version whether a row or an intent is
    /// of an object.
    pub(crate) async fn stage_copy(
        &self,
        source: &ObjectReader,
        digest: String,
        attributes: ObjectAttributes,
    ) -> Result<Option<Staged>> {
        let (Backend::Remote(remote), Backend::Remote(reader)) = (&self.backend, &source.0) else { return Ok(None) };
        let staged = remote.stage_copy(reader, attributes).await?;
        Ok(staged.map(|bytes| Staged {
            id: bytes.id().to_owned(),
            size: reader.size,
            digest,
            bytes: Backend::Remote(bytes),
        }))
    }

    /// Removes staged bytes, also of another process, so that its `install` fails. Succeeds if there are none.
    pub(crate) async fn discard(&self, staged_id: &str) -> Result<()> {
        with_backend!(&self.backend, store => store.discard(staged_id).await)
    }

    /// Does what [`discard`](Objects::discard) does in the background, and repeats it while a remote store fails. A folder discards
    /// the bytes of an install that failed by itself.
    pub(crate) fn discard_later(&self, staged_id: String) {
        if let Backend::Remote(remote) = &self.backend {
            remote.discard_later(staged_id);
        }
    }

    /// Opens the object of `key`. `None` if there is none.
    pub(crate) async fn open_object(&self, key: &ObjectKey) -> Result<Option<ObjectReader>> {
        self.open_with(key, None).await
    }

    /// Does what [`open_object`](Objects::open_object) does, for reading `range`: a remote store sends no more.
    pub(crate) async fn open_range(&self, key: &ObjectKey, range: Range<u64>) -> Result<Option<ObjectReader>> {
        self.open_with(key, Some(range)).await
    }

    async fn open_with(&self, key: &ObjectKey, range: Option<Range<u64>>) -> Result<Option<ObjectReader>> {
        Ok(match &self.backend {
            Backend::Folder(folder) => folder.open_object(key).await?.map(|it| ObjectReader(Backend::Folder(it))),
            Backend::Remote(remote) => {
                remote.open_object(key, range).await?.map(|it| ObjectReader(Backend::Remote(it)))
            }
        })
    }

    /// Returns size, digest and version of the object of `key`. `None` if there is none.
    pub(crate) async fn digest(&self, key: &ObjectKey) -> Result<Option<ObjectDigest>> {
        with_backend!(&self.backend, store => store.digest(key).await)
    }

    /// Does what [`digest`](Objects::digest) does, and reads the bytes also if the object has a version.
    pub(crate) async fn hash(&self, key: &ObjectKey) -> Result<Option<ObjectDigest>> {
        match &self.backend {
            Backend::Folder(folder) => folder.digest(key).await,
            Backend::Remote(remote) => remote.hash(key).await,
        }
    }

    /// Returns size and version of the object of `key`. `None` if there is none.
    pub(crate) async fn stat(&self, key: &ObjectKey) -> Result<Option<ObjectStat>> {
        with_backend!(&self.backend, store => store.stat(key).await)
    }

    /// Gives an object of a folder another version, as far as the file system allows. An object of a remote store keeps the
    /// version that it was staged with. Requires the lock of `key`.
    pub(crate) async fn write_version(&self, key: &ObjectKey, version: &str) -> Result<()> {
        match &self.backend {
            Backend::Folder(folder) => folder.write_version(key, version).await,
            Backend::Remote(_) => Ok(()),
        }
    }

    /// Removes the object of `key`, durably, and the folders that it leaves empty. Succeeds if there is none. Requires the
    /// lock of `key`.
    pub(crate) async fn remove(&self, key: &ObjectKey) -> Result<()> {
        with_backend!(&self.backend, store => store.remove(key).await)
    }

    /// Whether [`lock`](Objects::lock) returns locks. A remote store has none: its callers take a lease.
    pub(crate) fn has_locks(&self) -> bool {
        match &self.backend {
            Backend::Folder(_) => true,
            Backend::Remote(remote) => remote.has_locks(),
        }
    }

    /// The keys to lock, so that each of `keys` is locked once. The order is the same for all callers, so that two of them do
    /// not wait for each other.
    pub(crate) fn lock_order<'k>(&self, keys: &'k [ObjectKey]) -> Vec<&'k ObjectKey> {
        let mut keys: Vec<_> = keys.iter().collect();
        if self.has_locks() {
            keys.sort_by_key(|key| Locks::stripe_of(key));
            keys.dedup_by_key(|key| Locks::stripe_of(key));
        } else {
            keys.sort_unstable();
            keys.dedup();
        }
        keys
    }

    /// Locks `key` against every other client of the store, on this machine. `None` for a remote store.
    ///
    /// # Errors
    /// `Unavailable` after `timeout`.
    pub(crate) async fn lock(&self, key: &ObjectKey, timeout: Duration) -> Result<Option<PathLock>> {
        match &self.backend {
            Backend::Folder(folder) => folder.lock(key, timeout).await.map(Some),
            Backend::Remote(remote) => remote.lock(key, timeout).await,
        }
    }

    /// Whether the store loses its objects when the client is closed.
    pub(crate) fn is_volatile(&self) -> bool {
        matches!(&self.backend, Backend::Remote(remote) if remote.has_locks())
    }

    /// Whether the store is called over the network.
    pub(crate) fn is_remote(&self) -> bool {
        !self.has_locks()
    }

    /// How long after it was begun a remote store may complete the copy of staged bytes to their key. Its client waits a third of this
    /// time for the answer.
    pub(crate) fn latest_copy(size: u64) -> Duration {
        copy_timeout(size).saturating_mul(3)
    }

    /// Checks that a remote store answers and can be used. Does nothing for another store.
    ///
    /// # Errors
    /// `Config` if its bucket does not exist, or if it denies the access; `Unavailable` if it does not answer.
    pub(crate) async fn probe(&self) -> Result<()> {
        match &self.backend {
            Backend::Folder(_) => Ok(()),
            Backend::Remote(remote) => remote.probe().await,
        }
    }

    /// Makes the name of an object outlast a power loss, in a folder.
    pub(crate) async fn make_durable(&self, key: &ObjectKey) -> Result<()> {
        match &self.backend {
            Backend::Folder(folder) => folder.make_durable(key).await,
            Backend::Remote(_) => Ok(()),
        }
    }

    /// Joins the clients of a folder, if it exists. The first of them removes what killed writers staged.
    pub(crate) async fn join(&self) -> Result<()> {
        match &self.backend {
            Backend::Folder(folder) => folder.join().await,
            Backend::Remote(_) => Ok(()),
        }
    }

    /// Removes from a remote store what unfinished uploads have begun. Blocks the thread. Requires the runtime.
    pub(crate) fn end_uploads(&self) {
        if let Backend::Remote(remote) = &self.backend {
            remote.end_uploads(CLOSE_TIMEOUT);
        }
    }

    /// Leaves the clients of a folder.
    pub(crate) fn leave(&self) {
        if let Backend::Folder(folder) = &self.backend {
            folder.leave();
        }
    }

    /// Lists the objects of a bucket in the order of the bytes of their paths.
    pub(crate) async fn list(&self, bucket: &str) -> Result<ObjectPages> {
        let walk = match &self.backend {
            Backend::Folder(folder) => Backend::Folder((folder.clone(), folder.walk(bucket).await?)),
            Backend::Remote(remote) => Backend::Remote((remote.clone(), remote.walk(bucket)?)),
        };
        Ok(ObjectPages(Some(walk)))
    }

    /// Counts the staged bytes that [`remove_stale_stages`](Objects::remove_stale_stages) would remove.
    pub(crate) async fn count_stale_stages(&self, older_than: Duration) -> Result<u32> {
        with_backend!(&self.backend, store => store.count_stale_stages(older_than).await)
    }

    /// Discards staged bytes that are older than `older_than` and that no running process of this machine uses. Returns
    /// their number.
    pub(crate) async fn remove_stale_stages(&self, older_than: Duration) -> Result<u32> {
        with_backend!(&self.backend, store => store.remove_stale_stages(older_than).await)
    }
}

impl ObjectPages {
    /// Returns the next objects; none at the end, and after an error.
    pub(crate) async fn next_page(&mut self) -> Result<Vec<ListedObject>> {
        let (walk, page) = match self.0.take() {
            Some(Backend::Folder((folder, walk))) => {
                let (walk, page) = folder.next_page(walk, PAGE).await?;
                (Backend::Folder((folder, walk)), page)
            }
            Some(Backend::Remote((remote, walk))) => {
                let (walk, page) = remote.next_page(walk, PAGE).await?;
                (Backend::Remote((remote, walk)), page)
            }
            None => return Ok(Vec::new()),
        };
        // A listing is not asked again after its end.
        self.0 = (page.len() == PAGE).then_some(walk);
        Ok(page)
    }
}

impl Stage {
    /// Appends bytes. Small chunks are copied to blocks: a chunk costs more than its bytes, and can keep a far larger allocation.
    pub(crate) async fn write(&mut self, mut data: Bytes) -> Result<()> {
        self.size.grow(data.len());
        if data.len() >= SMALL_CHUNK {
            self.pass_block_on().await?;
            return with_backend!(&mut self.bytes, stage => stage.write(data).await);
        }
        while !data.is_empty() {
            if self.block.capacity() == 0 {
                self.block.reserve_exact(BLOCK);
            }
            self.block.extend_from_slice(&data.split_to(data.len().min(BLOCK - self.block.len())));
            if self.block.len() == BLOCK {
                self.pass_block_on().await?;
            }
        }
        Ok(())
    }

    async fn pass_block_on(&mut self) -> Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let block = Bytes::from(std::mem::take(&mut self.block));
        with_backend!(&mut self.bytes, stage => stage.write(block).await)
    }

    /// Completes the staged bytes, and starts to make them durable: [`Objects::install`] waits for that.
    pub(crate) async fn finish(mut self) -> Result<Staged> {
        self.block.shrink_to_fit();
        self.pass_block_on().await?;
        let id = with_backend!(&self.bytes, stage => stage.id.clone());
        let (bytes, size, digest) = match self.bytes {
            Backend::Folder(stage) => {
                let (staged, size, digest) = stage.finish().await?;
                (Backend::Folder(staged), size, digest)
            }
            Backend::Remote(stage) => {
                let (staged, size, digest) = stage.finish().await?;
                (Backend::Remote(staged), size, digest)
            }
        };
        Ok(Staged { id, size, digest, bytes })
    }
}

impl ObjectReader {
    pub(crate) fn size(&self) -> u64 {
        with_backend!(&self.0, reader => reader.size)
    }

    /// Whether the object was written as `version`. `None` if it has no version.
    pub(crate) fn is_of(&self, version: &str) -> Option<bool> {
        with_backend!(&self.0, reader => reader.version.as_ref()).map(|of_object| of_object == version)
    }

    /// Reads a range, which is clipped to the size. The ranges from the beginning to the end need no further request of a
    /// remote store.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        with_backend!(&self.0, reader => reader.read(range).await)
    }
}

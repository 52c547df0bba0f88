//! Objects in memory, S3, Google Cloud Storage or Azure, through `object_store`.
//!
//! Invariant: bytes are staged as the object `.townsquare/staging/<id>` with all their attributes. `install` copies that
//! object to its key inside the store, which replaces the object there in one step, and removes the stage. Each call of the
//! store has a time limit, which grows with the bytes that the store copies or puts together. The store may complete a copy after
//! that, so the stage of such a copy stays. S3 makes the stage of a copied or moved file itself.

#[cfg(feature = "s3")]
mod backups;
mod cleanup;
#[cfg(feature = "s3")]
mod connect;
mod copy;
#[cfg(feature = "s3")]
mod copy_request;
mod denial;
mod hold;
mod probe;
mod reader;
mod stage;

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use futures_core::Stream;
use object_store::{
    ObjectStore, ObjectStoreExt, PutMode, PutPayload,
    memory::InMemory,
    path::{Path, PathPart},
};
#[cfg(feature = "s3")]
use url::Url;

#[cfg(feature = "s3")]
pub use self::backups::{BackupDownload, BackupStore, BackupUpload};
#[cfg(feature = "s3")]
use self::connect::{Connected, Existing, no_answer};
pub(super) use self::{
    cleanup::CLOSE_TIMEOUT,
    hold::RemoteHold,
    reader::RemoteReader,
    stage::{RemoteStage, RemoteStaged},
};
use self::{cleanup::Cleanups, stage::PART};
use super::{
    CHUNK, ListedObject, MEMORY_ID, ObjectAttributes, ObjectDigest, ObjectStat, STORE_ID,
    key::{ObjectKey, WORK_FOLDER, check_bucket, check_stage_id},
    locks::{self, Locks, PathLock},
};
use crate::{
    clock::{Clock, earlier},
    error::{Error, Result},
    threads::RuntimeHandle,
};

/// The time limit of one call: of a request with its retries, and of one part of a body.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);

/// What a store copies inside at least, or puts together from parts, within [`CALL_TIMEOUT`].
const SLOWEST_COPY: u64 = 256 << 20;

/// What a store copies in one request. The limit is S3's.
const MAX_COPY: u64 = 5 << 30;

/// How long the store may take to put the parts of a backup together.
#[cfg(feature = "s3")]
const COMPLETE_TIMEOUT: Duration = Duration::from_secs(600);

/// How long the copies of a hold stay if their client does not remove them. An export may need them for as long.
const LONGEST_HOLD: Duration = Duration::from_secs(7 * 86_400);

/// The bytes of a store's id that are read. An id is shorter.
const MAX_ID: u64 = 4_096;

/// The staged objects, beside the buckets.
const STAGING: &str = "staging";

/// The attribute with [`ObjectAttributes::version`].
const VERSION: &str = "townsquare-etag";

/// A store. Clones are the same store.
#[derive(Debug, Clone)]
pub(super) struct Remote(Arc<RemoteState>);

struct RemoteState {
    store: Box<dyn ObjectStore>,
    /// The path in the store below which the buckets are.
    prefix: Path,
    /// The URL, which may contain a secret. `None` for a store in memory.
    url: Option<String>,
    runtime: RuntimeHandle,
    /// The locks of a store in memory. The callers of another store take a lease.
    locks: Option<Locks>,
    cleanups: Cleanups,
    /// The size of a part of an upload. All parts but the last have this size, which some stores require.
    part_size: usize,
    /// Whether the store copies an object with other attributes. Of S3 it is assumed until a copy shows the opposite.
    copies_on_server: AtomicBool,
}

/// A listing of a bucket.
pub(super) struct RemoteWalk {
    prefix: String,
    objects: std::pin::Pin<Box<dyn Stream<Item = object_store::Result<object_store::ObjectMeta>> + Send>>,
}

impl RemoteState {
    /// A whole store without a URL and without locks, in which copies have the attributes of their source.
    fn new(store: Box<dyn ObjectStore>, runtime: RuntimeHandle) -> RemoteState {
        RemoteState {
            store,
            prefix: Path::ROOT,
            url: None,
            runtime,
            locks: None,
            cleanups: Cleanups::default(),
            part_size: PART,
            copies_on_server: AtomicBool::default(),
        }
    }
}

impl Remote {
    pub(super) fn memory(runtime: RuntimeHandle) -> Remote {
        let state = RemoteState::new(Box::new(InMemory::new()), runtime);
        Remote(Arc::new(RemoteState { locks: Some(Locks::new()), ..state }))
    }

    /// A store that is called through `store`, with smaller parts.
    #[cfg(test)]
    pub(super) fn simulated(store: Box<dyn ObjectStore>, runtime: RuntimeHandle) -> Remote {
        let url = Some("s3://simulated".to_owned());
        Remote(Arc::new(RemoteState { url, part_size: 80, ..RemoteState::new(store, runtime) }))
    }

    /// Sets up a store without calling it.
    #[cfg(feature = "s3")]
    pub(super) fn connect(url: &Url, environment: &[(String, String)], runtime: RuntimeHandle) -> Result<Remote> {
        Ok(Remote::of(connect::connect(url, environment, Existing::Replace)?, url, runtime))
    }

    #[cfg(feature = "s3")]
    fn of(connected: Connected, url: &Url, runtime: RuntimeHandle) -> Remote {
        let Connected { store, prefix, copies_on_server } = connected;
        let (url, copies_on_server) = (Some(url.to_string()), copies_on_server.into());
        Remote(Arc::new(RemoteState { prefix, url, copies_on_server, ..RemoteState::new(store, runtime) }))
    }

    pub(super) fn url(&self) -> Option<&str> {
        self.0.url.as_deref()
    }

    pub(super) fn stage(&self, attributes: ObjectAttributes) -> RemoteStage {
        RemoteStage::new(self.clone(), attributes)
    }

    /// Makes a stage the object of `key` and removes the stage. If this fails, or if the caller drops the future, the store may
    /// still complete the copy; then the stage stays.
    pub(super) async fn install(&self, mut staged: RemoteStaged, size: u64, key: &ObjectKey) -> Result<()> {
        staged.is_kept = true;
        if !self.install_stage(staged.id(), size, key, staged.version()).await? {
            return Err(Error::file(503, "The staged bytes were discarded"));
        }
        staged.is_kept = false;
        Ok(())
    }

    /// Makes a stage of this size and version the object of `key`, and keeps the stage. False if there is no such stage.
    ///
    /// A store whose nodes order the versions of an object by their own clocks may accept a copy and keep the object before: the
    /// clock of the node that copies is late. So the object is looked at. The copy is not repeated here: the object may also be that of
    /// a writer who holds the lease by now.
    ///
    /// # Errors
    /// Those of the store; `Unavailable` (503) if it has another object or none.
    pub(super) async fn install_stage(
        &self,
        id: &str,
        size: u64,
        key: &ObjectKey,
        version: Option<&str>,
    ) -> Result<bool> {
        let (source, target) = (self.staging_path(id)?, self.path(key)?);
        let remote = self.clone();
        let copy = async move { remote.store().copy(&source, &target).await };
        match self.run_within(copy_timeout(size), copy).await {
            Ok(()) => {}
            Err(CallError::Store(object_store::Error::NotFound { .. })) => return Ok(false),
            Err(error) => return Err(error.into_error()),
        }
        // A store may keep no versions.
        let is_other =
            |found: ObjectStat| found.version.is_some() && version.is_some() && found.version.as_deref() != version;
        if self.stat(key).await?.is_none_or(is_other) {
            let message = "The object store does not have the installed object; the clocks of its nodes may differ";
            return Err(Error::file(503, message));
        }
        Ok(true)
    }

    pub(super) async fn discard(&self, id: &str) -> Result<()> {
        self.delete(self.staging_path(id)?).await
    }

    /// Opens an object for reading `range`, or all of it.
    pub(super) async fn open_object(&self, key: &ObjectKey, range: Option<Range<u64>>) -> Result<Option<RemoteReader>> {
        RemoteReader::open(self, self.path(key)?, range).await
    }

    /// Opens the object with this name in the bucket of the store, where no bucket of the library is a part of the key.
    #[cfg(all(feature = "postgres", feature = "s3"))]
    pub(super) async fn open_name(&self, name: &str) -> Result<Option<RemoteReader>> {
        RemoteReader::open(self, self.path_of_name(name)?, None).await
    }

    /// The size of the object with this name in the bucket of the store.
    #[cfg(all(feature = "postgres", feature = "s3"))]
    pub(super) async fn stat_name(&self, name: &str) -> Result<Option<ObjectStat>> {
        reader::stat(self, &self.path_of_name(name)?).await
    }

    #[cfg(all(feature = "postgres", feature = "s3"))]
    fn path_of_name(&self, name: &str) -> Result<Path> {
        name.split('/').try_fold(self.0.prefix.clone(), |path, name| Ok(path.join(part(name)?)))
    }

    pub(super) async fn stat(&self, key: &ObjectKey) -> Result<Option<ObjectStat>> {
        reader::stat(self, &self.path(key)?).await
    }

    pub(super) async fn digest(&self, key: &ObjectKey) -> Result<Option<ObjectDigest>> {
        match self.stat(key).await? {
            Some(ObjectStat { size, version: version @ Some(_) }) => {
                Ok(Some(ObjectDigest { size, digest: None, version }))
            }
            // Another program wrote this object.
            Some(_) => self.hash(key).await,
            None => Ok(None),
        }
    }

    /// Does what [`digest`](Remote::digest) does, and reads the bytes also if the object has a version.
    pub(super) async fn hash(&self, key: &ObjectKey) -> Result<Option<ObjectDigest>> {
        let Some(reader) = self.open_object(key, None).await? else { return Ok(None) };
        let (mut digester, mut position) = (super::hashing::Digester::default(), 0);
        while position < reader.size {
            let chunk = reader.read(position..position + CHUNK).await?;
            position += chunk.len() as u64;
            digester.update(&self.0.runtime.blocking, [chunk].into()).await?;
        }
        let digest = Some(digester.finish().await?);
        Ok(Some(ObjectDigest { size: reader.size, digest, version: reader.version }))
    }

    pub(super) async fn remove(&self, key: &ObjectKey) -> Result<()> {
        self.delete(self.path(key)?).await
    }

    pub(super) fn has_locks(&self) -> bool {
        self.0.locks.is_some()
    }

    pub(super) async fn lock(&self, key: &ObjectKey, timeout: Duration) -> Result<Option<PathLock>> {
        let Some(locks) = &self.0.locks else { return Ok(None) };
        locks::within(timeout, async { Ok(locks.lock(key).await) }).await.map(Some)
    }

    pub(super) async fn read_id(&self) -> Result<Option<Vec<u8>>> {
        if self.has_locks() {
            return Ok(Some(MEMORY_ID.into()));
        }
        let Some(object) = RemoteReader::open(self, self.id_path()?, None).await? else { return Ok(None) };
        // The bytes after these only show that it is no id.
        Ok(Some(object.read(0..object.size.min(MAX_ID)).await?.into()))
    }

    pub(super) async fn surrounding_store(&self) -> Result<Option<String>> {
        let parts: Vec<_> = self.0.prefix.parts().collect();
        for length in (0..parts.len()).rev() {
            let above = Path::from_iter(parts[..length].iter().cloned());
            let id = above.clone().join(WORK_FOLDER).join(part(STORE_ID)?);
            // Access to what is above may be denied.
            if let Ok(Some(_)) = RemoteReader::open(self, id, None).await {
                return Ok(Some(format!("/{above}")));
            }
        }
        Ok(None)
    }

    /// Returns false if `is_first` and the store has an id. A store without conditional writes cannot tell.
    pub(super) async fn write_id(&self, content: String, is_first: bool) -> Result<bool> {
        if self.has_locks() {
            return Ok(true);
        }
        let (remote, path) = (self.clone(), self.id_path()?);
        let write = async move {
            let (store, content) = (remote.store(), PutPayload::from(content));
            if is_first {
                match store.put_opts(&path, content.clone(), PutMode::Create.into()).await {
                    Ok(_) => return Ok(true),
                    Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                        return Ok(false);
                    }
                    Err(error) if reader::is_out_of_reach(&error) => return Err(error),
                    Err(error) => tracing::debug!(%error, "the object store has no conditional writes"),
                }
            }
            store.put(&path, content).await.map(|_| true)
        };
        self.run(write).await.map_err(write_failed)
    }

    fn id_path(&self) -> Result<Path> {
        Ok(self.0.prefix.clone().join(WORK_FOLDER).join(part(STORE_ID)?))
    }

    /// Starts a listing of a bucket.
    pub(super) fn walk(&self, bucket: &str) -> Result<RemoteWalk> {
        check_bucket(bucket)?;
        let prefix = self.0.prefix.clone().join(part(bucket)?);
        let objects = self.store().list(Some(&prefix));
        Ok(RemoteWalk { prefix: format!("{prefix}/"), objects })
    }

    /// Returns the next page of a listing.
    pub(super) async fn next_page(
        &self,
        mut walk: RemoteWalk,
        limit: usize,
    ) -> Result<(RemoteWalk, Vec<ListedObject>)> {
        let next = async move {
            let mut page = Vec::new();
            while page.len() < limit {
                let Some(object) = next(&mut walk.objects).await else { break };
                let object = object?;
                if let Some(path) = object.location.as_ref().strip_prefix(&walk.prefix) {
                    page.push(ListedObject { path: path.to_owned(), size: object.size });
                }
            }
            Ok((walk, page))
        };
        self.run(next).await.map_err(CallError::into_error)
    }

    pub(super) async fn remove_stale_stages(&self, older_than: Duration) -> Result<u32> {
        // An export reads the copies of its hold until it ends.
        self.remove_older(self.held_path(), older_than.max(LONGEST_HOLD)).await?;
        self.remove_older(self.0.prefix.clone().join(WORK_FOLDER).join(STAGING), older_than).await
    }

    pub(super) async fn count_stale_stages(&self, older_than: Duration) -> Result<u32> {
        self.count_older(self.0.prefix.clone().join(WORK_FOLDER).join(STAGING), older_than, false).await
    }

    /// Removes the objects below a path that are older than `older_than`. Returns their number.
    async fn remove_older(&self, path: Path, older_than: Duration) -> Result<u32> {
        self.count_older(path, older_than, true).await
    }

    /// Counts the objects below a path that are older than `older_than`, and removes them with `removes`.
    async fn count_older(&self, path: Path, older_than: Duration, removes: bool) -> Result<u32> {
        let newest = earlier(Clock::default().now(), older_than).as_microsecond();
        let mut objects = self.store().list(Some(&path));
        let mut count = 0;
        loop {
            let next = async move { Ok((next(&mut objects).await.transpose()?, objects)) };
            let (object, rest) = self.run(next).await.map_err(CallError::into_error)?;
            objects = rest;
            let Some(object) = object else { return Ok(count) };
            if object.last_modified.timestamp_micros() <= newest {
                if removes {
                    self.delete(object.location).await?;
                }
                count += 1;
            }
        }
    }

    fn store(&self) -> &dyn ObjectStore {
        self.0.store.as_ref()
    }

    /// The path of an object in the store. Its characters are the key's, so that other programs find it.
    fn path(&self, key: &ObjectKey) -> Result<Path> {
        let (folders, name) = key.segments()?;
        folders.into_iter().chain([name]).try_fold(self.0.prefix.clone(), |path, name| Ok(path.join(part(name)?)))
    }

    fn staging_path(&self, id: &str) -> Result<Path> {
        check_stage_id(id)?;
        Ok(self.0.prefix.clone().join(WORK_FOLDER).join(STAGING).join(part(id)?))
    }

    async fn delete(&self, path: Path) -> Result<()> {
        let remote = self.clone();
        match self.run(async move { remote.store().delete(&path).await }).await {
            Err(CallError::Store(object_store::Error::NotFound { .. })) => Ok(()),
            outcome => outcome.map_err(CallError::into_error),
        }
    }

    /// Runs a call on the runtime, within [`CALL_TIMEOUT`]. It runs to completion even if the caller drops the future.
    async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, CallError> {
        self.run_within(CALL_TIMEOUT, call).await
    }

    /// Does what [`run`](Remote::run) does, with another time limit.
    async fn run_within<T: Send + 'static>(
        &self,
        limit: Duration,
        call: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> Result<T, CallError> {
        let task = self.0.runtime.spawn(async move { tokio::time::timeout(limit, call).await });
        match task.await {
            Ok(Ok(outcome)) => outcome.map_err(CallError::Store),
            Ok(Err(_)) => Err(CallError::Other(Error::file(504, "The object store does not answer"))),
            Err(_) => Err(CallError::Other(Error::closed())),
        }
    }
}

/// How long a store may take to copy an object of this size inside, or to put it together from parts.
///
/// The store may complete the copy after that, as it may an upload.
pub(super) fn copy_timeout(size: u64) -> Duration {
    CALL_TIMEOUT.saturating_mul(u32::try_from(size / SLOWEST_COPY).unwrap_or(u32::MAX).saturating_add(1))
}

/// Why a call failed.
#[derive(Debug)]
enum CallError {
    Store(object_store::Error),
    Other(Error),
}

impl CallError {
    fn into_error(self) -> Error {
        use object_store::Error::{NotFound, PermissionDenied, Precondition, Unauthenticated};
        let error = match self {
            CallError::Store(error) => error,
            CallError::Other(error) => return error,
        };
        let (status, reason) = match &error {
            NotFound { .. } => (404, "the object does not exist".to_owned()),
            Precondition { .. } => (503, "The object changed while it was read".to_owned()),
            PermissionDenied { .. } | Unauthenticated { .. } => (500, denial::reason(&error).to_owned()),
            other => {
                let reason = no_answer(other).map_or_else(String::new, |why| format!(": {why}"));
                (503, format!("The object store does not answer as expected{reason}"))
            }
        };
        Error::file(status, reason).caused_by(error)
    }
}

/// A store in memory answers always.
#[cfg(not(feature = "s3"))]
fn no_answer(_: &object_store::Error) -> Option<String> {
    None
}

/// The failure of a write: a store that finds nothing has no such bucket.
fn write_failed(error: CallError) -> Error {
    match error {
        CallError::Store(error @ object_store::Error::NotFound { .. }) => {
            Error::file(503, "The bucket of the object store does not exist").caused_by(error)
        }
        error => error.into_error(),
    }
}

fn part(name: &str) -> Result<PathPart<'_>> {
    PathPart::parse(name).map_err(|error| Error::file(400, "a segment of the path is not a name").caused_by(error))
}

async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|context| std::pin::Pin::new(&mut *stream).poll_next(context)).await
}

impl std::fmt::Debug for RemoteState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("store", &format_args!("{}", self.store)).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for RemoteWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RemoteWalk").field(&self.prefix).finish()
    }
}

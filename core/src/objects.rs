//! The object store: the bytes of large files, in a local folder, in memory, or in S3, Google Cloud Storage or Azure.
//!
//! Invariant: an object is replaced whole. [`Objects::install`] makes staged bytes the object of a key in one step, and they
//! are durable when it returns. An [`ObjectReader`] reads one version from its beginning to its end. No key and no symbolic
//! link reads or changes a file outside the root.

use std::{fmt, ops::Range, path::PathBuf, time::Duration};

use bytes::Bytes;
use url::Url;

use crate::{error::Result, threads::RuntimeHandle};

/// Where the objects are. `config` makes it of `storage_url`.
#[derive(Clone)]
pub(crate) enum ObjectsLocation {
    /// A local folder, created when it is first needed.
    Folder(PathBuf),
    /// The memory of this client.
    Memory,
    /// `s3://bucket/prefix?endpoint=…`, `gs://bucket/prefix`, `az://container/prefix`. `environment` contains the variables
    /// whose names start with `AWS_`, `GOOGLE_` or `AZURE_`; the URL's query takes precedence.
    Remote { url: Url, environment: Vec<(String, String)> },
}

/// The key of an object: a bucket and a path. The caller has checked both; a store refuses a key that leads out of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ObjectKey {
    pub(crate) bucket: String,
    pub(crate) path: String,
}

/// What a remote store keeps beside the bytes. A folder keeps none of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ObjectAttributes {
    pub(crate) content_type: Option<String>,
    pub(crate) cache_control: Option<String>,
    /// The version of the file, which readers get back. Stored as `townsquare-etag`.
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

/// One entry of [`Objects::list`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) path: String,
    pub(crate) size: u64,
}

/// An object store. Clones are the same store.
#[derive(Debug, Clone)]
pub(crate) struct Objects {}

/// Bytes on their way to an object. Dropping it discards them.
#[derive(Debug)]
pub(crate) struct Stage {}

/// One version of an object, open for reading. Later changes of the object do not affect it.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    pub(crate) size: u64,
    /// [`ObjectAttributes::version`]. `None` in a folder.
    pub(crate) version: Option<String>,
}

/// The lock of a key. Dropping it unlocks.
#[derive(Debug)]
pub(crate) struct PathLock {}

impl Objects {
    /// Opens a store. A folder is created by the first upload; a remote store is first called then.
    ///
    /// # Errors
    /// `Config` naming `storage_url`.
    pub(crate) fn open(location: ObjectsLocation, runtime: &RuntimeHandle) -> Result<Objects> {
        todo!()
    }

    /// Begins to stage bytes. A remote store keeps `attributes` with them.
    pub(crate) async fn stage(&self, attributes: ObjectAttributes) -> Result<Stage> {
        todo!()
    }

    /// Makes staged bytes the object of `key`, in one step and durably. Requires the lock of `key`.
    ///
    /// # Errors
    /// 409 `AlreadyExists` if `key` is a folder, or if a part of it is an object.
    pub(crate) async fn install(&self, staged: Staged, key: &ObjectKey) -> Result<()> {
        todo!()
    }

    /// Removes staged bytes, also those of another process, so that its `install` fails. Succeeds if there are none.
    pub(crate) async fn discard(&self, staged_id: &str) -> Result<()> {
        todo!()
    }

    /// Opens the object of `key`. `None` if there is none.
    pub(crate) async fn open_object(&self, key: &ObjectKey) -> Result<Option<ObjectReader>> {
        todo!()
    }

    /// Returns size, digest and version of the object of `key`. `None` if there is none.
    pub(crate) async fn digest(&self, key: &ObjectKey) -> Result<Option<ObjectDigest>> {
        todo!()
    }

    /// Removes the object of `key`, durably, and the folders that it leaves empty. Succeeds if there is none. Requires the
    /// lock of `key`.
    pub(crate) async fn remove(&self, key: &ObjectKey) -> Result<()> {
        todo!()
    }

    /// Stages a copy of the object of `key`. `None` if there is none.
    pub(crate) async fn copy_to_stage(&self, key: &ObjectKey, attributes: ObjectAttributes) -> Result<Option<Staged>> {
        todo!()
    }

    /// Whether [`lock`](Objects::lock) returns locks. A remote store has none: its callers take a lease.
    pub(crate) fn has_locks(&self) -> bool {
        todo!()
    }

    /// Locks `key` against every other client of the store, on this machine. `None` for a remote store.
    ///
    /// # Errors
    /// `Unavailable` after `timeout`.
    pub(crate) async fn lock(&self, key: &ObjectKey, timeout: Duration) -> Result<Option<PathLock>> {
        todo!()
    }

    /// Lists the first 1,000 objects of a bucket whose paths are greater than `after`, in the order of their bytes.
    pub(crate) async fn list(&self, bucket: &str, after: Option<&str>) -> Result<Vec<ListedObject>> {
        todo!()
    }

    /// Discards staged bytes that are older than `older_than` and that no running process of this machine uses. Returns
    /// their number.
    pub(crate) async fn remove_stale_stages(&self, older_than: Duration) -> Result<u32> {
        todo!()
    }
}

impl Stage {
    /// The name for [`Objects::discard`].
    pub(crate) fn id(&self) -> &str {
        todo!()
    }

    /// Appends bytes.
    pub(crate) async fn write(&mut self, data: Bytes) -> Result<()> {
        todo!()
    }

    /// Makes the staged bytes durable.
    pub(crate) async fn finish(self) -> Result<Staged> {
        todo!()
    }
}

impl ObjectReader {
    /// Reads a range. Its end is clipped to the size.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        todo!()
    }

    /// Returns the next bytes from the beginning to the end. `None` at the end.
    pub(crate) async fn next_chunk(&mut self) -> Result<Option<Bytes>> {
        todo!()
    }
}

impl fmt::Debug for ObjectsLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectsLocation::Folder(path) => f.debug_tuple("Folder").field(path).finish(),
            ObjectsLocation::Memory => f.write_str("Memory"),
            // The query and the environment may contain secrets.
            ObjectsLocation::Remote { url, .. } => {
                write!(f, "Remote({}://{}…)", url.scheme(), url.host_str().unwrap_or(""))
            }
        }
    }
}

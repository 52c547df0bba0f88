//! Files: what is known about a file, and the options of the operations on files (SPEC 2.8, 4.4).

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use serde::Serialize;
use uuid::Uuid;

use super::time_text;

/// The row of a file with bytes in the object store.
#[derive(Debug, Clone)]
pub(crate) struct StoredObject {
    pub(crate) bucket: String,
    pub(crate) path: String,
    pub(crate) size: u64,
    pub(crate) etag: String,
    /// BLAKE3 in hex.
    pub(crate) digest: String,
}

record! {
    /// What is known about a stored file.
    #[derive(Eq)]
    pub struct FileInfo in "files" {
        /// The bucket: `spaces`, `private`, `assets`, or one of the option `buckets`.
        bucket: String [is_key: true];
        /// The path in the bucket, without a leading slash.
        path: String [is_key: true];
        /// The size in bytes.
        size: u64;
        /// The media type, for example `application/json`.
        content_type: String;
        /// How long a cache may keep the file, in seconds.
        cache_control: u32;
        /// The version of the file: new with every write, also of the same bytes.
        etag: String;
        /// Names and values that the uploader gave.
        metadata: BTreeMap<String, String>;
        /// The user who wrote the file; `None` for the service and for a user who was deleted.
        owner_id: Option<Uuid>;
        /// When the file was last written. It grows with every write of the path.
        #[serde(serialize_with = "time_text::time")]
        updated_at: Timestamp;
    }
}

/// The options of an upload.
///
/// ```
/// use townsquare::storage::UploadOptions;
///
/// let options = UploadOptions::new().cache_control(60).content_type("image/png").metadata("author", "ann");
/// assert_eq!(UploadOptions::new(), UploadOptions::default());
/// ```
///
/// An upload replaces an existing file. Two other ways:
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// # client.auth().sign_up("ann@town.example", "correct horse")?;
/// # client.auth().sign_in("ann@town.example", "correct horse")?;
/// use townsquare::{ErrorKind, storage::UploadOptions};
///
/// let (files, path) = (client.storage(), "notes/a.json");
/// let first = files.upload("assets", path, "{}", UploadOptions::new().upsert(false))?; // creates the file only
/// let error = files.upload("assets", path, "{}", UploadOptions::new().upsert(false)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::AlreadyExists);
///
/// // Replaces the version that the program has read, and no later one.
/// files.upload("assets", path, "[1]", UploadOptions::new().if_match(&*first.etag))?;
/// let error = files.upload("assets", path, "[2]", UploadOptions::new().if_match(&*first.etag)).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Conflict);
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UploadOptions {
    pub(crate) cache_control: u32,
    pub(crate) upsert: bool,
    pub(crate) content_type: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) if_match: Option<String>,
    pub(crate) verify: bool,
}

impl Default for UploadOptions {
    fn default() -> UploadOptions {
        UploadOptions {
            cache_control: 3_600,
            upsert: true,
            content_type: None,
            metadata: BTreeMap::new(),
            if_match: None,
            verify: false,
        }
    }
}

impl UploadOptions {
    /// `cache_control` is 3,600 seconds and `upsert` is true. Every other option is off.
    pub fn new() -> UploadOptions {
        UploadOptions::default()
    }

    /// How long a cache may keep the file: 0 to 31,536,000 seconds.
    #[must_use]
    pub fn cache_control(mut self, seconds: u32) -> UploadOptions {
        self.cache_control = seconds;
        self
    }

    /// Whether an existing file is replaced. With `false` an existing file fails the upload with `AlreadyExists`.
    #[must_use]
    pub fn upsert(mut self, upsert: bool) -> UploadOptions {
        self.upsert = upsert;
        self
    }

    /// The media type. Without it, the type is guessed from the name and the content.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> UploadOptions {
        self.content_type = Some(content_type.into());
        self
    }

    /// Adds a name and its value to the metadata: at most 64 names of letters, digits, hyphen and underscore, and
    /// 8 KiB with all values.
    #[must_use]
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<String>) -> UploadOptions {
        self.metadata.insert(name.into(), value.into());
        self
    }

    /// The etag that the file must have now, or "" if there must be no file. Otherwise the upload fails with `Conflict`.
    #[must_use]
    pub fn if_match(mut self, etag: impl Into<String>) -> UploadOptions {
        self.if_match = Some(etag.into());
        self
    }

    /// Whether the content must be a signed file with a valid signature, as
    /// [`sign_file`](crate::storage::sign_file) makes it. The content has at most `max_verified_size` bytes, because
    /// it is parsed in memory.
    #[must_use]
    pub fn verify(mut self, verify: bool) -> UploadOptions {
        self.verify = verify;
        self
    }
}

/// Which files a list has: the files with a prefix, in pages.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// # client.auth().sign_up("ann@town.example", "correct horse")?;
/// # client.auth().sign_in("ann@town.example", "correct horse")?;
/// use townsquare::storage::{ListFiles, UploadOptions};
///
/// for path in ["photos/a.png", "photos/b.png", "notes/c.txt"] {
///     client.storage().upload("assets", path, "", UploadOptions::new())?;
/// }
/// let photos = ListFiles::with_prefix("photos/").limit(1);
/// let first = client.storage().list("assets", photos.clone())?;
/// let second = client.storage().list("assets", photos.after(&*first[0].path))?;
/// assert_eq!((first[0].path.as_str(), second[0].path.as_str()), ("photos/a.png", "photos/b.png"));
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListFiles {
    pub(crate) prefix: String,
    pub(crate) limit: u32,
    pub(crate) after: Option<String>,
}

impl Default for ListFiles {
    fn default() -> ListFiles {
        ListFiles { prefix: String::new(), limit: 100, after: None }
    }
}

impl ListFiles {
    /// The first 100 files of the bucket.
    pub fn new() -> ListFiles {
        ListFiles::default()
    }

    /// The first 100 files with a path that starts with `prefix`. The prefix may end within a segment.
    pub fn with_prefix(prefix: impl Into<String>) -> ListFiles {
        ListFiles { prefix: prefix.into(), ..ListFiles::default() }
    }

    /// The number of files of the page: 1 to 1,000.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> ListFiles {
        self.limit = limit;
        self
    }

    /// Begins after this path: the last path of the page before.
    #[must_use]
    pub fn after(mut self, path: impl Into<String>) -> ListFiles {
        self.after = Some(path.into());
        self
    }
}

/// Whether a copy or a move replaces a file at its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Overwrite {
    /// A file at the target fails the call with `AlreadyExists`.
    #[default]
    Refuse,
    /// A file at the target is replaced.
    Replace,
}

crate::model::named! {
    /// The method that a signed URL permits.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    #[non_exhaustive]
    pub enum UrlMethod {
        /// Reading the file: GET and HEAD.
        #[default]
        Get = "GET",
        /// Writing the file: PUT.
        Put = "PUT",
    }

    /// Every method.
    pub const ALL;

    /// The name of the method: `GET`, `PUT`.
    pub fn as_str;
}

/// How long a signed URL is valid, and what a PUT by it may store. A [`Duration`] is a time without limits.
///
/// Without `max_size` and `content_type`, whoever has the URL of a `Put` stores a file of any type up to `max_file_size`.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
/// # client.auth().sign_up("ann@town.example", "correct horse")?;
/// # client.auth().sign_in("ann@town.example", "correct horse")?;
/// use std::time::Duration;
/// use townsquare::storage::{UrlMethod, UrlOptions};
///
/// let avatar = UrlOptions::new(Duration::from_secs(600)).max_size(1 << 20).content_type("image/png");
/// let url = client.storage().signed_url("assets", "ann.png", UrlMethod::Put, avatar)?;
///
/// // The server answers the upload of whoever has the URL.
/// let headers = [("content-type".to_owned(), "image/png".to_owned())];
/// let response = client.storage().handle_file("PUT", &url, &headers, vec![0; 10])?;
/// assert_eq!(response.status, 201);
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UrlOptions {
    pub(crate) expires_in: Duration,
    pub(crate) max_size: Option<u64>,
    pub(crate) content_type: Option<String>,
}

impl UrlOptions {
    /// A URL that is valid for a time: more than 0 seconds and at most 7 days.
    pub fn new(expires_in: Duration) -> UrlOptions {
        UrlOptions { expires_in, max_size: None, content_type: None }
    }

    /// For `Put`: the largest size in bytes of the file. Without it, the option `max_file_size` is the limit.
    #[must_use]
    pub fn max_size(mut self, bytes: u64) -> UrlOptions {
        self.max_size = Some(bytes);
        self
    }

    /// For `Put`: the media type of the file. A request with another `Content-Type` is refused.
    #[must_use]
    pub fn content_type(mut self, content_type: impl Into<String>) -> UrlOptions {
        self.content_type = Some(content_type.into());
        self
    }
}

impl From<Duration> for UrlOptions {
    fn from(expires_in: Duration) -> UrlOptions {
        UrlOptions::new(expires_in)
    }
}

/// What [`Storage::repair`](crate::storage::Storage::repair) did and found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct RepairReport {
    /// The unfinished writes and deletes that were finished or undone, and the files of a remote store that got the version of
    /// their object.
    pub finished: u64,
    /// The objects without a row, and the abandoned staging files, that were removed.
    pub orphans_removed: u64,
    /// The rows that were removed because their bytes had vanished.
    pub rows_removed: u64,
    /// `BUCKET/PATH` of each file with bytes of another size or version than its row says. They stay, and are never served.
    pub mismatched: Vec<String>,
}

//! The buckets: the three of SPEC 2.8 and the ones that the option `buckets` declares, each with the rule of who may do what.
//!
//! Invariant: a bucket has one access in a database. A client that declares another one does not open.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Storage, statements as sql};
use crate::{
    config::{DeclaredAccess, declared_buckets},
    database::{Row, Scope},
    error::{Error, Result},
    objects::ObjectKey,
    storage_path::{ASSETS, BUILT_IN_BUCKETS, FilePath, PRIVATE, SPACES, first_segment, is_bucket_name},
};

/// Why a row is no file: only another program can have written it.
pub(super) const NO_PLACE: &str = "no file can have this bucket, path or version";

/// The rule of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BucketAccess {
    /// Everyone reads; the owner of the space that the path names writes.
    Spaces,
    /// The user whose id or linked key is the first segment reads and writes.
    Private,
    /// Everyone reads; any user adds a file, in `assets` outside of `images/` and `videos/`; its owner changes it.
    Public,
}

impl BucketAccess {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            BucketAccess::Spaces => "spaces",
            BucketAccess::Private => "private",
            BucketAccess::Public => "public",
        }
    }

    fn parse(text: &str) -> Option<BucketAccess> {
        [BucketAccess::Spaces, BucketAccess::Private, BucketAccess::Public]
            .into_iter()
            .find(|access| access.as_str() == text)
    }
}

/// The buckets of a client.
#[derive(Debug)]
pub(super) struct Buckets(BTreeMap<String, BucketAccess>);

impl Buckets {
    /// The built-in buckets and the buckets of the option `buckets`: `name=public,name2=private`.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(super) fn parse(option: &str) -> Result<Buckets> {
        let built_in =
            [(SPACES, BucketAccess::Spaces), (PRIVATE, BucketAccess::Private), (ASSETS, BucketAccess::Public)];
        let mut buckets: BTreeMap<String, BucketAccess> =
            built_in.into_iter().map(|(name, access)| (name.to_owned(), access)).collect();
        for (name, access) in declared_buckets(option)? {
            let access = match access {
                DeclaredAccess::Public => BucketAccess::Public,
                DeclaredAccess::Private => BucketAccess::Private,
            };
            buckets.insert(name, access);
        }
        Ok(Buckets(buckets))
    }

    /// The names of the buckets.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Checks the buckets against the buckets of the database, given as names and accesses.
    ///
    /// # Errors
    /// `Config` if the database has one of them with another access.
    pub(super) fn check(&self, stored: &[(String, String)]) -> Result<()> {
        for (name, found) in stored {
            match self.0.get(name) {
                Some(access) if access.as_str() != found => return Err(other_access(name, *access, found)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the declared buckets to the database.
    ///
    /// # Errors
    /// `Config` if the database has one of them with another access.
    pub(super) async fn declare(&self, service: &Scope) -> Result<()> {
        for (name, access) in &self.0 {
            let values = [name.as_str().into()];
            let mut stored = service.fetch_optional(&sql::FIND_BUCKET, &values, |row| row.get::<String>(0)).await?;
            if stored.is_none() {
                let new = [name.clone().into(), access.as_str().into()];
                match service.execute(&sql::DECLARE_BUCKET, new.to_vec(), |_| Ok(())).await {
                    // The database can be read meanwhile. The next open declares the bucket.
                    Err(error) if error.is_disk_full() => {
                        tracing::warn!(%error, bucket = name, "a bucket cannot be declared");
                        continue;
                    }
                    declared => drop(declared?),
                }
                stored = service.fetch_optional(&sql::FIND_BUCKET, &values, |row| row.get::<String>(0)).await?;
            }
            if stored.as_deref() != Some(access.as_str()) {
                return Err(other_access(name, *access, stored.as_deref().unwrap_or("missing")));
            }
        }
        Ok(())
    }

    /// The buckets of the database, in the order of their names: those that any client has ever declared.
    pub(super) async fn stored(service: &Scope) -> Result<Vec<(String, BucketAccess)>> {
        let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<String>(1)?));
        let rows = service.fetch(&sql::LIST_BUCKETS, &[], read).await?;
        Ok(rows.into_iter().filter_map(|(name, access)| Some((name, BucketAccess::parse(&access)?))).collect())
    }

    /// The access of a bucket.
    ///
    /// # Errors
    /// `NotFound` (404) for an unknown bucket.
    pub(super) fn access(&self, bucket: &str) -> Result<BucketAccess> {
        self.0.get(bucket).copied().ok_or_else(|| no_bucket(bucket))
    }

    /// Checks a bucket and a path.
    ///
    /// # Errors
    /// `NotFound` (404) for an unknown bucket; `InvalidInput` (400) for a malformed path.
    pub(super) fn target(&self, bucket: &str, path: &str) -> Result<FileTarget> {
        FileTarget::new(bucket, path, self.access(bucket)?)
    }

    /// Checks a bucket and the path of a file that is about to be written.
    ///
    /// # Errors
    /// Those of [`target`](Buckets::target), and `InvalidInput` (400) for a path that no new file may have.
    pub(super) fn new_target(&self, bucket: &str, path: &str) -> Result<FileTarget> {
        let target = self.target(bucket, path)?;
        target.path.check_new()?;
        Ok(target)
    }
}

fn no_bucket(name: &str) -> Error {
    Error::file(404, format!("there is no bucket {name:?}"))
}

fn other_access(name: &str, access: BucketAccess, stored: &str) -> Error {
    Error::config(format!(
        "Option buckets: the bucket {name} is {}, but it is {stored} in the database",
        access.as_str()
    ))
}

/// A checked bucket and path.
#[derive(Debug, Clone)]
pub(super) struct FileTarget {
    pub(super) bucket: String,
    pub(super) path: FilePath,
    pub(super) access: BucketAccess,
    pub(super) space_id: Option<Uuid>,
}

/// The id of the space whose folder contains the path. A first segment in another spelling than the canonical one names no
/// space: the deletion of a space looks for the files whose first segment is the text of its id.
pub(super) fn space_id_of(bucket: &str, path: &str) -> Option<Uuid> {
    if bucket != SPACES {
        return None;
    }
    let segment = first_segment(path);
    let id = Uuid::try_parse(segment).ok()?;
    let mut canonical = Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut canonical) == segment).then_some(id)
}

impl FileTarget {
    /// Checks a path in a bucket with this access.
    ///
    /// # Errors
    /// `InvalidInput` (400) for a malformed path.
    pub(super) fn new(bucket: &str, path: &str, access: BucketAccess) -> Result<FileTarget> {
        let path = FilePath::parse(path)?;
        let space_id = space_id_of(bucket, path.as_str());
        Ok(FileTarget { bucket: bucket.to_owned(), path, access, space_id })
    }

    pub(super) fn folders(&self) -> Vec<String> {
        self.path.folders().map(str::to_owned).collect()
    }

    /// The paths inside this path, if it were a folder: from the first text to before the second. `0` follows `/`.
    pub(super) fn inside(&self) -> (String, String) {
        (format!("{}/", self.path), format!("{}0", self.path))
    }

    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey { bucket: self.bucket.clone(), path: self.path.as_str().to_owned() }
    }
}

/// Checks the bucket and the path of a row, which another program may have written.
///
/// # Errors
/// `NotFound` (404) for a bucket that the database does not have; `InvalidInput` (400) for a malformed path.
pub(super) fn target_of(buckets: &[(String, BucketAccess)], bucket: &str, path: &str) -> Result<FileTarget> {
    let found = buckets.iter().find(|(name, _)| name == bucket && is_any_bucket(name));
    let (_, access) = found.ok_or_else(|| no_bucket(bucket))?;
    FileTarget::new(bucket, path, *access)
}

/// Whether a bucket can have this name, and a file in it this path.
#[cfg(feature = "sqlite")]
pub(super) fn is_place(bucket: &str, path: &str) -> bool {
    is_any_bucket(bucket) && FilePath::parse(path).is_ok()
}

fn is_any_bucket(name: &str) -> bool {
    is_bucket_name(name) || BUILT_IN_BUCKETS.contains(&name)
}
impl Storage {
    /// Whether everyone may read the files of a bucket.
    pub(crate) fn is_public(&self, bucket: &str) -> bool {
        matches!(self.core.buckets.access(bucket), Ok(BucketAccess::Spaces | BucketAccess::Public))
    }
}

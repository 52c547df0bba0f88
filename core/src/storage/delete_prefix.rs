//! Deleting the files with a prefix, in pages.
//!
//! Invariant: the rows of a page are deleted in one transaction, under the caller's policies. The rows of objects are deleted
//! under the locks of their paths, as a single deletion does it.

use super::{
    Storage,
    buckets::FileTarget,
    recovery::{TRIES, lock_paths},
    refusal::{busy, refused_deletion},
    statements as sql,
};
use crate::{
    database::{Row, Transaction, call},
    error::{Operation, Result},
    model::ListFiles,
    objects::ObjectKey,
    policy::Caller,
};

/// The most files that one transaction deletes.
const PAGE: u32 = 100;

/// A file that may be deleted.
struct Deletable {
    path: String,
    is_object: bool,
}

/// Files of a bucket, in the order of their paths.
#[derive(Clone)]
struct DeletionPage {
    bucket: String,
    paths: Vec<String>,
    /// The paths of the files that are objects; their locks are held.
    objects: Vec<String>,
}

impl Storage {
    /// Deletes the files of a bucket that have a path with this prefix and that [`list`](Storage::list) shows. Returns the
    /// number of files. The empty prefix is every path.
    ///
    /// It deletes 100 files at a time, in the order of their paths: all of them or, if the caller may not delete one of them,
    /// none of them. Then the call fails, and the files before these 100 are deleted. A file that is added meanwhile may stay.
    ///
    /// # Errors
    /// `Unauthorized` (401) or `Forbidden` (403) if the caller may not delete a file that it sees; the message names the file and
    /// says how many were deleted. `InvalidInput` (400) for a prefix that no path can have, such as `/` or `..`; `NotFound` (404)
    /// for an unknown bucket.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let client = townsquare::blocking::Client::open(townsquare::Config::new().data_dir(folder.path()))?;
    /// # client.auth().sign_up("ann@town.example", "correct horse")?;
    /// # client.auth().sign_in("ann@town.example", "correct horse")?;
    /// use townsquare::storage::UploadOptions;
    ///
    /// for path in ["photos/a.png", "photos/b.png", "notes/c.txt"] {
    ///     client.storage().upload("assets", path, "", UploadOptions::new())?;
    /// }
    /// assert_eq!(client.storage().delete_prefix("assets", "photos/")?, 2);
    /// assert!(client.storage().exists("assets", "notes/c.txt")?);
    /// # Ok::<(), townsquare::Error>(())
    /// ```
    pub async fn delete_prefix(&self, bucket: &str, prefix: &str) -> Result<u64> {
        call(&self.scope, Operation::DeletePrefix, self.delete_files(bucket, prefix)).await
    }

    /// Deletes the files that `list` shows with this prefix.
    async fn delete_files(&self, bucket: &str, prefix: &str) -> Result<u64> {
        let (mut deleted, mut files) = (0, ListFiles::with_prefix(prefix).limit(PAGE));
        loop {
            let found = self.list_files(bucket, &files).await?;
            let Some(last) = found.last() else {
                self.cancel_uploads(bucket, prefix, true).await?;
                return Ok(deleted);
            };
            files = files.after(last.path.as_str());
            // Another program may have written rows with malformed paths, which name no object.
            let targets = found.iter().filter_map(|file| self.core.buckets.target(bucket, &file.path).ok());
            deleted += self.delete_page(bucket, targets.collect(), deleted).await?;
        }
    }

    /// Deletes these files, all or none. Returns how many there were. `before` is the number of files that earlier pages had.
    ///
    /// # Errors
    /// 401 or 403 if the policy refuses the deletion of one of them; 503 if other writers always change them meanwhile.
    async fn delete_page(&self, bucket: &str, targets: Vec<FileTarget>, before: u64) -> Result<u64> {
        let mut rest: Vec<String> = targets.iter().map(|target| target.path.as_str().to_owned()).collect();
        let mut deleted = 0;
        for _ in 0..TRIES {
            let values = [bucket.into(), rest.clone().into()];
            let found = self.scope.fetch(&sql::FIND_DELETABLE, &values, deletable).await?;
            let found = all_deletable(found, self.scope.caller(), before + deleted)?;
            if found.is_empty() {
                return Ok(deleted);
            }
            let objects = found.iter().filter(|file| file.is_object).map(|file| file.path.clone()).collect();
            rest = found.into_iter().map(|file| file.path).collect();
            let page = DeletionPage { bucket: bucket.to_owned(), paths: rest.clone(), objects };
            deleted += self.delete_rows(page, before + deleted).await?;
        }
        let still_there = self.scope.fetch(&sql::FIND_DELETABLE, &[bucket.into(), rest.into()], deletable).await?;
        match still_there.into_iter().flatten().next() {
            None => Ok(deleted),
            Some(file) => Err(busy(&ObjectKey { bucket: bucket.to_owned(), path: file.path })),
        }
    }

    /// Deletes the rows of a page and the objects of these rows. Returns the number of rows. A file that became an object
    /// meanwhile stays.
    async fn delete_rows(&self, page: DeletionPage, before: u64) -> Result<u64> {
        let keys: Vec<ObjectKey> = page.objects.iter().map(|path| page.key(path)).collect();
        let (this, objects) = (self.clone(), keys.clone());
        let delete = async move {
            let caller = this.scope.caller();
            let work = this
                .scope
                .write(move |transaction| Box::pin(async move { page.delete(transaction, caller, before).await }));
            let deleted = work.await?;
            for key in &objects {
                if let Err(error) = this.core.recover_locked(key).await {
                    tracing::warn!(%error, "the object of a deleted file stays for now");
                }
            }
            Ok(deleted)
        };
        if keys.is_empty() { self.core.run(delete).await } else { self.change_locked(keys, delete).await }
    }
}

impl DeletionPage {
    fn key(&self, path: &str) -> ObjectKey {
        ObjectKey { bucket: self.bucket.clone(), path: path.to_owned() }
    }

    /// Deletes the rows. Returns their number.
    ///
    /// # Errors
    /// 401 or 403 if the policy refuses the deletion of one of them.
    async fn delete(&self, transaction: &mut Transaction<'_>, caller: Caller, before: u64) -> Result<u64> {
        lock_paths(transaction, &self.bucket, self.objects.iter().map(String::as_str)).await?;
        let values = [self.bucket.as_str().into(), self.paths.clone().into(), self.objects.clone().into()];
        let deleted = transaction.fetch(&sql::DELETE_PAGE, &values, |_| Ok(())).await?.len();
        if deleted < self.paths.len() {
            let rest = transaction.fetch(&sql::FIND_DELETABLE, &values[..2], deletable).await?;
            all_deletable(rest, caller, before)?;
        }
        Ok(deleted as u64)
    }
}

/// Reads a row of `FIND_DELETABLE`. An error has the path of a file that the caller may not delete.
fn deletable(row: &Row<'_>) -> Result<std::result::Result<Deletable, String>> {
    let path = row.get::<String>(0)?;
    let may_delete = row.get_optional::<bool>(2)? == Some(true);
    Ok(if may_delete { Ok(Deletable { path, is_object: row.get(1)? }) } else { Err(path) })
}

/// # Errors
/// 401 or 403 if the caller may not delete one of the files. `before` is the number of files deleted so far.
fn all_deletable(
    found: Vec<std::result::Result<Deletable, String>>,
    caller: Caller,
    before: u64,
) -> Result<Vec<Deletable>> {
    found.into_iter().map(|file| file.map_err(|path| refused_deletion(caller, &path, before))).collect()
}

//! The bytes of files on their way from one store to another one, for a move.
//!
//! Invariant: the row of a file is written after its bytes are in the target, and only if they are the bytes that the row of the
//! source describes. The target keeps small files in its database by its own limit, wherever the source has them.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;
use tokio::time::{Instant, sleep};

use super::{
    buckets::{Buckets, NO_PLACE, target_of},
    core::{LOCK_TIMEOUT, OPEN_TIMEOUT, PreparedStorage, StorageCore},
    store_id::require_no_store_around,
};
use crate::{
    database::{FilePlace, StoredFiles, TransferRow},
    error::{Error, Result},
    objects::{CHUNK, ObjectAttributes, ObjectKey, Staged},
    storage_path::BUILT_IN_BUCKETS,
};

/// The files that are copied at a time.
pub(super) const AT_ONCE: usize = 8;

/// How long a file is read again that is written meanwhile.
const PATIENCE: Duration = LOCK_TIMEOUT;

/// The time between two tries while an upload replaces the bytes.
const INTERVAL: Duration = Duration::from_millis(20);

impl PreparedStorage {
    /// Checks that the store can be the target of a move: it has no file, and it is not of another database.
    ///
    /// # Errors
    /// `Config`, naming the option; the errors of the store.
    pub(crate) async fn check_empty(&self, stored: &StoredFiles) -> Result<()> {
        if self.objects.is_volatile() {
            return Err(Error::config("Option storage_url: files in memory are lost at the end of the move"));
        }
        require_no_store_around(&self.objects).await?;
        self.objects.probe().await?;
        let found = self.objects.read_id().await?;
        let is_foreign = found.is_some() && found.as_ref() != Some(&stored.store_id);
        let declared = self.buckets.names().chain(stored.buckets.iter().map(|(name, _)| name.as_str()));
        for bucket in declared.chain(BUILT_IN_BUCKETS) {
            if let Some(object) = self.objects.list(bucket).await?.next_page().await?.first() {
                return Err(Error::config(format!(
                    "Option storage_url: the target of a move has an empty store, and this one has {bucket}/{}",
                    object.path
                )));
            }
        }
        if is_foreign {
            return Err(Error::config("Option storage_url: the store belongs to another database"));
        }
        Ok(())
    }

    /// Checks that the store is not that of the source, and that no bucket has another access there.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(crate) async fn check_source(&self, source: &StorageCore) -> Result<()> {
        if self.objects.is_same_place(&source.objects) {
            return Err(Error::config(
                "Option storage_url: the store of the target is that of the source. Give the target another storage_url, or \
                 another data_dir",
            ));
        }
        let stored = Buckets::stored(&source.service).await?;
        let stored: Vec<_> = stored.into_iter().map(|(name, access)| (name, access.as_str().to_owned())).collect();
        self.buckets.check(&stored)
    }
}

impl StorageCore {
    /// Finishes what crashed writers and deletions left, as far as the store answers.
    pub(crate) async fn settle(self: &Arc<Self>) {
        let core = Arc::clone(self);
        let settled = self.run(async move { core.recover_pending(OPEN_TIMEOUT, None).await });
        if let Err(error) = settled.await {
            tracing::debug!(%error, "unfinished writes stay unfinished during a move");
        }
    }

    /// Copies the bytes of files of `source` into this store, unless they are there already. Returns the rows for this database,
    /// without the files that were deleted meanwhile. `check_known`: look for bytes that an earlier copy has written.
    ///
    /// # Errors
    /// `Internal` (500), naming the file, if its bytes are gone or not those of its row; the errors of the stores.
    pub(crate) async fn receive_files(
        self: &Arc<Self>,
        source: &Arc<StorageCore>,
        rows: Vec<TransferRow>,
        check_known: bool,
    ) -> Result<Vec<TransferRow>> {
        let (target, source) = (Arc::clone(self), Arc::clone(source));
        let copy = async move {
            let buckets = Buckets::stored(&source.service).await?;
            let mut received = Vec::with_capacity(rows.len());
            if rows.iter().any(|row| !target.is_inline(row.file_size())) {
                target.require_store().await?;
            }
            for rows in rows.chunks(AT_ONCE) {
                let files = rows.iter().map(|row| target.receive_file(&source, row.clone(), &buckets, check_known));
                received.extend(try_join_all(files).await?.into_iter().flatten());
            }
            Ok(received)
        };
        self.run(copy).await
    }

    async fn receive_file(
        &self,
        source: &StorageCore,
        mut row: TransferRow,
        buckets: &[(String, super::buckets::BucketAccess)],
        check_known: bool,
    ) -> Result<Option<TransferRow>> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let Some(file) = row.file() else { return Ok(Some(row)) };
            // Another program may have written the row.
            target_of(buckets, &file.bucket, &file.path).map_err(|_| damaged(&file, NO_PLACE))?;
            if check_known && let Some(known) = self.known_place(&row, &file).await? {
                let (content, digest) = known;
                row.set_place(content, digest);
                return Ok(Some(row));
            }
            let reason = match self.copy_file(source, &row, &file).await? {
                Ok((content, digest)) => {
                    row.set_place(content, digest);
                    return Ok(Some(row));
                }
                Err(reason) => reason,
            };
            // A writer may have replaced the file after its row was read, or its bytes and not yet its row. The intent is read first:
            // an upload that ends between the two queries has changed the row by the second one.
            let key = ObjectKey { bucket: file.bucket.clone(), path: file.path.clone() };
            let is_being_written = source.is_being_written(&key).await?;
            let Some(found) = source.service.transfer_row(&row).await? else { return Ok(None) };
            if found.file().is_some_and(|found| found.etag == file.etag) {
                if !is_being_written {
                    return Err(damaged(&file, &reason));
                }
                sleep(INTERVAL).await;
            }
            row = found;
        }
        Err(Error::file(503, "A file of the source changes faster than it can be copied"))
    }

    /// Where this store has the bytes of the file already: those of the same version.
    async fn known_place(
        &self,
        row: &TransferRow,
        file: &FilePlace,
    ) -> Result<Option<(Option<Bytes>, Option<String>)>> {
        let Some(known) = self.service.transfer_row(row).await? else { return Ok(None) };
        let Some(place) = known.file().filter(|place| place.etag == file.etag && place.size == file.size) else {
            return Ok(None);
        };
        Ok(match place.is_inline {
            true => known.content.map(|content| (Some(content), None)),
            false => Some((None, Some(place.digest))),
        })
    }

    /// Copies the bytes of a file. Returns them if they are to be inline, else the digest of the object. The inner error says why
    /// the source does not have them.
    async fn copy_file(
        &self,
        source: &StorageCore,
        row: &TransferRow,
        file: &FilePlace,
    ) -> Result<Result<(Option<Bytes>, Option<String>), String>> {
        let key = ObjectKey { bucket: file.bucket.clone(), path: file.path.clone() };
        let bytes = match (file.is_inline, &row.content) {
            (true, Some(content)) => SourceBytes::Inline(content.clone()),
            (true, None) => return Ok(Err("the bytes of the file are gone".to_owned())),
            (false, _) => match source.objects.open_object(&key).await? {
                Some(object) => SourceBytes::Object(object, 0),
                None => return Ok(Err("the bytes of the file are gone".to_owned())),
            },
        };
        self.copy_bytes(bytes, file).await
    }

    /// Does what [`copy_file`](StorageCore::copy_file) does, with bytes of any source.
    pub(super) async fn copy_bytes(
        &self,
        mut bytes: SourceBytes,
        file: &FilePlace,
    ) -> Result<Result<(Option<Bytes>, Option<String>), String>> {
        let key = ObjectKey { bucket: file.bucket.clone(), path: file.path.clone() };
        if bytes.size() != file.size {
            return Ok(Err(format!("The stored bytes are {}, but the file has {}", bytes.size(), file.size)));
        }
        let mut hasher = blake3::Hasher::new();
        if self.is_inline(file.size) {
            let mut content = BytesMut::new();
            while let Some(chunk) = bytes.next().await? {
                hasher.update(&chunk);
                content.extend_from_slice(&chunk);
            }
            return Ok(match is_of_row(file, &hasher, content.len() as u64) {
                true => Ok((Some(content.freeze()), None)),
                false => Err(OTHER_BYTES.to_owned()),
            });
        }
        let mut stage = self.objects.stage(attributes(file));
        let mut size = 0;
        while let Some(chunk) = bytes.next().await? {
            hasher.update(&chunk);
            size += chunk.len() as u64;
            stage.write(chunk).await?;
        }
        if !is_of_row(file, &hasher, size) {
            return Ok(Err(OTHER_BYTES.to_owned()));
        }
        let staged: Staged = stage.finish().await?;
        let (id, digest, keys) = (staged.id.clone(), staged.digest.clone(), [key.clone()]);
        let install = async {
            // The outbox may have the path of an earlier file. Its removal would take the new object, which has no row yet.
            self.recover_locked(&key).await?;
            self.objects.install(staged, &key).await
        };
        let installed = self.with_locks(&keys, LOCK_TIMEOUT, install).await;
        if installed.is_err() {
            // No intent names the stage. Without it, a copy that the store has not begun cannot replace the bytes of the next try.
            self.objects.discard_later(id);
        }
        installed.map(|()| Ok((None, Some(digest))))
    }

    /// The digests of the bytes that this store has for files. `trusts(index)`: use the digest of the row `rows[index]`, if it has one,
    /// without reading its object.
    ///
    /// # Errors
    /// `Internal` (500), naming the file, if its bytes are gone or of another version; the errors of the store.
    pub(crate) async fn digests(
        self: &Arc<Self>,
        rows: &[TransferRow],
        trusts: impl Fn(usize) -> bool,
    ) -> Result<Vec<String>> {
        let files = rows.iter().enumerate().map(|(index, row)| (row.file(), row.content.clone(), trusts(index)));
        let (core, files) = (Arc::clone(self), files.collect::<Vec<_>>());
        let read = async move {
            let mut digests = Vec::with_capacity(files.len());
            for files in files.chunks(AT_ONCE) {
                digests.extend(try_join_all(files.iter().map(|file| core.digest_of(file))).await?);
            }
            Ok(digests)
        };
        self.run(read).await
    }

    async fn digest_of(&self, file: &(Option<FilePlace>, Option<Bytes>, bool)) -> Result<String> {
        let (place, content, is_trusted) = file;
        let Some(place) = place else { return Ok(String::new()) };
        match content {
            Some(content) if place.is_inline => return Ok(blake3::hash(content).to_hex().to_string()),
            _ if !place.is_inline && *is_trusted && !place.digest.is_empty() => return Ok(place.digest.clone()),
            _ => {}
        }
        let key = ObjectKey { bucket: place.bucket.clone(), path: place.path.clone() };
        let found = if place.is_inline { None } else { self.objects.hash(&key).await? };
        let found = found.ok_or_else(|| damaged(place, "the bytes of the file are gone"))?;
        if found.size != place.size {
            return Err(damaged(place, OTHER_BYTES));
        }
        Ok(found.digest.unwrap_or_default())
    }
}

const OTHER_BYTES: &str = "the bytes are not those that were written";

/// The bytes of a file of the source.
pub(super) enum SourceBytes {
    Inline(Bytes),
    /// The object, and the position in it.
    Object(crate::objects::ObjectReader, u64),
}

impl SourceBytes {
    fn size(&self) -> u64 {
        match self {
            SourceBytes::Inline(content) => content.len() as u64,
            SourceBytes::Object(object, _) => object.size(),
        }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Result<Option<Bytes>> {
        match self {
            SourceBytes::Inline(content) => Ok(Some(std::mem::take(content)).filter(|content| !content.is_empty())),
            SourceBytes::Object(object, position) => {
                if *position >= object.size() {
                    return Ok(None);
                }
                let chunk = object.read(*position..*position + CHUNK).await?;
                *position += chunk.len() as u64;
                Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
            }
        }
    }
}

/// Whether the bytes are those of the row. The row of an inline file has no digest: its bytes are of the same snapshot.
fn is_of_row(file: &FilePlace, hasher: &blake3::Hasher, size: u64) -> bool {
    size == file.size
        && (file.is_inline || file.digest.is_empty() || hasher.finalize().to_hex().as_str() == file.digest)
}

/// What a store keeps beside the bytes; as an upload would have it.
fn attributes(file: &FilePlace) -> ObjectAttributes {
    let metadata: BTreeMap<String, String> = serde_json::from_value(file.metadata.clone()).unwrap_or_default();
    ObjectAttributes {
        content_type: Some(file.content_type.clone()),
        cache_control: Some(format!("max-age={}", file.cache_control)),
        version: Some(file.etag.clone()),
        metadata: metadata.into_iter().collect(),
    }
}

pub(super) fn damaged(file: &FilePlace, reason: &str) -> Error {
    Error::file(500, format!("{}/{} cannot be moved: {reason}", file.bucket, file.path))
}

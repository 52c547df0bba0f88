//! The check of files: rows against the bytes in the database and in the object store, and the store itself.
//!
//! Invariant: it only reads, in pages, and takes no lock. A listing and a row are read at two moments, and writers may work in
//! between. So a difference is a finding only if a second look proves that no writer made it.

use std::{cmp::Ordering, time::Duration};

use super::{
    buckets::Buckets,
    core::StorageCore,
    repair::STALE,
    rows::{self, InlineFile, key_of},
    statements as sql,
};
use crate::{
    clock::earlier,
    database::Row,
    error::{Error, ErrorKind, Result},
    model::{CheckDepth, FindingCode, Findings, StoredObject},
    objects::{ListedObject, ObjectKey, ObjectPages, ObjectStat},
};

/// The rows that are read at a time.
const PAGE: i64 = 1_000;

/// How often a file is looked at again while somebody writes it. A writer that is slower than that has its own finding.
const TRIES: u32 = 8;

/// What a check may compare with the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreUse {
    /// The store is the database's own.
    Own,
    /// The store has the files of the database, and others.
    OfOriginal,
    /// The store has no files of the database, or is not there.
    Nothing,
}

/// A bucket's rows of large files, in pages.
struct RowPages<'c> {
    core: &'c StorageCore,
    bucket: &'c str,
    after: String,
    page: std::vec::IntoIter<StoredObject>,
    is_last: bool,
}

impl RowPages<'_> {
    async fn next(&mut self) -> Result<Option<StoredObject>> {
        if self.page.len() == 0 && !self.is_last {
            let values = vec![self.bucket.to_owned().into(), self.after.clone().into(), PAGE.into()];
            let page = self.core.service.scan(&sql::LIST_OBJECTS, values, rows::stored_object).await?;
            if let Some(last) = page.last() {
                self.after.clone_from(&last.path);
            }
            self.is_last = page.is_empty();
            self.page = page.into_iter();
        }
        Ok(self.page.next())
    }
}

/// A bucket's objects, in pages.
struct Listing {
    pages: ObjectPages,
    page: std::vec::IntoIter<ListedObject>,
}

impl Listing {
    async fn next(&mut self) -> Result<Option<ListedObject>> {
        if self.page.len() == 0 {
            self.page = self.pages.next_page().await?.into_iter();
        }
        Ok(self.page.next())
    }
}

impl StorageCore {
    /// Adds what is wrong with the files and their store. Changes nothing. A full check reads every byte of the files.
    ///
    /// # Errors
    /// Those of the database; `Closed`.
    pub(crate) async fn inspect(&self, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        self.inspect_inline_files(depth, findings).await?;
        self.inspect_intents(findings).await?;
        match self.inspect_objects(depth, findings).await {
            Err(error) if error.code().is_none() && error.kind() != ErrorKind::Closed => {
                // Else the database is at fault.
                self.first_objects().await?;
                add_store_failure(&error, findings);
                Ok(())
            }
            inspected => inspected,
        }
    }

    /// Compares the bytes of the database with their rows: a statement reads both at one moment.
    async fn inspect_inline_files(&self, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        let (mut bucket, mut path) = (String::new(), String::new());
        loop {
            let after = |limit: Option<i64>| {
                let mut values = vec![bucket.clone().into(), path.clone().into()];
                values.extend(limit.map(Into::into));
                values
            };
            let page = match depth {
                CheckDepth::Full => self.service.scan(&sql::INLINE_AFTER, after(None), full_inline_file).await?,
                CheckDepth::Quick => {
                    self.service.scan(&sql::INLINE_SIZES_AFTER, after(Some(PAGE)), inline_file).await?
                }
            };
            let Some(last) = page.last() else { return Ok(()) };
            (bucket, path) = (last.key.bucket.clone(), last.key.path.clone());
            for file in page {
                match file.bytes {
                    _ if !file.is_inline => {}
                    None => findings.add(FindingCode::FileMissing, format!("The bytes of {} are gone.", file.key)),
                    Some(bytes) if bytes != file.size => findings.add(
                        FindingCode::FileSizeDiffers,
                        format!("{} has {bytes} bytes, and its row says {}.", file.key, file.size),
                    ),
                    Some(_) => {}
                }
            }
        }
    }

    /// Looks for writes that began long ago.
    async fn inspect_intents(&self, findings: &mut Findings) -> Result<()> {
        let oldest = earlier(self.service.now().await?, STALE);
        let (mut bucket, mut path) = (String::new(), String::new());
        loop {
            let values = vec![bucket.clone().into(), path.clone().into(), oldest.into(), PAGE.into()];
            let keys = self.service.scan(&sql::OLD_INTENTS, values, rows::object_key).await?;
            let Some(last) = keys.last() else { return Ok(()) };
            (bucket, path) = (last.bucket.clone(), last.path.clone());
            for key in keys {
                findings.add(FindingCode::UnfinishedUpload, format!("The write of {key} has not ended."));
            }
        }
    }

    async fn inspect_objects(&self, depth: CheckDepth, findings: &mut Findings) -> Result<()> {
        let store = self.inspect_store(findings).await?;
        if store == StoreUse::Nothing {
            return Ok(());
        }
        for (bucket, _) in Buckets::stored(&self.service).await? {
            self.inspect_bucket(&bucket, depth, store, findings).await?;
        }
        let stages = self.objects.count_stale_stages(STALE).await?;
        if stages > 0 && store == StoreUse::Own {
            let message = format!("The store keeps the bytes of {stages} uploads that ended without a file.");
            findings.add(FindingCode::StaleStage, message);
        }
        Ok(())
    }

    /// Finds out whether the store is the one of the database, as `open` does.
    async fn inspect_store(&self, findings: &mut Findings) -> Result<StoreUse> {
        if self.objects.is_volatile() {
            return Ok(StoreUse::Own);
        }
        if let Ok(Some(_)) = self.objects.surrounding_store().await {
            findings.add(FindingCode::StoreNested, "The object store lies in another object store.");
        }
        match self.judge_store().await? {
            Ok(store) => Ok(store),
            Err((code, message)) => {
                findings.add(code, message);
                let is_usable = code == FindingCode::StoreOfOriginal;
                Ok(if is_usable { StoreUse::OfOriginal } else { StoreUse::Nothing })
            }
        }
    }

    /// Compares the rows of a bucket with its objects. Both come in the order of the bytes of their paths.
    async fn inspect_bucket(
        &self,
        bucket: &str,
        depth: CheckDepth,
        store: StoreUse,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut rows =
            RowPages { core: self, bucket, after: String::new(), page: Vec::new().into_iter(), is_last: false };
        let mut objects = Listing { pages: self.objects.list(bucket).await?, page: Vec::new().into_iter() };
        let (mut row, mut object) = (rows.next().await?, objects.next().await?);
        loop {
            let order = match (&row, &object) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(row), Some(object)) => row.path.as_bytes().cmp(object.path.as_bytes()),
            };
            let has_size = |size: u64| object.as_ref().is_some_and(|object| object.size == size);
            if let Some(row) = row.as_ref().filter(|_| order != Ordering::Greater)
                && (depth == CheckDepth::Full || order != Ordering::Equal || !has_size(row.size))
                && let Some((code, message)) = self.inspect_object(row, depth).await?
            {
                findings.add(code, message);
            }
            if let Some(object) = object.as_ref().filter(|_| order == Ordering::Greater && store == StoreUse::Own) {
                let key = ObjectKey { bucket: bucket.to_owned(), path: object.path.clone() };
                if self.is_orphan(&key).await? {
                    findings.add(FindingCode::OrphanObject, format!("The object {key} belongs to no file."));
                }
            }
            if order != Ordering::Greater {
                row = rows.next().await?;
            }
            if order != Ordering::Less {
                object = objects.next().await?;
            }
        }
    }

    /// Compares the object of a row with it. `None` if they agree, or if somebody writes or deletes the file.
    async fn inspect_object(&self, row: &StoredObject, depth: CheckDepth) -> Result<Option<(FindingCode, String)>> {
        let key = key_of(row);
        for attempt in 0..TRIES {
            let fault = match self.find_fault(&key, row, depth).await {
                Err(error) if is_of_store(&error) || error.kind() == ErrorKind::Closed => return Err(error),
                Err(_) => Some((FindingCode::FileUnreadable, format!("The bytes of {key} cannot be read."))),
                Ok(fault) => fault,
            };
            if fault.is_none() {
                return Ok(None);
            }
            // A writer has an intent from before it touches the object until it commits the row. So a row that is the same now,
            // and has no intent, was the row of the object that was looked at.
            let values = vec![key.bucket.clone().into(), key.path.clone().into()];
            let read = |row: &Row<'_>| Ok((row.get::<String>(0)?, row.get::<bool>(1)?));
            match self.service.scan(&sql::VERSION, values, read).await?.pop() {
                Some((etag, false)) if etag == row.etag => return Ok(fault),
                Some((etag, true)) if etag == row.etag => self.pause(Duration::from_millis(10 << attempt)).await?,
                Some(_) | None => return Ok(None),
            }
        }
        Ok(None)
    }

    async fn find_fault(
        &self,
        key: &ObjectKey,
        row: &StoredObject,
        depth: CheckDepth,
    ) -> Result<Option<(FindingCode, String)>> {
        let Some(ObjectStat { size, version }) = self.objects.stat(key).await? else {
            return Ok(Some((FindingCode::FileMissing, format!("The bytes of {key} are gone."))));
        };
        if size != row.size {
            let message = format!("{key} has {size} bytes, and its row says {}.", row.size);
            return Ok(Some((FindingCode::FileSizeDiffers, message)));
        }
        let is_other_version = version.is_some_and(|version| version != row.etag);
        if is_other_version && self.objects.is_remote() {
            return Ok(Some((FindingCode::FileVersionDiffers, format!("The object {key} is of another version."))));
        }
        // The object of a moved file may have the version of its source: the digest tells.
        if row.digest.is_empty() || (depth == CheckDepth::Quick && !is_other_version) {
            return Ok(None);
        }
        let digest = self.objects.hash(key).await?.and_then(|object| object.digest);
        if digest.as_ref() == Some(&row.digest) {
            return Ok(None);
        }
        let message = format!("The bytes of {key} are not those that were uploaded.");
        Ok(Some((FindingCode::FileDigestDiffers, message)))
    }

    /// Whether no file needs an object, and none will.
    async fn is_orphan(&self, key: &ObjectKey) -> Result<bool> {
        // The key of an object that another program put there may be none of the library.
        if key.check().is_err() {
            return Ok(true);
        }
        let before = self.objects.stat(key).await?;
        let values = vec![key.bucket.clone().into(), key.path.clone().into()];
        let is_known = !self.service.scan(&sql::OBJECT_IS_KNOWN, values, |_| Ok(())).await?.is_empty();
        // An object of the library is known for as long as it exists. If it was the same before and after, it was there when the
        // database did not know it.
        Ok(!is_known && before.is_some() && self.objects.stat(key).await? == before)
    }
}

/// A row of a file and the number of its bytes in the database.
struct InlineSize {
    key: ObjectKey,
    size: u64,
    is_inline: bool,
    bytes: Option<u64>,
}

fn inline_file(row: &Row<'_>) -> Result<InlineSize> {
    let (size, bytes): (i64, Option<i64>) = (row.get(2)?, row.get_optional(4)?);
    let key = rows::object_key(row)?;
    Ok(InlineSize { key, size: size.unsigned_abs(), is_inline: row.get(3)?, bytes: bytes.map(i64::unsigned_abs) })
}

fn full_inline_file(row: &Row<'_>) -> Result<InlineSize> {
    let InlineFile { bucket, path, size, content } = rows::inline_file(row)?;
    let bytes = content.map(|content| content.len() as u64);
    Ok(InlineSize { key: ObjectKey { bucket, path }, size, is_inline: true, bytes })
}

/// Whether an error says that the store as a whole does not answer.
fn is_of_store(error: &Error) -> bool {
    error.code().is_none() && (error.kind() == ErrorKind::Unavailable || error.kind() == ErrorKind::Config)
}

fn add_store_failure(error: &Error, findings: &mut Findings) {
    match error.kind() {
        ErrorKind::Unavailable => {
            findings.add(FindingCode::StoreUnreachable, "The object store does not answer as expected.");
        }
        _ => findings.add(FindingCode::StoreMissing, "The object store cannot be read."),
    }
}

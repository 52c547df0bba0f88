//! The files of a Supabase project on their way into this store.
//!
//! Invariant: a row of the project is text that nothing was checked of. It becomes a row of a file only if its bucket is one of the
//! target and if an upload could write its path and its metadata.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use futures_util::future::try_join_all;
use serde_json::Value as Json;
use uuid::Uuid;

use super::{
    buckets::Buckets,
    checks::{MAX_CACHE_CONTROL, check_options, media_type},
    content_type::guess_content_type,
    core::StorageCore,
    transfer::{AT_ONCE, SourceBytes, damaged},
    upload::new_etag,
};
use crate::{
    database::{FILES, ProjectObject, TransferRow, TransferTable, Value, tables},
    error::Result,
    model::UploadOptions,
    objects::{ForeignObjects, ObjectKey},
    storage_path::is_bucket_name,
};

/// The buckets that the target of a move has.
#[derive(Debug)]
pub(crate) struct TargetBuckets(Buckets);

impl TargetBuckets {
    /// The built-in buckets and those of the option `buckets`.
    ///
    /// # Errors
    /// `Config`, naming the option.
    pub(crate) fn parse(option: &str) -> Result<TargetBuckets> {
        Buckets::parse(option).map(TargetBuckets)
    }

    /// The names of the buckets.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.names()
    }

    /// Why the target has no bucket of this name, and what to do. `None` if it has one.
    pub(crate) fn fault(&self, name: &str) -> Option<String> {
        if self.0.access(name).is_ok() {
            return None;
        }
        Some(match is_bucket_name(name) {
            true => format!(
                "the target has no bucket {name:?}: declare it with the option buckets of the target, such as {name}=private"
            ),
            false => format!(
                "the target can have no bucket {name:?}: the option buckets takes names of 1 to 63 of a-z, 0-9, - and _"
            ),
        })
    }

    /// Whether everyone may read the files of a bucket.
    pub(crate) fn is_public(&self, name: &str) -> bool {
        self.0.access(name).is_ok_and(|access| access.as_str() != "private")
    }

    /// The rows of the buckets.
    pub(crate) fn rows(&self) -> Option<(&'static TransferTable, Vec<TransferRow>)> {
        let table = tables().iter().find(|table| table.name == "buckets")?;
        let row = |name: &str| {
            let access = self.0.access(name).ok()?.as_str();
            Some(TransferRow::new(table, vec![name.to_owned().into(), access.to_owned().into()]))
        };
        Some((table, self.names().filter_map(row).collect()))
    }

    /// The row of the file that an object with this many bytes becomes.
    ///
    /// # Errors
    /// The rule that the object breaks, as a sentence.
    pub(crate) fn row(&self, object: &ProjectObject, size: u64) -> Result<TransferRow, String> {
        let Some(table) = tables().iter().find(|table| table.name == FILES) else {
            return Err("there is no table of files".to_owned());
        };
        let reason = |error: crate::Error| error.reason().unwrap_or_else(|| error.message()).to_owned();
        let target = self.0.new_target(&object.bucket, &object.path).map_err(reason)?;
        let options = upload_options(object, target.path.name());
        check_options(&options).map_err(reason)?;
        let UploadOptions { content_type, cache_control, metadata, .. } = options;
        let owner = object.owner.as_deref().and_then(|owner| Uuid::try_parse(owner).ok());
        let values = vec![
            target.bucket.clone().into(),
            target.path.as_str().to_owned().into(),
            target.access.as_str().into(),
            target.space_id.into(),
            target.path.first_segment().to_owned().into(),
            owner.into(),
            Value::from(i64::try_from(size).unwrap_or(i64::MAX)),
            content_type.unwrap_or_default().into(),
            Value::from(i64::from(cache_control)),
            new_etag().into(),
            serde_json::json!(metadata).into(),
            None::<String>.into(),
            false.into(),
            object.updated_at.into(),
        ];
        Ok(TransferRow::new(table, values))
    }
}

/// The options of an upload that would write the object.
fn upload_options(object: &ProjectObject, name: &str) -> UploadOptions {
    let text = |name: &str| object.metadata[name].as_str();
    // Not an error: other programs write media types that are none.
    let content_type = text("mimetype").filter(|text| media_type(text).is_some()).map(str::to_owned);
    let content_type = content_type.unwrap_or_else(|| guess_content_type(name, &[]).to_owned());
    let metadata: BTreeMap<String, String> = object.user_metadata.as_object().map_or_else(BTreeMap::new, |members| {
        let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        members.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    });
    let mut options = UploadOptions::default();
    options.cache_control = text("cacheControl").map_or(options.cache_control, max_age);
    options.content_type = Some(content_type);
    options.metadata = metadata;
    options
}

/// The seconds of a `Cache-Control`, or of a number alone. 0 for a header without a time, such as `no-cache`.
fn max_age(text: &str) -> u32 {
    let number = text.split_once("max-age=").map_or(text, |(_, rest)| rest);
    let digits: String = number.trim().chars().take_while(char::is_ascii_digit).collect();
    // A number that is too large has digits alone.
    let seconds = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(MAX_CACHE_CONTROL) };
    seconds.min(MAX_CACHE_CONTROL)
}

impl StorageCore {
    /// Copies the bytes of the files from `source` into this store. Returns the rows for this database, each with the BLAKE3 digest
    /// of the bytes in hex.
    ///
    /// # Errors
    /// `Internal` (500), naming the file, if its bytes are missing or not as many as the row says; the errors of the stores.
    pub(crate) async fn receive_foreign_files(
        self: &Arc<Self>,
        source: &Arc<ForeignObjects>,
        rows: Vec<TransferRow>,
    ) -> Result<Vec<(TransferRow, String)>> {
        let (target, source) = (Arc::clone(self), Arc::clone(source));
        let copy = async move {
            let mut received = Vec::with_capacity(rows.len());
            if rows.iter().any(|row| !target.is_inline(row.file_size())) {
                target.require_store().await?;
            }
            for rows in rows.chunks(AT_ONCE) {
                let files = rows.iter().map(|row| target.receive_foreign_file(&source, row.clone()));
                received.extend(try_join_all(files).await?);
            }
            Ok(received)
        };
        self.run(copy).await
    }

    async fn receive_foreign_file(
        &self,
        source: &ForeignObjects,
        mut row: TransferRow,
    ) -> Result<(TransferRow, String)> {
        let Some(file) = row.file() else { return Ok((row, String::new())) };
        let key = ObjectKey { bucket: file.bucket.clone(), path: file.path.clone() };
        let Some(object) = source.open_object(&key).await? else {
            return Err(damaged(&file, "the bytes of the object are missing"));
        };
        let (content, digest) = match self.copy_bytes(SourceBytes::Object(object, 0), &file).await? {
            Ok(copied) => copied,
            Err(reason) => return Err(damaged(&file, &reason)),
        };
        let of_bytes = |content: &Bytes| blake3::hash(content).to_hex().to_string();
        let of_content = digest.clone().or_else(|| content.as_ref().map(of_bytes)).unwrap_or_default();
        row.set_place(content, digest);
        Ok((row, of_content))
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn object(bucket: &str, path: &str, metadata: Json, user_metadata: Json) -> ProjectObject {
        let (bucket, path) = (bucket.to_owned(), path.to_owned());
        let updated_at = Timestamp::UNIX_EPOCH;
        ProjectObject { bucket, path, owner: None, names_owner: false, updated_at, metadata, user_metadata }
    }

    #[test]
    fn a_cache_control_is_a_number_of_seconds() {
        for (text, seconds) in [
            ("max-age=3600", 3_600),
            ("public, max-age=60, immutable", 60),
            ("7200", 7_200),
            ("no-cache", 0),
            ("", 0),
            ("max-age=99999999999999999999", MAX_CACHE_CONTROL),
        ] {
            assert_eq!(max_age(text), seconds, "{text}");
        }
    }

    #[test]
    fn an_object_becomes_the_file_of_an_upload() {
        let buckets = TargetBuckets::parse("media=private").expect("buckets");
        let metadata = json!({ "mimetype": "image/png", "cacheControl": "max-age=5", "size": 3 });
        let row = buckets.row(&object("media", "a/b.png", metadata, json!({ "author": "ann", "n": 1 })), 3);
        let file = row.expect("a row").file().expect("a file");
        assert_eq!((file.content_type.as_str(), file.cache_control, file.size), ("image/png", 5, 3));
        assert_eq!(file.metadata, json!({ "author": "ann", "n": "1" }));
        // Metadata may be missing, and a media type may be none.
        for metadata in [Json::Null, json!({}), json!({ "mimetype": "none" })] {
            let row = buckets.row(&object("media", "b.png", metadata, Json::Null), 0).expect("a row");
            let file = row.file().expect("a file");
            assert_eq!((file.content_type.as_str(), file.cache_control), ("image/png", 3_600));
        }
    }

    #[test]
    fn a_name_that_no_upload_may_have_is_refused() {
        let buckets = TargetBuckets::parse("media=private").expect("buckets");
        for path in ["../x", "a/../b", "/a", "a//b", "a\\b", "", "a\0b", "."] {
            assert!(buckets.row(&object("media", path, Json::Null, Json::Null), 0).is_err(), "{path:?}");
        }
        assert!(buckets.row(&object("media", "a", Json::Null, json!({ "a b": "c" })), 0).is_err());
        assert!(buckets.row(&object("other", "a", Json::Null, Json::Null), 0).is_err());
        assert!(buckets.fault("other").is_some_and(|fault| fault.contains("other=private")));
        assert!(
            buckets.fault("Big").is_some_and(|fault| fault.contains("1 to 63")) && buckets.fault("media").is_none()
        );
    }
}

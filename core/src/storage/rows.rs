//! Rows of files: what is read from the database, and what a write gives to it.

use std::collections::BTreeMap;

use bytes::Bytes;
use jiff::Timestamp;
use uuid::Uuid;

use super::buckets::FileTarget;
use crate::{
    database::{Row, Value, record},
    error::Result,
    model::{FileInfo, StoredObject},
    objects::{ObjectAttributes, ObjectKey},
};

/// A row of `files` with its inline bytes.
pub(super) struct FoundFile {
    pub(super) info: FileInfo,
    pub(super) is_inline: bool,
    pub(super) content: Option<Bytes>,
    /// Whether the object is being written.
    pub(super) has_intent: bool,
}

/// A row of `file_intents`.
#[derive(Clone)]
pub(super) struct Intent {
    pub(super) owner_id: Option<Uuid>,
    pub(super) etag: String,
    pub(super) size: u64,
    pub(super) digest: String,
    pub(super) staged: String,
    pub(super) base_etag: String,
    pub(super) moved: Option<(String, String)>,
    /// Whether its user has lost the right since.
    pub(super) is_revoked: bool,
    pub(super) created_at: Timestamp,
}

/// A file to write, before its bytes are known.
#[derive(Clone)]
pub(super) struct NewFile {
    pub(super) target: FileTarget,
    pub(super) owner_id: Option<Uuid>,
    pub(super) content_type: String,
    pub(super) cache_control: u32,
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) etag: String,
    pub(super) upsert: bool,
    pub(super) if_match: Option<String>,
    /// Path and etag of the source of a move.
    pub(super) moved: Option<(String, String)>,
}

pub(super) fn found_file(row: &Row<'_>) -> Result<FoundFile> {
    let info = record(row)?;
    Ok(FoundFile { info, is_inline: row.get(9)?, content: row.get_optional(10)?, has_intent: row.get(11)? })
}

/// Reads a file whose bytes are an object.
pub(super) fn stored_object(row: &Row<'_>) -> Result<StoredObject> {
    let size: i64 = row.get(2)?;
    let (bucket, path) = (row.get(0)?, row.get(1)?);
    Ok(StoredObject { bucket, path, size: size.unsigned_abs(), etag: row.get(3)?, digest: row.get(4)? })
}

pub(super) fn key_of(object: &StoredObject) -> ObjectKey {
    ObjectKey { bucket: object.bucket.clone(), path: object.path.clone() }
}

/// A file whose bytes are in the database.
pub(super) struct InlineFile {
    pub(super) bucket: String,
    pub(super) path: String,
    pub(super) size: u64,
    /// `None` if the bytes are gone.
    pub(super) content: Option<Bytes>,
}

pub(super) fn inline_file(row: &Row<'_>) -> Result<InlineFile> {
    let size: i64 = row.get(2)?;
    let (bucket, path, content) = (row.get(0)?, row.get(1)?, row.get_optional(3)?);
    Ok(InlineFile { bucket, path, size: size.unsigned_abs(), content })
}

/// Reads bucket and path.
pub(super) fn object_key(row: &Row<'_>) -> Result<ObjectKey> {
    Ok(ObjectKey { bucket: row.get(0)?, path: row.get(1)? })
}

pub(super) fn intent(row: &Row<'_>) -> Result<Intent> {
    let size: i64 = row.get(1)?;
    let (from, etag): (Option<String>, Option<String>) = (row.get_optional(5)?, row.get_optional(6)?);
    Ok(Intent {
        etag: row.get(0)?,
        size: size.unsigned_abs(),
        digest: row.get(2)?,
        staged: row.get(3)?,
        base_etag: row.get(4)?,
        moved: from.zip(etag),
        is_revoked: row.get(7)?,
        created_at: row.get(8)?,
        owner_id: row.get_optional(9)?,
    })
}

impl NewFile {
    /// The values `$1` to `$17` of a write.
    pub(super) fn values(&self, size: u64, now: Timestamp) -> Vec<Value<'static>> {
        let (inside, after) = self.target.inside();
        vec![
            self.target.bucket.clone().into(),
            self.target.path.as_str().to_owned().into(),
            self.target.access.as_str().into(),
            self.target.space_id.into(),
            self.target.path.first_segment().to_owned().into(),
            self.owner_id.into(),
            Value::from(i64::try_from(size).unwrap_or(i64::MAX)),
            self.content_type.clone().into(),
            Value::from(i64::from(self.cache_control)),
            self.etag.clone().into(),
            serde_json::json!(self.metadata).into(),
            now.into(),
            self.target.folders().into(),
            inside.into(),
            after.into(),
            self.upsert.into(),
            self.if_match.clone().into(),
        ]
    }

    pub(super) fn info(&self, size: u64, updated_at: Timestamp) -> FileInfo {
        FileInfo {
            bucket: self.target.bucket.clone(),
            path: self.target.path.as_str().to_owned(),
            size,
            content_type: self.content_type.clone(),
            cache_control: self.cache_control,
            etag: self.etag.clone(),
            metadata: self.metadata.clone(),
            owner_id: self.owner_id,
            updated_at,
        }
    }

    /// What a store keeps beside the bytes.
    pub(super) fn attributes(&self) -> ObjectAttributes {
        ObjectAttributes {
            content_type: Some(self.content_type.clone()),
            cache_control: Some(format!("max-age={}", self.cache_control)),
            version: Some(self.etag.clone()),
            metadata: self.metadata.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    /// The key of the source of a move.
    pub(super) fn source_key(&self) -> Option<ObjectKey> {
        let (path, _) = self.moved.as_ref()?;
        Some(ObjectKey { bucket: self.target.bucket.clone(), path: path.clone() })
    }

    /// The paths that a write changes.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.moved.iter().map(|(source, _)| source.as_str()).chain([self.target.path.as_str()])
    }

    /// Whether the write depends on the version that it replaces.
    pub(super) fn is_conditional(&self) -> bool {
        !self.upsert || self.if_match.is_some()
    }
}

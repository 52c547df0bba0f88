//! The record `FileInfo`.

use crate::record::{PyTime, record};

record! {
    /// What is known about a stored file.
    FileInfo(townsquare::storage::FileInfo) [] as file, hash (&file.bucket, &file.path, &file.etag) => {
        /// The bucket: `spaces`, `private`, `assets`, or one of the option `buckets`.
        bucket: &file.bucket,
        /// The path in the bucket, without a leading slash.
        path: &file.path,
        /// The size in bytes.
        size: file.size,
        /// The media type.
        content_type: &file.content_type,
        /// How long a cache may keep the file, in seconds.
        cache_control: file.cache_control,
        /// The version: new with every write, also of the same bytes.
        etag: &file.etag,
        /// Names and values that the uploader gave.
        metadata: &file.metadata,
        /// The user who wrote the file; None for the service and for a user who was deleted.
        owner_id: file.owner_id,
        /// When the file was last written, UTC.
        updated_at: PyTime(file.updated_at),
    }
}

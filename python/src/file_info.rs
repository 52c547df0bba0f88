//! The record `FileInfo`.

use crate::record::{PyTime, record};

record! {
    #[doc = text_of!(FileInfo)]
    FileInfo(townsquare::storage::FileInfo) [] as file, hash [bucket, path, etag] => {
        /// The bucket: `spaces`, `private`, `assets`, or one of the option `buckets`.
        bucket: "str" = &file.bucket,
        /// The path in the bucket, without a leading slash.
        path: "str" = &file.path,
        /// The size in bytes.
        size: "int" = file.size,
        /// The media type.
        content_type: "str" = &file.content_type,
        /// How long a cache may keep the file, in seconds.
        cache_control: "int" = file.cache_control,
        /// The version: new with every write, also of the same bytes.
        etag: "str" = &file.etag,
        /// Names and values that the uploader gave.
        metadata: "dict[str, str]" = &file.metadata,
        /// The user who wrote the file; None for the service and for a user who was deleted.
        owner_id: "Optional[UUID]" = file.owner_id,
        /// When the file was last written, UTC.
        updated_at: "datetime" = PyTime(file.updated_at),
    }
}

//! The files of a database whose bytes are in the object store, for a backup and a restore.

use crate::model::StoredObject;

/// The files of a database whose bytes are objects.
pub(super) fn stored_objects(database: &rusqlite::Connection) -> rusqlite::Result<Vec<StoredObject>> {
    let mut statement = database.prepare(
        "SELECT bucket, path, size, etag, coalesce(digest, '') FROM townsquare_files WHERE NOT is_inline
         ORDER BY bucket, path",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let size: i64 = row.get(2)?;
        Ok(StoredObject {
            bucket: row.get(0)?,
            path: row.get(1)?,
            size: size.unsigned_abs(),
            etag: row.get(3)?,
            digest: row.get(4)?,
        })
    };
    statement.query_map([], read)?.collect()
}

//! Reads what a PostgreSQL database knows of its object store, before `open` migrates it.

use sqlx::{Executor as _, PgConnection, Row as _};

use super::errors::translate;
use crate::{
    database::stored_files::{FILES_SINCE, StoredFiles},
    error::Result,
    model::StoredObject,
};

/// As JSON, because an older database lacks the column.
const STORE_ID: &str = "SELECT COALESCE(to_jsonb(database) ->> 'store_id', '') FROM townsquare.database AS database";

const OBJECTS: &str =
    "SELECT bucket::text, path::text, size, etag::text, COALESCE(digest::text, '') FROM townsquare.files
    WHERE NOT is_inline ORDER BY bucket, path LIMIT 10";

const BUCKETS: &str = "SELECT name::text, access FROM townsquare.buckets ORDER BY name";

/// Reads from a database at the schema version `version`, as the service.
pub(super) async fn read(connection: &mut PgConnection, version: usize) -> Result<StoredFiles> {
    if version < FILES_SINCE {
        return Ok(StoredFiles::default());
    }
    let store_id = connection.fetch_optional(STORE_ID).await.map_err(translate)?;
    let store_id = store_id.map_or(Ok(String::new()), |row| row.try_get(0).map_err(translate))?;
    let mut stored_files = StoredFiles { store_id, ..StoredFiles::default() };
    for row in connection.fetch_all(OBJECTS).await.map_err(translate)? {
        stored_files.objects.push(StoredObject {
            bucket: row.try_get(0).map_err(translate)?,
            path: row.try_get(1).map_err(translate)?,
            size: row.try_get::<i64, _>(2).map_err(translate)?.unsigned_abs(),
            etag: row.try_get(3).map_err(translate)?,
            digest: row.try_get(4).map_err(translate)?,
        });
    }
    for row in connection.fetch_all(BUCKETS).await.map_err(translate)? {
        stored_files.buckets.push((row.try_get(0).map_err(translate)?, row.try_get(1).map_err(translate)?));
    }
    Ok(stored_files)
}

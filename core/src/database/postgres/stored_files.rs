//! Reads what a PostgreSQL database knows of its object store, before `open` migrates it.

use sqlx::PgConnection;

use super::query::tuples;
use crate::{
    database::stored_files::{FILES_SINCE, StoredFiles},
    error::Result,
    model::StoredObject,
};

const STORE_ID: &str = "SELECT store_id FROM townsquare.database";

const OBJECTS: &str =
    "SELECT bucket::text, path::text, size, etag::text, COALESCE(digest::text, '') FROM townsquare.files
    WHERE NOT is_inline ORDER BY bucket, path LIMIT 10";

const BUCKETS: &str = "SELECT name::text, access FROM townsquare.buckets ORDER BY name";

/// Reads from a database at the schema version `version`, as the service.
pub(super) async fn read(connection: &mut PgConnection, version: usize) -> Result<StoredFiles> {
    if version < FILES_SINCE {
        return Ok(StoredFiles::default());
    }
    let store_ids: Vec<(String,)> = tuples(connection, STORE_ID, &[]).await?;
    let objects: Vec<(String, String, i64, String, String)> = tuples(connection, OBJECTS, &[]).await?;
    let object = |(bucket, path, size, etag, digest): (_, _, i64, _, _)| StoredObject {
        bucket,
        path,
        size: size.unsigned_abs(),
        etag,
        digest,
    };
    Ok(StoredFiles {
        store_id: store_ids.into_iter().next().map(|(store_id,)| store_id).unwrap_or_default(),
        objects: objects.into_iter().map(object).collect(),
        buckets: tuples(connection, BUCKETS, &[]).await?,
    })
}

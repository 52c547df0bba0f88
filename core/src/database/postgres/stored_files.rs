//! Reads what a PostgreSQL database knows of its object store, before `open` migrates it.

use sqlx::PgConnection;

use super::{
    dialect::Postgresql,
    query::{tuples, value},
};
use crate::{
    database::{
        stored_files::{FILES_SINCE, MOVES_SINCE, StoredFiles, Usage},
        transfer::USED_TABLES,
    },
    error::Result,
    model::StoredObject,
    policy::Caller,
};

const STORE_ID: &str = "SELECT store_id FROM townsquare.database";

const OBJECTS: &str =
    "SELECT bucket::text, path::text, size, etag::text, COALESCE(digest::text, '') FROM townsquare.files
    WHERE NOT is_inline ORDER BY bucket, path LIMIT 10";

const UNFINISHED_MOVE: &str = "SELECT source FROM townsquare.unfinished_move";

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
    let moves: Vec<(String,)> = match version >= MOVES_SINCE {
        true => tuples(connection, UNFINISHED_MOVE, &[]).await?,
        false => Vec::new(),
    };
    Ok(StoredFiles {
        store_id: store_ids.into_iter().next().map(|(store_id,)| store_id).unwrap_or_default(),
        objects: objects.into_iter().map(object).collect(),
        buckets: tuples(connection, BUCKETS, &[]).await?,
        unfinished_move: moves.into_iter().next().map(|(source,)| source),
        usage: Usage::default(),
        plan: None,
    })
}

/// Reads whether the database can be the target of a move, as the service.
pub(super) async fn read_usage(connection: &mut PgConnection) -> Result<Usage> {
    let incarnation = value(connection, "SELECT incarnation FROM townsquare.database").await?;
    let sql = USED_TABLES.for_postgres::<Postgresql>(Caller::Service).sql;
    let used: Vec<(String,)> = tuples(connection, sql, &[]).await?;
    Ok(Usage { incarnation, used_tables: used.into_iter().map(|(name,)| name).collect() })
}
